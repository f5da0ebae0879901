//! How fast events go from a log to the journal, and what they take there.
//!
//! `cargo bench -p memscope-core --bench drain`. Goal: at least 3 million events a second on 2 cores. The log is filled
//! beforehand, as when memscope was held up, with what a trainer produces: blocks from caching allocators, tags, scopes.

use std::time::{Duration, Instant};

use memscope_core::journal::entry::SessionInfo;
use memscope_core::recorder::{Options, Recorder};
use memscope_core::session::SessionFolder;
use memscope_wire::log::CHUNK_SLOTS;
use memscope_wire::{Category, Event, MemoryKind, Origin, TextId};

#[path = "../tests/capture/writer.rs"]
mod writer;

use writer::{LogWriter, Writing};

/// Events of a run, and runs.
const EVENTS: u64 = 4_000_000;
const RUNS: usize = 5;
/// Events a second.
const GOAL: f64 = 3e6;

fn main() {
    let mut runs: Vec<(f64, f64)> = (0..RUNS).map(|_| run()).collect();
    runs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (rate, bytes) = runs[RUNS / 2];
    let verdict = if rate >= GOAL { "reached" } else { "MISSED" };
    println!("log to journal  {:.2} million events/s (goal {:.0}, {verdict}); of {RUNS} runs", rate / 1e6, GOAL / 1e6);
    println!("                lowest {:.2}, highest {:.2}", runs[0].0 / 1e6, runs[RUNS - 1].0 / 1e6);
    println!("journal         {bytes:.1} bytes an event");
}

/// Events a second, and bytes of the journal an event.
fn run() -> (f64, f64) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let session = SessionInfo::begin(vec!["bench".into()]);
    let folder = SessionFolder::create(&place.path().join("out.mscope"), &session).expect("a session");
    let log = LogWriter::create(&folder.logs(), Writing::dead(1), EVENTS + CHUNK_SLOTS);
    fill(&log);
    log.close();
    let begin = Instant::now();
    let options = Options { interval: Duration::from_millis(1), ..Options::default() };
    let recorder = Recorder::start(&folder, options, None).expect("a recorder");
    let summary = recorder.finish(Some(0)).expect("a journal");
    let seconds = begin.elapsed().as_secs_f64();
    assert_eq!(summary.progress.records, EVENTS);
    folder.remove().expect("removed");
    (EVENTS as f64 / seconds, summary.progress.journal_bytes as f64 / EVENTS as f64)
}

/// A trainer's events: for each tensor a block, a tag and later its end, under scopes; now and then a driver allocation.
fn fill(log: &LogWriter) {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let names: Vec<TextId> = (0..400).map(|layer| TextId::of(format!("layer.{layer}").as_bytes())).collect();
    let sizes: Vec<u64> = (0..60).map(|_| 512 * (1 + next(20_000))).collect();
    let mut live = Vec::new();
    let mut now = 1_000_000;
    for number in 0..EVENTS {
        now += 400 + next(4_000);
        let name = names[next(names.len() as u64) as usize];
        let event = match next(16) {
            0 => Event::ScopePush { name },
            1 => Event::ScopePop,
            2..=4 if !live.is_empty() => {
                let category = Category::from_number(1 + next(6) as u8);
                Event::Tag { address: live[live.len() - 1], name, category, origin: Origin::Tagged }
            }
            5..=9 if live.len() > 400 => {
                let address = live.swap_remove(next(live.len() as u64) as usize);
                Event::BlockFree { address, origin: Origin::Hooked }
            }
            10 if number % 64 == 0 => {
                let (bytes, row) = (20 << 20, next(8) as u16);
                let address = 0x7f00_0000_0000 + next(4096) * bytes;
                Event::Alloc { address, bytes, requested: bytes, stream: 0, device: 0, row, memory: MemoryKind::Device }
            }
            _ => {
                let address = 0x7f00_0000_0000 + next(1 << 26) * 512;
                live.push(address);
                let bytes = sizes[next(sizes.len() as u64) as usize];
                Event::BlockAlloc { address, bytes, requested: bytes - next(500), stream: 0, origin: Origin::Hooked }
            }
        };
        log.push(&event.record(4242, now));
    }
}
