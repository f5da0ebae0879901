//! What NCCL's collectives give: small values that the programs put on the device themselves, between the ranks of a machine.
//!
//! Owns: what a rank puts in and what it gets, and what comes after it on streams. A rank never waits in the call: what it gets
//! is settled when the program reads it, or copies it on, or puts it into another collective; and forgotten when a kernel runs,
//! as everything is then that is known of the device. Refuses: to carry what is larger than [`LARGEST`] or what a GPU would have computed; then nothing is
//! waited for, and what is got is unknown.

pub mod arithmetic;
mod group;
mod meeting;
mod order;

pub use group::{Buffers, Call, Group, name_of};
pub use order::{Mark, Order, Place};

use group::Range;
use meeting::Part;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes that a rank puts in; as much as the simulated driver keeps of one copy.
pub const LARGEST: usize = 64 << 10;

/// What is known of device memory.
pub trait Memory {
    /// The bytes at an address, if they are known.
    fn look(&self, address: u64, bytes: usize) -> Option<Vec<u8>>;
    /// From now on these bytes are there.
    fn note(&self, address: u64, bytes: &[u8]);
    /// From now on these bytes are not known.
    fn forget(&self, address: u64, bytes: usize);
}

/// What a rank will get once the others have come.
struct Pending {
    group: &'static Group,
    place: Range,
    what: What,
}

enum What {
    Of(Call, u64, Buffers),
    Message(Part),
}

/// What is still to come in this process.
pub struct Desk {
    pending: Mutex<Vec<Pending>>,
    any: AtomicBool,
    /// Held while results are settled, so that others wait for them.
    settling: Mutex<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// Nothing is to come.
    pub const fn new() -> Desk {
        Desk { pending: Mutex::new(Vec::new()), any: AtomicBool::new(false), settling: Mutex::new(()) }
    }

    /// Calls a collective: what is done once the others have come.
    pub fn call(&self, group: &'static Group, call: Call, buffers: Buffers, memory: &dyn Memory) -> Mark {
        let (source, place) = (group.puts_in(call, buffers), group.gets(call, buffers));
        let ranges: Vec<_> = source.into_iter().chain(place).collect();
        self.settle(&ranges, memory);
        let own = source.filter(|range| range.1 <= LARGEST).and_then(|range| memory.look(range.0, range.1));
        let number = group.meeting.as_ref().map(|meeting| meeting.call(own.as_deref()));
        if let Some((address, bytes)) = place {
            memory.forget(address, bytes);
            let hope = if source.is_some() { own.is_some() } else { bytes <= LARGEST };
            match number {
                _ if !hope => {}
                Some(number) => {
                    self.await_result(Pending { group, place: (address, bytes), what: What::Of(call, number, buffers) })
                }
                None if group.ranks == 1 => {
                    for (at, piece) in group.result(call, buffers.bytes, &|_| own.clone()) {
                        memory.note(address + at as u64, &piece);
                    }
                }
                None => {}
            }
        }
        self.tell_settled(&locked(&self.pending), group);
        Mark { group, from: None, number: number.map_or(0, |number| number + 1) }
    }

    /// Sends to another rank.
    pub fn send(&self, group: &'static Group, to: usize, source: Range, memory: &dyn Memory) {
        self.settle(&[source], memory);
        if let Some(meeting) = &group.meeting {
            let message = (source.1 <= LARGEST).then(|| memory.look(source.0, source.1)).flatten();
            meeting.send(to, message.as_deref());
        }
    }

    /// Receives from another rank: what is done once that has sent.
    pub fn receive(&self, group: &'static Group, from: usize, place: Range, memory: &dyn Memory) -> Mark {
        self.settle(&[place], memory);
        memory.forget(place.0, place.1);
        let mut number = 0;
        if let Some(meeting) = &group.meeting {
            let part;
            (part, number) = meeting.receive(from);
            if place.1 <= LARGEST {
                self.await_result(Pending { group, place, what: What::Message(part) });
            }
        }
        Mark { group, from: Some(from), number }
    }

    fn await_result(&self, pending: Pending) {
        locked(&self.pending).push(pending);
        self.any.store(true, Ordering::Release);
    }

    /// Settles what is to come at one of these ranges, and what was to come before it. Waits for other ranks.
    pub fn settle(&self, ranges: &[Range], memory: &dyn Memory) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let _settling = locked(&self.settling);
        let touches = |pending: &Pending| {
            let (start, bytes) = pending.place;
            ranges.iter().any(|range| start < range.0 + range.1 as u64 && range.0 < start + bytes as u64)
        };
        let due: Vec<_> = {
            let mut pending = locked(&self.pending);
            let last = pending.iter().rposition(touches).map_or(0, |last| last + 1);
            pending.drain(..last).collect()
        };
        for pending in &due {
            pending.settle(memory);
        }
        let pending = locked(&self.pending);
        self.any.store(!pending.is_empty(), Ordering::Release);
        due.iter().for_each(|due| self.tell_settled(&pending, due.group));
    }

    /// A kernel ran: what was to come is not known any more.
    pub fn forget(&self) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let dropped = {
            let mut pending = locked(&self.pending);
            self.any.store(false, Ordering::Release);
            std::mem::take(&mut *pending)
        };
        dropped.iter().for_each(|dropped| self.tell_settled(&[], dropped.group));
    }

    fn tell_settled(&self, pending: &[Pending], group: &'static Group) {
        let Some(meeting) = &group.meeting else { return };
        let first =
            pending.iter().filter(|pending| std::ptr::eq(pending.group, group)).find_map(|pending| {
                match pending.what {
                    What::Of(_, number, _) => Some(number),
                    What::Message(_) => None,
                }
            });
        meeting.settle(first.unwrap_or_else(|| meeting.calls()));
    }
}

impl Pending {
    fn settle(&self, memory: &dyn Memory) {
        let Some(meeting) = &self.group.meeting else { return };
        let pieces = match self.what {
            What::Message(part) => meeting.take(part).map(|bytes| (0, bytes)).into_iter().collect(),
            What::Of(call, number, buffers) => {
                let part = |rank| meeting.take(Part::Collective(rank, number));
                self.group.result(call, buffers.bytes, &part)
            }
        };
        for (at, piece) in pieces.into_iter().filter(|(at, piece)| at + piece.len() <= self.place.1) {
            memory.note(self.place.0 + at as u64, &piece);
        }
    }
}

#[cfg(test)]
mod tests;
