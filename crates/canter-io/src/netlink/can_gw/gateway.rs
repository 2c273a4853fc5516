//! A can-gw job that lives as long as the value that stands for it.

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

    /// Adds all of them, or none: the kernel is asked once what it has, however many they are.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_all(jobs: Vec<Job>) -> Result<Vec<Self>> {
        let there = list()?;
        let mut opened = Vec::with_capacity(jobs.len());
        for job in jobs {
            if let Err(error) = Self::refuse_known(&job, &there, &opened).and_then(|()| add(&job)) {
                let _ = Self::delete_all(opened); // the first reason is the one to tell
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

    /// What it does.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What it has done so far.
    ///
    /// # Errors
    /// `NotFound` when somebody else deleted the job, or one of its interfaces has gone.
    pub fn counters(&self) -> Result<JobCounters> {
        let [counters] = Self::counters_of(std::slice::from_ref(self))?[..] else { return Err(self.gone()) };
        counters.ok_or_else(|| self.gone())
    }

    /// What each has done so far, by one question to the kernel; `None` of a job that has gone.
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

    /// Why there are no counters of it any more.
    pub fn gone(&self) -> Error {
        let gone = io::Error::new(io::ErrorKind::NotFound, "the job has gone");
        Error::new(route(&self.job), "read can-gw counters", gone)
    }

    /// Deletes the job and answers what it had done just before.
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

    /// Deletes all of them, by one question to the kernel.
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
            // Gone already is as good; there is nobody to tell anything else.
            let _ = delete(&self.job);
        }
    }
}
