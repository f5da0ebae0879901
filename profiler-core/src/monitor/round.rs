//! The beat to which devices answer.
//!
//! Owns: the number of the round, which device has answered it, and the end. Refuses: to wait for a device longer than its
//! caller allows.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Shared by the thread that counts the rounds and the threads of the devices.
#[derive(Default)]
pub(super) struct Rounds {
    state: Mutex<State>,
    /// A round began, or all are over.
    begun: Condvar,
    /// All devices that are waited for have answered, or all rounds are over.
    answered: Condvar,
}

#[derive(Default)]
struct State {
    round: u64,
    devices: Vec<Beat>,
    over: bool,
}

/// How a device keeps up.
#[derive(Clone, Copy, Default)]
struct Beat {
    /// The last round that it answered.
    answered: u64,
    /// It did not answer in time, and is not waited for until it does.
    late: bool,
}

impl State {
    fn is_complete(&self) -> bool {
        self.devices.iter().all(|beat| beat.late || beat.answered >= self.round)
    }
}

impl Rounds {
    /// For so many devices, before the first round.
    pub fn new(devices: usize) -> Rounds {
        let state = State { devices: vec![Beat::default(); devices], ..State::default() };
        Rounds { state: Mutex::new(state), ..Rounds::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a round and waits until all devices have answered that answered the one before, at most until then. Its number;
    /// `None` when all are over.
    pub fn run(&self, until: Instant) -> Option<u64> {
        let mut state = self.state();
        state.round += 1;
        self.begun.notify_all();
        while !state.is_complete() && !state.over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let round = state.round;
                state.devices.iter_mut().for_each(|beat| beat.late = beat.answered < round);
                break;
            }
            state = self.answered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        (!state.over).then_some(state.round)
    }

    /// Waits until then; false when all are over.
    pub fn rest(&self, until: Instant) -> bool {
        let mut state = self.state();
        while !state.over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.answered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// A device waits for a round after this one and gets its number; `None` when all are over.
    pub fn wait_after(&self, round: u64) -> Option<u64> {
        let mut state = self.state();
        while state.round <= round && !state.over {
            state = self.begun.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.over).then_some(state.round)
    }

    /// A device has answered this round.
    pub fn done(&self, device: usize, round: u64) {
        let mut state = self.state();
        let current = state.round;
        if let Some(beat) = state.devices.get_mut(device) {
            beat.answered = round;
            beat.late &= round < current;
        }
        if state.is_complete() {
            self.answered.notify_all();
        }
    }

    /// Ends all rounds.
    pub fn end(&self) {
        self.state().over = true;
        self.begun.notify_all();
        self.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Far enough that a test which waits for it fails by its own time limit.
    fn never() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn a_round_ends_when_all_have_answered() {
        let rounds = Arc::new(Rounds::new(3));
        let threads: Vec<_> = (0..3)
            .map(|device| {
                let rounds = Arc::clone(&rounds);
                thread::spawn(move || {
                    let mut round = 0;
                    while let Some(next) = rounds.wait_after(round) {
                        round = next;
                        rounds.done(device, round);
                    }
                    round
                })
            })
            .collect();
        for round in 1..=100 {
            assert_eq!(rounds.run(never()), Some(round));
        }
        rounds.end();
        assert!(threads.into_iter().all(|thread| thread.join().expect("no panic") == 100));
        assert_eq!((rounds.run(never()), rounds.rest(never()), rounds.wait_after(0)), (None, false, None));
    }

    #[test]
    fn one_that_is_late_is_not_waited_for_until_it_has_caught_up() {
        let rounds = Rounds::new(2);
        let past = Instant::now();
        assert_eq!(rounds.run(past), Some(1));
        rounds.done(0, 1);
        // Device 1 still has the first question: the second round does not wait for it, only for device 0.
        assert_eq!(rounds.run(past), Some(2));
        rounds.done(0, 2);
        rounds.done(1, 1);
        assert!(rounds.state().devices[1].late, "it answered an old question");
        rounds.done(1, 2);
        assert!(!rounds.state().devices[1].late);
    }
}
