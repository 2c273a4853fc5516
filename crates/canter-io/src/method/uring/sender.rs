//! The sender: chains of linked requests, one chain at a time.
#![allow(unsafe_code)]

use super::{Ring, refused};
use crate::{
    Frame, Interface, Result,
    method::{Room, Transmit, TransmitOptions, can_raw, read_write::short_count},
    sys::{array::Array, socket::Socket},
};
use io_uring::{opcode, squeue, types::Fd};
use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

/// Sends in one chain.
const CHAIN: u32 = 64;

pub(in crate::method) fn transmitter(
    interface: &Interface,
    options: &TransmitOptions,
) -> Result<Box<dyn Transmit>> {
    let socket = can_raw::sending(interface, options)?;
    let ring = Ring::new(CHAIN).map_err(|error| refused(interface, error))?;
    Ok(Box::new(Sender { ring: Some(ring), frames: places(), socket, room: Room::new(options) }))
}

fn places() -> Array<Frame> {
    Array::new(Frame::default(), CHAIN as usize)
}

struct Sender {
    /// `None` after [`give_up`](Self::give_up); the next chain makes another ring.
    ring: Option<Ring>,
    /// The memory that the kernel reads while a chain is in flight. Between chains no request is in flight.
    frames: Array<Frame>,
    socket: Socket,
    /// The patience is that of a chain.
    room: Room,
}

impl Transmit for Sender {
    fn transmit(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut sent = 0;
        for part in frames.chunks(CHAIN as usize) {
            let (count, error) = match self.chain(part)? {
                // The ring belonged to another thread, which sent nothing; the new ring belongs to this thread.
                (0, Some(error)) if error.raw_os_error() == Some(libc::EEXIST) => self.chain(part)?,
                outcome => outcome,
            };
            sent += count;
            if let Some(error) = error {
                return short_count(sent, error);
            }
        }
        Ok(sent)
    }

    fn set_waiting(&mut self, waits: bool) {
        self.room.set_waiting(waits);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl Sender {
    /// Sends frames in order; returns the number sent and the error of the next one.
    fn chain(&mut self, frames: &[Frame]) -> io::Result<(usize, Option<io::Error>)> {
        let mut outcome = Outcome { sent: 0, completed: 0, error: None };
        if let Err(error) = self.run(frames, &mut outcome) {
            self.give_up(&mut outcome);
            return Ok((outcome.sent, Some(error)));
        }
        Ok((outcome.sent, outcome.error))
    }

    /// Sends one chain; an error leaves requests queued or in flight.
    fn run(&mut self, frames: &[Frame], outcome: &mut Outcome) -> io::Result<()> {
        let ring = match &mut self.ring {
            Some(ring) => ring,
            none => none.insert(Ring::new(CHAIN)?),
        };
        ring.enable()?;
        // SAFETY: no request is in flight.
        let places = unsafe { self.frames.slice_mut() };
        places[..frames.len()].copy_from_slice(frames);
        let fd = Fd(self.socket.as_raw_fd());
        for (at, frame) in frames.iter().enumerate() {
            let send = opcode::Send::new(fd, self.frames.place(at).cast(), frame.mtu() as u32);
            let linked = if at + 1 < frames.len() { squeue::Flags::IO_LINK } else { squeue::Flags::empty() };
            let entry = send.flags(self.room.flags()).build().user_data(at as u64).flags(linked);
            // SAFETY: the frames stay as they are until all have completed, below or in `give_up`.
            unsafe { ring.push(&entry) }?;
        }
        while outcome.completed < frames.len() {
            let missing = frames.len() - outcome.completed;
            let entered = match self.room.patience {
                Some(patience) if self.room.waits => ring.enter_within(missing as u32, patience),
                _ => ring.enter(missing as u32),
            };
            if let Err(error) = entered {
                if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME)) {
                    return Err(error);
                }
                // After a signal or the patience, the requests are cancelled; this waits for one that cannot be.
                let _ = ring.cancel_all();
            }
            ring.completions().for_each(|completion| outcome.note(completion.result()));
        }
        Ok(())
    }

    /// Ends the requests in flight. Drops the ring with queued requests: otherwise the next chain would submit them
    /// with other frames in their memory. Requests that cannot be ended keep their memory, and may still be sent.
    fn give_up(&mut self, outcome: &mut Outcome) {
        let Some(mut ring) = self.ring.take() else { return };
        if !ring.end(|completion| outcome.note(completion.result())) {
            self.frames.leak();
            self.frames = places();
        }
    }
}

/// The result of a chain.
struct Outcome {
    sent: usize,
    completed: usize,
    /// The first failure; the later sends are cancelled.
    error: Option<io::Error>,
}

impl Outcome {
    fn note(&mut self, result: i32) {
        self.completed += 1;
        match result {
            0.. => self.sent += 1,
            _ if self.error.as_ref().is_some_and(|error| error.kind() != io::ErrorKind::Interrupted) => {}
            // Cancelled after a signal, or because an earlier send failed, whose error may arrive later.
            canceled if canceled == -libc::ECANCELED => {
                self.error = Some(io::Error::from_raw_os_error(libc::EINTR))
            }
            failed => self.error = Some(io::Error::from_raw_os_error(-failed)),
        }
    }
}

impl Drop for Sender {
    /// No request is in flight unless a chain has panicked.
    fn drop(&mut self) {
        self.give_up(&mut Outcome { sent: 0, completed: 0, error: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identifier;
    use std::os::unix::net::UnixDatagram;

    fn frame(number: u16) -> Frame {
        Frame::classic(Identifier::Sff(number), &[]).unwrap()
    }

    fn sender() -> (Sender, UnixDatagram) {
        let (near, far) = UnixDatagram::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let ring = Some(Ring::new(CHAIN).unwrap());
        let room = Room::new(&TransmitOptions::default().without_waiting());
        (Sender { ring, frames: places(), socket: Socket::from(near), room }, far)
    }

    fn identifiers(far: &UnixDatagram) -> Vec<u32> {
        let mut bytes = [0; 4];
        std::iter::from_fn(|| far.recv(&mut bytes).ok().map(|_| u32::from_ne_bytes(bytes))).collect()
    }

    #[test]
    #[ignore = "needs the lab: make test"]
    fn a_chain_that_is_refused_before_it_is_submitted_never_goes_out_with_the_next() {
        let (mut sender, far) = sender();
        assert_eq!(sender.transmit(&[frame(1)]).unwrap(), 1);
        let refused = std::thread::scope(|scope| {
            let chain =
                || sender.run(&[frame(2), frame(3)], &mut Outcome { sent: 0, completed: 0, error: None });
            scope.spawn(chain).join().unwrap()
        });
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EEXIST));
        sender.give_up(&mut Outcome { sent: 0, completed: 0, error: None });
        assert_eq!(sender.transmit(&[frame(4)]).unwrap(), 1);
        assert_eq!(identifiers(&far), [1, 4]);
    }

    #[test]
    #[ignore = "needs the lab: make test"]
    fn a_sender_may_go_from_thread_to_thread() {
        let (mut sender, far) = sender();
        for number in 1..5 {
            let frames = [frame(2 * number), frame(2 * number + 1)];
            let sent = std::thread::scope(|scope| scope.spawn(|| sender.transmit(&frames)).join().unwrap());
            assert_eq!(sent.unwrap(), 2);
        }
        assert_eq!(identifiers(&far), (2..10).collect::<Vec<_>>());
    }
}
