//! The seam: what a kind of figure is to the page and to the terminal. `table` has a row for each.

use crate::report::numbers::Numbers;
use crate::report::views::Sizes;
use crate::terminal::Ink;
use minijinja::value::{Serde, Value};
use serde::Serialize;

/// A kind of figure.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Of its template: `sweep`.
    pub name: &'static str,
    /// Lays out a view, which it finds as `view`; the macros of macros.html are `macros`.
    pub template: &'static str,
    pub views: Views,
    /// Elements that the drawings of a result refer to by their ids.
    pub definitions: fn(&Numbers<'_>) -> String,
    /// For the terminal; empty when the result has no such figure, or shows it only on the page.
    pub text: fn(&Numbers<'_>, Ink) -> String,
}

/// What the page shows, and where; nothing when no result has such a figure.
#[derive(Clone, Copy)]
pub enum Views {
    /// Of all results together: on top of the page.
    WholePage(fn(&[Numbers<'_>], Sizes) -> Vec<View>),
    /// Of a result across its conditions: first on the page, and last in the terminal, where one looks first.
    EachResult(fn(&Numbers<'_>, Sizes) -> Vec<View>),
    /// One for each condition of a result.
    EachCondition(fn(&Numbers<'_>, Sizes) -> Vec<View>),
}

/// Plain values that a template lays out.
pub struct View(pub Value);

impl View {
    pub fn of(view: &impl Serialize) -> Self {
        Self(Serde(view).into())
    }
}

impl Figure {
    /// A row that draws nothing yet.
    pub const fn new(name: &'static str, template: &'static str, views: Views) -> Self {
        Self { name, template, views, definitions: |_| String::new(), text: |_, _| String::new() }
    }

    /// Of a result, if the figure is of one.
    pub fn across(&self, numbers: &Numbers<'_>, sizes: Sizes) -> Vec<View> {
        if let Views::EachResult(of) = self.views { of(numbers, sizes) } else { Vec::new() }
    }

    /// Of a result's conditions, if the figure is of them.
    pub fn by_condition(&self, numbers: &Numbers<'_>, sizes: Sizes) -> Vec<View> {
        if let Views::EachCondition(of) = self.views { of(numbers, sizes) } else { Vec::new() }
    }
}
