//! What a profile of which not everything is kept says of the rest, for views: the figures of the whole until the moment from which
//! on all rows are there.
//!
//! Owns: one member of the archive, and that it fits the tables. Refuses: what the tables tell.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::allocation::Model;
use crate::error::Result;
use crate::keep::{Carried, packed};
use crate::report::Totals;
use crate::timeline::{ALIVE, Lifetime, Settled};

use super::read::Profile;

/// The member's name.
pub(super) const SUMMED: &str = "summed.json.zst";
const LEVEL: i32 = 3;

/// What is in it.
#[derive(Serialize, Deserialize)]
pub(super) struct Summed {
    carried: Carried,
    forgotten: Totals,
}

/// Of a model; `None` when everything is kept. Lifetimes are in the table, and so are markers, numbered by its rows.
pub(super) fn of(model: &Model, settled: &Settled) -> Option<Summed> {
    let known = model.carried.as_ref()?;
    let mut walk = known.corrected(model);
    if settled.stands_since.is_some() {
        // Positions do not tell what comes after it: nothing does.
        walk.exits.clone_from(&settled.exits);
        walk.advance(model);
    }
    walk.lifetimes = Vec::new();
    walk.walked.changes = Vec::new();
    (0..).zip(&mut walk.markers).for_each(|(row, moment)| moment.marker = row);
    // The table has a row for each device of a sample.
    walk.samples = model.telemetry.iter().take(walk.samples).map(|sample| sample.devices.len()).sum();
    let carried = Carried { walk, peaks: known.peaks.clone(), kept: known.kept.clone(), ..Carried::default() };
    Some(Summed { carried, forgotten: model.forgotten })
}

/// Writes it.
pub(super) fn write(summed: &Summed, to: impl Write) -> io::Result<()> {
    let mut packer = zstd::Encoder::new(to, LEVEL)?;
    serde_json::to_writer(io::BufWriter::new(&mut packer), summed)?;
    packer.finish()?.flush()
}

impl Profile {
    /// What was summed, for a model whose tables are read; `None` when everything is kept.
    pub(super) fn summed(&self, lifetimes: &[Lifetime], model: &Model) -> Result<Option<(Carried, Totals)>> {
        let Some(bytes) = self.member_bytes(SUMMED)? else { return Ok(None) };
        let Summed { mut carried, forgotten } = packed::read(&bytes).map_err(|what| self.damaged(SUMMED, what))?;
        let walk = &mut carried.walk;
        if !walk.fits(model) {
            return Err(self.damaged(SUMMED, "it does not fit the tables".to_owned()));
        }
        let base = walk.walked.order;
        let until = |lifetime: &Lifetime| match lifetime {
            lifetime if lifetime.birth > base => Lifetime { birth: 0, death: ALIVE },
            lifetime if lifetime.death > base => Lifetime { death: ALIVE, ..*lifetime },
            lifetime => *lifetime,
        };
        walk.lifetimes = lifetimes.iter().map(until).collect();
        walk.dead = walk.lifetimes.iter().filter(|lifetime| lifetime.death != ALIVE).count();
        walk.walked.changes = vec![0; model.processes.len()];
        Ok(Some((carried, forgotten)))
    }

    /// How many allocations of each process have no rows.
    pub(super) fn forgotten_of_processes(&self, model: &mut Model) {
        for (process, said) in model.processes.iter_mut().zip(&self.summary().processes) {
            process.forgotten = said.allocations;
        }
        for allocation in &model.allocations {
            let process = &mut model.processes[allocation.process as usize];
            process.forgotten = process.forgotten.saturating_sub(1);
        }
    }
}
