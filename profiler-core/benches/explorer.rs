//! What it costs to answer questions about a session that runs, how much memory that takes, and how fast a profile opens.
//!
//! Owns: a generated session of any size, and the comparison with the goals. Run it with
//! `cargo bench -p memscope-core --bench explorer`; `MEMSCOPE_BENCH_SECONDS=5` and `MEMSCOPE_BENCH_EVENTS=2000000` make it short
//! (20 seconds and 36 million events otherwise: an hour of 10,000 a second).
//!
//! The session is that of a caching allocator: 1,000 containers, blocks with names and scopes, of which the oldest make way for
//! new ones.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use memscope_core::allocation::Model;
use memscope_core::explorer::{Answer, At, Explorer, Limits, Query, RowsQuery, SegmentsQuery};
use memscope_core::journal::entry::{
    Calibration, DeviceSample, Entry, Nanoseconds, ProcessIndex, ProcessInfo, ProcessSample, SessionEnd, SessionInfo,
    TelemetrySample,
};
use memscope_core::profile::{self, Profile};
use memscope_wire::text::PART_BYTES;
use memscope_wire::{Category, Event, MemoryKind, Origin, Record, TextId};

const PROCESS: ProcessIndex = ProcessIndex(0);
const UUID: [u8; 16] = *b"SIMULATED-GPU-00";
const UUID_TEXT: &str = "53494d55-4c41-5445-442d-4750552d3030";
const CONTAINERS: u64 = 1000;
const BLOCK: u64 = 1 << 16;
/// Goals: percent of a core for 10 answers a second over a million live allocations; seconds to open a profile of a million.
const GOALS: (f64, f64) = (3.0, 1.0);
const EVENTS_A_SECOND: u64 = 10_000;
const ANSWERS_A_SECOND: u64 = 10;

fn main() {
    let number =
        |name: &str, usual: u64| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(usual);
    match std::env::args().nth(1).as_deref() {
        Some("answers") => return answers(number("MEMSCOPE_BENCH_SECONDS", 20)),
        Some("memory") => return memory(number("MEMSCOPE_BENCH_EVENTS", 36_000_000)),
        Some("open") => return open(),
        _ => {}
    }
    // Each in a process of its own, so that its memory is its own.
    for part in ["answers", "memory", "open"] {
        let program = std::env::current_exe().expect("this program has a path");
        let status = std::process::Command::new(program).arg(part).status().expect("the child runs");
        assert!(status.success(), "{part} failed");
    }
}

fn goal(what: &str, figure: f64, goal: f64) {
    let verdict = if figure <= goal { "met" } else { "MISSED" };
    println!("{what:<58} {figure:>9.2}   goal {goal:>8.2}   {verdict}");
}

/// A million live allocations, 10,000 events and 10 answers a second with every list, in real time.
fn answers(seconds: u64) {
    let mut session = Session::new(1_000_000);
    let mut explorer = Explorer::new(Limits::default());
    session.fill(&mut |entry| explorer.apply(entry));
    let query = Query {
        at: At::Live,
        steps: 0..50,
        rows: Some(RowsQuery { window: 0..60, ..RowsQuery::default() }),
        scopes: true,
        segments: Some(SegmentsQuery { slices: 120, window: 0..50, ..SegmentsQuery::default() }),
        ..Query::default()
    };
    let begin = Instant::now();
    let first = explorer.answer(&query);
    println!("live allocations: {}", first.rows.as_ref().expect("asked for").total);
    println!("the first answer with every list: {:.0} ms (no goal)", begin.elapsed().as_secs_f64() * 1e3);
    let other = Query {
        rows: Some(RowsQuery { filter: "attn >1KiB".into(), ..query.rows.clone().expect("rows") }),
        ..query.clone()
    };
    let begin = Instant::now();
    explorer.answer(&other);
    println!("an answer to a new filter: {:.0} ms (no goal)", begin.elapsed().as_secs_f64() * 1e3);
    explorer.answer(&query);
    // What the first answers spent is not asked for again: wait until lists may be made anew.
    let rest = explorer.due().map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
    std::thread::sleep(rest.min(Duration::from_secs(30)));
    let (begin, spent) = (Instant::now(), thread_time());
    let (mut longest, mut stalest) = (Duration::ZERO, 0.0f64);
    for tick in 1..=seconds * ANSWERS_A_SECOND {
        session.run(EVENTS_A_SECOND / ANSWERS_A_SECOND, &mut |entry| explorer.apply(entry));
        let start = Instant::now();
        let answer = explorer.answer(&query);
        longest = longest.max(start.elapsed());
        stalest = stalest.max(age(&answer));
        let until = begin + Duration::from_millis(1000 / ANSWERS_A_SECOND * tick);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
    let share = (thread_time() - spent) * 100.0 / begin.elapsed().as_secs_f64();
    goal("percent of a core, entries and answers", share, GOALS.0);
    println!(
        "the longest answer: {:.0} ms; the oldest list was {stalest:.1} s old (no goal)",
        longest.as_secs_f64() * 1e3
    );
    println!("resident: {:.0} MiB (no goal)", resident() / 1048576.0);
}

/// How old the list of rows is, seconds of the session.
fn age(answer: &Answer) -> f64 {
    let list = answer.rows.as_ref().expect("asked for");
    answer.session.last_time.0.saturating_sub(list.as_of.0) as f64 / 1e9
}

/// An hour of 10,000 events a second, with 20 answers a second, as fast as it goes.
fn memory(events: u64) {
    let limits = Limits::default();
    let live = 50_000;
    let mut session = Session::new(live);
    let mut explorer = Explorer::new(limits);
    session.fill(&mut |entry| explorer.apply(entry));
    let query =
        Query { steps: 0..50, rows: Some(RowsQuery { window: 0..60, ..RowsQuery::default() }), ..Query::default() };
    let begin = Instant::now();
    let mut done = 0;
    while done < events {
        session.run(500, &mut |entry| explorer.apply(entry));
        done += 500;
        explorer.answer(&query);
    }
    let took = begin.elapsed().as_secs_f64();
    println!("{events} events in {took:.1} s: {:.2} million a second (no goal)", events as f64 / took / 1e6);
    let answer = explorer.answer(&query);
    println!("steps kept: {}, allocations so far: {}", answer.steps_total, answer.session.allocations);
    goal(
        "MiB resident after them, against the stated bound",
        resident() / 1048576.0,
        limits.bound(live) as f64 / 1048576.0,
    );
}

/// A profile of a million allocations.
fn open() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bench.mscope");
    {
        let mut session = Session::new(100_000);
        let mut model = Model::new();
        session.fill(&mut |entry| drop(model.apply(entry)));
        while model.allocations().len() < 1_000_000 {
            session.run(10_000, &mut |entry| drop(model.apply(entry)));
        }
        model.apply(&Entry::End(SessionEnd {
            time: Nanoseconds(session.ticks),
            exit_status: Some(0),
            ..SessionEnd::default()
        }));
        profile::write(&model, &path, false).expect("the profile is written");
    }
    let begin = Instant::now();
    let profile = Profile::open(&path).expect("the profile opens");
    let mut explorer = Explorer::of_profile(&profile).expect("an explorer");
    let query =
        Query { rows: Some(RowsQuery { window: 0..60, ..RowsQuery::default() }), scopes: true, ..Query::default() };
    let answer = explorer.answer(&query);
    goal("seconds until a profile of a million rows is shown", begin.elapsed().as_secs_f64(), GOALS.1);
    let begin = Instant::now();
    drop(profile.model().expect("a model"));
    println!("of that, the tables: {:.2} s (no goal)", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    explorer.answer(&Query { at: At::Time(Nanoseconds(answer.session.last_time.0 / 2)), ..query });
    println!("another moment of it: {:.0} ms (no goal)", begin.elapsed().as_secs_f64() * 1e3);
}

/// CPU time of this thread, seconds.
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident memory of this process, bytes.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: f64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096.0
}

/// Makes events.
struct Session {
    live: u64,
    ticks: u64,
    slot: u64,
    made: u64,
    step: u64,
    sampled: u64,
    /// Addresses of blocks, the oldest first.
    blocks: VecDeque<u64>,
    names: Vec<TextId>,
}

impl Session {
    fn new(live: u64) -> Session {
        Session { live, ticks: 0, slot: 0, made: 0, step: 0, sampled: 0, blocks: VecDeque::new(), names: Vec::new() }
    }

    fn send(&mut self, records: Vec<Record>, apply: &mut impl FnMut(&Entry)) {
        let count = records.len() as u64;
        apply(&Entry::Records { process: PROCESS, first_slot: self.slot, records });
        self.slot += count;
    }

    /// The head, the containers, and the first blocks.
    fn fill(&mut self, apply: &mut impl FnMut(&Entry)) {
        apply(&Entry::Session(SessionInfo { version: "0.1.0".into(), compute: true, ..SessionInfo::default() }));
        apply(&Entry::Process(ProcessInfo {
            process: PROCESS,
            pid: 4242,
            parent_pid: 1,
            start_time: 1,
            exec_count: 0,
            rank: None,
            executable: "/usr/bin/train".into(),
            command: vec!["train".into()],
            ..ProcessInfo::default()
        }));
        apply(&Entry::Clock(PROCESS, Calibration { first_ticks: 0, first_ns: 0, last_ticks: 1, last_ns: 1 }));
        let mut records = vec![Event::Device { ordinal: 0, total_bytes: 192 << 30, uuid: UUID }.record(1, 0)];
        for number in 0..2000 {
            let text = format!("transformer.h.{number}.attn.out");
            let id = TextId::of(text.as_bytes());
            self.names.push(id);
            for (part, chunk) in text.as_bytes().chunks(PART_BYTES).enumerate() {
                let mut bytes = [0; PART_BYTES];
                bytes[..chunk.len()].copy_from_slice(chunk);
                records.push(Event::Text { id, total_bytes: text.len() as u32, part: part as u32, bytes }.record(1, 0));
            }
        }
        let bytes = self.live.div_ceil(CONTAINERS) * 2 * BLOCK;
        for number in 0..CONTAINERS {
            let (address, memory) = (number * bytes, MemoryKind::Device);
            let event = Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row: 1, memory };
            records.push(event.record(1, 0));
        }
        self.send(records, apply);
        while (self.blocks.len() as u64) < self.live {
            let mut records = Vec::new();
            for _ in 0..1000 {
                self.birth(&mut records);
            }
            self.send(records, apply);
        }
    }

    /// So many events in the time that they take at [`EVENTS_A_SECOND`], with 10 steps and 10 samples a second.
    fn run(&mut self, events: u64, apply: &mut impl FnMut(&Entry)) {
        let mut records = Vec::new();
        while (records.len() as u64) < events {
            self.ticks += 1_000_000_000 / EVENTS_A_SECOND;
            if self.ticks / 100_000_000 > self.step {
                self.step = self.ticks / 100_000_000;
                records.push(Event::Step { number: self.step }.record(1, self.ticks));
            }
            if records.len() % 2 == 0 {
                let address = self.blocks.pop_front().expect("a block");
                records.push(Event::BlockFree { address, origin: Origin::Hooked }.record(1, self.ticks));
            } else {
                self.birth(&mut records);
            }
        }
        self.send(records, apply);
        if self.ticks / 100_000_000 > self.sampled {
            self.sampled = self.ticks / 100_000_000;
            apply(&Entry::Telemetry(self.sample()));
        }
    }

    fn birth(&mut self, records: &mut Vec<Record>) {
        // A free place: twice as many as live blocks, taken in turn.
        let address = self.made % (self.live.div_ceil(CONTAINERS) * 2 * CONTAINERS) * BLOCK;
        let requested = BLOCK - self.made % 7 * 512;
        let name = self.names[(self.made % 2000) as usize];
        if self.made.is_multiple_of(100) {
            records.push(Event::ScopePop.record(1, self.ticks));
            records.push(Event::ScopePush { name: self.names[(self.made / 100 % 500) as usize] }.record(1, self.ticks));
        }
        let block = Event::BlockAlloc { address, bytes: BLOCK, requested, stream: 0, origin: Origin::Hooked };
        records.push(block.record(1, self.ticks));
        if self.made.is_multiple_of(3) {
            let category = Category::from_number((self.made % 7) as u8);
            records.push(Event::Tag { address, name, category, origin: Origin::Hooked }.record(1, self.ticks));
        }
        self.blocks.push_back(address);
        self.made += 1;
    }

    fn sample(&self) -> TelemetrySample {
        let time = Nanoseconds(self.ticks);
        let device = DeviceSample {
            uuid: UUID_TEXT.into(),
            name: Some("NVIDIA H100 80GB HBM3".into()),
            total: Some(192 << 30),
            used: Some(1 << 30),
            processes: Some(vec![ProcessSample { pid: 4242, used: Some(1 << 30) }]),
            ..DeviceSample::default()
        };
        TelemetrySample { begin: time, time, devices: vec![device] }
    }
}
