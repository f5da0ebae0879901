//! From entries to a profile, and back: how fast, how small.
//!
//! Owns: a generated GPT training loop, and the comparison with the goals. Run it with
//! `cargo bench -p memscope-core --bench profile`; `MEMSCOPE_BENCH_ALLOCATIONS=200000` makes it short (10 million otherwise).
//! `MEMSCOPE_BENCH_KEEP=x.mscope` leaves the profile; with `MEMSCOPE_BENCH_STACKS=1` each block has three or four lines of a program.
//!
//! The trace is that of a caching allocator: blocks of a step come from free lists, so that addresses repeat; the times
//! between events are irregular, as a real program's are, since they decide how well times compress.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant as Stopwatch;

use memscope_core::allocation::Model;
use memscope_core::explorer::{
    self, At, BandOrder, BandsQuery, Explorer, FlameBy, FlameQuery, FlameWeight, Pick, Query, Row, RowsQuery,
    WindowQuery,
};
use memscope_core::journal::entry::{
    Calibration, Entry, Nanoseconds, ProcessIndex, ProcessInfo, SessionEnd, SessionInfo,
};
use memscope_core::profile::{self, Profile};
use memscope_core::report::Instant;
use memscope_wire::text::PART_BYTES;
use memscope_wire::{Category, Event, MemoryKind, Origin, Record, TextId};

const PROCESS: ProcessIndex = ProcessIndex(0);
const BATCH: usize = 4096;
const LAYERS: u64 = 12;
/// Goals: bytes an allocation on disk; seconds and bytes to open and summarise 10 million allocations.
const GOALS: (f64, f64, u64) = (12.0, 1.5, 1 << 30);
/// Goals: seconds until a window knows 10 million allocations, and bytes.
const WINDOW_GOALS: (f64, u64) = (2.0, 3 << 29);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, verb, path] = &arguments[..] {
        match verb.as_str() {
            "explore" => return explore(Path::new(path)),
            "--bench" => {}
            _ => return open(verb, Path::new(path)),
        }
    }
    let wanted: u64 =
        std::env::var("MEMSCOPE_BENCH_ALLOCATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bench.mscope");

    let mut trace = Training::new();
    let mut model = Model::new();
    let mut events = 0;
    let mut seconds = 0.0;
    for entry in Training::head() {
        model.apply(&entry);
    }
    while trace.allocations < wanted {
        trace.step();
        for entry in trace.take(false) {
            events += BATCH as u64;
            let start = Stopwatch::now();
            model.apply(&entry);
            seconds += start.elapsed().as_secs_f64();
        }
    }
    for entry in trace.take(true) {
        model.apply(&entry);
    }
    model.apply(&Entry::End(SessionEnd {
        time: Nanoseconds(trace.ticks),
        exit_status: Some(0),
        ..SessionEnd::default()
    }));
    let allocations = model.allocations().len() as f64;
    println!("{allocations} allocations, {events} events");
    println!("entries to model:   {:>10.2} million events/s", events as f64 / seconds / 1e6);

    let start = Stopwatch::now();
    profile::write(&model, &path, false).expect("the profile is written");
    let writing = start.elapsed().as_secs_f64();
    println!("model to profile:   {writing:>10.2} s");
    println!("events to profile:  {:>10.2} million events/s", events as f64 / (seconds + writing) / 1e6);
    let size = std::fs::metadata(&path).expect("the profile is there").len();
    goal("bytes an allocation", size as f64 / allocations, GOALS.0);
    println!(
        "model and writing:  {:>10.0} bytes an allocation in memory (no goal)",
        peak_resident() as f64 / allocations
    );
    drop(model);

    for verb in ["open-peak", "open-step", "open-verify"] {
        let program = std::env::current_exe().expect("this program has a path");
        let output =
            Command::new(program).args([verb, path.to_str().expect("UTF-8")]).output().expect("the child runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{verb} failed: {}", String::from_utf8_lossy(&output.stderr));
        let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>().expect("a number"));
        let (seconds, resident) = (numbers.next().expect("seconds"), numbers.next().expect("bytes"));
        if verb == "open-verify" {
            println!("verify (no goal):   {seconds:>10.2} s, {:>6.0} MiB", resident / 1048576.0);
            continue;
        }
        goal(&format!("{verb}, seconds"), seconds, GOALS.1);
        goal(&format!("{verb}, MiB resident"), resident / 1048576.0, GOALS.2 as f64 / 1048576.0);
    }
    window(&path);
    if let Ok(keep) = std::env::var("MEMSCOPE_BENCH_KEEP") {
        std::fs::copy(&path, keep).expect("the profile is copied");
    }
}

fn goal(what: &str, figure: f64, goal: f64) {
    let verdict = if figure <= goal { "met" } else { "MISSED" };
    println!("{what:<26} {figure:>10.2}   goal {goal:>8.2}   {verdict}");
}

/// The profile as a window opens it, in a process of its own.
fn window(path: &Path) {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).arg("explore").arg(path).output().expect("the child runs");
    assert!(output.status.success(), "explore failed: {}", String::from_utf8_lossy(&output.stderr));
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

/// What a window asks for, from the first frame on: the overview, the explorer, spans and bands of any length.
fn explore(path: &Path) {
    let start = Stopwatch::now();
    let profile = Profile::open(path).expect("the profile opens");
    let overview = explorer::overview_of(&profile).expect("an overview");
    println!("overview (no goal):        {:>10.3} s", start.elapsed().as_secs_f64());
    if std::env::var_os("MEMSCOPE_BENCH_TABLES").is_some() {
        let (begin, used) = (Stopwatch::now(), process_time());
        drop(profile.model().expect("a model"));
        println!("tables alone: {:.2} s, CPU {:.2} s", begin.elapsed().as_secs_f64(), process_time() - used);
        return;
    }
    let used = process_time();
    let mut explorer = Explorer::of_profile(&profile).expect("an explorer");
    println!("explorer, CPU (no goal):   {:>10.2} s", process_time() - used);
    goal("explorer, seconds", start.elapsed().as_secs_f64(), WINDOW_GOALS.0);
    let target = overview.target;
    let mut ask = |what: &str, query: Query| {
        let (begin, used) = (Stopwatch::now(), process_time());
        let answer = explorer.answer(&Query { target, ..query });
        let took = begin.elapsed().as_secs_f64() * 1e3;
        println!("{what:<30} {took:>8.1} ms, CPU {:>8.1} ms (no goal)", (process_time() - used) * 1e3);
        answer
    };
    let answer = ask("first answer", Query::default());
    let last = answer.session.last_time.0;
    let middle = answer.peak.as_ref().map_or(last / 2, |peak| peak.state.time.0);
    let range = |length: u64| {
        let from = middle.saturating_sub(length / 2).min(last.saturating_sub(length));
        Nanoseconds(from)..Nanoseconds(from + length)
    };
    ask(
        "window, the first",
        Query { window: Some(WindowQuery { range: range(last), buckets: 2 }), ..Query::default() },
    );
    for (name, length) in
        [("all", last), ("a tenth", last / 10), ("1 s", 1_000_000_000), ("1 ms", 1_000_000), ("1 us", 1000)]
    {
        let range = range(length);
        let window = Some(WindowQuery { range: range.clone(), buckets: 2048 });
        ask(&format!("window, {name}"), Query { window, ..Query::default() });
        let bands = BandsQuery { range, ..BandsQuery::default() };
        let answer = ask(&format!("2,000 bands, {name}"), Query { bands: Some(bands.clone()), ..Query::default() });
        let view = answer.bands.expect("asked for");
        println!("    {} bands, {} points, {} in all", view.bands.len(), view.points.len(), view.alive);
        let by_address = BandsQuery { order: BandOrder::Address, ..bands.clone() };
        ask(&format!("by address, {name}"), Query { bands: Some(by_address), ..Query::default() });
        let filtered = BandsQuery { filter: "h.7 category:activations".into(), ..bands };
        ask(&format!("filtered, {name}"), Query { bands: Some(filtered), ..Query::default() });
    }
    let pick =
        ask("a list", Query { rows: Some(RowsQuery { window: 0..60, ..RowsQuery::default() }), ..Query::default() });
    if let Some(Row::Allocation(row)) = pick.rows.as_ref().and_then(|rows| rows.rows.first()) {
        ask("a pick", Query { picks: vec![Pick { id: row.id, birth: row.birth }], ..Query::default() });
    }
    let lines = answer.session.stacks.then_some(FlameBy::Stack);
    for (tree, by) in std::iter::once(("scope", FlameBy::Scope)).chain(lines.map(|by| ("stack", by))) {
        for (when, weight) in [
            ("the peak", FlameWeight::Peak),
            ("the cursor", FlameWeight::Cursor),
            ("a tenth of the time", FlameWeight::AllocatedIn(range(last / 10))),
            ("all of the time", FlameWeight::AllocatedIn(range(last))),
        ] {
            let at = At::Time(Nanoseconds(middle / 2));
            let flame = FlameQuery { by, weight, parts: 400, ..FlameQuery::default() };
            let answer =
                ask(&format!("flame by {tree}, {when}"), Query { at, flame: Some(flame.clone()), ..Query::default() });
            let view = answer.flame.expect("asked for");
            println!("    {} nodes, {} allocations", view.nodes.len(), view.nodes[0].allocations);
            let zoom = view.zoom_to(1.min(view.nodes.len() - 1));
            let flame = FlameQuery { zoom, search: "h.7".into(), ..flame };
            ask("    zoomed and searched", Query { at, flame: Some(flame.clone()), ..Query::default() });
            let flame = FlameQuery { invert: true, zoom: Vec::new(), ..flame };
            ask("    inverted", Query { at, flame: Some(flame.clone()), ..Query::default() });
            let flame = FlameQuery { filter: "h.7 category:activations".into(), ..flame };
            ask("    filtered", Query { at, flame: Some(flame), ..Query::default() });
        }
    }
    ask("another moment", Query { at: At::Time(Nanoseconds(middle / 2)), ..Query::default() });
    goal("explorer, MiB resident", peak_resident() as f64 / 1048576.0, WINDOW_GOALS.1 as f64 / 1048576.0);
}

/// In a process of its own, so that its memory is only that of reading.
fn open(verb: &str, path: &Path) {
    let start = Stopwatch::now();
    let profile = Profile::open(path).expect("the profile opens");
    match verb {
        "open-peak" => drop(profile.report(Instant::Peak).expect("a report")),
        "open-step" => {
            let steps = profile.report(Instant::Peak).expect("a report").steps;
            drop(profile.report(Instant::Step(steps[steps.len() / 2].step)).expect("a report"));
        }
        _ => assert_eq!(profile.verify().expect("rows can be read").disagreements, Vec::<String>::new()),
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds} {}", peak_resident());
}

/// CPU time of this process, seconds: what a busy machine does not change.
fn process_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Largest resident memory of this process so far, bytes.
fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is there");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak of resident memory");
    peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Generates the records of a training loop.
struct Training {
    records: Vec<Record>,
    slot: u64,
    ticks: u64,
    random: u64,
    allocations: u64,
    steps: u64,
    texts: HashMap<String, TextId>,
    /// Free addresses by size.
    free: HashMap<u64, Vec<u64>>,
    next_address: u64,
    container_end: u64,
    kept: Vec<(u64, u64)>,
    /// Each block is made at a stack of its name's own.
    stacks: bool,
    /// Innermost nodes of stacks by what is made there.
    nodes: HashMap<String, u64>,
    /// The node that a thread is at.
    at: HashMap<u32, u64>,
}

impl Training {
    fn new() -> Training {
        let mut trace = Training {
            records: Vec::new(),
            slot: 0,
            ticks: 1_000_000,
            random: 0x9E37_79B9_7F4A_7C15,
            allocations: 0,
            steps: 0,
            texts: HashMap::new(),
            free: HashMap::new(),
            next_address: 0x7f00_0000_0000,
            container_end: 0x7f00_0000_0000,
            kept: Vec::new(),
            stacks: std::env::var_os("MEMSCOPE_BENCH_STACKS").is_some(),
            nodes: HashMap::new(),
            at: HashMap::new(),
        };
        trace.push(1, Event::Device { ordinal: 0, total_bytes: 80 << 30, uuid: memscope_wire::device::uuid(0) });
        trace.push(1, Event::Function { row: 1, name: [b'c'; 40] });
        for layer in 0..LAYERS {
            for (part, bytes) in [("qkv", 7_077_888), ("proj", 2_359_296), ("fc", 9_437_184), ("out", 9_437_184)] {
                for (suffix, category) in
                    [("weight", Category::Weights), ("m", Category::Optimizer), ("v", Category::Optimizer)]
                {
                    trace.block(1, bytes, category, &format!("h.{layer}.{part}.{suffix}"));
                }
            }
        }
        trace
    }

    fn head() -> Vec<Entry> {
        vec![
            Entry::Session(SessionInfo {
                version: "0".into(),
                command: vec!["bench".into()],
                ..SessionInfo::default()
            }),
            Entry::Process(ProcessInfo {
                process: PROCESS,
                pid: 1,
                parent_pid: 0,
                start_time: 0,
                exec_count: 0,
                rank: None,
                executable: "bench".into(),
                command: vec![],
                ..ProcessInfo::default()
            }),
            // A time-stamp counter of 2.1 GHz.
            Entry::Clock(
                PROCESS,
                Calibration { first_ticks: 0, first_ns: 0, last_ticks: 2_100_000_000, last_ns: 1_000_000_000 },
            ),
        ]
    }

    /// The records so far, in entries of equal size; the rest only when `all`.
    fn take(&mut self, all: bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        while self.records.len() >= BATCH || (all && !self.records.is_empty()) {
            let rest = self.records.split_off(BATCH.min(self.records.len()));
            let records = std::mem::replace(&mut self.records, rest);
            let first_slot = self.slot;
            self.slot += records.len() as u64;
            entries.push(Entry::Records { process: PROCESS, first_slot, records });
        }
        entries
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn push(&mut self, thread: u32, event: Event) {
        // 100 ns to 6 µs between records, and now and then a longer pause.
        let pause = if self.random().is_multiple_of(64) { 40_000 } else { 12_000 };
        self.ticks += 200 + self.random() % pause;
        self.records.push(event.record(thread, self.ticks));
    }

    fn text(&mut self, text: &str) -> TextId {
        if let Some(id) = self.texts.get(text) {
            return *id;
        }
        let id = TextId::of(text.as_bytes());
        for (part, chunk) in text.as_bytes().chunks(PART_BYTES).enumerate() {
            let mut bytes = [0; PART_BYTES];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.push(1, Event::Text { id, total_bytes: text.len() as u32, part: part as u32, bytes });
        }
        self.texts.insert(text.to_owned(), id);
        id
    }

    /// A block from the cache, or from a new segment.
    fn block(&mut self, thread: u32, requested: u64, category: Category, name: &str) -> (u64, u64) {
        if self.stacks {
            self.stand(thread, name);
        }
        let bytes = requested.next_multiple_of(512);
        let address = self.free.get_mut(&bytes).and_then(Vec::pop).unwrap_or_else(|| self.fresh(bytes));
        self.push(thread, Event::BlockAlloc { address, bytes, requested, stream: 0, origin: Origin::Hooked });
        self.allocations += 1;
        if category != Category::Unknown {
            let name = self.text(name);
            self.push(thread, Event::Tag { address, name, category, origin: Origin::Tagged });
        }
        (address, bytes)
    }

    /// Puts a thread at the lines that a name is made at: the program, its step, and a layer's, the same in each layer.
    fn stand(&mut self, thread: u32, name: &str) {
        let part = name.split('.').nth(2).unwrap_or(name);
        let node = match self.nodes.get(part) {
            Some(node) => *node,
            None => {
                let (file, model) = (self.text("/home/user/train.py"), self.text("/home/user/model.py"));
                let line = part.bytes().map(u32::from).sum::<u32>() % 60;
                let mut places = vec![(1, file, "<module>", 210), (2, file, "train_step", 96)];
                let first = 3 + 2 * self.nodes.len() as u64;
                places.push((first, model, "Block.forward", 40 + line));
                if line.is_multiple_of(2) {
                    places.push((first + 1, model, "Attention.forward", 120 + line));
                }
                let mut parent = 0;
                for (node, file, function, line) in places {
                    let function = self.text(function);
                    self.push(thread, Event::StackNode { node, parent, file, function, line });
                    parent = node;
                }
                self.nodes.insert(part.to_owned(), parent);
                parent
            }
        };
        if self.at.insert(thread, node) != Some(node) {
            self.push(thread, Event::Stack { node, whole: true });
        }
    }

    fn fresh(&mut self, bytes: u64) -> u64 {
        if self.next_address + bytes > self.container_end {
            let size = bytes.max(256 << 20);
            self.next_address = self.container_end.next_multiple_of(2 << 20);
            self.container_end = self.next_address + size;
            let (address, bytes) = (self.next_address, size);
            let memory = MemoryKind::Device;
            self.push(1, Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row: 1, memory });
        }
        self.next_address += bytes;
        self.next_address - bytes
    }

    fn release(&mut self, thread: u32, (address, bytes): (u64, u64)) {
        self.push(thread, Event::BlockFree { address, origin: Origin::Hooked });
        self.free.entry(bytes).or_default().push(address);
    }

    fn step(&mut self) {
        self.steps += 1;
        self.push(1, Event::Step { number: self.steps });
        let forward = self.text("forward");
        self.push(1, Event::Phase { name: forward });
        // Sequence lengths differ from batch to batch.
        let tokens = 2048 + self.random() % 4 * 512;
        for layer in 0..LAYERS {
            let scope = self.text(&format!("h.{layer}"));
            self.push(1, Event::ScopePush { name: scope });
            for (part, width) in
                [("ln1", 768), ("qkv", 2304), ("att", 1024), ("y", 768), ("res", 768), ("fc", 3072), ("gelu", 3072)]
            {
                let kept = self.block(1, tokens * width * 4, Category::Activations, &format!("h.{layer}.{part}"));
                self.kept.push(kept);
                for _ in 0..1 + self.random() % 5 {
                    let bytes = tokens * width * 2 + self.random() % 8 * 1000;
                    let temporary = self.block(1, bytes, Category::Unknown, "");
                    self.release(1, temporary);
                }
            }
            self.push(1, Event::ScopePop);
        }
        let backward = self.text("backward");
        self.push(1, Event::Phase { name: backward });
        let mut gradients = Vec::new();
        for layer in (0..LAYERS).rev() {
            for (part, bytes) in [("qkv", 7_077_888), ("proj", 2_359_296), ("fc", 9_437_184), ("out", 9_437_184)] {
                gradients.push(self.block(2, bytes, Category::Gradients, &format!("h.{layer}.{part}.grad")));
                let temporary = self.block(2, tokens * 768 * 4, Category::Workspace, "dx");
                self.release(2, temporary);
            }
            for _ in 0..7 {
                if let Some(kept) = self.kept.pop() {
                    self.release(2, kept);
                }
            }
        }
        for gradient in gradients {
            self.release(1, gradient);
        }
    }
}
