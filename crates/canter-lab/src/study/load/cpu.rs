//! The pattern of hackbench: groups of threads that send each other short messages. `cpu` is `hackbench --threads 2` on
//! sockets; `hackbench` is that of the papers, `hackbench -pipe 20`, with threads in place of processes.

use super::row::{LoadCommand, LoadRow};
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
};

pub const SOCKETS: LoadRow = LoadRow {
    name: "cpu",
    ethernet: false,
    check: || Ok(()),
    lines: |_| vec![LoadCommand::own("cpu")],
    work: &[("cpu", |_| messages(2, UnixStream::pair))],
};

pub const PIPES: LoadRow = LoadRow {
    name: "hackbench",
    ethernet: false,
    check: || Ok(()),
    lines: |_| vec![LoadCommand::own("hackbench")],
    work: &[("hackbench", |_| messages(20, io::pipe))],
};

/// hackbench's defaults: senders and receivers per group, bytes per message.
const THREADS: usize = 20;
const MESSAGE: usize = 100;
/// Eight hundred threads of a load need little stack each.
const STACK_BYTES: usize = 64 << 10;

/// Every sender of a group sends to every receiver of the group, without end.
fn messages<R, W>(groups: usize, channel: fn() -> io::Result<(R, W)>) -> io::Result<()>
where
    R: Read + Send + 'static,
    W: Send + Sync + 'static,
    for<'a> &'a W: Write,
{
    let spawn = |work: Box<dyn FnOnce() + Send>| thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
    let mut senders = Vec::new();
    for _ in 0..groups {
        let mut ends = Vec::new();
        for _ in 0..THREADS {
            let (mut receiver, sender) = channel()?;
            ends.push(sender);
            spawn(Box::new(move || {
                let mut message = [0; MESSAGE];
                while receiver.read_exact(&mut message).is_ok() {}
            }))?;
        }
        let ends = Arc::new(ends);
        for _ in 0..THREADS {
            let ends = Arc::clone(&ends);
            senders.push(spawn(Box::new(move || {
                while ends.iter().all(|mut end| end.write_all(&[0; MESSAGE]).is_ok()) {}
            }))?);
        }
    }
    senders.into_iter().for_each(|sender| drop(sender.join()));
    Err(io::ErrorKind::BrokenPipe.into())
}
