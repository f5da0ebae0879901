//! Starts the ranks: each is this program again, with the same arguments and RANK, WORLD_SIZE and LOCAL_RANK in its
//! environment, as torchrun sets them.
//!
//! Owns: the processes. Refuses: the device, which only ranks touch.

use super::Group;
use crate::Error;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Where a rank finds the shared memory: only a rank that was started here has it.
const GROUP: &str = "MEMSCOPE_SAMPLE_RANKS";
/// Between two looks at the ranks.
const LOOK: Duration = Duration::from_millis(5);
/// How long ranks may take to stop once another one has failed: they see it at their next collective.
const GRACE: Duration = Duration::from_secs(60);

impl Group {
    /// The place of this process, if it is a rank.
    ///
    /// # Errors
    /// [`Error::Ranks`] when the environment is not whole or the shared memory cannot be had.
    pub fn of_this_process() -> Result<Option<Group>, Error> {
        let Some(path) = std::env::var_os(GROUP) else { return Ok(None) };
        let number = |name: &str| {
            let value = std::env::var(name).ok().and_then(|value| value.parse().ok());
            value.ok_or_else(|| Error::Ranks(format!("a rank was started without a number in {name}")))
        };
        let (rank, world) = (number("RANK")?, number("WORLD_SIZE")?);
        Group::join(path.as_ref(), rank, world, std::os::unix::process::parent_id()).map(Some)
    }
}

/// Starts `world` ranks and waits for them.
///
/// # Errors
/// [`Error::Ranks`] when one cannot be started or fails; then the others are stopped.
pub(crate) fn launch(world: usize) -> Result<(), Error> {
    let group = Group::create(world)?;
    let mut ranks = Vec::new();
    for rank in 0..world {
        match start(&group, rank) {
            Ok(child) => ranks.push(Some(child)),
            Err(error) => {
                group.fail(rank);
                // The error of the start is the one to be told.
                let _ = wait(&group, ranks);
                return Err(Error::Ranks(format!("cannot start rank {rank}: {error}")));
            }
        }
    }
    wait(&group, ranks)
}

fn start(group: &Group, rank: usize) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(GROUP, group.path())
        .env("RANK", rank.to_string())
        .env("LOCAL_RANK", rank.to_string())
        .env("WORLD_SIZE", group.world().to_string())
        .spawn()
}

/// Waits for every rank, in whatever order they end.
fn wait(group: &Group, mut ranks: Vec<Option<Child>>) -> Result<(), Error> {
    let mut failure: Option<(usize, ExitStatus, Instant)> = None;
    while ranks.iter().any(Option::is_some) {
        for (rank, place) in ranks.iter_mut().enumerate() {
            let Some(child) = place else { continue };
            let ended =
                child.try_wait().map_err(|error| Error::Ranks(format!("cannot wait for rank {rank}: {error}")))?;
            if let Some(status) = ended {
                *place = None;
                if !status.success() && failure.is_none() {
                    group.fail(rank);
                    failure = Some((rank, status, Instant::now()));
                }
            } else if failure.is_some_and(|(_, _, since)| since.elapsed() > GRACE) {
                // It is stopped, or in a call of the driver that does not return. An error means that it has just ended.
                let _ = child.kill();
            }
        }
        std::thread::sleep(LOOK);
    }
    match failure {
        None => Ok(()),
        Some((rank, status, _)) => {
            Err(Error::Ranks(format!("rank {rank} ended with {status}; the other ranks were told to stop")))
        }
    }
}
