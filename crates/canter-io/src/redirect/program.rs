//! The program: which frames it takes, and how it moves one to the front of its buffer.
//!
//! Registers: 6 the frame's metadata (`struct __sk_buff`), 3 and 4 its buffer's begin and end, 7 its
//! identifier, 8 where it begins, 9 whether that is behind the room in front.

use super::{
    ROOM, Rule,
    assembler::{Assembler, Label, When, Width},
};
use crate::{Filter, Filters, filter::Subscription, frame::ERR_FLAG, sys::bpf::Instruction};

/// The longest program whose jumps all reach (16 bits, signed).
pub const INSTRUCTIONS_MAX: usize = 30_000;

/// Numbers that it counts in: handed on, filtered, refused.
pub const COUNTERS: usize = 3;
const HANDED_ON: i32 = 0;
const FILTERED: i32 = 8;
const REFUSED: i32 = 16;

// struct __sk_buff
const LEN: i16 = 0;
const PROTOCOL: i16 = 16; // big-endian, in the first two bytes
const DATA: i16 = 76;
const DATA_END: i16 = 80;

// linux/if_ether.h, as they lie in memory
const CLASSIC: u32 = 0x000cu16.to_be() as u32;
const FD: u32 = 0x000du16.to_be() as u32;

// enum bpf_func_id
const REDIRECT: i32 = 23;
const CHANGE_TAIL: i32 = 38;

// TC_ACT_UNSPEC, which is TCX_NEXT; TC_ACT_SHOT
const GOES_ON: i32 = -1;
const ENDS: i32 = 2;

/// The places that both kinds of frames end at.
struct Ends {
    goes_on: Label,
    filtered: Label,
    refused: Label,
    frame_overwritten: Label,
}

/// A program that hands on to the interface `output`, and counts in the table `counters`.
pub fn assemble(rules: &[Rule], output_takes_fd: bool, output: u32, counters: i32) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let ends =
        Ends { goes_on: a.label(), filtered: a.label(), refused: a.label(), frame_overwritten: a.label() };
    let fd = a.label();
    a.copy(6, 1);
    a.load(Width::Word, 3, 6, DATA);
    a.load(Width::Word, 4, 6, DATA_END);
    a.load(Width::Word, 7, 6, PROTOCOL);
    a.jump(When::Equal, 7, FD, fd);
    a.jump(When::Different, 7, CLASSIC, ends.goes_on);
    let of = |kind: fn(&Rule) -> bool| rules.iter().filter(move |rule| kind(rule));
    let hand_on = (output, counters);
    frames(&mut a, 16, of(|rule| rule.classic), Some(hand_on), &ends);
    a.place(fd);
    frames(&mut a, 72, of(|rule| rule.fd), Some(hand_on).filter(|_| output_takes_fd), &ends);

    for (label, count, verdict) in [
        (ends.filtered, FILTERED, GOES_ON),
        (ends.refused, REFUSED, GOES_ON),
        (ends.frame_overwritten, REFUSED, ENDS),
    ] {
        if a.place(label) {
            a.count(counters, count);
            a.set(0, verdict);
            a.exit();
        }
    }
    a.place(ends.goes_on);
    a.set(0, GOES_ON);
    a.exit();
    a.finish()
}

/// Frames of `bytes` each. `None`: the output cannot carry them.
fn frames<'a>(
    a: &mut Assembler,
    bytes: i32,
    rules: impl Iterator<Item = &'a Rule>,
    hand_on: Option<(u32, i32)>,
    ends: &Ends,
) {
    let room = ROOM as i32;
    let (sent_here, accepted) = (a.label(), a.label());
    a.copy(8, 3);
    a.set(9, 0);
    a.load(Width::Word, 5, 6, LEN);
    a.jump(When::Equal, 5, bytes as u32, sent_here); // by this machine: without room in front
    a.jump(When::Different, 5, (bytes + room) as u32, ends.refused);
    a.add(8, room);
    a.set(9, 1);
    a.place(sent_here);
    needs(a, 8, bytes, ends.refused);
    a.load(Width::Word, 7, 8, 0);
    a.jump(When::AnyBit, 7, ERR_FLAG, ends.goes_on);
    choose(a, rules, accepted, ends.filtered);
    if !a.place(accepted) {
        return;
    }
    match hand_on {
        Some((output, counters)) => {
            a.jump(When::Equal, 9, 0, ends.refused);
            needs(a, 3, bytes + room, ends.refused);
            move_and_redirect(a, bytes, output, counters, ends);
        }
        None => a.jump(When::Always, 0, 0, ends.refused),
    }
}

/// Checks that the buffer has this many bytes, which the kernel's verifier requires.
fn needs(a: &mut Assembler, from: u8, bytes: i32, otherwise: Label) {
    a.copy(5, from);
    a.add(5, bytes);
    a.jump_above(5, 4, otherwise);
}

/// The first rule that matches decides; none: filtered.
fn choose<'a>(a: &mut Assembler, rules: impl Iterator<Item = &'a Rule>, accepted: Label, filtered: Label) {
    for rule in rules {
        let verdict = if rule.pass { accepted } else { filtered };
        if rule.filters.list.is_empty() {
            return a.jump(When::Always, 0, 0, verdict); // and nothing after it is reached
        }
        if rule.filters.join {
            let of_errors = |filter: &Filter| matches!(filter.subscription(), Subscription::Error { .. });
            if !rule.filters.list.iter().any(of_errors) {
                all_match(a, &rule.filters, verdict);
            }
        } else {
            any_matches(a, &rule.filters, verdict);
        }
    }
    a.jump(When::Always, 0, 0, filtered);
}

fn any_matches(a: &mut Assembler, filters: &Filters, verdict: Label) {
    for filter in &filters.list {
        match filter.subscription() {
            Subscription::Equal { id, mask } => test(a, mask, When::Equal, id, verdict),
            Subscription::Different { id, mask } => test(a, mask, When::Different, id, verdict),
            Subscription::Error { .. } => {} // which matches no data frame
        }
    }
}

fn all_match(a: &mut Assembler, filters: &Filters, verdict: Label) {
    let otherwise = a.label();
    for filter in &filters.list {
        match filter.subscription() {
            Subscription::Equal { id, mask } => test(a, mask, When::Different, id, otherwise),
            Subscription::Different { id, mask } => test(a, mask, When::Equal, id, otherwise),
            Subscription::Error { .. } => {}
        }
    }
    a.jump(When::Always, 0, 0, verdict);
    a.place(otherwise);
}

fn test(a: &mut Assembler, mask: u32, when: When, id: u32, label: Label) {
    a.and_word(1, 7, mask);
    a.jump(when, 1, id, label);
}

fn move_and_redirect(a: &mut Assembler, bytes: i32, output: u32, counters: i32, ends: &Ends) {
    for at in (0..bytes as i16).step_by(8) {
        a.load(Width::Double, 1, 3, ROOM as i16 + at);
        a.store_double(3, at, 1);
    }
    a.copy(1, 6);
    a.set(2, bytes);
    a.set(3, 0);
    a.call(CHANGE_TAIL);
    a.jump(When::Different, 0, 0, ends.frame_overwritten); // its begin is overwritten
    a.count(counters, HANDED_ON);
    a.set(1, output as i32);
    a.set(2, 0);
    a.call(REDIRECT);
    a.exit();
}

#[cfg(test)]
mod tests;
