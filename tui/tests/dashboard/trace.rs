//! Writes sessions by hand, entry by entry.
//!
//! Owns: slots, clocks and names. Refuses: to know what the model makes of them.

use memscope_core::explorer::{Explorer, Limits};
use memscope_core::journal::Chain;
use memscope_core::journal::entry::{
    Calibration, Counters, DeviceSample, Entry, Nanoseconds, ProcessIndex, ProcessInfo, SessionEnd, SessionInfo,
    TelemetrySample,
};
use memscope_core::keep::{Keep, write_in_segments};
use memscope_wire::event::NO_DEVICE;
use memscope_wire::text::PART_BYTES;
use memscope_wire::{Category, Event, MemoryKind, Origin, TextId};

const MALLOC: u16 = 3;
const FREE: u16 = 4;
const GIVES_UP: u16 = 90;
/// One of NVML's and of CUDA's spelling of a device.
pub const fn uuid(ordinal: u8) -> [u8; 16] {
    let mut uuid = *b"FIXED-DEVICE-000";
    uuid[15] = b'0' + ordinal;
    uuid
}

/// The same as NVML spells it.
pub fn uuid_text(ordinal: u8) -> String {
    let hex: String = uuid(ordinal).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A session that is being written.
pub struct Trace {
    pub entries: Vec<Entry>,
    /// Next slot by process.
    slots: Vec<u64>,
    /// Time of the next record, nanoseconds.
    pub now: u64,
    /// The process and the device of what follows.
    pub process: u32,
    pub device: u32,
}

impl Trace {
    pub fn new(session: SessionInfo) -> Trace {
        Trace { entries: vec![Entry::Session(session)], slots: Vec::new(), now: 0, process: 0, device: 0 }
    }

    /// What a session says of itself.
    pub fn session(command: &[&str], simulated: Option<&str>) -> SessionInfo {
        SessionInfo {
            version: "0.1.0".into(),
            command: command.iter().map(|part| (*part).to_owned()).collect(),
            simulated: simulated.map(str::to_owned),
            compute: true,
            start_monotonic_ns: 1_000,
            ..SessionInfo::default()
        }
    }

    /// Another process, whose ticks are nanoseconds since the session began.
    pub fn add_process(&mut self, pid: u32, rank: Option<u32>) {
        let index = self.slots.len() as u32;
        self.slots.push(0);
        self.process = index;
        self.entries.push(Entry::Process(ProcessInfo {
            process: ProcessIndex(index),
            pid,
            parent_pid: 1,
            start_time: 7,
            exec_count: 0,
            rank,
            executable: "/usr/bin/train".into(),
            command: vec!["train".into()],
            ..ProcessInfo::default()
        }));
        let calibration = Calibration { first_ticks: 0, first_ns: 1_000, last_ticks: 10, last_ns: 1_010 };
        self.entries.push(Entry::Clock(ProcessIndex(index), calibration));
        for (row, text) in [(MALLOC, "cuMemAlloc_v2"), (FREE, "cuMemFree_v2")] {
            let mut name = [0; 40];
            name[..text.len()].copy_from_slice(text.as_bytes());
            self.event(Event::Function { row, name });
        }
    }

    pub fn add_device(&mut self, ordinal: u32, total_bytes: u64) {
        self.event(Event::Device { ordinal, total_bytes, uuid: uuid(ordinal as u8) });
    }

    pub fn event(&mut self, event: Event) {
        let slot = &mut self.slots[self.process as usize];
        let records = vec![event.record(1, self.now)];
        self.entries.push(Entry::Records { process: ProcessIndex(self.process), first_slot: *slot, records });
        *slot += 1;
    }

    pub fn name(&mut self, text: &str) -> TextId {
        let id = TextId::of(text.as_bytes());
        for (part, chunk) in text.as_bytes().chunks(PART_BYTES).enumerate() {
            let mut bytes = [0; PART_BYTES];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.event(Event::Text { id, total_bytes: text.len() as u32, part: part as u32, bytes });
        }
        id
    }

    pub fn allocate(&mut self, address: u64, bytes: u64) {
        let (device, memory) = (self.device, MemoryKind::Device);
        self.event(Event::Alloc { address, bytes, requested: bytes, stream: 0, device, row: MALLOC, memory });
    }

    pub fn pin(&mut self, address: u64, bytes: u64) {
        let (device, memory) = (NO_DEVICE, MemoryKind::Host);
        self.event(Event::Alloc { address, bytes, requested: bytes, stream: 0, device, row: MALLOC, memory });
    }

    /// A framework's tensor on the CPU, with a tag.
    pub fn tensor(&mut self, address: u64, bytes: u64, category: Category, name: &str) {
        let (device, memory) = (NO_DEVICE, MemoryKind::Pageable);
        self.event(Event::Alloc { address, bytes, requested: bytes, stream: 0, device, row: MALLOC, memory });
        self.tag(address, category, name);
    }

    pub fn free(&mut self, address: u64) {
        self.event(Event::Free { address, stream: 0, row: FREE });
    }

    pub fn tag(&mut self, address: u64, category: Category, name: &str) {
        let name = self.name(name);
        self.event(Event::Tag { address, name, category, origin: Origin::Tagged });
    }

    /// An allocation of its own with a tag.
    pub fn tagged(&mut self, address: u64, bytes: u64, category: Category, name: &str) {
        self.allocate(address, bytes);
        self.tag(address, category, name);
    }

    /// A block in a container, by the program's own word; its last 100 bytes were not asked for.
    pub fn block(&mut self, address: u64, bytes: u64, category: Category, name: &str) {
        let requested = bytes - 100;
        self.event(Event::BlockAlloc { address, bytes, requested, stream: 7, origin: Origin::Tagged });
        self.tag(address, category, name);
    }

    pub fn free_block(&mut self, address: u64) {
        self.event(Event::BlockFree { address, origin: Origin::Tagged });
    }

    pub fn push(&mut self, scope: &str) {
        let name = self.name(scope);
        self.event(Event::ScopePush { name });
    }

    pub fn pop(&mut self) {
        self.event(Event::ScopePop);
    }

    /// The thread is at a line of the program from now on: (node, caller), (file, line, function).
    pub fn at_line(&mut self, (node, parent): (u64, u64), (file, line, function): (&str, u32, &str)) {
        let (file, function) = (self.name(file), self.name(function));
        self.event(Event::StackNode { node, parent, file, function, line });
        self.event(Event::Stack { node, whole: true });
    }

    pub fn phase(&mut self, phase: &str) {
        let name = self.name(phase);
        self.event(Event::Phase { name });
    }

    pub fn step(&mut self, number: u64) {
        self.event(Event::Step { number });
    }

    pub fn refuse(&mut self, requested: u64, free: u64, total: u64) {
        let (device, memory) = (self.device, MemoryKind::Device);
        self.event(Event::AllocFailed { requested, free, total, device, result: 2, row: MALLOC, memory });
    }

    /// PyTorch gives up a tensor: the driver has refused the segment of which it would be a part.
    pub fn give_up(&mut self, tensor: u64, segment: u64, free: u64, total: u64) {
        let mut name = [0; 40];
        name[..32].copy_from_slice(b"c10::reportOutOfMemoryToProfiler");
        self.event(Event::Function { row: GIVES_UP, name });
        self.refuse(segment, free, total);
        let (device, memory, requested) = (self.device, MemoryKind::Device, tensor);
        self.event(Event::AllocFailed { requested, free, total, device, result: 2, row: GIVES_UP, memory });
    }

    pub fn sample(&mut self, device: DeviceSample) {
        let at = Nanoseconds(self.now);
        self.entries.push(Entry::Telemetry(TelemetrySample { begin: at, time: at, devices: vec![device] }));
    }

    pub fn counters(&mut self, counters: Counters) {
        self.entries.push(Entry::Counters(ProcessIndex(self.process), counters));
    }

    /// All processes and the session end.
    pub fn end(&mut self, status: i32) {
        for process in 0..self.slots.len() {
            let counters = Counters { ended: true, ..Counters::default() };
            self.entries.push(Entry::Counters(ProcessIndex(process as u32), counters));
        }
        self.entries.push(Entry::End(SessionEnd {
            time: Nanoseconds(self.now),
            exit_status: Some(status),
            ..SessionEnd::default()
        }));
    }

    /// What `memscope run --keep` leaves of it, in segments of so many entries.
    pub fn kept_entries(&self, keep: Keep, segment: usize) -> Vec<Entry> {
        let mut entries = self.entries.clone();
        if let Some(Entry::Session(session)) = entries.first_mut() {
            session.keep = Some(keep);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("journal");
        let segments: Vec<(Nanoseconds, &[Entry])> =
            entries.chunks(segment).map(|entries| (Nanoseconds(0), entries)).collect();
        write_in_segments(&journal, keep, &segments, 0, &mut || ()).expect("written");
        Chain::open(&journal).expect("a journal").map(|entry| entry.expect("whole")).collect()
    }

    /// A view of that which comes late.
    pub fn kept(&self, keep: Keep, segment: usize) -> Explorer {
        explorer_of(&self.kept_entries(keep, segment))
    }

    pub fn explorer(&self) -> Explorer {
        explorer_of(&self.entries)
    }
}

fn explorer_of(entries: &[Entry]) -> Explorer {
    let mut explorer = Explorer::new(Limits::default());
    entries.iter().for_each(|entry| explorer.apply(entry));
    explorer
}
