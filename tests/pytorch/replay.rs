//! What a live view knew at a moment: the session's journal, applied to a model up to there.
//!
//! A view that follows a running session applies the same entries to the same model. memscope removes the journal when the
//! profile is written, so a second name of the file keeps it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use memscope_core::allocation::Model;
use memscope_core::journal::Reader;
use memscope_core::journal::entry::{Calibration, Entry, ProcessIndex};
use memscope_wire::{Event, Origin};

use crate::memscope::Place;

/// Gives the journal of the run that is about to begin in `place` (its output is p.mscope) a second name.
pub fn keep_journal(place: &Place) -> JoinHandle<PathBuf> {
    let (journal, kept) = (place.path("p.mscope.session").join("journal"), place.path("journal"));
    std::thread::spawn(move || {
        while std::fs::hard_link(&journal, &kept).is_err() {
            std::thread::sleep(Duration::from_millis(2));
        }
        kept
    })
}

/// A tag of a hook's: where, and when (CLOCK_MONOTONIC, ns).
pub struct Hooked {
    pub address: u64,
    pub time: u64,
}

/// A session that is followed again, from moment to moment.
pub struct Replay {
    model: Model,
    clocks: HashMap<ProcessIndex, Calibration>,
    /// What is still to be applied, the next entry last.
    ahead: Vec<Entry>,
}

impl Replay {
    pub fn of(journal: &Path) -> Replay {
        let reader = Reader::open(journal).expect("a journal");
        let mut ahead: Vec<Entry> = reader.collect::<Result<_, _>>().expect("the journal is whole");
        let clocks = ahead.iter().filter_map(|entry| match entry {
            Entry::Clock(process, calibration) => Some((*process, *calibration)),
            _ => None,
        });
        let clocks = clocks.collect();
        ahead.reverse();
        Replay { model: Model::new(), clocks, ahead }
    }

    fn time(&self, process: ProcessIndex, ticks: u64) -> u64 {
        self.clocks.get(&process).map_or(ticks, |clock| clock.monotonic_ns(ticks))
    }

    /// The model as it was at this time (CLOCK_MONOTONIC, ns), with what happened then. Times must rise from call to call.
    pub fn at(&mut self, time: u64) -> &Model {
        while let Some(mut entry) = self.ahead.pop() {
            let mut later = None;
            if let Entry::Records { process, first_slot, records } = &mut entry {
                let happened = records.iter().position(|record| self.time(*process, record.ticks) > time);
                if let Some(happened) = happened {
                    let records = records.split_off(happened);
                    let first_slot = *first_slot + happened as u64;
                    later = Some(Entry::Records { process: *process, first_slot, records });
                }
            }
            self.model.apply(&entry);
            if later.is_some() {
                self.ahead.extend(later);
                break;
            }
        }
        &self.model
    }

    /// All tags of hooks that are ahead.
    pub fn hooked(&self) -> Vec<Hooked> {
        let mut tags = Vec::new();
        for entry in &self.ahead {
            let Entry::Records { process, records, .. } = entry else { continue };
            for record in records {
                if let Some(Event::Tag { address, origin: Origin::Hooked, .. }) = Event::decode(record) {
                    tags.push(Hooked { address, time: self.time(*process, record.ticks) });
                }
            }
        }
        tags
    }
}
