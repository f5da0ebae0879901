//! Recomputes from the rows what a profile holds ready.
//!
//! Owns: a second way to the peaks, from the table of allocations alone. Refuses: to trust the manifest.

use memscope_wire::{Category, MemoryKind};
use parquet::errors::{ParquetError, Result as TableResult};

use crate::allocation::{Allocation, flag};
use crate::error::Result;
use crate::ledger::{CATEGORIES, EventRows};

use super::archive::Slice;
use super::read::Profile;
use super::scan::in_groups;
use super::table::Table;

/// What the rows of a profile say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verification {
    /// Rows read.
    pub allocations: u64,
    /// By device.
    pub devices: Vec<DeviceVerification>,
    /// What does not agree with the manifest, as sentences; empty when all is well.
    pub disagreements: Vec<String>,
}

/// One device of [`Verification`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceVerification {
    /// UUID.
    pub uuid: String,
    /// Largest live bytes.
    pub live: u64,
    /// Largest reserved bytes.
    pub reserved: u64,
    /// Each category's own maximum, by number.
    pub categories: [u64; CATEGORIES],
    /// True when the rows of the ledger add up after every change.
    pub adds_up: bool,
}

struct Row {
    birth: u32,
    death: Option<u32>,
    allocation: Allocation,
}

impl Profile {
    /// Replays all rows and compares with what the profile holds ready. Takes about 100 bytes of memory a row.
    ///
    /// # Errors
    /// When the tables are damaged.
    pub fn verify(&self) -> Result<Verification> {
        let slice = self.slice("allocations")?;
        let groups = self.guard("allocations", || Ok(Table::open(slice.clone())?.groups()))?;
        let rows = in_groups(slice, groups, rows_of_group);
        let rows: Vec<Row> = self.guard("allocations", || rows)?.into_iter().flatten().collect();
        // Position in the order, and whether it is a birth; positions are unique, so a plain sort restores the order.
        let mut changes: Vec<(u32, bool, u32)> = Vec::with_capacity(rows.len() * 2);
        for (number, row) in rows.iter().enumerate() {
            changes.push((row.birth, true, number as u32));
            changes.extend(row.death.map(|death| (death, false, number as u32)));
        }
        changes.sort_unstable();
        let mut verification = Verification { allocations: rows.len() as u64, ..Verification::default() };
        for device in self.devices()? {
            let here = |row: &Row| u32::from(row.allocation.device) == device.id && row.allocation.on_device();
            let mut found = DeviceVerification {
                uuid: device.uuid.clone(),
                live: 0,
                reserved: 0,
                categories: [0; CATEGORIES],
                adds_up: true,
            };
            let mut ledger = EventRows::default();
            for (_, birth, number) in &changes {
                let row = &rows[*number as usize];
                if !here(row) {
                    continue;
                }
                if *birth {
                    ledger.enter(&row.allocation)
                } else {
                    ledger.leave(&row.allocation)
                }
                found.adds_up &= ledger.adds_up();
                found.live = found.live.max(ledger.live_bytes());
                found.reserved = found.reserved.max(ledger.reserved);
                for (largest, now) in found.categories.iter_mut().zip(ledger.live) {
                    *largest = now.max(*largest);
                }
            }
            verification.devices.push(found);
        }
        verification.disagreements = self.disagreements(&verification);
        Ok(verification)
    }

    fn disagreements(&self, found: &Verification) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut compare = |what: String, rows: u64, manifest: u64| {
            if rows != manifest {
                sentences.push(format!("{what}: the rows say {rows}, the manifest says {manifest}"));
            }
        };
        compare("number of allocations".into(), found.allocations, self.manifest.allocations);
        if self.manifest.kept.is_some() {
            // Largest values are those of the whole, and rows those of a part.
            return sentences;
        }
        for (device, said) in found.devices.iter().zip(&self.manifest.report.devices) {
            compare(format!("peak of live bytes on {}", device.uuid), device.live, said.peak.live.bytes);
            compare(format!("peak of reserved bytes on {}", device.uuid), device.reserved, said.peak.reserved.bytes);
            compare(format!("ledger of {} adds up", device.uuid), u64::from(device.adds_up), 1);
        }
        let peaks = &self.manifest.report.category_peaks;
        let said = [
            peaks.unknown.bytes,
            peaks.weights.bytes,
            peaks.gradients.bytes,
            peaks.activations.bytes,
            peaks.optimizer.bytes,
            peaks.inputs.bytes,
            peaks.workspace.bytes,
        ];
        for (category, said) in Category::ALL.into_iter().zip(said) {
            let largest = found.devices.iter().map(|device| device.categories[category as usize]).max().unwrap_or(0);
            compare(format!("peak of {}", category.name()), largest, said);
        }
        sentences
    }
}

fn rows_of_group(table: &Table<Slice>, group: usize) -> TableResult<Vec<Row>> {
    let numbers = |name: &str| Ok::<_, ParquetError>(table.column(group, name)?.numbers());
    let (births, deaths) = (numbers("birth_order")?, numbers("death_order")?);
    let (bytes, requested, category) = (numbers("bytes")?, numbers("requested")?, numbers("category")?);
    let (memory, device, flags) = (numbers("memory")?, numbers("device")?, numbers("flags")?);
    let at = |column: &[Option<u64>], row: usize| column.get(row).copied().flatten();
    let value = |column: &[Option<u64>], row: usize| at(column, row).unwrap_or_default();
    let row = |row: usize| Row {
        birth: value(&births, row) as u32,
        death: at(&deaths, row).map(|death| death as u32),
        allocation: Allocation {
            bytes: value(&bytes, row),
            requested: value(&requested, row).min(value(&bytes, row)),
            category: Category::from_number(value(&category, row) as u8),
            memory: MemoryKind::from_number(value(&memory, row) as u8),
            device: at(&device, row).map_or(Allocation::NO_DEVICE, |device| device as u16),
            flags: value(&flags, row) as u16 & !flag::DEAD,
            ..Allocation::vacant()
        },
    };
    Ok((0..births.len()).map(row).collect())
}
