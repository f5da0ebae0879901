//! What streams and events come after: collectives and messages to which other ranks have still to come.
//!
//! Owns: the order that CUDA gives them: after what was put on their stream before, and a stream after each event that it was
//! told to wait for. Refuses: to order anything else, since nothing else takes time on a simulated device.

use super::group::Group;
use super::locked;
use super::meeting::Meeting;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that is done once other ranks have come to it.
#[derive(Clone, Copy)]
pub struct Mark {
    pub(super) group: &'static Group,
    /// The rank that sends a message; `None` for a collective, to which all come.
    pub(super) from: Option<usize>,
    /// How many of its kind there are with this one.
    pub(super) number: u64,
}

impl Mark {
    fn meeting(&self) -> Option<&'static Meeting> {
        self.group.meeting.as_ref()
    }

    fn is_done(&self) -> bool {
        self.meeting().is_none_or(|meeting| meeting.have_come(self.from, self.number))
    }

    fn wait(&self) {
        if let Some(meeting) = self.meeting() {
            meeting.together(self.from, self.number);
        }
    }

    /// Whether the one with the lower number is done no later than the other.
    fn is_of_same_kind(&self, other: &Mark) -> bool {
        std::ptr::eq(self.group, other.group) && self.from == other.from
    }
}

/// The last of each kind.
type Marks = Vec<Mark>;

fn add(marks: &mut Marks, new: Mark) {
    match marks.iter_mut().find(|mark| mark.is_of_same_kind(&new)) {
        Some(mark) => mark.number = mark.number.max(new.number),
        None => marks.push(new),
    }
}

/// A stream or an event, by its handle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A stream; those that wait for each other are one.
    Stream(usize),
    /// An event.
    Event(usize),
}

/// What this process's streams and events come after.
pub struct Order {
    places: Mutex<BTreeMap<Place, Marks>>,
    /// Mostly there is nothing, and then nobody takes the lock.
    any: AtomicBool,
}

impl Order {
    /// Nothing was put on any stream.
    pub const fn new() -> Order {
        Order { places: Mutex::new(BTreeMap::new()), any: AtomicBool::new(false) }
    }

    /// Whether there may be something to come after.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Puts something on a stream.
    pub fn put(&self, place: Place, mark: Mark) {
        let mut places = locked(&self.places);
        add(places.entry(place).or_default(), mark);
        self.any.store(true, Ordering::Release);
    }

    /// An event is recorded: it comes after what its stream does, and nothing else.
    pub fn record(&self, event: Place, stream: Place) {
        self.forget(event);
        self.follow(event, stream);
    }

    /// One place comes after another, too: a stream waits for an event.
    pub fn follow(&self, place: Place, other: Place) {
        let marks = self.marks(&|one| one == other);
        marks.into_iter().for_each(|mark| self.put(place, mark));
    }

    /// A handle is no more.
    pub fn forget(&self, place: Place) {
        if self.any() {
            locked(&self.places).remove(&place);
        }
    }

    /// Whether the others have come to all that this place comes after.
    pub fn is_done(&self, place: Place) -> bool {
        self.marks(&|one| one == place).is_empty()
    }

    /// Waits for the others to come to what this place comes after.
    pub fn wait(&self, place: Place) {
        self.marks(&|one| one == place).iter().for_each(Mark::wait);
    }

    /// Waits for the others to come to all that was put on any stream.
    pub fn wait_for_all(&self) {
        self.marks(&|one| matches!(one, Place::Stream(_))).iter().for_each(Mark::wait);
    }

    /// What is not done of what these places come after.
    fn marks(&self, wanted: &dyn Fn(Place) -> bool) -> Marks {
        if !self.any() {
            return Marks::new();
        }
        let mut places = locked(&self.places);
        let mut found = Marks::new();
        places.retain(|place, marks| {
            if wanted(*place) {
                marks.retain(|mark| !mark.is_done());
                marks.iter().for_each(|mark| add(&mut found, *mark));
            }
            !marks.is_empty()
        });
        self.any.store(!places.is_empty(), Ordering::Release);
        found
    }
}
