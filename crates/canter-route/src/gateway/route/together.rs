//! Several routes in one thread: it waits for all inputs at once, or looks at each in turn. A route whose output is full
//! rests meanwhile, and holds up no other.

use super::{Route, Side, Step};
use canter_io::{
    clock,
    event::{Any, Ready},
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

/// The rounds between two answers to liveness checks of routes that receive nothing.
const ROUNDS_PER_ANSWER: u32 = 64;

/// The way in which a route ended.
type Ended = Result<(), (Side, io::Error)>;

/// A route of the thread.
struct Member<'a> {
    route: &'a mut Route,
    /// When a full output is tried again, in ns; `None`: it has room.
    retry_ns: Option<u64>,
    ended: Ended,
}

/// The routes of a thread.
struct Together<'a> {
    members: Vec<Member<'a>>,
    /// The inputs with room in their outputs; `None`: each is looked at in turn.
    inputs: Option<Any>,
    ready: Ready,
    /// How many outputs are full.
    full: usize,
}

/// Routes until `stop` is set, and calls `failed` when a route ends early; the others go on. The receivers return at once when
/// no frame waits, and the transmitters when there is no room. With `spins` the thread looks at each receiver in turn, else it
/// sleeps until one of their descriptors can be read.
///
/// # Errors
/// When the thread cannot wait for the inputs.
///
/// # Panics
/// When a receiver has no descriptor and the thread does not spin.
pub fn run(
    routes: &mut [Route],
    spins: bool,
    stop: &AtomicBool,
    mut failed: impl FnMut(),
) -> io::Result<Vec<Ended>> {
    let ready = Ready::with_capacity(routes.len());
    let members = routes.iter_mut().map(|route| Member { route, retry_ns: None, ended: Ok(()) }).collect();
    let inputs = if spins { None } else { Some(Any::new()?) };
    let mut all = Together { members, inputs, ready, full: 0 };
    (0..all.members.len()).try_for_each(|at| all.listen(at))?;
    let mut rounds = 0_u32;
    while !stop.load(Ordering::Acquire) {
        let idle = all.round(&mut failed)?;
        rounds = rounds.wrapping_add(1);
        if idle || rounds.is_multiple_of(ROUNDS_PER_ANSWER) {
            all.answer();
        }
    }
    let begun_ns = clock::monotonic_ns();
    let end = |member: Member<'_>| {
        let Member { route, ended, .. } = member;
        let ended = ended.and_then(|()| route.drain(begun_ns));
        route.end(ended)
    };
    Ok(all.members.into_iter().map(end).collect())
}

impl Together<'_> {
    /// Moves a batch of each route that has frames; whether none had.
    fn round(&mut self, failed: &mut impl FnMut()) -> io::Result<bool> {
        let Some(inputs) = &self.inputs else {
            for at in 0..self.members.len() {
                if self.members[at].retry_ns.is_none() && self.members[at].ended.is_ok() {
                    self.pump(at, failed)?;
                }
            }
            self.retry(failed)?;
            return Ok(false);
        };
        let first_ns =
            self.members.iter().filter(|_| self.full > 0).filter_map(|member| member.retry_ns).min();
        let timeout_ns = first_ns.map(|ns| ns.saturating_sub(clock::monotonic_ns()));
        inputs.wait(&mut self.ready, timeout_ns)?;
        for place in 0..self.ready.len() {
            self.pump(self.ready.number(place) as usize, failed)?;
        }
        self.retry(failed)?;
        Ok(self.ready.is_empty())
    }

    /// Moves a batch of a route, and lets the route rest while its output is full.
    fn pump(&mut self, at: usize, failed: &mut impl FnMut()) -> io::Result<()> {
        let member = &mut self.members[at];
        match member.route.pump() {
            Ok(Step::Full) => {
                let now_ns = clock::monotonic_ns();
                if member.route.try_again(now_ns) {
                    let rested = member.retry_ns.replace(now_ns + member.route.next_wait_ns()).is_some();
                    if !rested {
                        self.full += 1;
                        return self.ignore(at);
                    }
                    return Ok(());
                }
            }
            Ok(Step::Idle | Step::Moved) => {}
            Err(error) => {
                member.ended = Err(error);
                failed();
                return if member.retry_ns.is_none() { self.ignore(at) } else { self.listen_no_more(at) };
            }
        }
        if self.members[at].retry_ns.take().is_some() {
            self.full -= 1;
            return self.listen(at);
        }
        Ok(())
    }

    /// Tries the full outputs whose time has come.
    fn retry(&mut self, failed: &mut impl FnMut()) -> io::Result<()> {
        if self.full == 0 {
            return Ok(());
        }
        let now_ns = clock::monotonic_ns();
        for at in 0..self.members.len() {
            if self.members[at].retry_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                self.pump(at, failed)?;
            }
        }
        Ok(())
    }

    /// Waits for a route's input again.
    fn listen(&self, at: usize) -> io::Result<()> {
        let Some(inputs) = &self.inputs else { return Ok(()) };
        let descriptor = self.members[at].route.receive.descriptor();
        inputs.add_numbered(descriptor.expect("the receiver has a descriptor"), at as u64)
    }

    /// Waits for a route's input no longer.
    fn ignore(&self, at: usize) -> io::Result<()> {
        let descriptor = self.members[at].route.receive.descriptor();
        self.inputs.as_ref().zip(descriptor).map_or(Ok(()), |(inputs, one)| inputs.remove(one))
    }

    /// Forgets the full output of a route that has ended.
    fn listen_no_more(&mut self, at: usize) -> io::Result<()> {
        self.members[at].retry_ns = None;
        self.full -= 1;
        Ok(())
    }

    /// Answers the liveness checks of all routes.
    fn answer(&self) {
        for member in &self.members {
            if let Some(control) = &member.route.control {
                control.answer(&member.route.counts, member.route.engine.as_ref());
            }
        }
    }
}
