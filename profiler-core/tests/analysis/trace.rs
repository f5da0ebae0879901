//! Writes sessions by hand, entry by entry.
//!
//! Owns: slots, clocks and name records. Refuses: any knowledge of what the model makes of them.

use std::collections::BTreeMap;

use memscope_core::journal::entry::{
    Calibration, Counters, DeviceSample, Entry, Nanoseconds, ProcessIndex, ProcessInfo, ProcessSample, SessionEnd,
    SessionInfo, TelemetrySample,
};
use memscope_wire::text::PART_BYTES;
use memscope_wire::{Category, Event, MemoryKind, Origin, TextId};

/// A session that is being written.
#[derive(Clone)]
pub struct Trace {
    pub entries: Vec<Entry>,
    slots: BTreeMap<u32, u64>,
    /// Time of the next record, nanoseconds.
    pub now: u64,
}

/// The row that [`Trace::process`] names cuMemAlloc_v2.
pub const ALLOC_ROW: u16 = 3;
/// The row of PyTorch's function of [`Trace::may_give_up`].
pub const GIVEN_UP_ROW: u16 = 90;

impl Trace {
    pub fn new(command: &[&str], simulated: Option<&str>) -> Trace {
        let session = SessionInfo {
            version: "0.1.0".into(),
            command: command.iter().map(|part| part.to_string()).collect(),
            simulated: simulated.map(str::to_owned),
            compute: true,
            start_monotonic_ns: 1_000,
            ..SessionInfo::default()
        };
        Trace { entries: vec![Entry::Session(session)], slots: BTreeMap::new(), now: 0 }
    }

    /// A process whose ticks are nanoseconds since the session began.
    pub fn process(&mut self, process: u32, pid: u32) {
        self.process_of(process, pid, None);
    }

    /// The same, of a program that begins now.
    pub fn program(&mut self, process: u32, pid: u32) {
        self.process_of(process, pid, Some(1_000 + self.now));
    }

    fn process_of(&mut self, process: u32, pid: u32, began_ns: Option<u64>) {
        self.entries.push(Entry::Process(ProcessInfo {
            process: ProcessIndex(process),
            pid,
            parent_pid: 1,
            start_time: 77,
            exec_count: 0,
            began_ns,
            rank: None,
            executable: "/usr/bin/train".into(),
            command: vec!["train".into()],
            ..ProcessInfo::default()
        }));
        let calibration = Calibration { first_ticks: 0, first_ns: 1_000, last_ticks: 10, last_ns: 1_010 };
        self.entries.push(Entry::Clock(ProcessIndex(process), calibration));
        let mut name = [0; 40];
        name[..13].copy_from_slice(b"cuMemAlloc_v2");
        self.event(process, Event::Function { row: ALLOC_ROW, name });
    }

    pub fn event(&mut self, process: u32, event: Event) -> u64 {
        self.event_of(process, 1, event)
    }

    pub fn event_of(&mut self, process: u32, thread: u32, event: Event) -> u64 {
        let slot = self.slots.entry(process).or_default();
        let records = vec![event.record(thread, self.now)];
        self.entries.push(Entry::Records { process: ProcessIndex(process), first_slot: *slot, records });
        *slot += 1;
        *slot - 1
    }

    pub fn device(&mut self, process: u32, ordinal: u32, uuid: [u8; 16], total_bytes: u64) {
        self.event(process, Event::Device { ordinal, total_bytes, uuid });
    }

    pub fn name(&mut self, process: u32, text: &str) -> TextId {
        let id = TextId::of(text.as_bytes());
        for (part, chunk) in text.as_bytes().chunks(PART_BYTES).enumerate() {
            let mut bytes = [0; PART_BYTES];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.event(process, Event::Text { id, total_bytes: text.len() as u32, part: part as u32, bytes });
        }
        id
    }

    pub fn alloc(&mut self, process: u32, address: u64, bytes: u64) {
        let memory = MemoryKind::Device;
        let event = Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row: ALLOC_ROW, memory };
        self.event(process, event);
    }

    pub fn tagged(&mut self, process: u32, address: u64, bytes: u64, category: Category, name: &str) {
        let name = self.name(process, name);
        self.alloc(process, address, bytes);
        self.event(process, Event::Tag { address, name, category, origin: Origin::Tagged });
    }

    /// A tensor of a framework on the CPU.
    pub fn tensor(&mut self, process: u32, address: u64, bytes: u64, category: Category, name: &str) {
        let name = self.name(process, name);
        let (device, memory) = (memscope_wire::event::NO_DEVICE, MemoryKind::Pageable);
        self.event(process, Event::Alloc { address, bytes, requested: bytes, stream: 0, device, row: 9, memory });
        self.event(process, Event::Tag { address, name, category, origin: Origin::Tagged });
    }

    pub fn free(&mut self, process: u32, address: u64) -> u64 {
        self.event(process, Event::Free { address, stream: 0, row: 4 })
    }

    /// The process has PyTorch's function by which it says that it has given up: [`GIVEN_UP_ROW`].
    pub fn may_give_up(&mut self, process: u32) {
        let mut name = [0; 40];
        name[..32].copy_from_slice(b"c10::reportOutOfMemoryToProfiler");
        self.event(process, Event::Function { row: GIVEN_UP_ROW, name });
    }

    /// A framework's block.
    pub fn block(&mut self, process: u32, address: u64, bytes: u64) {
        let origin = Origin::Hooked;
        self.event(process, Event::BlockAlloc { address, bytes, requested: bytes, stream: 0, origin });
    }

    /// It ends.
    pub fn free_block(&mut self, process: u32, address: u64) {
        self.event(process, Event::BlockFree { address, origin: Origin::Hooked });
    }

    pub fn push(&mut self, process: u32, scope: &str) {
        let name = self.name(process, scope);
        self.event(process, Event::ScopePush { name });
    }

    pub fn pop(&mut self, process: u32) {
        self.event(process, Event::ScopePop);
    }

    pub fn phase(&mut self, process: u32, phase: &str) {
        let name = self.name(process, phase);
        self.event(process, Event::Phase { name });
    }

    pub fn step(&mut self, process: u32, number: u64) {
        self.event(process, Event::Step { number });
    }

    /// One device's telemetry with a list of (pid, bytes).
    pub fn sample(&mut self, uuid: &str, total: u64, used: u64, reserved: u64, processes: &[(u32, u64)]) {
        let list = processes.iter().map(|(pid, used)| ProcessSample { pid: *pid, used: Some(*used) });
        let device = DeviceSample {
            uuid: uuid.into(),
            name: Some("NVIDIA H100 80GB HBM3".into()),
            total: Some(total),
            used: Some(used),
            reserved: Some(reserved),
            utilization: Some(50),
            processes: Some(list.collect()),
            ..DeviceSample::default()
        };
        self.entries.push(Entry::Telemetry(TelemetrySample {
            begin: Nanoseconds(self.now),
            time: Nanoseconds(self.now),
            devices: vec![device],
        }));
    }

    /// The same session with one more event of its first process.
    pub fn clone_with(&self, event: Event) -> Trace {
        let mut trace = self.clone();
        trace.event(0, event);
        trace
    }

    pub fn ended(&mut self, process: u32) {
        self.entries.push(Entry::Counters(ProcessIndex(process), Counters { ended: true, ..Counters::default() }));
    }

    /// It ends in an orderly way.
    pub fn closed(&mut self, process: u32) {
        let counters = Counters { ended: true, closed_ns: Some(1_000 + self.now), ..Counters::default() };
        self.entries.push(Entry::Counters(ProcessIndex(process), counters));
    }

    pub fn end(&mut self, exit_status: i32) {
        self.entries.push(Entry::End(SessionEnd {
            time: Nanoseconds(self.now),
            exit_status: Some(exit_status),
            ..SessionEnd::default()
        }));
    }

    pub fn model(&self) -> memscope_core::allocation::Model {
        let mut model = memscope_core::allocation::Model::new();
        for entry in &self.entries {
            model.apply(entry);
        }
        model
    }
}

/// UUID of the device in hand-written sessions, as records and as NVML spell it.
pub const UUID: [u8; 16] = *b"SIMULATED-GPU-00";
pub const UUID_TEXT: &str = "53494d55-4c41-5445-442d-4750552d3030";

/// Two steps of a small training loop, with a cache, telemetry and a pinned buffer; every figure is checked by hand in
/// `reports`.
pub fn training() -> Trace {
    let mut trace = Trace::new(&["./train", "--batch", "4"], Some("h100-80gb"));
    let mebibyte = 1 << 20;
    trace.process(0, 4242);
    trace.device(0, 0, UUID, 80 << 30);
    trace.tagged(0, 0x1_0000_0000, 100 * mebibyte, Category::Weights, "wte.weight");
    trace.tagged(0, 0x2_0000_0000, 200 * mebibyte, Category::Optimizer, "wte.weight.m");
    let host = MemoryKind::Host;
    trace.event(
        0,
        Event::Alloc {
            address: 0x9_0000_0000,
            bytes: mebibyte,
            requested: mebibyte,
            stream: 0,
            device: memscope_wire::event::NO_DEVICE,
            row: 9,
            memory: host,
        },
    );
    // A container of 512 MiB that serves all activations.
    trace.alloc(0, 0x4_0000_0000, 512 * mebibyte);
    for step in 1..=2 {
        trace.now = step * 1_000_000_000;
        trace.step(0, step);
        trace.phase(0, "forward");
        trace.push(0, "model");
        for layer in 0..3u64 {
            trace.now += 10_000_000;
            trace.push(0, &format!("h.{layer}"));
            let (address, bytes) = (0x4_0000_0000 + layer * 100 * mebibyte, 64 * mebibyte);
            let requested = bytes - 100;
            trace.event(0, Event::BlockAlloc { address, bytes, requested, stream: 0, origin: Origin::Tagged });
            let name = trace.name(0, &format!("h.{layer}.out"));
            trace.event(0, Event::Tag { address, name, category: Category::Activations, origin: Origin::Tagged });
            trace.pop(0);
        }
        trace.pop(0);
        trace.now += 100_000_000;
        let used = (812 + 400) * mebibyte;
        trace.sample(UUID_TEXT, 80 << 30, used + 50, 600 * mebibyte, &[(4242, used - 30), (99, 20)]);
        trace.now += 100_000_000;
        trace.phase(0, "backward");
        trace.tagged(0, 0x3_0000_0000, 100 * mebibyte, Category::Gradients, "wte.weight.grad");
        for layer in 0..3u64 {
            trace.now += 5_000_000;
            trace
                .event(0, Event::BlockFree { address: 0x4_0000_0000 + layer * 100 * mebibyte, origin: Origin::Tagged });
        }
        trace.free(0, 0x3_0000_0000);
    }
    trace.now += 1_000_000_000;
    trace.ended(0);
    trace.end(0);
    trace
}
