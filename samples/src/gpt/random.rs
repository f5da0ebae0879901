//! Random numbers for batches and seeds (SplitMix64, Steele, Lea and Flood 2014). Not for secrets.

/// A generator.
pub(crate) struct Random(u64);

impl Random {
    /// The generator for a purpose: `path` says which, and generators of different paths are unrelated.
    pub fn new(seed: u64, path: &[u64]) -> Random {
        path.iter().fold(Random(mix(seed)), |Random(state), &part| Random(mix(state ^ mix(part.wrapping_add(1)))))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which is not 0, by the high half of a product: nearly uniform.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
