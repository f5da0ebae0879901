//! What a program knew of its tensors at its marks (programs/marks.py), against the profile: every byte is right.
//!
//! Owns: the comparison. A mark is the birth of a tensor whose size no other has, so that neither clocks nor the processes'
//! numbers matter. Refuses: what the program does not name.

use std::collections::BTreeSet;

use memscope_core::allocation::{Allocation, flag};
use memscope_wire::{MemoryKind, Origin};
use serde_json::Value;

use crate::harmless::Recorded;
use crate::memscope::Place;

/// A storage that the program named at a mark, and what memscope has there.
pub struct Marked<'a> {
    /// The mark's.
    pub label: String,
    /// By the program.
    pub truth: String,
    /// Of the storage.
    pub bytes: u64,
    /// What lived at its address.
    pub found: Option<&'a Allocation>,
}

impl Recorded {
    /// All that the program named at all marks of one of its ranks.
    pub fn marked(&self, place: &Place, rank: u32) -> Vec<Marked<'_>> {
        let text = std::fs::read_to_string(place.path(&format!("marks.{rank}"))).expect("marks");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.flat_map(|line| self.marked_in(&line)).collect()
    }

    fn marked_in(&self, line: &Value) -> Vec<Marked<'_>> {
        let tensors = || self.model.allocations().iter().filter(|one| one.memory == MemoryKind::Pageable);
        let markers: Vec<&Allocation> = tensors().filter(|one| line["marker"] == one.bytes).collect();
        let [marker] = markers[..] else { panic!("{}: {} marks of this size", line["label"], markers.len()) };
        let lives = |one: &&Allocation| {
            let ended = one.is(flag::DEAD) && one.death_ticks < marker.birth_ticks;
            one.process == marker.process && one.birth_ticks < marker.birth_ticks && !ended
        };
        let living: Vec<&Allocation> = tensors().filter(lives).collect();
        let storages = line["storages"].as_array().expect("storages");
        let marked = storages.iter().map(|storage| {
            let address = storage[0].as_u64().expect("an address");
            Marked {
                label: line["label"].as_str().expect("a label").to_owned(),
                truth: storage[2].as_str().expect("a category").to_owned(),
                bytes: storage[1].as_u64().expect("bytes"),
                found: living.iter().rev().find(|one| one.address == address).copied(),
            }
        });
        marked.collect()
    }

    /// Each of them is what the program said, and told by its objects.
    #[track_caller]
    pub fn told_right(&self, marked: &[Marked]) {
        for one in marked {
            let found = one.found.map(|found| (found.category.name(), found.bytes, found.origin));
            let name = one.found.map(|found| self.model.names().text(found.name));
            assert_eq!(found, Some((one.truth.as_str(), one.bytes, Origin::Hooked)), "{}: {name:?}", one.label);
        }
    }

    /// Names of what the program said was of one category at one mark.
    pub fn names_at(&self, marked: &[Marked], label: &str, truth: &str) -> BTreeSet<String> {
        let here = marked.iter().filter(|one| one.label == label && one.truth == truth);
        here.filter_map(|one| Some(self.model.names().text(one.found?.name).to_owned())).collect()
    }
}
