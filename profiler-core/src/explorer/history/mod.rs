//! All changes of a session, so arranged that any span of it is found at once.
//!
//! Owns: the changes in order, cut into chunks whose times are known, and what is known of blocks of neighbouring allocations.
//! Refuses: sums (`sums`), and what a view makes of them.
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

/// How many parts' sums are kept.
const PARTS: usize = 6;

/// The changes that are kept.
#[derive(Debug)]
pub(super) struct History {
    /// The last position that is not kept.
    base: u32,
    /// By position less `base` less 1: number of the allocation, doubled, plus 1 for its end.
    changes: Vec<u32>,
    /// Of each chunk, the position of its first change and the largest time up to it.
    chunks: Vec<(u32, Nanoseconds)>,
    pub blocks: Blocks,
    /// Of the parts that were asked for last, their sums.
    parts: Vec<(Part, Arc<Sums>)>,
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
        let base = walk.forgotten;
        let mut changes = vec![NOTHING; walk.walked.order.saturating_sub(base) as usize];
        let mut note = |order: u32, change: u32| {
            // A birth at 0 has not been walked, and the end of what lives has no position.
            if let Some(place) =
                order.checked_sub(base).and_then(|place| changes.get_mut((place as usize).wrapping_sub(1)))
            {
                *place = change;
            }
        };
        for (id, lifetime) in (0u32..).zip(&walk.lifetimes) {
            note(lifetime.birth, id << 1);
            note(lifetime.death, id << 1 | 1);
        }
        let chunks = walk.clock.marks_after(base);
        History { base, changes, chunks, blocks: Blocks::of(source), parts: Vec::new() }
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

    /// The last position that is not kept.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The largest time up to the first change of a chunk; `None` behind the last one.
    pub fn begin_of(&self, chunk: usize) -> Option<Nanoseconds> {
        self.chunks.get(chunk).map(|(_, time)| *time)
    }

    fn orders(&self, chunk: usize) -> Range<u32> {
        let end = self.base + 1 + self.changes.len() as u32;
        match self.chunks.get(chunk) {
            Some((first, _)) => *first..self.chunks.get(chunk + 1).map_or(end, |(next, _)| *next),
            None => end..end,
        }
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
        let orders = self.orders(chunk);
        let mut latest = self.begin_of(chunk).unwrap_or_default();
        let first = (orders.start - self.base - 1) as usize;
        let changes = &self.changes[first..first + orders.len()];
        orders.zip(changes).filter(|(_, change)| **change != NOTHING).map(move |(order, change)| {
            let (id, ends) = (change >> 1, change & 1 == 1);
            let time = match ends {
                true => death_time(source.model, source.walk, source.allocation(id)),
                false => birth_time(source.model, source.allocation(id)),
            };
            latest = latest.max(time);
            Turn { order, time: latest, id, ends }
        })
    }

    /// The chunk in which the first change at or after a time is, or one before it: all chunks before it have earlier ones only.
    pub fn chunk_of(&self, time: Nanoseconds) -> usize {
        self.chunks.partition_point(|(_, begin)| *begin < time).saturating_sub(1)
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
        let first = self.chunks.partition_point(|(first, _)| *first <= after).saturating_sub(1);
        let last = self.chunks.partition_point(|(first, _)| *first <= until);
        (first..last)
            .flat_map(move |chunk| self.turns(source, chunk))
            .filter(move |turn| turn.order > after && turn.order <= until)
    }
}
