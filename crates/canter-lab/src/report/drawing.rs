//! The seam: the type of a row of `table`, a kind of drawing on the page and in the terminal.

use crate::report::numbers::Numbers;
use canter_cli::terminal::Ink;
use minijinja::value::{Serde, Value};
use serde::Serialize;

/// A kind of drawing.
#[derive(Clone, Copy)]
pub struct Drawing {
    /// The name of the drawing's template: `sweep`.
    pub name: &'static str,
    /// The template that lays out a view. Its variables: `view`, and `macros` (macros.html).
    pub template: &'static str,
    pub views: Views,
    /// Draws for the terminal; empty when the result has no such drawing, or shows it only on the page.
    pub text: fn(&Numbers<'_>, Ink) -> String,
}

/// The drawing's views and their place on the page; none when no result has such a drawing.
#[derive(Clone, Copy)]
pub enum Views {
    /// One view of all results, at the top of the page.
    WholePage(fn(&[Numbers<'_>]) -> Vec<View>),
    /// One view of a result across its conditions: first in its section, and last in the terminal, next to the prompt.
    EachResult(fn(&Numbers<'_>) -> Vec<View>),
    /// One view of each condition of a result.
    EachCondition(fn(&Numbers<'_>) -> Vec<View>),
}

/// Plain values that a template lays out.
pub struct View(pub Value);

impl View {
    pub fn of(view: &impl Serialize) -> Self {
        Self(Serde(view).into())
    }
}

impl Drawing {
    /// A row without text for the terminal.
    pub const fn new(name: &'static str, template: &'static str, views: Views) -> Self {
        Self { name, template, views, text: |_, _| String::new() }
    }

    /// The views of a result, if the drawing has [`Views::EachResult`].
    pub fn across(&self, numbers: &Numbers<'_>) -> Vec<View> {
        if let Views::EachResult(of) = self.views { of(numbers) } else { Vec::new() }
    }

    /// The views of a result's conditions, if the drawing has [`Views::EachCondition`].
    pub fn by_condition(&self, numbers: &Numbers<'_>) -> Vec<View> {
        if let Views::EachCondition(of) = self.views { of(numbers) } else { Vec::new() }
    }
}
