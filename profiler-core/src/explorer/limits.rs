//! How much of a running session is kept.
//!
//! Owns: the bounds. Refuses: to bound what the program itself bounds: what is live, and its names and scopes.

/// Bounds of what an [`super::Explorer`] keeps of a session that runs.
///
/// Memory is at most about 150 bytes for each allocation that is live or kept, 600 for each kept step, 100 for each kept marker
/// and 600 for each kept sample of telemetry, and a quarter more of each before the oldest go; lists that are asked for take
/// about 32 bytes more for each live allocation. With the defaults, that is at most about 800 MiB besides what is live.
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
    /// Only what is live: for a monitor of many sessions.
    pub const LIVE_ONLY: Limits = Limits { dead_allocations: 0, steps: 64, markers: 64, samples: 64, pace: 50 };

    /// Everything, and always fresh: for a session that has ended.
    pub const NONE: Limits =
        Limits { dead_allocations: usize::MAX, steps: usize::MAX, markers: usize::MAX, samples: usize::MAX, pace: 0 };
}
