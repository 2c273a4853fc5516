//! The identifiers of pings and their answers: ID + 2k and ID + 2k + 1.

use canter_cli::failure::{self, Exit, Failure};
use canter_io::{
    Filter, Filters, Frame, Identifier,
    frame::{EFF_FLAG, EFF_MASK, ERR_FLAG, RTR_FLAG, SFF_MASK},
};
use clap::Args;
use std::fmt;

/// Identifiers
#[derive(Args, Clone, Debug)]
pub struct Identifiers {
    /// First identifier, hexadecimal and even; extended if longer than 3 digits. Ping k has ID + 2k, its answer ID + 2k
    /// + 1
    #[arg(long, default_value = "780", value_name = "ID", value_parser = first)]
    id: Identifier,
    /// Number of simultaneous pings
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
}

/// Reads the first identifier.
fn first(text: &str) -> Result<Identifier, String> {
    let bits = u32::from_str_radix(text, 16).map_err(|_| "expected a hexadecimal number".to_owned())?;
    let id = if text.len() > 3 { Identifier::Eff(bits) } else { Identifier::Sff(bits as u16) };
    id.bits().map_err(|error| error.to_string())?;
    if bits % 2 == 1 {
        Err("expected an even number: the answer has the next one".to_owned())
    } else {
        Ok(id)
    }
}

impl Identifiers {
    /// The number of pings.
    pub fn count(&self) -> usize {
        self.parallel.into()
    }

    fn plus(&self, offset: u32) -> Identifier {
        match self.id {
            Identifier::Sff(id) => Identifier::Sff(id + offset as u16),
            Identifier::Eff(id) => Identifier::Eff(id + offset),
        }
    }

    /// The identifier that ping `ping` sends.
    pub fn request(&self, ping: usize) -> failure::Result<Identifier> {
        let last = self.plus(2 * u32::from(self.parallel) - 1);
        last.bits().map_err(|_| {
            let message = format!("--id {self}: --parallel {} exceeds the last identifier", self.parallel);
            Failure::new(Exit::Usage, message)
        })?;
        Ok(self.plus(2 * ping as u32))
    }

    /// The distance of a frame's identifier from the first one; `None` for a frame of another kind.
    fn offset(&self, frame: &Frame) -> Option<usize> {
        let first = self.id.bits().ok()?;
        let same_width = (frame.can_id ^ first) & EFF_FLAG == 0;
        let data = frame.can_id & (RTR_FLAG | ERR_FLAG) == 0;
        let offset = (frame.can_id & EFF_MASK).checked_sub(first & EFF_MASK)? as usize;
        (same_width && data && offset < 2 * self.count()).then_some(offset)
    }

    /// The ping that a frame answers.
    pub fn ping_of_answer(&self, frame: &Frame) -> Option<usize> {
        self.offset(frame).filter(|offset| offset % 2 == 1).map(|offset| offset / 2)
    }

    /// The answer to a request: the same frame with the next identifier.
    pub fn answer_to(&self, frame: &Frame) -> Option<Frame> {
        self.offset(frame).filter(|offset| offset % 2 == 0)?;
        let mut answer = *frame;
        answer.can_id += 1;
        Some(answer)
    }

    /// Filters for answers.
    pub fn answers(&self) -> Filters {
        self.filters(1)
    }

    /// Filters for requests.
    pub fn requests(&self) -> Filters {
        self.filters(0)
    }

    fn filters(&self, odd: u32) -> Filters {
        let filter = |ping: u32| {
            let id = self.plus(2 * ping + odd).bits().unwrap_or_default();
            let mask = if id & EFF_FLAG == 0 { SFF_MASK } else { EFF_MASK };
            Filter { id, mask: mask | EFF_FLAG | RTR_FLAG }
        };
        Filters { list: (0..self.parallel.into()).map(filter).collect(), ..Filters::default() }
    }

    /// The identifier of a ping's answers, as text.
    pub fn answer_text(&self, ping: usize) -> String {
        text(self.plus(2 * ping as u32 + 1))
    }
}

fn text(id: Identifier) -> String {
    match id {
        Identifier::Sff(id) => format!("{id:03X}"),
        Identifier::Eff(id) => format!("{id:08X}"),
    }
}

impl fmt::Display for Identifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.id))?;
        if self.parallel == 1 {
            return Ok(());
        }
        write!(f, "…{} ({} pings)", text(self.plus(2 * u32::from(self.parallel) - 2)), self.parallel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifiers(id: &str, parallel: u16) -> Identifiers {
        Identifiers { id: first(id).unwrap(), parallel }
    }

    #[test]
    fn an_answer_is_the_request_with_the_next_identifier_and_finds_its_ping() {
        for (id, parallel) in [("780", 4), ("00000780", 4), ("1FFFFFF0", 8)] {
            let all = identifiers(id, parallel);
            for ping in 0..all.count() {
                let request = Frame::classic(all.request(ping).unwrap(), &[1, 2, 3]).unwrap();
                let answer = all.answer_to(&request).unwrap();
                assert_eq!((answer.data(), answer.can_id), (request.data(), request.can_id + 1));
                assert_eq!(all.ping_of_answer(&answer), Some(ping));
                assert!(all.answer_to(&answer).is_none(), "an answer is not answered");
                assert!(all.requests().matches(&request) && !all.requests().matches(&answer));
                assert!(all.answers().matches(&answer) && !all.answers().matches(&request));
            }
        }
    }

    #[test]
    fn frames_of_others_belong_to_no_ping() {
        let all = identifiers("780", 2);
        for text in ["77F#00", "784#00", "00000780#00", "780#R"] {
            let frame: Frame = text.parse().unwrap();
            assert!(all.answer_to(&frame).is_none() && all.ping_of_answer(&frame).is_none(), "{text}");
        }
    }

    #[test]
    fn invalid_identifiers_are_refused() {
        for text in ["", "781", "800", "xyz", "20000000"] {
            assert!(first(text).is_err(), "{text}");
        }
        assert!(identifiers("7FE", 2).request(0).is_err());
    }
}
