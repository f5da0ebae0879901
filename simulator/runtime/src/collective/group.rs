//! A rank of a communicator, and what a collective is to it.
//!
//! Owns: which bytes a rank puts in and which it gets, and the splitting of communicators. Refuses: to wait, but for the colours
//! of a split.

use super::LARGEST;
use super::arithmetic::{Kind, Operation, reduce};
use super::meeting::{Meeting, Part};

/// A rank of a communicator.
pub struct Group {
    /// How many ranks there are.
    pub ranks: usize,
    /// Which one this is.
    pub rank: usize,
    pub(super) name: u64,
    pub(super) meeting: Option<Meeting>,
}

/// A collective, with what it needs beside its buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Everybody gets the reduction.
    AllReduce(Kind, Operation),
    /// The root gets the reduction.
    Reduce(Kind, Operation, usize),
    /// Each gets its share of the reduction.
    ReduceScatter(Kind, Operation),
    /// Everybody gets what the root has.
    Broadcast(usize),
    /// Everybody gets everybody's.
    AllGather,
    /// The root gets everybody's.
    Gather(usize),
    /// Each gets its share of what the root has.
    Scatter(usize),
    /// Each gets its share of everybody's.
    AllToAll,
}

impl Call {
    /// The rank that gives to all, or gets of all.
    pub fn root(self) -> Option<usize> {
        match self {
            Call::Reduce(_, _, root) | Call::Broadcast(root) | Call::Gather(root) | Call::Scatter(root) => Some(root),
            _ => None,
        }
    }
}

/// Where a collective reads and writes; bytes are those of one rank's share where there are shares, else all.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Address of what is put in.
    pub send: u64,
    /// Address of what is got.
    pub receive: u64,
    /// Bytes.
    pub bytes: usize,
}

/// An address and so many bytes.
pub type Range = (u64, usize);

impl Group {
    /// Rank `rank` of the communicator of this name. It lives as long as the process.
    pub fn join(name: u64, ranks: usize, rank: usize) -> Group {
        let meeting = if ranks > 1 { Meeting::join(name, ranks, rank) } else { None };
        Group { ranks, rank, name, meeting }
    }

    /// A rank that meets no others: what they put in is unknown.
    pub fn alone(ranks: usize, rank: usize) -> Group {
        Group { ranks, rank, name: 0, meeting: None }
    }

    /// Says that the communicator is no more.
    pub fn leave(&self) {
        if let Some(meeting) = &self.meeting {
            meeting.leave();
        }
    }

    /// The ranks of the same colour, as a communicator of its own; `None` if not all ranks tell theirs.
    pub fn split(&self, colour: i32, key: i32) -> Option<Group> {
        let own = [colour.to_ne_bytes(), key.to_ne_bytes()].concat();
        let Some(meeting) = &self.meeting else {
            return (self.ranks == 1).then(|| Group::join(self.name, 1, 0));
        };
        let number = meeting.call(Some(&own));
        let told = |rank| {
            let told = meeting.take(Part::Collective(rank, number))?;
            let word = |at: usize| Some(i32::from_ne_bytes(told.get(at..at + 4)?.try_into().ok()?));
            Some((word(0)?, word(4)?, rank))
        };
        let all = (0..self.ranks).map(told).collect::<Option<Vec<_>>>()?;
        let mut members: Vec<_> = all.into_iter().filter(|member| member.0 == colour).collect();
        members.sort_by_key(|&(_, key, rank)| (key, rank));
        let rank = members.iter().position(|member| member.2 == self.rank)?;
        let words = [self.name.to_ne_bytes(), number.to_ne_bytes(), u64::from(colour.cast_unsigned()).to_ne_bytes()];
        Some(Group::join(name_of(&words.concat()), members.len(), rank))
    }

    /// What this rank puts in.
    pub fn puts_in(&self, call: Call, buffers: Buffers) -> Option<Range> {
        let (one, all) = (buffers.bytes, buffers.bytes.saturating_mul(self.ranks));
        match call {
            Call::AllReduce(..) | Call::Reduce(..) | Call::AllGather | Call::Gather(_) => Some((buffers.send, one)),
            Call::ReduceScatter(..) | Call::AllToAll => Some((buffers.send, all)),
            Call::Broadcast(root) => (root == self.rank).then_some((buffers.send, one)),
            Call::Scatter(root) => (root == self.rank).then_some((buffers.send, all)),
        }
    }

    /// Where it gets something.
    pub fn gets(&self, call: Call, buffers: Buffers) -> Option<Range> {
        let (one, all) = (buffers.bytes, buffers.bytes.saturating_mul(self.ranks));
        match call {
            Call::AllReduce(..) | Call::Broadcast(_) | Call::ReduceScatter(..) | Call::Scatter(_) => {
                Some((buffers.receive, one))
            }
            Call::AllGather | Call::AllToAll => Some((buffers.receive, all)),
            Call::Reduce(_, _, root) => (root == self.rank).then_some((buffers.receive, one)),
            Call::Gather(root) => (root == self.rank).then_some((buffers.receive, all)),
        }
    }

    /// What a collective gives this rank: pieces, each at its distance from the beginning. `part` gives what a rank put in.
    pub fn result(&self, call: Call, bytes: usize, part: &dyn Fn(usize) -> Option<Vec<u8>>) -> Vec<(usize, Vec<u8>)> {
        let share =
            |part: Option<Vec<u8>>, rank: usize| part?.get(rank * bytes..(rank + 1) * bytes).map(<[u8]>::to_vec);
        let reduced = |kind, operation, share: &dyn Fn(usize) -> Option<Vec<u8>>| {
            let parts = (0..self.ranks).map(share).collect::<Option<Vec<_>>>()?;
            reduce(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>(), kind, operation)
        };
        let whole = |rank: usize| part(rank).filter(|part| part.len() == bytes);
        let one = |result: Option<Vec<u8>>| result.into_iter().map(|result| (0, result)).collect();
        let each = |share: &dyn Fn(usize) -> Option<Vec<u8>>| {
            let known = (0..self.ranks).filter_map(|rank| Some((rank * bytes, share(rank)?)));
            together(known.collect())
        };
        match call {
            Call::AllReduce(kind, operation) | Call::Reduce(kind, operation, _) => {
                one(reduced(kind, operation, &whole))
            }
            Call::ReduceScatter(kind, operation) => one(reduced(kind, operation, &|rank| share(part(rank), self.rank))),
            Call::Broadcast(root) => one(whole(root)),
            Call::Scatter(root) => one(share(part(root), self.rank)),
            Call::AllGather | Call::Gather(_) => each(&whole),
            Call::AllToAll => each(&|rank| share(part(rank), self.rank)),
        }
    }
}

/// Pieces that follow each other as one, while that is small enough to be kept as one.
fn together(pieces: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
    let mut joined: Vec<(usize, Vec<u8>)> = Vec::new();
    for (at, piece) in pieces {
        match joined.last_mut() {
            Some((begin, last)) if *begin + last.len() == at && last.len() + piece.len() <= LARGEST => {
                last.extend(piece);
            }
            _ => joined.push((at, piece)),
        }
    }
    joined
}

/// A communicator's name, of what makes it unique.
pub fn name_of(bytes: &[u8]) -> u64 {
    // FNV-1a.
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
