//! A can-gw job that lives as long as the value that stands for it.

use std::io;

use super::{Installed, Job, JobCounters, add, delete, list, route};
use crate::{Error, Result};

/// One job in the kernel, deleted by [`close`](Self::close) or when this is dropped. A process that is killed leaves
/// it behind; [`flush`](super::flush) helps.
#[derive(Debug)]
pub struct CanGateway {
    job: Job,
    open: bool,
}

impl CanGateway {
    /// Adds the job.
    ///
    /// # Errors
    /// As [`add`]; and `AlreadyExists` when the kernel has a job that does the same (every frame would go out twice)
    /// or has its user id (that job would be changed).
    pub fn open(job: Job) -> Result<Self> {
        let known = |installed: &Installed| {
            installed.job == job || job.user_id.is_some() && installed.job.user_id == job.user_id
        };
        if list()?.iter().any(known) {
            let twice = io::Error::new(io::ErrorKind::AlreadyExists, "the kernel has this job already");
            return Err(Error::new(route(&job), "add can-gw job", twice)
                .hint("cangw -L lists jobs, cangw -F deletes all"));
        }
        add(&job)?;
        Ok(Self { job, open: true })
    }

    /// What it does.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// `NotFound` when somebody else deleted the job, or one of its interfaces has gone.
    pub fn counters(&self) -> Result<JobCounters> {
        let installed = list()?.into_iter().find(|installed| installed.job == self.job);
        installed.map(|installed| installed.counters).ok_or_else(|| {
            let gone = io::Error::new(io::ErrorKind::NotFound, "the job has gone");
            Error::new(route(&self.job), "read can-gw counters", gone)
        })
    }

    /// Deletes the job and answers what it had done just before.
    ///
    /// # Errors
    /// As [`counters`](Self::counters).
    pub fn close(mut self) -> Result<JobCounters> {
        let counters = self.counters();
        self.open = false;
        let deleted = delete(&self.job);
        counters.and_then(|counters| deleted.map(|()| counters))
    }
}

impl Drop for CanGateway {
    fn drop(&mut self) {
        if self.open {
            // Gone already is as good; there is nobody to tell anything else.
            let _ = delete(&self.job);
        }
    }
}
