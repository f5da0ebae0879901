//! All changes of a session, so arranged that any span of it is found at once.
//!
//! Owns: the changes in order, cut into chunks whose times are known, and what is known of blocks of neighbouring allocations.
//! Refuses: sums (`sums`), and what a view makes of them.
//!
//! Where allocations are gone, only the changes of others are there: sums of such times are those of what is listed.
//!
//! Four bytes a change, and a little for each chunk and block: 100 MB for ten million allocations.

mod blocks;
mod choose;
mod sums;

use std::ops::Range;
use std::sync::Arc;

use crate::allocation::{Allocation, Model};
use crate::journal::entry::Nanoseconds;
use crate::timeline::{ALIVE, Lifetime, Walk};

use super::part::{Part, birth_time, death_time};

pub(super) use blocks::Blocks;
pub(super) use choose::choose;
pub(super) use sums::{Ledger, Peak, Sums};

/// A position at which no allocation began or ended.
const NOTHING: u32 = u32::MAX;

/// Changes of a chunk, where the clock's entries are further apart than that.
const STRIDE: usize = 1024;

/// How many parts' sums are kept.
const PARTS: usize = 6;

/// The changes that are kept.
#[derive(Debug)]
pub(super) struct History {
    /// In order: number of the allocation, doubled, plus 1 for its end.
    changes: Vec<u32>,
    /// They tile the order of changes.
    chunks: Vec<Chunk>,
    /// The last position that is known.
    last: u32,
    pub blocks: Blocks,
    /// Of the parts that were asked for last, their sums.
    parts: Vec<(Part, Arc<Sums>)>,
}

/// Changes that follow one another.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Its first position.
    first: u32,
    /// Where its changes begin among all.
    place: usize,
    /// The largest time up to its first change.
    begin: Nanoseconds,
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(super) struct Source<'m> {
    pub model: &'m Model,
    pub walk: &'m Walk,
}

impl<'m> Source<'m> {
    pub fn allocation(&self, id: u32) -> &'m Allocation {
        &self.model.allocations[id as usize]
    }

    pub fn lifetime(&self, id: u32) -> Lifetime {
        self.walk.lifetimes[id as usize]
    }

    /// How many whole steps it had outlived right after a change.
    pub fn outlived(&self, id: u32, order: u32) -> u64 {
        self.walk.begins.outlived(self.allocation(id).process, self.lifetime(id), order)
    }

    pub fn birth(&self, id: u32) -> Nanoseconds {
        birth_time(self.model, self.allocation(id))
    }

    /// `None` while it lives.
    pub fn death(&self, id: u32) -> Option<Nanoseconds> {
        let ended = self.lifetime(id).death != ALIVE;
        ended.then(|| death_time(self.model, self.walk, self.allocation(id)))
    }
}

/// An allocation begins or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub order: u32,
    /// The largest time so far: of several processes, what is read late counts from then on.
    pub time: Nanoseconds,
    pub id: u32,
    pub ends: bool,
}

impl History {
    /// Arranges what is known.
    pub fn of(source: Source<'_>) -> History {
        let walk = source.walk;
        // Of what came after it everything is there; before it there are gaps.
        let base = walk.forgotten;
        let mut dense = vec![NOTHING; walk.walked.order.saturating_sub(base) as usize];
        let mut sparse: Vec<u64> = Vec::new();
        let mut note = |order: u32, change: u32| match order.checked_sub(base + 1) {
            // The end of what lives has no position.
            Some(place) => dense.get_mut(place as usize).into_iter().for_each(|place| *place = change),
            None if order > 0 => sparse.push(u64::from(order) << 32 | u64::from(change)),
            // A birth at 0 has not been walked.
            None => {}
        };
        for (id, lifetime) in (0u32..).zip(&walk.lifetimes) {
            note(lifetime.birth, id << 1);
            note(lifetime.death, id << 1 | 1);
        }
        sparse.sort_unstable();
        let mut changes: Vec<u32> = sparse.into_iter().map(|change| change as u32).collect();
        changes.extend(dense.into_iter().filter(|change| *change != NOTHING));
        let (last, blocks) = (walk.walked.order, Blocks::of(source));
        let mut history = History { changes, chunks: Vec::new(), last, blocks, parts: Vec::new() };
        history.cut(source);
        history
    }

    /// Cuts the changes into chunks: at the clock's entries, and where those are far apart, at every so many changes.
    fn cut(&mut self, source: Source<'_>) {
        let marks = source.walk.clock.marks_after(0);
        let places: Vec<usize> = marks
            .iter()
            .map(|(first, _)| self.changes.partition_point(|change| turn(source, *change).0 < *first))
            .collect();
        for (number, ((first, begin), place)) in marks.into_iter().zip(&places).enumerate() {
            self.chunks.push(Chunk { first, place: *place, begin });
            let end = places.get(number + 1).copied().unwrap_or(self.changes.len());
            if end - place <= 2 * STRIDE {
                continue;
            }
            let mut latest = begin;
            for at in *place..end {
                let (order, time) = turn(source, self.changes[at]);
                latest = latest.max(time());
                if at > *place && (at - place).is_multiple_of(STRIDE) {
                    self.chunks.push(Chunk { first: order, place: at, begin: latest });
                }
            }
        }
    }

    /// The sums of a part, made when it is first asked for.
    pub fn sums(&mut self, source: Source<'_>, part: Part) -> Arc<Sums> {
        if let Some(known) = self.parts.iter().position(|(other, _)| *other == part) {
            // The one asked for last is the last to go.
            let known = self.parts.remove(known);
            self.parts.push(known);
        } else {
            let sums = Arc::new(Sums::of(self, source, part));
            self.parts.push((part, sums));
            if self.parts.len() > PARTS {
                self.parts.remove(0);
            }
        }
        Arc::clone(&self.parts[self.parts.len() - 1].1)
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The largest time up to the first change of a chunk; `None` behind the last one.
    pub fn begin_of(&self, chunk: usize) -> Option<Nanoseconds> {
        self.chunks.get(chunk).map(|chunk| chunk.begin)
    }

    fn orders(&self, chunk: usize) -> Range<u32> {
        let begin = |chunk: usize| self.chunks.get(chunk).map_or(self.last + 1, |chunk| chunk.first);
        begin(chunk)..begin(chunk + 1)
    }

    /// The position of the last change of a chunk.
    pub fn last_of(&self, chunk: usize) -> u32 {
        self.orders(chunk).end - 1
    }

    /// The position before its first change.
    pub fn last_before_chunk(&self, chunk: usize) -> u32 {
        self.orders(chunk).start - 1
    }

    /// The changes of a chunk, in order.
    pub fn turns<'h>(&'h self, source: Source<'h>, chunk: usize) -> impl Iterator<Item = Turn> + use<'h> {
        let mut latest = self.begin_of(chunk).unwrap_or_default();
        let place = |chunk: usize| self.chunks.get(chunk).map_or(self.changes.len(), |chunk| chunk.place);
        self.changes[place(chunk)..place(chunk + 1)].iter().map(move |change| {
            let (order, time) = turn(source, *change);
            latest = latest.max(time());
            Turn { order, time: latest, id: change >> 1, ends: change & 1 == 1 }
        })
    }

    /// The chunk in which the first change at or after a time is, or one before it: all chunks before it have earlier ones only.
    pub fn chunk_of(&self, time: Nanoseconds) -> usize {
        self.chunks.partition_point(|chunk| chunk.begin < time).saturating_sub(1)
    }

    /// The chunk in which a position is.
    fn chunk_at(&self, order: u32) -> usize {
        self.chunks.partition_point(|chunk| chunk.first <= order).saturating_sub(1)
    }

    /// The position of the last change before a time, or one just behind it at which nothing begins or ends.
    pub fn last_before(&self, source: Source<'_>, time: Nanoseconds) -> u32 {
        let chunk = self.chunk_of(time);
        match self.turns(source, chunk).find(|turn| turn.time >= time) {
            Some(turn) => turn.order - 1,
            None => self.last_of(chunk),
        }
    }

    /// The changes at positions after the first, until the second, in order.
    pub fn between<'h>(
        &'h self,
        source: Source<'h>,
        (after, until): (u32, u32),
    ) -> impl Iterator<Item = Turn> + use<'h> {
        let first = self.chunk_at(after);
        let last = self.chunks.partition_point(|chunk| chunk.first <= until);
        (first..last)
            .flat_map(move |chunk| self.turns(source, chunk))
            .filter(move |turn| turn.order > after && turn.order <= until)
    }
}

/// The position of a change, and what tells its time.
fn turn(source: Source<'_>, change: u32) -> (u32, impl FnOnce() -> Nanoseconds + use<'_>) {
    let (id, ends) = (change >> 1, change & 1 == 1);
    let lifetime = source.lifetime(id);
    let time = move || match ends {
        true => death_time(source.model, source.walk, source.allocation(id)),
        false => birth_time(source.model, source.allocation(id)),
    };
    (if ends { lifetime.death } else { lifetime.birth }, time)
}
