//! Markers and telemetry of a model from a profile.
//!
//! Owns: which column is which fact of these two tables. Refuses: their meaning.

use std::collections::BTreeMap;

use memscope_wire::MemoryKind;
use parquet::errors::Result as TableResult;

use crate::allocation::{Allocation, Failure, MAX_NUMBER, Marker, MarkerKind, Model, canonical};
use crate::error::Result;
use crate::journal::entry::{DeviceSample, Nanoseconds, TelemetrySample};

use super::read::Profile;

impl Profile {
    /// Returns the position of each in the order of changes.
    pub(super) fn markers_of(&self, model: &mut Model) -> Result<Vec<u32>> {
        let table = self.table("markers")?;
        let names = &mut model.names;
        let (steps, processes) = (&mut model.steps, &mut model.processes);
        let markers = &mut model.markers;
        let mut places = Vec::new();
        self.guard("markers", || {
            let (orders, times, owners) =
                (table.numbers("order")?, table.numbers("time_ns")?, table.numbers("process")?);
            let (kinds, numbers, phases) = (table.texts("kind")?, table.numbers("step")?, table.texts("phase")?);
            let (functions, scopes) = (table.texts("function")?, table.numbers("scope")?);
            let (devices, memories) = (table.numbers("device")?, table.numbers("memory")?);
            let (requested, free, total) =
                (table.numbers("requested")?, table.numbers("free")?, table.numbers("total")?);
            let results = table.numbers("result")?;
            let lines = table.added_texts("line")?;
            let again = table.added_numbers("asked_again")?;
            let at = |column: &[Option<u64>], row: usize| column.get(row).copied().flatten();
            let value = |column: &[Option<u64>], row: usize| at(column, row).unwrap_or_default();
            let text = |column: &[Option<String>], row: usize| column.get(row).cloned().flatten().unwrap_or_default();
            for row in 0..orders.len() {
                let process = value(&owners, row) as usize;
                let Some(state) = processes.get_mut(process).filter(|_| row <= MAX_NUMBER) else { continue };
                let kind = match text(&kinds, row).as_str() {
                    "step" => {
                        let step = steps.position(value(&numbers, row));
                        state.step = step + 1;
                        MarkerKind::Step(step)
                    }
                    "phase" => {
                        state.phase = names.number_of(&text(&phases, row));
                        MarkerKind::Phase(state.phase)
                    }
                    _ => MarkerKind::Failure(Failure {
                        requested: value(&requested, row),
                        free: value(&free, row),
                        total: value(&total, row),
                        device: at(&devices, row).map_or(Allocation::NO_DEVICE, |device| device as u16),
                        result: value(&results, row) as i64 as i32,
                        function: names.number_of(&text(&functions, row)),
                        memory: MemoryKind::from_number(value(&memories, row) as u8),
                        scope: value(&scopes, row) as u32,
                        phase: state.phase,
                        step: state.step,
                        line: names.number_of(&text(&lines, row)),
                        asked_again: value(&again, row) == 1,
                    }),
                };
                places.push(value(&orders, row) as u32);
                markers.push(Marker { process: process as u32, ticks: value(&times, row), kind });
            }
            Ok(())
        })?;
        Ok(places)
    }

    pub(super) fn telemetry_of(&self, model: &mut Model) -> Result<()> {
        let names: BTreeMap<String, Option<String>> =
            self.manifest.report.devices.iter().map(|device| (canonical(&device.uuid), device.name.clone())).collect();
        let table = self.table("telemetry")?;
        model.telemetry = self.guard("telemetry", || {
            let (begins, times, uuids) = (table.numbers("begin_ns")?, table.numbers("time_ns")?, table.texts("uuid")?);
            let columns = ["total", "used", "reserved", "utilization", "temperature", "power", "clock"];
            let columns = columns.into_iter().map(|name| table.numbers(name)).collect::<TableResult<Vec<_>>>()?;
            let added =
                ["memory_clock", "power_limit", "fan", "pcie_generation", "pcie_width", "pcie_receive", "pcie_send"];
            let added = added.into_iter().map(|name| table.added_numbers(name)).collect::<TableResult<Vec<_>>>()?;
            let processes = table.texts("processes")?;
            let at = |column: &[Option<u64>], row: usize| column.get(row).copied().flatten();
            let sample = |row: usize| {
                let [wide, narrow] = [&columns, &added].map(|list| {
                    let list = list.as_slice();
                    move |column: usize| at(&list[column], row)
                });
                let small = |value: Option<u64>| value.map(|value| value as u32);
                let uuid = uuids.get(row).cloned().flatten().unwrap_or_default();
                let processes = processes.get(row).cloned().flatten();
                let device = DeviceSample {
                    name: names.get(&canonical(&uuid)).cloned().flatten(),
                    uuid,
                    total: wide(0),
                    used: wide(1),
                    reserved: wide(2),
                    utilization: small(wide(3)),
                    temperature: small(wide(4)),
                    power: small(wide(5)),
                    clock: small(wide(6)),
                    memory_clock: small(narrow(0)),
                    power_limit: small(narrow(1)),
                    fan: small(narrow(2)),
                    pcie_generation: small(narrow(3)),
                    pcie_width: small(narrow(4)),
                    pcie_receive: narrow(5),
                    pcie_send: narrow(6),
                    processes: processes.and_then(|list| serde_json::from_str(&list).ok()),
                };
                let (begin, time) = (at(&begins, row).unwrap_or_default(), at(&times, row).unwrap_or_default());
                TelemetrySample { begin: Nanoseconds(begin), time: Nanoseconds(time), devices: vec![device] }
            };
            Ok((0..times.len()).map(sample).collect())
        })?;
        Ok(())
    }
}
