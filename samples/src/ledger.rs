//! Bytes that the tensors of a device hold, by category: now, and the most there have been.
//!
//! Owns: the sums. Refuses: to know the device's own rounding, or memory that is no tensor's: memscope sees those.

use memscope_client::Category;
use std::cell::Cell;

/// As many as there are categories, unknown included.
const CATEGORIES: usize = 7;

/// What a device's tensors hold.
#[derive(Default)]
pub(crate) struct Ledger {
    live: [Cell<u64>; CATEGORIES],
    peaks: [Cell<u64>; CATEGORIES],
    largest_sum: Cell<u64>,
}

impl Ledger {
    pub fn add(&self, category: Category, bytes: u64) {
        let (live, peak) = (&self.live[category as usize], &self.peaks[category as usize]);
        live.set(live.get() + bytes);
        peak.set(peak.get().max(live.get()));
        self.largest_sum.set(self.largest_sum.get().max(self.sum()));
    }

    pub fn remove(&self, category: Category, bytes: u64) {
        let live = &self.live[category as usize];
        live.set(live.get() - bytes);
    }

    pub fn live(&self, category: Category) -> u64 {
        self.live[category as usize].get()
    }

    pub fn peak(&self, category: Category) -> u64 {
        self.peaks[category as usize].get()
    }

    pub fn largest_sum(&self) -> u64 {
        self.largest_sum.get()
    }

    /// Peaks count from what is live now.
    pub fn forget_peaks(&self) {
        self.peaks.iter().zip(&self.live).for_each(|(peak, live)| peak.set(live.get()));
        self.largest_sum.set(self.sum());
    }

    /// Of all categories.
    pub fn sum(&self) -> u64 {
        self.live.iter().map(Cell::get).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_of_its_category_and_the_largest_sum_of_all() {
        let ledger = Ledger::default();
        ledger.add(Category::Weights, 10);
        ledger.add(Category::Workspace, 5);
        ledger.remove(Category::Workspace, 5);
        ledger.add(Category::Activations, 3);
        assert_eq!((ledger.live(Category::Workspace), ledger.peak(Category::Workspace)), (0, 5));
        assert_eq!(ledger.largest_sum(), 15);
        ledger.forget_peaks();
        assert_eq!((ledger.peak(Category::Workspace), ledger.peak(Category::Weights)), (0, 10));
        assert_eq!(ledger.largest_sum(), 13);
    }
}
