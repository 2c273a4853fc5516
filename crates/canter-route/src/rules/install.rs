//! The difference between a file's jobs and the kernel's, and the steps that remove it.
//!
//! New jobs are added before old ones are deleted, so no frame is lost; a frame that matches an old and a new job meanwhile
//! is sent twice. If only modifications differ, the kernel replaces them in place, by the user id that `apply` gives to
//! each job with modifications, and no frame is lost or sent twice.

use super::{RuleSet, jobs};
use canter_cli::{
    failure::{self, Failure},
    trouble,
};
use canter_io::{
    Interface,
    netlink::can_gw::{self, Job, Listed},
};
use std::path::Path;

/// One step from the kernel's jobs to the file's.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Add(Job),
    /// The job with new modifications, and the same job with the old ones.
    Replace(Box<Job>, Box<Job>),
    Delete(Job),
}

/// The numbers of steps, in a line.
pub fn summary(steps: &[Step], wanted: usize) -> String {
    let count = |which: fn(&Step) -> bool| steps.iter().filter(|step| which(step)).count();
    let added = count(|step| matches!(step, Step::Add(_)));
    let replaced = count(|step| matches!(step, Step::Replace(..)));
    let deleted = count(|step| matches!(step, Step::Delete(_)));
    let same = wanted - added - replaced;
    format!("{same} jobs unchanged, {added} to add, {replaced} to change in place, {deleted} to delete")
}

/// The kernel's jobs.
pub fn installed() -> failure::Result<Vec<Job>> {
    Ok(can_gw::list()?.into_iter().map(|installed| installed.job).collect())
}

/// The jobs of a file. One error reports all rules that can-gw cannot apply.
pub fn jobs(file: &Path, set: &RuleSet) -> failure::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    let mut faults = Vec::new();
    for route in &set.routes {
        let (from, to) = (Interface::find(&route.from)?, Interface::find(&route.to)?);
        trouble::refuse_down(&from)?;
        match jobs::route_jobs(route, &from, &to) {
            Ok(list) => jobs.extend(list.into_iter().map(|(_, job)| named(job))),
            Err(list) => faults.extend(list),
        }
    }
    if faults.is_empty() {
        return Ok(jobs);
    }
    let line = |fault: jobs::Inexpressible| {
        format!("{}:{}:{}: {}", file.display(), fault.place.line, fault.place.column, fault.reason)
    };
    let lines: Vec<_> = faults.into_iter().map(line).collect();
    Err(Failure::unable(format!("{} (canter gateway --rules applies them in user space)", lines.join("; "))))
}

/// Gives a job with modifications the user id by which they can be replaced.
fn named(job: Job) -> Job {
    if !job.modifies() {
        return job;
    }
    let filter = job.filter.map_or((0, 0), |filter| (filter.id, filter.mask));
    let parts = [job.source, job.destination, filter.0, filter.1, u32::from(job.fd)];
    // FNV-1a, because every version of this program must compute the same id.
    let hash = parts
        .iter()
        .flat_map(|part| part.to_le_bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Job { user_id: Some(hash.max(1)), ..job }
}

/// Whether two jobs have the same effect.
pub fn same(a: &Job, b: &Job) -> bool {
    *a == Job { user_id: a.user_id, ..b.clone() }
}

/// Whether `new` can replace `old` by its user id: only the modifications differ.
fn replaces(new: &Job, old: &Job) -> bool {
    let bare = |job: &Job| Job {
        and: Default::default(),
        or: Default::default(),
        xor: Default::default(),
        set: Default::default(),
        crc8: None,
        xor_checksum: None,
        ..job.clone()
    };
    new.user_id.is_some() && bare(new) == bare(old)
}

/// The steps from the installed jobs to the wanted ones: replaces and adds first, then deletes.
pub fn steps(wanted: &[Job], installed: &[Job]) -> Vec<Step> {
    let mut rest: Vec<&Job> = installed.iter().collect();
    let mut new: Vec<Job> = Vec::new();
    for job in wanted {
        match rest.iter().position(|old| same(job, old)) {
            Some(at) => drop(rest.remove(at)),
            None => new.push(job.clone()),
        }
    }
    // User ids are unique: if several jobs would have the same, only the first gets it.
    let mut taken: Vec<u32> =
        installed.iter().filter(|old| !rest.contains(old)).filter_map(|old| old.user_id).collect();
    let mut steps = Vec::new();
    let mut added = Vec::new();
    for mut job in new {
        if job.user_id.is_some_and(|id| taken.contains(&id)) {
            job.user_id = None;
        }
        if let Some(at) = rest.iter().position(|old| replaces(&job, old)) {
            steps.push(Step::Replace(Box::new(job.clone()), Box::new(rest.remove(at).clone())));
        } else {
            if rest.iter().any(|old| old.user_id.is_some() && old.user_id == job.user_id) {
                job.user_id = None; // the old job still has the id when this one is added
            }
            added.push(Step::Add(job.clone()));
        }
        taken.extend(job.user_id);
    }
    steps.extend(added);
    steps.extend(rest.into_iter().cloned().map(Step::Delete));
    steps
}

/// Carries out all steps or none: when the kernel refuses a step, undoes those before it.
pub fn carry_out(steps: &[Step]) -> failure::Result<()> {
    let mut kernel = Kernel::default();
    for (at, step) in steps.iter().enumerate() {
        let Err(error) = kernel.perform(step) else { continue };
        let mut kernel = Kernel::default(); // lists the jobs again, because they have changed
        let failed: Vec<_> = steps[..at].iter().rev().filter_map(|step| kernel.undo(step).err()).collect();
        let mut failure = Failure::failed(error.to_string());
        failure.message += match failed.first() {
            None => "; nothing was changed",
            Some(_) => "; and not all earlier steps could be undone",
        };
        if let Some(error) = failed.first() {
            failure.message += &format!(": {error} (canter rules list prints the jobs)");
        }
        return Err(failure);
    }
    Ok(())
}

/// The kernel's jobs, listed when the first job is deleted: before that they change.
#[derive(Default)]
struct Kernel(Option<Listed>);

impl Kernel {
    fn perform(&mut self, step: &Step) -> canter_io::Result<()> {
        match step {
            Step::Add(job) => can_gw::add(job),
            Step::Replace(new, _) => can_gw::add(new),
            Step::Delete(job) => self.delete(job),
        }
    }

    fn undo(&mut self, step: &Step) -> canter_io::Result<()> {
        match step {
            Step::Add(job) => self.delete(job),
            Step::Replace(_, old) => can_gw::add(old),
            Step::Delete(job) => can_gw::add(job),
        }
    }

    fn delete(&mut self, job: &Job) -> canter_io::Result<()> {
        let listed = match &mut self.0 {
            Some(listed) => listed,
            none => none.insert(Listed::now()?),
        };
        listed.delete(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canter_io::{Filter, netlink::can_gw::Modification};
    use proptest::{collection::vec, prelude::*};

    /// Few different jobs, so that files and kernels have some in common.
    fn job() -> impl Strategy<Value = Job> {
        (1u32..3, 0u32..2, 0u32..3, any::<bool>()).prop_map(|(to, id, set, hops)| {
            let filter = Some(Filter { id, mask: 0x7ff });
            let set = if set == 0 { Modification::default() } else { Modification::from_id(set) };
            named(Job { filter, set, hops_max: hops.then_some(1), ..Job::between(9, to) })
        })
    }

    /// What the kernel does: one list, user ids are unique, a known one replaces modifications.
    fn kernel(jobs: &mut Vec<Job>, step: &Step) {
        match step {
            Step::Add(job) => {
                let known = |other: &Job| job.user_id.is_some() && other.user_id == job.user_id;
                assert!(!jobs.iter().any(known), "this would have changed another job");
                jobs.push(job.clone());
            }
            Step::Replace(new, old) => {
                let at = jobs.iter().position(|job| job == &**old).expect("the job to change exists");
                assert_eq!(old.user_id, new.user_id);
                jobs[at] = (**new).clone();
            }
            Step::Delete(job) => {
                let at = jobs.iter().position(|other| other == job).expect("the job to delete exists");
                jobs.remove(at);
            }
        }
    }

    proptest! {
        #[test]
        fn the_steps_lead_from_any_jobs_to_those_wanted_and_touch_no_other(
            before in vec(job(), 0..6), wanted in vec(job(), 0..6),
        ) {
            let mut jobs = Vec::new();
            steps(&before, &[]).iter().for_each(|step| kernel(&mut jobs, step));
            let way = steps(&wanted, &jobs);
            // A wanted job that is installed is neither deleted nor added; each installed job counts for one wanted job.
            let mut left = jobs.clone();
            let find = |job: &Job, left: &[Job]| left.iter().position(|other| same(other, job));
            let kept = wanted.iter().filter(|job| find(job, &left).map(|at| left.remove(at)).is_some()).count();
            prop_assert!(way.len() <= jobs.len() + wanted.len() - 2 * kept);
            way.iter().for_each(|step| kernel(&mut jobs, step));
            prop_assert_eq!(jobs.len(), wanted.len());
            for job in &wanted {
                let count = |list: &[Job]| list.iter().filter(|other| same(other, job)).count();
                prop_assert_eq!(count(&jobs), count(&wanted));
            }
            prop_assert_eq!(steps(&wanted, &jobs), vec![], "nothing is left to do");
        }
    }
}
