//! A history in the terminal: a table for each quantity, then the steps.

use super::{Cell, Flavour, History};
use canter_cli::{
    terminal::{self, BOLD, FAINT, GREEN, Ink, PLAIN, RED},
    units,
};
use std::fmt::Write;

/// The number of kernels in a table; more are continued below.
const KERNELS_MAX: usize = 7;
/// The widths of the first column and of each kernel's.
const LABEL: usize = 22;
const COLUMN: usize = 8;

/// The whole history, at most 80 columns wide.
pub fn text(history: &History, about: &str, ink: Ink) -> String {
    let mut out = String::new();
    for flavour in &history.flavours {
        let name = if flavour.realtime { "PREEMPT_RT kernels" } else { "Plain kernels" };
        terminal::paragraph(&mut out, &format!("{name}, ns per frame:"), 0, ink, BOLD);
        let mut begin = 0;
        while begin < flavour.kernels.len() {
            let end = (begin + KERNELS_MAX).min(flavour.kernels.len());
            table(&mut out, flavour, begin..end, ink);
            begin = end;
        }
    }
    steps(&mut out, history, ink);
    terminal::paragraph(&mut out, about, 0, ink, FAINT);
    out
}

fn table(out: &mut String, flavour: &Flavour, kernels: std::ops::Range<usize>, ink: Ink) {
    for group in &flavour.groups {
        let mut line = format!("{:LABEL$}", "");
        for kernel in &flavour.kernels[kernels.clone()] {
            let _ = write!(line, "{:>COLUMN$}", terminal::clip(&kernel.name, COLUMN - 1));
        }
        terminal::paragraph(out, &group.heading, 2, ink, FAINT);
        out.push_str(&ink.paint(FAINT, &line));
        out.push('\n');
        for row in &group.rows {
            let _ = write!(out, "    {:width$}", terminal::clip(&row.label, LABEL - 5), width = LABEL - 4);
            for cell in &row.cells[kernels.clone()] {
                out.push_str(&column(*cell, ink));
            }
            out.push('\n');
        }
        out.push('\n');
    }
}

/// A cell with an arrow before a step.
fn column(cell: Option<Cell>, ink: Ink) -> String {
    let Some(Cell { ns, change, is_step }) = cell else { return format!("{:>COLUMN$}", "–") };
    let change = change.unwrap_or(0.0);
    let (arrow, style) = match (is_step, change > 0.0) {
        (false, _) => ("", PLAIN),
        (true, true) => ("▲", RED),
        (true, false) => ("▼", GREEN),
    };
    let text = format!("{arrow}{}", units::grouped(ns));
    format!("{}{}", " ".repeat(COLUMN.saturating_sub(text.chars().count())), ink.paint(style, &text))
}

fn steps(out: &mut String, history: &History, ink: Ink) {
    let bound = units::digits(history.bound.0 * 100.0);
    let steps: Vec<_> = history.steps().collect();
    if steps.is_empty() {
        return terminal::paragraph(out, &format!("No step above {bound} %."), 0, ink, PLAIN);
    }
    terminal::paragraph(out, &format!("{}:", heading(steps.len(), &bound)), 0, ink, PLAIN);
    for step in steps {
        let (before, after) = (step.before, step.after);
        let line = format!(
            "{} → {}: {}, {}: {} → {} ({:+.0} %)",
            name(before.0),
            name(after.0),
            step.row.label,
            step.group.heading,
            units::grouped(before.1),
            units::grouped(after.1),
            step.change * 100.0
        );
        terminal::paragraph(out, &line, 2, ink, if step.change > 0.0 { RED } else { GREEN });
    }
    out.push('\n');
}

/// A kernel's name, with `-rt` where it is one for real time.
fn name(kernel: &super::Kernel) -> String {
    let realtime = if kernel.release.contains("-rt") { "-rt" } else { "" };
    format!("{}{realtime}", kernel.name)
}

fn heading(steps: usize, bound: &str) -> String {
    format!("{} above {bound} %", units::counted(steps as u64, "step"))
}
