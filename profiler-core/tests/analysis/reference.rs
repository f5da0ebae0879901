//! A second model, as naive as can be: plain lists, searched from end to end, and sums made anew at every moment.
//!
//! Owns: an independent reading of the contract (design of the ledger, wire and journal entries). Refuses: speed, and any code
//! of the model under test.

use std::collections::{BTreeMap, BTreeSet};

use memscope_core::journal::entry::Entry;
use memscope_wire::{Category, Event, MemoryKind, Origin, TextId};

/// Sums of one kind of memory on one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    pub reserved: u64,
    pub live: [u64; 7],
    pub rounding: u64,
    pub cached: u64,
}

impl Sums {
    pub fn live_bytes(&self) -> u64 {
        self.live.iter().sum()
    }
}

/// Which sums: device memory or managed memory of a device, or host memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    Device(String),
    Managed(String),
    Host,
}

/// One thing that lived.
#[derive(Clone, Debug)]
pub struct Life {
    pub process: usize,
    pub block: bool,
    pub address: u64,
    pub bytes: u64,
    pub requested: u64,
    pub ordinal: u32,
    pub memory: MemoryKind,
    pub category: Category,
    /// The category was concluded from phases.
    pub inferred: bool,
    /// Phase at birth, and how many had begun.
    pub phase: &'static str,
    phases: usize,
    /// Position among all things.
    pub container: Option<usize>,
    pub outside: bool,
    pub held_blocks: bool,
    pub birth: When,
    pub death: Option<When>,
    pub at_exit: bool,
    pub went_with: bool,
    /// Names of the open scopes, outermost first.
    pub scope: Vec<u64>,
    pub step: Option<u64>,
    /// How many steps of its process had begun.
    steps: usize,
}

/// A step of a place: its number, and which time that came.
pub type Numbered = (u64, u32);

/// A moment: time, process, and position within the process.
pub type When = (u64, usize, u64);

impl Life {
    /// True right after a moment.
    pub fn lives_at(&self, time: u64) -> bool {
        self.birth.0 <= time && self.death.is_none_or(|death| death.0 > time)
    }

    /// True for what counts as live: a block in an allocation, or one that never held a block.
    pub fn is_leaf(&self) -> bool {
        !self.outside && !self.held_blocks
    }
}

/// What happened at a moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Deed {
    /// Memory was taken, or a step or phase began.
    Took,
    /// The program gave memory back.
    Gave,
    /// A process ended with memory.
    Ended,
}

/// What a framework's tensor is held to be that begins in its phase.
fn infer(life: Life) -> Life {
    let category = match life.phase {
        "model" => Category::Weights,
        "data" => Category::Inputs,
        "forward" | "loss" | "recompute" => Category::Activations,
        "inference" | "backward" | "optimizer" => Category::Workspace,
        _ => return life,
    };
    Life { category, inferred: true, ..life }
}

/// The whole history as far as the entries tell.
#[derive(Default)]
pub struct World {
    pub lives: Vec<Life>,
    stacks: BTreeMap<usize, Vec<u64>>,
    step: BTreeMap<usize, u64>,
    names: BTreeMap<(usize, u32), String>,
    used: Vec<(usize, u32)>,
    pub steps: Vec<(When, u64)>,
    phases: Vec<When>,
    /// Names of the phases of a process, in order.
    named_phases: BTreeMap<usize, Vec<&'static str>>,
    /// How many steps of a process have begun.
    begun: BTreeMap<usize, usize>,
    /// When processes began, where that is told, and when those that have ended were heard of last.
    began: BTreeMap<usize, u64>,
    gone: BTreeMap<usize, u64>,
}

/// Phases that mean something to the inference, and one that does not.
pub const PHASES: [&str; 10] =
    ["forward", "loss", "inference", "backward", "recompute", "optimizer", "data", "model", "exit", "pause"];

impl World {
    pub fn of(entries: &[Entry]) -> World {
        let mut world = World::default();
        let mut last = BTreeMap::<usize, (u64, u64)>::new();
        for entry in entries {
            match entry {
                Entry::Records { process, first_slot, records } => {
                    let process = process.0 as usize;
                    for (offset, record) in records.iter().enumerate() {
                        let slot = first_slot + offset as u64;
                        let time = record.ticks.max(last.get(&process).map_or(0, |last| last.0));
                        last.insert(process, (time, slot + 1));
                        if let Some(event) = Event::decode(record) {
                            world.event((time, process, slot), event);
                        }
                    }
                }
                Entry::Process(info) => {
                    // The session began at 1,000.
                    let began = info.began_ns.map(|began| (info.process.0 as usize, began - 1_000));
                    world.began.extend(began);
                }
                Entry::Counters(process, counters) if counters.ended => {
                    let process = process.0 as usize;
                    let (time, slot) = last.get(&process).copied().unwrap_or_default();
                    let time = time.max(counters.closed_ns.map_or(0, |closed| closed - 1_000));
                    world.gone.insert(process, time);
                    for life in world.lives.iter_mut().filter(|life| life.process == process && life.death.is_none()) {
                        life.death = Some((time, process, slot));
                        life.at_exit = true;
                    }
                }
                _ => {}
            }
        }
        world
    }

    fn live(&self, process: usize, block: bool) -> impl Iterator<Item = usize> + '_ {
        (0..self.lives.len()).filter(move |at| {
            let life = &self.lives[*at];
            life.process == process && life.block == block && life.death.is_none()
        })
    }

    fn meets(&self, at: usize, address: u64, bytes: u64) -> bool {
        let life = &self.lives[at];
        address < life.address + life.bytes.max(1) && life.address < address + bytes.max(1)
    }

    fn end(&mut self, at: usize, when: When) {
        self.lives[at].death = Some(when);
        let inside: Vec<usize> =
            self.live(when.1, true).filter(|block| self.lives[*block].container == Some(at)).collect();
        for block in inside {
            self.lives[block].death = Some(when);
            self.lives[block].went_with = true;
        }
    }

    fn event(&mut self, when: When, event: Event) {
        let process = when.1;
        match event {
            Event::Device { ordinal, uuid, .. } => {
                let text: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
                self.names.insert((process, ordinal), text);
            }
            Event::Alloc { address, bytes, requested, device, memory, .. } => {
                let taken: Vec<usize> =
                    self.live(process, false).filter(|at| self.meets(*at, address, bytes)).collect();
                for at in taken {
                    self.end(at, when);
                }
                let blank = self.blank(when, address, bytes, requested);
                if !matches!(memory, MemoryKind::Host | MemoryKind::Pageable) {
                    self.used.push((process, device));
                }
                let life = Life { ordinal: device, memory, ..blank };
                self.lives.push(if memory == MemoryKind::Pageable { infer(life) } else { life });
            }
            Event::Free { address, .. } => {
                let found = self.live(process, false).find(|at| self.lives[*at].address == address);
                if let Some(at) = found {
                    self.conclude(at);
                    self.end(at, when);
                }
            }
            Event::FreeRefused { address, slot, .. } => self.refused(process, address, slot),
            Event::BlockAlloc { address, bytes, requested, origin, .. } => {
                let taken: Vec<usize> = self.live(process, true).filter(|at| self.meets(*at, address, bytes)).collect();
                for at in taken {
                    self.lives[at].death = Some(when);
                }
                let around = self.live(process, false).find(|at| {
                    let life = &self.lives[*at];
                    life.address <= address && address + bytes.max(1) <= life.address + life.bytes.max(1)
                });
                let mut block = Life { block: true, ..self.blank(when, address, bytes, requested) };
                match around {
                    Some(at) => {
                        self.lives[at].held_blocks = true;
                        (block.container, block.ordinal, block.memory) =
                            (Some(at), self.lives[at].ordinal, self.lives[at].memory);
                    }
                    None => block.outside = true,
                }
                self.lives.push(if origin == Origin::Hooked { infer(block) } else { block });
            }
            Event::BlockFree { address, .. } => {
                let found = self.live(process, true).find(|at| self.lives[*at].address == address);
                if let Some(at) = found {
                    self.conclude(at);
                    self.lives[at].death = Some(when);
                }
            }
            Event::Tag { address, category, .. } => {
                let block = self.live(process, true).find(|at| self.meets(*at, address, 1));
                let found = block.or_else(|| self.live(process, false).find(|at| self.meets(*at, address, 1)));
                if let Some(at) = found {
                    (self.lives[at].category, self.lives[at].inferred) = (category, false);
                }
            }
            Event::Step { number } => {
                self.step.insert(process, number);
                self.steps.push((when, number));
                self.begin_step(process);
            }
            Event::ScopePush { name } => self.stacks.entry(process).or_default().push(name.0),
            Event::ScopePop => drop(self.stacks.entry(process).or_default().pop()),
            Event::Phase { name } => {
                self.phases.push(when);
                let name = PHASES.into_iter().find(|known| TextId::of(known.as_bytes()) == name).unwrap_or_default();
                self.begin_phase(process, name);
            }
            _ => {}
        }
    }

    /// What is there since before the last two steps began was made for none of them.
    fn begin_step(&mut self, process: usize) {
        let begun = self.begun.entry(process).or_default();
        *begun += 1;
        for life in
            self.lives.iter_mut().filter(|life| life.process == process && life.death.is_none() && life.inferred)
        {
            if life.steps + 3 <= *begun && (life.phase == "loss" || life.category == Category::Inputs) {
                (life.category, life.inferred) = (Category::Unknown, false);
            }
        }
    }

    /// The optimizer's phase is over: what it made and left is its state. At the end, what was made for a loss has had none.
    fn begin_phase(&mut self, process: usize, name: &'static str) {
        let phases = self.named_phases.entry(process).or_default();
        let begun = phases.len();
        if phases.last() == Some(&"optimizer") && name != "optimizer" {
            let made = |life: &&mut Life| life.process == process && life.death.is_none() && life.phases == begun;
            for life in self.lives.iter_mut().filter(made).filter(|life| life.inferred) {
                life.category = Category::Optimizer;
            }
        }
        if name == "exit" {
            let waits = |life: &&mut Life| life.process == process && life.death.is_none() && life.inferred;
            for life in self.lives.iter_mut().filter(waits) {
                let had = phases[life.phases..].iter().any(|phase| matches!(*phase, "backward" | "recompute"));
                let older = life.steps < self.begun.get(&process).copied().unwrap_or_default();
                if life.phase == "loss" && (older || !had) {
                    (life.category, life.inferred) = (Category::Unknown, false);
                }
            }
        }
        phases.push(name);
    }

    /// The program gives something back: if nothing can have needed it for a backward pass, it was a temporary.
    fn conclude(&mut self, at: usize) {
        let life = &self.lives[at];
        let since = self.named_phases.get(&life.process).map_or(&[][..], |phases| &phases[life.phases..]);
        let temporary = match life.phase {
            "forward" | "loss" => !since.iter().any(|phase| matches!(*phase, "backward" | "recompute")),
            "recompute" => since.is_empty(),
            _ => false,
        };
        if life.inferred && temporary {
            self.lives[at].category = Category::Workspace;
        }
    }

    fn blank(&self, when: When, address: u64, bytes: u64, requested: u64) -> Life {
        Life {
            process: when.1,
            block: false,
            address,
            bytes,
            requested: requested.min(bytes),
            ordinal: 0,
            memory: MemoryKind::Device,
            category: Category::Unknown,
            inferred: false,
            phase: self.named_phases.get(&when.1).and_then(|phases| phases.last()).copied().unwrap_or_default(),
            phases: self.named_phases.get(&when.1).map_or(0, Vec::len),
            container: None,
            outside: false,
            held_blocks: false,
            birth: when,
            death: None,
            at_exit: false,
            went_with: false,
            scope: self.stacks.get(&when.1).cloned().unwrap_or_default(),
            step: self.step.get(&when.1).copied(),
            steps: self.begun.get(&when.1).copied().unwrap_or_default(),
        }
    }

    /// A free that the driver refused never happened, unless the address was given again since, or its bytes are taken now.
    fn refused(&mut self, process: usize, address: u64, slot: u64) {
        let ended =
            |life: &Life| life.process == process && life.death.is_some_and(|death| death.2 == slot) && !life.at_exit;
        let Some(at) = (0..self.lives.len())
            .find(|at| ended(&self.lives[*at]) && !self.lives[*at].block && self.lives[*at].address == address)
        else {
            return;
        };
        let given_again = self
            .lives
            .iter()
            .any(|life| life.process == process && !life.block && life.address == address && life.birth.2 > slot);
        let bytes = self.lives[at].bytes;
        if given_again || self.live(process, false).any(|other| self.meets(other, address, bytes)) {
            return;
        }
        self.lives[at].death = None;
        let blocks: Vec<usize> = (0..self.lives.len())
            .filter(|block| {
                ended(&self.lives[*block]) && self.lives[*block].container == Some(at) && self.lives[*block].went_with
            })
            .collect();
        for block in blocks {
            let (address, bytes) = (self.lives[block].address, self.lives[block].bytes);
            if !self.live(process, true).any(|other| self.meets(other, address, bytes)) {
                self.lives[block].death = None;
                self.lives[block].went_with = false;
            }
        }
    }

    /// The device that a process means.
    pub fn device(&self, process: usize, ordinal: u32) -> String {
        self.names.get(&(process, ordinal)).cloned().unwrap_or_else(|| format!("{process}/{ordinal}"))
    }

    fn place(&self, life: &Life) -> Place {
        match life.memory {
            MemoryKind::Host | MemoryKind::Pageable => Place::Host,
            MemoryKind::Managed => Place::Managed(self.device(life.process, life.ordinal)),
            _ => Place::Device(self.device(life.process, life.ordinal)),
        }
    }

    fn sums(&self, place: &Place, lives: impl Fn(&Life) -> bool) -> Sums {
        self.sums_of(|life| lives(life) && self.place(life) == *place)
    }

    /// Sums over some of what lived.
    pub fn sums_of(&self, some: impl Fn(&Life) -> bool) -> Sums {
        let mut sums = Sums::default();
        let here: Vec<&Life> = self.lives.iter().filter(|life| !life.outside && some(life)).collect();
        sums.reserved = here.iter().filter(|life| !life.block).map(|life| life.bytes).sum();
        let containers: u64 = here.iter().filter(|life| !life.block && life.held_blocks).map(|life| life.bytes).sum();
        let blocks: u64 = here.iter().filter(|life| life.block).map(|life| life.bytes).sum();
        sums.cached = containers - blocks;
        for life in here.iter().filter(|life| life.block || !life.held_blocks) {
            sums.live[life.category as usize] += life.requested;
            sums.rounding += life.bytes - life.requested;
        }
        sums
    }

    /// The sums now.
    pub fn now(&self, place: &Place) -> Sums {
        self.sums(place, |life| life.death.is_none())
    }

    /// All places that ever held anything, and the devices that were named.
    pub fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> =
            self.lives.iter().filter(|life| !life.outside).map(|life| self.place(life)).collect();
        places.extend(self.names.values().map(|name| Place::Device(name.clone())));
        places.push(Place::Host);
        places.sort();
        places.dedup();
        places
    }

    /// True when a marker of this process counts for a place.
    fn concerns(&self, process: usize, place: &Place) -> bool {
        let name = match place {
            Place::Device(name) | Place::Managed(name) => Some(name),
            Place::Host => None,
        };
        // A marker counts for the devices that its process ever named or used.
        let named: Vec<(usize, u32)> = self.names.keys().copied().chain(self.used.iter().copied()).collect();
        // Those of all processes count for host memory.
        name.is_none()
            || named.iter().any(|(other, ordinal)| *other == process && Some(&self.device(process, *ordinal)) == name)
    }

    /// True when a process was not there yet when another was heard of for the last time.
    fn replaces(&self, process: usize, other: usize) -> bool {
        let lives = self.began.get(&process).zip(self.gone.get(&other));
        lives.is_some_and(|(began, gone)| gone < began)
    }

    /// In which step a place is from when on. Who says the number of a step joins the latest one of that number, unless it was in a
    /// later step since that one began, or replaces everyone who has said that one: then it is another one. What is done there by who
    /// has said none, and replaces everyone who has, is in no step, and so is what follows, until the next is said.
    pub fn steps_of(&self, place: &Place) -> Vec<(When, Option<Numbered>)> {
        let concerned = |when: &&When| self.concerns(when.1, place);
        let mut done: Vec<(When, Option<u64>)> = self
            .steps
            .iter()
            .filter(|(when, _)| concerned(&when))
            .map(|(when, number)| (*when, Some(*number)))
            .collect();
        done.extend(self.phases.iter().filter(concerned).map(|when| (*when, None)));
        let lives = self.lives.iter().filter(|life| !life.outside && self.matches(life, place));
        done.extend(lives.map(|life| (life.birth, None)));
        done.sort();
        let mut numbers: Vec<u64> = Vec::new();
        let mut visits: Vec<(usize, usize)> = Vec::new();
        let mut steps = Vec::new();
        for (when, number) in done {
            let me = when.1;
            let Some(number) = number else {
                let said: BTreeSet<usize> = visits.iter().map(|(process, _)| *process).collect();
                if !said.contains(&me) && said.iter().all(|other| self.replaces(me, *other)) {
                    steps.push((when, None));
                }
                continue;
            };
            let latest = (0..numbers.len()).rev().find(|row| numbers[*row] == number);
            let was_later = |row: usize| visits.iter().any(|(process, other)| *process == me && *other > row);
            let is_over = |row: usize| {
                visits.iter().filter(|(_, other)| *other == row).all(|(process, _)| self.replaces(me, *process))
            };
            let row = latest.filter(|row| !was_later(*row) && !is_over(*row)).unwrap_or_else(|| {
                numbers.push(number);
                numbers.len() - 1
            });
            visits.push((me, row));
            let turn = numbers[..=row].iter().filter(|other| **other == number).count();
            steps.push((when, Some((number, turn as u32))));
        }
        steps
    }

    /// Every moment at which a place's sums, step or phase may have changed, in order, with the sums, the step, and what
    /// happened.
    pub fn history(&self, place: &Place) -> Vec<(u64, Sums, Option<Numbered>, Deed)> {
        let steps = self.steps_of(place);
        let mut moments: Vec<(When, Deed)> = steps.iter().map(|(when, _)| (*when, Deed::Took)).collect();
        moments.extend(self.phases.iter().filter(|when| self.concerns(when.1, place)).map(|when| (*when, Deed::Took)));
        for life in self.lives.iter().filter(|life| !life.outside && self.matches(life, place)) {
            moments.push((life.birth, Deed::Took));
            let deed = if life.at_exit { Deed::Ended } else { Deed::Gave };
            moments.extend(life.death.map(|death| (death, deed)));
        }
        moments.sort();
        moments.dedup();
        let at = |(when, deed): (When, Deed)| {
            let sums = self.sums(place, |life| life.birth <= when && life.death.is_none_or(|death| death > when));
            let begun = steps.iter().rfind(|(step, _)| *step <= when);
            (when.0, sums, begun.and_then(|(_, step)| *step), deed)
        };
        moments.into_iter().map(at).collect()
    }

    /// Managed memory belongs to the device's moments too: its ledger shows both.
    fn matches(&self, life: &Life, place: &Place) -> bool {
        match (self.place(life), place) {
            (Place::Managed(mine), Place::Device(name)) => mine == *name,
            (mine, place) => mine == *place,
        }
    }
}
