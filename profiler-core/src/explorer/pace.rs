//! How often a large list of a running session is made anew.
//!
//! Owns: the share of a core that lists may take. Refuses: to make anybody wait who asks something new.

use std::time::{Duration, Instant};

/// Shares the time for lists between them.
#[derive(Debug)]
pub(super) struct Pace {
    times: u32,
    not_before: Option<Instant>,
    /// When the oldest list was made that this answer has left as it was, and that of the answer before.
    waiting: Option<Instant>,
    waited: Option<Instant>,
}

/// A list, what it was made for and of, and when.
#[derive(Debug)]
pub(super) struct Kept<Key, Value> {
    made: Option<(Key, Stamp, Instant, Value)>,
}

/// What a list was made of: another stamp means that it may look otherwise now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    /// Position of the moment in the order of changes.
    pub order: u32,
    /// Counts what changes the past.
    pub past: u64,
}

impl<Key, Value> Default for Kept<Key, Value> {
    fn default() -> Self {
        Kept { made: None }
    }
}

impl Pace {
    /// A list may be made anew so many times its cost later.
    pub fn new(times: u32) -> Pace {
        Pace { times, not_before: None, waiting: None, waited: None }
    }

    /// An answer begins.
    pub fn begin(&mut self) {
        self.waited = self.waiting.take();
    }

    /// When a list that was left as it is may be made anew; `None` when there is none.
    pub fn due(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.waiting.is_some())
    }

    /// The list, made anew when the question is new, or when it is old and its turn has come.
    pub fn list<'k, Key: PartialEq, Value>(
        &mut self,
        kept: &'k mut Kept<Key, Value>,
        key: Key,
        stamp: Stamp,
        make: impl FnOnce() -> Value,
    ) -> &'k mut Value {
        let begin = Instant::now();
        let fresh = match &kept.made {
            Some((known, of, at, _)) if *known == key => {
                // The oldest comes first.
                let turn = self.waited.is_none_or(|oldest| *at <= oldest);
                let allowed = turn && self.not_before.is_none_or(|not_before| not_before <= begin);
                let old = *of != stamp;
                if old && !allowed {
                    self.waiting = Some(self.waiting.map_or(*at, |waiting| waiting.min(*at)));
                }
                !(old && allowed)
            }
            _ => false,
        };
        if !fresh {
            let value = make();
            let cost = begin.elapsed();
            kept.made = Some((key, stamp, begin, value));
            self.spent(begin, cost);
        }
        let Some((_, _, _, value)) = &mut kept.made else { unreachable!("it was just made") };
        value
    }

    fn spent(&mut self, begin: Instant, cost: Duration) {
        let until = begin + cost.saturating_mul(self.times);
        self.not_before = Some(self.not_before.map_or(until, |not_before| not_before.max(until)));
    }
}

impl<Key, Value> Kept<Key, Value> {
    /// What was made last.
    pub fn known(&self) -> Option<&Value> {
        self.made.as_ref().map(|(_, _, _, value)| value)
    }

    /// What was made refers to what is no more.
    pub fn forget(&mut self) {
        self.made = None;
    }
}
