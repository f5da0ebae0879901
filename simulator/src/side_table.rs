//! Bytes of small host-to-device copies in a memory-only run, in which device memory is never touched.
//!
//! Owns: what a program wrote to the device and may read back (a batch's labels, a scalar). Refuses: anything large,
//! and to guess: a read that is not covered by one write reads zeros.

use std::collections::BTreeMap;

/// Largest copy that is kept, bytes.
pub const LARGEST: u64 = 64 << 10;
/// Most bytes kept; beyond it new copies are forgotten, as large ones are.
const CAPACITY: u64 = 64 << 20;

/// The kept bytes, by address. Entries do not overlap.
pub struct SideTable {
    entries: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl SideTable {
    /// An empty table.
    pub const fn new() -> SideTable {
        SideTable { entries: BTreeMap::new(), bytes: 0 }
    }

    /// Notes that `data` was written at `address`.
    pub fn write(&mut self, address: u64, data: &[u8]) {
        if let Some((start, entry)) = self.covering(address, data.len() as u64) {
            let offset = (address - start) as usize;
            entry[offset..offset + data.len()].copy_from_slice(data);
            return;
        }
        self.erase(address, data.len() as u64);
        if data.len() as u64 <= LARGEST && self.bytes + data.len() as u64 <= CAPACITY && !data.is_empty() {
            self.bytes += data.len() as u64;
            self.entries.insert(address, data.to_vec());
        }
    }

    /// Forgets what is known of `bytes` bytes at `address`: they were overwritten, or freed.
    pub fn erase(&mut self, address: u64, bytes: u64) {
        let end = address.saturating_add(bytes);
        let touched: Vec<u64> = self
            .entries
            .range(address.saturating_sub(LARGEST)..end)
            .filter(|(start, data)| **start + data.len() as u64 > address)
            .map(|(start, _)| *start)
            .collect();
        for start in touched {
            let Some(data) = self.entries.remove(&start) else { continue };
            self.bytes -= data.len() as u64;
            let data_end = start + data.len() as u64;
            if start < address {
                self.keep(start, data[..(address - start) as usize].to_vec());
            }
            if data_end > end {
                self.keep(end, data[(end - start) as usize..].to_vec());
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if !self.entries.is_empty() {
            *self = SideTable::new();
        }
    }

    /// The bytes at `address`, if one entry covers all of them.
    pub fn read(&mut self, address: u64, bytes: u64) -> Option<&[u8]> {
        let (start, entry) = self.covering(address, bytes)?;
        let offset = (address - start) as usize;
        Some(&entry[offset..offset + bytes as usize])
    }

    fn keep(&mut self, address: u64, data: Vec<u8>) {
        self.bytes += data.len() as u64;
        self.entries.insert(address, data);
    }

    fn covering(&mut self, address: u64, bytes: u64) -> Option<(u64, &mut Vec<u8>)> {
        let (start, entry) = self.entries.range_mut(..=address).next_back()?;
        let end = *start + entry.len() as u64;
        (address.checked_add(bytes)? <= end && address < end).then_some((*start, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[test]
    fn a_read_of_what_was_written_gives_it_back() {
        let mut table = SideTable::new();
        table.write(1000, b"labels");
        assert_eq!(table.read(1001, 3), Some(&b"abe"[..]));
        assert_eq!(table.read(1001, 6), None);
        table.write(1002, b"XY");
        assert_eq!(table.read(1000, 6), Some(&b"laXYls"[..]));
        table.erase(1003, 1);
        assert_eq!(table.read(1000, 3), Some(&b"laX"[..]));
        assert_eq!(table.read(1004, 2), Some(&b"ls"[..]));
    }

    #[test]
    fn a_large_write_is_forgotten_and_hides_what_was_there() {
        let mut table = SideTable::new();
        table.write(0, b"old");
        table.write(0, &vec![1; LARGEST as usize + 1]);
        assert_eq!(table.read(0, 3), None);
    }

    proptest! {
        #[test]
        fn what_is_read_was_written_last(
            steps in proptest::collection::vec((0_u64..200, 1_u64..60, any::<u8>(), 0_u8..3), 1..60),
        ) {
            let mut table = SideTable::new();
            let mut truth: HashMap<u64, u8> = HashMap::new();
            for (address, bytes, value, what) in steps {
                match what {
                    0 => {
                        table.write(address, &vec![value; bytes as usize]);
                        truth.extend((address..address + bytes).map(|at| (at, value)));
                    }
                    1 => {
                        table.erase(address, bytes);
                        truth.retain(|at, _| !(address..address + bytes).contains(at));
                    }
                    _ => {
                        if let Some(data) = table.read(address, bytes) {
                            let expected: Option<Vec<u8>> =
                                (address..address + bytes).map(|at| truth.get(&at).copied()).collect();
                            prop_assert_eq!(Some(data.to_vec()), expected);
                        }
                    }
                }
            }
        }
    }
}
