//! Keeps what an explorer holds of a running session within its limits.
//!
//! Owns: when something is forgotten, and what goes: the oldest. Refuses: to touch what lives, sums, series, and peaks.

use crate::timeline::ALIVE;

use super::explorer::Explorer;

impl Explorer {
    /// Forgets what is beyond the limits. All changes must have been walked, and all late facts taken in.
    pub(super) fn bound(&mut self) {
        let dead = self.walk.dead;
        // The effort grows with all that is kept: it must be for something, even when there is much more that lives.
        let slack = (self.walk.lifetimes.len() - dead) / 4 + self.limits.dead_allocations / 4;
        if dead > self.limits.dead_allocations.saturating_add(slack) {
            self.forget_allocations();
        }
        if self.walk.markers.len() > self.limits.markers.saturating_add(self.limits.markers / 4) {
            self.forget_markers();
        }
        self.thin_samples();
        // Of host memory that is not there, steps say nothing.
        let tracks = (self.walk.tracks().count() - usize::from(!self.walk.has_host_memory())).max(1);
        let (steps, samples) = (self.limits.steps / tracks, self.limits.samples);
        self.walk.tracks().for_each(|track| track.keep(steps, samples));
    }

    fn forget_allocations(&mut self) {
        let mut deaths: Vec<u32> =
            self.walk.lifetimes.iter().map(|lifetime| lifetime.death).filter(|death| *death != ALIVE).collect();
        let Some(last) =
            deaths.len().checked_sub(self.limits.dead_allocations).and_then(|surplus| surplus.checked_sub(1))
        else {
            return;
        };
        let (_, last, _) = deaths.select_nth_unstable(last);
        let last = *last;
        drop(deaths);
        let keep: Vec<bool> = self.walk.lifetimes.iter().map(|lifetime| lifetime.death > last).collect();
        self.model.forget(&keep, &self.walk.walked);
        self.walk.forget(&keep, last, &[]);
        let begin = self.walk.forgotten_before.unwrap_or_default();
        self.model.carried.iter_mut().for_each(|carried| carried.kept.forget_before(last, begin));
        self.lists.forget();
        self.past += 1;
    }

    /// Steps and phases go before refusals, which findings tell of.
    fn forget_markers(&mut self) {
        let mut surplus = self.walk.markers.len() - self.limits.markers;
        let mut keep = vec![true; self.model.markers.len()];
        for refusals in [false, true] {
            let markers = self.walk.markers.iter().map(|moment| moment.marker as usize);
            for marker in markers.filter(|marker| self.model.markers[*marker].failure().is_some() == refusals) {
                if surplus == 0 {
                    break;
                }
                keep[marker] = false;
                surplus -= 1;
            }
        }
        self.model.forget_markers(&keep, &self.walk.walked);
        self.walk.forget_markers(&keep, self.limits.markers);
    }

    /// Of the older half of the samples every second one goes.
    fn thin_samples(&mut self) {
        let samples = &mut self.model.telemetry;
        if samples.len() <= self.limits.samples {
            return;
        }
        let half = samples.len() / 2;
        let mut position = 0;
        samples.retain(|_| {
            position += 1;
            position > half || position % 2 == 1
        });
        self.walk.samples = samples.len();
        self.find_latest_samples();
    }
}
