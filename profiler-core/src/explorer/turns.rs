//! When a question is answered anew while a session runs.
//!
//! Owns: how often, and what is made up for when the machine was busy. Refuses: to wait, and to look at a clock.

use std::time::{Duration, Instant};

/// Time between two answers to the same question: ten a second with room for what comes between.
pub(super) const TURN: Duration = Duration::from_millis(80);
/// Least time between two, where what was missed is made up for.
const LEAST: Duration = Duration::from_millis(40);
/// An answer that is made up for takes at most this part of a core.
const PART: u32 = 8;
/// What was missed longer ago is not made up for.
const LONGEST: Duration = Duration::from_secs(1);

/// The turns of answers.
#[derive(Debug)]
pub(super) struct Turns {
    /// When the next answer should come, and when it may.
    plan: Instant,
    next: Instant,
    /// Until then there was nothing to do.
    woke: Instant,
}

impl Turns {
    /// From now on.
    pub fn new(now: Instant) -> Turns {
        Turns { plan: now, next: now, woke: now }
    }

    /// When the next answer is due, if there is something new to tell by then.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// There was nothing to do until now: what came late had not been there before.
    pub fn woke(&mut self, now: Instant) {
        self.woke = now;
    }

    /// An answer was begun at this moment, and took so long. Whatever was in its way (other work, other programs), the next ones
    /// come sooner until there are as many as there should be; but not where an answer costs much.
    pub fn answered(&mut self, begin: Instant, cost: Duration) {
        let due = self.plan.max(self.woke).min(begin);
        let due = begin.checked_sub(LONGEST).map_or(due, |earliest| due.max(earliest));
        self.plan = due + TURN;
        self.next = self.plan.max(begin + (cost * PART).clamp(LEAST, TURN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Begins of answers in milliseconds, by a machine that does not run from 200 ms on, for so long, and is awake all the time.
    fn begins(cost: Duration, stands_still: u64) -> Vec<u64> {
        let begin = Instant::now();
        let mut turns = Turns::new(begin);
        let mut begins = Vec::new();
        for now in (0..2000).filter(|now| !(200..200 + stands_still).contains(now)) {
            let at = begin + MS * now as u32;
            if turns.next() <= at {
                turns.answered(at, cost);
                begins.push(now);
            }
        }
        begins
    }

    #[test]
    fn answers_keep_their_pace() {
        assert_eq!(begins(MS, 0), (0..25).map(|turn| turn * 80).collect::<Vec<_>>());
    }

    #[test]
    fn what_a_busy_machine_missed_is_made_up_for() {
        let begins = begins(MS, 250);
        // Without it there would be 23: from 450 ms on each 80 ms.
        assert_eq!(begins.len(), 25, "{begins:?}");
        assert!(begins.windows(2).all(|two| two[1] - two[0] >= 40), "{begins:?}");
        assert!(begins.ends_with(&[1760, 1840, 1920]), "as if nothing had been: {begins:?}");
    }

    #[test]
    fn answers_that_cost_much_are_not_made_up_for() {
        let begins = begins(10 * MS, 250);
        assert_eq!(begins.len(), 3 + 20, "{begins:?}");
        assert!(begins.windows(2).all(|two| two[1] - two[0] >= 80), "{begins:?}");
    }

    #[test]
    fn after_a_quiet_time_there_is_nothing_to_make_up_for() {
        let begin = Instant::now();
        let mut turns = Turns::new(begin);
        turns.answered(begin, MS);
        let later = begin + 10_000 * MS;
        turns.woke(later);
        turns.answered(later + MS, MS);
        assert_eq!(turns.next(), later + TURN, "of what came when it woke");
        // And after a very long time without a rest not much.
        let much_later = later + 60_000 * MS;
        turns.answered(much_later, MS);
        assert_eq!(turns.next(), much_later + LEAST);
    }
}
