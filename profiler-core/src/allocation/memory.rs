//! What is live in one process, by address.
//!
//! Owns: which allocation or block an address means now, and which frees may still be taken back. Refuses: sums.
//!
//! Live allocations never overlap one another, and neither do blocks: whoever enters evicts what lies in its place.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::elsewhere::Elsewhere;
use super::row::AllocationId;

/// Live ranges by first address.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ranges {
    spans: BTreeMap<u64, Span>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Span {
    end: u64,
    id: AllocationId,
    /// The context with which it ends; 0 for none.
    context: u64,
}

impl Ranges {
    /// Takes the range; it must be vacant.
    pub fn enter(&mut self, address: u64, bytes: u64, id: AllocationId) {
        self.enter_in(0, address, bytes, id);
    }

    /// The same, of what ends with this context.
    pub fn enter_in(&mut self, context: u64, address: u64, bytes: u64, id: AllocationId) {
        self.spans.insert(address, Span { end: end(address, bytes), id, context });
    }

    /// First addresses of the ranges of a context, in order.
    pub fn of_context(&self, context: u64) -> Vec<u64> {
        self.spans.iter().filter(|(_, span)| span.context == context).map(|(start, _)| *start).collect()
    }

    /// The context of the range that begins at `address`; 0 for none.
    pub fn context(&self, address: u64) -> u64 {
        self.spans.get(&address).map_or(0, |span| span.context)
    }

    /// The range that begins at `address` leaves.
    pub fn leave(&mut self, address: u64) -> Option<AllocationId> {
        self.spans.remove(&address).map(|span| span.id)
    }

    /// The range that begins at `address`.
    pub fn starting(&self, address: u64) -> Option<AllocationId> {
        self.spans.get(&address).map(|span| span.id)
    }

    /// The range that begins at or holds `address`.
    pub fn holding(&self, address: u64) -> Option<AllocationId> {
        let (start, span) = self.spans.range(..=address).next_back()?;
        (*start == address || address < span.end).then_some(span.id)
    }

    /// The range that holds `address`, and where it ends.
    pub fn span(&self, address: u64) -> Option<(AllocationId, u64)> {
        let (_, span) = self.spans.range(..=address).next_back()?;
        (address < span.end).then_some((span.id, span.end))
    }

    /// The range that holds all of these bytes.
    pub fn holding_all(&self, address: u64, bytes: u64) -> Option<AllocationId> {
        let (_, span) = self.spans.range(..=address).next_back()?;
        (end(address, bytes) <= span.end).then_some(span.id)
    }

    /// How many of these bytes lie in ranges that are asked for.
    pub fn shared(&self, address: u64, bytes: u64, wanted: impl Fn(AllocationId) -> bool) -> u64 {
        let last = address.saturating_add(bytes);
        let shared = |start: u64| {
            let span = &self.spans[&start];
            if wanted(span.id) { span.end.min(last).saturating_sub(start.max(address)) } else { 0 }
        };
        self.overlapping(address, bytes).into_iter().map(shared).sum::<u64>().min(bytes)
    }

    /// First addresses of the ranges that share a byte with this one, in order.
    pub fn overlapping(&self, address: u64, bytes: u64) -> Vec<u64> {
        let mut found = Vec::new();
        if let Some((start, span)) = self.spans.range(..address).next_back()
            && span.end > address
        {
            found.push(*start);
        }
        found.extend(self.spans.range(address..end(address, bytes)).map(|(start, _)| *start));
        found
    }

    /// Gives what is live the numbers that it has from now on.
    pub fn renumber(&mut self, now: impl Fn(AllocationId) -> Option<AllocationId>) {
        for span in self.spans.values_mut() {
            span.id = now(span.id).unwrap_or(span.id);
        }
    }

    /// Who holds the ranges, in the order of addresses.
    pub fn ids(&self) -> impl Iterator<Item = AllocationId> + '_ {
        self.spans.values().map(|span| span.id)
    }

    /// First addresses of all ranges, in order.
    pub fn addresses(&self) -> Vec<u64> {
        self.spans.keys().copied().collect()
    }
}

/// End of a range, exclusive. An empty one is held to have one byte, so that two of them cannot share an address.
fn end(address: u64, bytes: u64) -> u64 {
    address.saturating_add(bytes.max(1))
}

/// An allocation that was freed, as long as the driver may still refuse.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Freed {
    /// Slot of the free.
    pub slot: u64,
    /// The allocation, and where its death stands in the process's changes.
    pub death: (AllocationId, usize),
    /// The blocks that went with it.
    pub blocks: Vec<(AllocationId, usize)>,
    /// The context that it ended in.
    pub context: u64,
    /// How many bytes were pinned, where it was memory of the program's own that is counted elsewhere.
    pub registered: Option<u64>,
}

/// Memory of a handle.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Physical {
    pub id: AllocationId,
    /// How many mappings there are.
    pub mappings: u32,
    /// References that the program has not given back.
    pub references: u32,
    /// The context with which it ends; 0 for none.
    pub context: u64,
}

/// The memory of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// What the driver granted.
    pub owned: Ranges,
    /// Memory of the program's own that the driver has pinned, and that is counted elsewhere, all or a part of it.
    pub registered: Ranges,
    /// Blocks inside it (and those outside of all).
    pub blocks: Ranges,
    /// The last free at each address.
    pub freed: HashMap<u64, Freed>,
    /// Memory of handles that are not given back, or are mapped.
    pub physical: HashMap<u64, Physical>,
    /// Handles, by the address at which they are mapped.
    pub mapped: HashMap<u64, u64>,
    /// What is used here and counts elsewhere.
    pub elsewhere: Elsewhere,
    /// Slot of the last free at each address that was not live.
    pub unknown: HashMap<u64, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_means_the_range_around_it() {
        let mut ranges = Ranges::default();
        ranges.enter(100, 10, AllocationId(1));
        ranges.enter(110, 0, AllocationId(2));
        assert_eq!(ranges.holding(109), Some(AllocationId(1)));
        assert_eq!(ranges.holding(110), Some(AllocationId(2)));
        assert_eq!(ranges.holding(111), None);
        assert_eq!(ranges.holding_all(105, 5), Some(AllocationId(1)));
        assert_eq!(ranges.holding_all(105, 6), None);
        assert_eq!(ranges.overlapping(90, 11), vec![100]);
        assert_eq!(ranges.overlapping(109, 100), vec![100, 110]);
        assert_eq!(ranges.overlapping(u64::MAX, u64::MAX), Vec::<u64>::new());
    }
}
