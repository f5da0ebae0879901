//! How much of a running session is kept.
//!
//! Owns: the bounds. Refuses: to bound what the program itself bounds: what is live, and its names and scopes.

/// Bounds of what an [`super::Explorer`] keeps of a session that runs. [`Limits::bound`] says how much memory that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Allocations and blocks that have ended; of more, the oldest are forgotten.
    pub dead_allocations: usize,
    /// Steps, of all targets together.
    pub steps: usize,
    /// Beginnings of steps and phases, and refused allocations.
    pub markers: usize,
    /// Telemetry samples; of more, every second one of the older half goes.
    pub samples: usize,
    /// A large list of a running session is made anew not before so many times what lists cost last: 50 is 2 % of a core. 0
    /// makes everything anew in every answer.
    pub pace: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { dead_allocations: 2_000_000, steps: 3 << 16, markers: 1 << 18, samples: 1 << 16, pace: 50 }
    }
}

impl Limits {
    /// Most memory that an explorer with these limits takes, in bytes, while so many allocations live: 200 for each of those, 120
    /// for each that has ended and is kept, 700 a step, 150 a marker, 900 a sample of one device, and a quarter more of each
    /// before the oldest go; 32 a live allocation for each of two lists that are asked for; and 64 MiB for the rest. With the
    /// defaults, that is at most 700 MiB besides what lives.
    pub const fn bound(&self, live: u64) -> u64 {
        let dead = (self.dead_allocations as u64).saturating_mul(120);
        let steps = (self.steps as u64).saturating_mul(700);
        let markers = (self.markers as u64).saturating_mul(150);
        let samples = (self.samples as u64).saturating_mul(900);
        let live_and_kept = live.saturating_mul(200).saturating_add(dead).saturating_add(steps);
        let kept = live_and_kept.saturating_add(markers).saturating_add(samples);
        (kept / 4).saturating_mul(5).saturating_add(live.saturating_mul(64)).saturating_add(64 << 20)
    }

    /// Only what is live: for a monitor of many sessions.
    pub const LIVE_ONLY: Limits = Limits { dead_allocations: 0, steps: 64, markers: 64, samples: 64, pace: 50 };

    /// Everything, and always fresh: for a session that has ended.
    pub const NONE: Limits =
        Limits { dead_allocations: usize::MAX, steps: usize::MAX, markers: usize::MAX, samples: usize::MAX, pace: 0 };
}
