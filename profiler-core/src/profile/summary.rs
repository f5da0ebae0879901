//! What a profile tells without its rows, as views ask for it.
//!
//! Owns: reading the small tables: series, steps, refusals. Refuses: allocations.

use crate::error::Result;
use crate::journal::entry::Nanoseconds;
use crate::ledger::CATEGORIES;
use crate::report::{Report, StepReport};
use crate::timeline::{BUCKETS, Bucket, Series};

use super::read::Profile;

impl Profile {
    /// The report of the peak, as the profile holds it ready.
    pub(crate) fn summary(&self) -> &Report {
        &self.manifest.report
    }

    /// CUDA ordinals, by device.
    pub(crate) fn ordinals(&self) -> Result<Vec<u32>> {
        let table = self.table("devices")?;
        let ordinals = self.guard("devices", || table.numbers("ordinal"))?;
        Ok(ordinals.into_iter().map(|ordinal| ordinal.unwrap_or_default() as u32).collect())
    }

    /// What a device is called in the tables.
    fn device_id(&self, device: usize) -> Result<Option<u32>> {
        Ok(self.devices()?.get(device).map(|row| row.id))
    }

    /// The steps of a device.
    pub(crate) fn steps_of(&self, device: usize) -> Result<Vec<StepReport>> {
        let devices = self.devices()?;
        let Some(row) = devices.get(device) else { return Ok(Vec::new()) };
        let here = self.steps.iter().filter(|step| step.device == row.id);
        Ok(here.map(|step| step.report(row.uuid.clone())).collect())
    }

    /// Live bytes of a device over time.
    pub(crate) fn series_of(&self, device: usize) -> Result<Series> {
        let Some(id) = self.device_id(device)? else { return Ok(Series::default()) };
        self.series("series", Some(u64::from(id)))
    }

    /// Live bytes of host memory over time.
    pub(crate) fn host_series(&self) -> Result<Series> {
        if self.summary().host.moment.is_none() {
            return Ok(Series::default());
        }
        self.series("host_series", None)
    }

    fn series(&self, name: &str, device: Option<u64>) -> Result<Series> {
        let table = self.table(name)?;
        self.guard(name, || {
            let begins = table.numbers("begin_ns")?;
            let devices = match device {
                Some(_) => table.numbers("device")?,
                None => vec![None; begins.len()],
            };
            let names = ["unknown", "weights", "gradients", "activations", "optimizer", "inputs", "workspace"];
            let live =
                names.into_iter().map(|name| table.numbers(name)).collect::<parquet::errors::Result<Vec<_>>>()?;
            let reserved = table.numbers("reserved")?;
            let at = |column: &[Option<u64>], row: usize| column.get(row).copied().flatten().unwrap_or_default();
            let here: Vec<usize> = (0..devices.len()).filter(|row| devices[*row] == device).take(BUCKETS).collect();
            let bucket = |row: &usize| {
                let mut bucket = Bucket { live: [0; CATEGORIES], reserved: at(&reserved, *row) };
                bucket.live.iter_mut().zip(&live).for_each(|(bytes, column)| *bytes = at(column, *row));
                bucket
            };
            let width_ns = match here[..] {
                [first, second, ..] => at(&begins, second).saturating_sub(at(&begins, first)).max(1),
                _ => time_of_all(self),
            };
            Ok(Series { width_ns, buckets: here.iter().map(bucket).collect() })
        })
    }

    /// When the driver refused an allocation.
    pub(crate) fn refusals(&self) -> Result<Vec<Nanoseconds>> {
        let table = self.table("markers")?;
        self.guard("markers", || {
            let (times, results) = (table.numbers("time_ns")?, table.numbers("result")?);
            let refused = times.into_iter().zip(results).filter(|(_, result)| result.is_some());
            Ok(refused.map(|(time, _)| Nanoseconds(time.unwrap_or_default())).collect())
        })
    }
}

/// One bucket is as wide as the session.
fn time_of_all(profile: &Profile) -> u64 {
    (profile.summary().duration_s * 1e9) as u64 / BUCKETS as u64 + 1
}
