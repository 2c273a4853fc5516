//! The pattern of `hackbench --threads`: groups of threads that send each other short messages.

use super::row::{LoadCommand, LoadRow};
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
};

pub const LOAD: LoadRow = LoadRow {
    name: "cpu",
    ethernet: false,
    lines: |_| vec![LoadCommand::own("cpu")],
    work: &[("cpu", |_| messages())],
};

/// hackbench's defaults: groups, senders and receivers per group, bytes per message.
const GROUPS: usize = 2;
const THREADS: usize = 20;
const MESSAGE: usize = 100;

/// Every sender of a group sends to every receiver of the group, without end.
fn messages() -> io::Result<()> {
    let mut senders = Vec::new();
    for _ in 0..GROUPS {
        let mut ends = Vec::new();
        for _ in 0..THREADS {
            let (mut receiver, sender) = UnixStream::pair()?;
            ends.push(sender);
            thread::spawn(move || {
                let mut message = [0; MESSAGE];
                while receiver.read_exact(&mut message).is_ok() {}
            });
        }
        let ends = Arc::new(ends);
        for _ in 0..THREADS {
            let ends = Arc::clone(&ends);
            senders.push(thread::spawn(move || {
                while ends.iter().all(|end| (&*end).write_all(&[0; MESSAGE]).is_ok()) {}
            }));
        }
    }
    senders.into_iter().for_each(|sender| drop(sender.join()));
    Err(io::ErrorKind::BrokenPipe.into())
}
