//! How ranks exchange tensors: through NCCL, where the devices are real and every rank can load it; else through the host's
//! memory.
//!
//! Owns: the choice, on which all ranks agree. Refuses: both ways themselves ([`super::group`], [`super::nccl`]).

use super::Group;
use super::nccl::{Functions, Nccl};
use crate::Error;

/// The way that was chosen.
pub(crate) struct Exchange {
    /// None where tensors go through the host's memory.
    pub nccl: Option<Nccl>,
    /// The choice in words, where there was one.
    pub choice: Option<String>,
}

impl Exchange {
    /// Chooses, with the other ranks. A simulated device has no choice, nor has a trial that may be abandoned: what waits in NCCL
    /// cannot be told so.
    ///
    /// # Errors
    /// [`Error::Ranks`], as any collective.
    pub fn choose(group: &Group, simulated: bool) -> Result<Exchange, Error> {
        Exchange::choose_from(group, simulated || group.is_trial(), Functions::load)
    }

    fn choose_from(
        group: &Group,
        through_host: bool,
        load: impl FnOnce() -> Result<Functions, String>,
    ) -> Result<Exchange, Error> {
        if through_host {
            return Ok(Exchange { nccl: None, choice: None });
        }
        let loaded = load();
        let mut able = [if loaded.is_ok() { 1.0 } else { 0.0 }];
        group.all_reduce(&mut able)?;
        let why = match loaded {
            Ok(functions) if able[0] == group.world() as f32 => {
                let nccl = Some(Nccl::join(functions, group)?);
                return Ok(Exchange { nccl, choice: Some("ranks exchange through NCCL".to_owned()) });
            }
            Ok(_) => "NCCL cannot be loaded by another rank".to_owned(),
            Err(why) => why,
        };
        let choice = Some(format!("{why}; so ranks exchange through the host's memory, which is slower"));
        Ok(Exchange { nccl: None, choice })
    }
}

#[cfg(test)]
mod tests {
    use super::super::nccl::tests::recorded;
    use super::*;

    /// The choice of two ranks, of which the first and the second can load NCCL or not.
    fn choices(able: [bool; 2], through_host: bool) -> [(bool, Option<String>); 2] {
        let group = Group::create(2).unwrap();
        std::thread::scope(|scope| {
            let start = |rank: usize| {
                let member = group.member(rank);
                scope.spawn(move || {
                    let load = || if able[rank] { Ok(recorded()) } else { Err("there is no NCCL".to_owned()) };
                    let Exchange { nccl, choice } = Exchange::choose_from(&member, through_host, load).unwrap();
                    (nccl.is_some(), choice)
                })
            };
            [start(0), start(1)].map(|thread| thread.join().unwrap())
        })
    }

    #[test]
    fn all_ranks_take_the_same_way() {
        let nccl = (true, Some("ranks exchange through NCCL".to_owned()));
        assert_eq!(choices([true, true], false), [nccl.clone(), nccl]);
        let host =
            |why: &str| (false, Some(format!("{why}; so ranks exchange through the host's memory, which is slower")));
        assert_eq!(
            choices([true, false], false),
            [host("NCCL cannot be loaded by another rank"), host("there is no NCCL")]
        );
        assert_eq!(choices([false, false], false), [host("there is no NCCL"), host("there is no NCCL")]);
        assert_eq!(choices([true, true], true), [(false, None), (false, None)]);
    }

    #[test]
    fn a_trial_goes_through_the_host() {
        let group = Group::create(1).unwrap();
        assert!(!group.is_trial() && group.for_trial().is_trial());
        assert!(Exchange::choose(&group.for_trial(), false).unwrap().choice.is_none());
    }
}
