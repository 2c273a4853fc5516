//! A can-gw job that exists as long as its value.

use std::io;

use super::{Installed, Job, JobCounters, Listed, add, delete, list, route};
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
        let mut opened = Self::open_all(vec![job])?;
        Ok(opened.remove(0))
    }

    /// Adds all jobs or none; lists the kernel's jobs only once.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_all(jobs: Vec<Job>) -> Result<Vec<Self>> {
        let there = list()?;
        let mut opened = Vec::with_capacity(jobs.len());
        for job in jobs {
            if let Err(error) = Self::refuse_known(&job, &there, &opened).and_then(|()| add(&job)) {
                let _ = Self::delete_all(opened); // the first error is returned
                return Err(error);
            }
            opened.push(Self { job, open: true });
        }
        Ok(opened)
    }

    fn refuse_known(job: &Job, there: &[Installed], opened: &[Self]) -> Result<()> {
        let known = |installed: &Installed| {
            installed.job == *job || job.user_id.is_some() && installed.job.user_id == job.user_id
        };
        if there.iter().any(known) || opened.iter().any(|one| one.job == *job) {
            let twice = io::Error::new(io::ErrorKind::AlreadyExists, "the kernel has this job already");
            return Err(Error::new(route(job), "add can-gw job", twice)
                .hint("cangw -L lists jobs, cangw -F deletes all"));
        }
        Ok(())
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The gateway's counters.
    ///
    /// # Errors
    /// `NotFound` when another program deleted the job, or one of its interfaces has disappeared.
    pub fn counters(&self) -> Result<JobCounters> {
        let [counters] = Self::counters_of(std::slice::from_ref(self))?[..] else { return Err(self.gone()) };
        counters.ok_or_else(|| self.gone())
    }

    /// The counters of each, by one request to the kernel; `None` for a job that no longer exists.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn counters_of(gateways: &[Self]) -> Result<Vec<Option<JobCounters>>> {
        let mut listed = Listed::now()?;
        let mut found: Vec<_> =
            gateways.iter().rev().map(|gateway| Some(listed.take(&gateway.job)?.counters)).collect();
        found.reverse();
        Ok(found)
    }

    /// The error for a job that no longer exists.
    pub fn gone(&self) -> Error {
        let gone = io::Error::new(io::ErrorKind::NotFound, "the job no longer exists");
        Error::new(route(&self.job), "read can-gw counters", gone)
    }

    /// Deletes the job and returns its last counters.
    ///
    /// # Errors
    /// As [`counters`](Self::counters).
    pub fn close(self) -> Result<JobCounters> {
        let counters = self.counters();
        let deleted = self.delete();
        counters.and_then(|counters| deleted.map(|()| counters))
    }

    /// Deletes the job.
    ///
    /// # Errors
    /// As [`delete`].
    pub fn delete(mut self) -> Result<()> {
        self.open = false;
        delete(&self.job)
    }

    /// Deletes all jobs; lists the kernel's jobs only once.
    ///
    /// # Errors
    /// The first, after all others have been deleted.
    pub fn delete_all(gateways: Vec<Self>) -> Result<()> {
        let mut listed = Listed::now()?;
        let mut ended = Ok(());
        for mut gateway in gateways.into_iter().rev() {
            gateway.open = false;
            ended = ended.and(listed.delete(&gateway.job));
        }
        ended
    }
}

impl Drop for CanGateway {
    fn drop(&mut self) {
        if self.open {
            // A job that no longer exists is fine; other errors cannot be returned here.
            let _ = delete(&self.job);
        }
    }
}
