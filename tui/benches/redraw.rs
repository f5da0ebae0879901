//! What ten redraws a second cost while a session runs with a million live allocations.
//!
//! `cargo bench -p memscope-tui --bench redraw`. Goal: at most 5 % of a core, on each screen. Ten times a second the journal's
//! new entries are taken in, the question of the screen is answered, and the frame is drawn and written, as escape sequences,
//! to a sink. Measured is the processor's time of this process; about 40 seconds. `MEMSCOPE_BENCH_LIVE` sets the number of live
//! allocations.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use memscope_tui::app::App;
use memscope_tui::screens;
use memscope_wire::Category;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::time::{ClockId, clock_gettime};

#[path = "../tests/dashboard/sessions.rs"]
#[allow(dead_code, reason = "the tests need more of them")]
mod sessions;
#[path = "../tests/dashboard/trace.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod trace;
#[path = "../tests/dashboard/view.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod view;

use trace::Trace;
use view::COLOURED;

const SIZE: (u16, u16) = (200, 60);
const INTERVAL: Duration = Duration::from_millis(100);
/// Redraws of each screen.
const REDRAWS: u32 = 80;
/// Events that come between two redraws: 10,000 a second.
const EVENTS: u64 = 1000;
/// Percent of a core.
const GOAL: f64 = 5.0;

/// Counts what is written, and throws it away.
struct Sink<'a>(&'a std::cell::Cell<u64>);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() {
    let live: u64 = std::env::var("MEMSCOPE_BENCH_LIVE").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let (mut trace, mut explorer) = session(live);
    let mut number = live;
    let mut worst = 0.0f64;
    for (name, keys) in [("overview", "o"), ("allocations", "a"), ("scopes", "s"), ("segments", "m"), ("steps", "t")] {
        let mut app = App::new(COLOURED.palette, COLOURED.glyphs, Rect::new(0, 0, SIZE.0, SIZE.1), None, false);
        for key in keys.chars() {
            app.handle(&key_event(key));
        }
        let written = std::cell::Cell::new(0);
        let viewport = Viewport::Fixed(Rect::new(0, 0, SIZE.0, SIZE.1));
        let mut terminal = Terminal::with_options(CrosstermBackend::new(Sink(&written)), TerminalOptions { viewport })
            .expect("a terminal");
        let mut redraw = |measured: bool| {
            go_on(&mut trace, &mut number);
            let begin = cpu();
            for entry in trace.entries.drain(..) {
                explorer.apply(&entry);
            }
            let taken_in = cpu();
            let query = app.query();
            app.receive(Arc::new(explorer.answer(&query)));
            let answered = cpu();
            terminal.draw(|frame| screens::draw(&app, frame)).expect("drawn");
            let drawn = cpu();
            if measured { [taken_in - begin, answered - taken_in, drawn - answered] } else { [0.0; 3] }
        };
        // The first answer makes lists that later ones keep.
        for _ in 0..5 {
            redraw(false);
        }
        let mut spent = [0.0; 3];
        let begin = Instant::now();
        for turn in 1..=REDRAWS {
            for (sum, part) in spent.iter_mut().zip(redraw(true)) {
                *sum += part;
            }
            sleep((INTERVAL * turn).saturating_sub(begin.elapsed()));
        }
        let seconds = begin.elapsed().as_secs_f64();
        let share = spent.map(|part| part * 100.0 / seconds);
        let whole: f64 = share.iter().sum();
        worst = worst.max(whole);
        println!(
            "{name:<12} {whole:>5.2} % of a core: taking in {:.2}, answering {:.2}, drawing {:.2}; {:.1} KB a frame",
            share[0],
            share[1],
            share[2],
            written.get() as f64 / f64::from(REDRAWS) / 1e3
        );
    }
    let verdict = if worst <= GOAL { "reached" } else { "MISSED" };
    println!(
        "{live} live allocations, 10,000 events and 10 redraws a second: at most {worst:.2} % (goal {GOAL} %, {verdict})"
    );
}

fn key_event(key: char) -> crossterm::event::Event {
    crossterm::event::Event::Key(crossterm::event::KeyCode::Char(key).into())
}

/// Seconds that this process has run for.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A session with so many live blocks in containers of 4,096 each, in 400 scopes.
fn session(live: u64) -> (Trace, memscope_core::explorer::Explorer) {
    let mut trace = sessions::training();
    let mut explorer = trace.explorer();
    trace.entries.clear();
    for container in 0..live.div_ceil(4096) {
        trace.allocate(address(container * 4096), 4096 * 4096);
    }
    for number in 0..live {
        if number.is_multiple_of(2500) {
            trace.push(&format!("block.{}", number / 2500));
        }
        trace.now += 1000;
        block(&mut trace, number);
        if number % 2500 == 2499 {
            trace.pop();
        }
        if number.is_multiple_of(50_000) {
            trace.step(100 + number / 50_000);
            for entry in trace.entries.drain(..) {
                explorer.apply(&entry);
            }
            explorer.advance();
        }
    }
    for entry in trace.entries.drain(..) {
        explorer.apply(&entry);
    }
    (trace, explorer)
}

fn address(number: u64) -> u64 {
    0x1000_0000_0000 + number * 4096
}

fn block(trace: &mut Trace, number: u64) {
    let category = Category::from_number((number % 7) as u8);
    let bytes = 512 + number % 7 * 512;
    trace.event(memscope_wire::Event::BlockAlloc {
        address: address(number),
        bytes,
        requested: bytes - 100,
        stream: 7,
        origin: memscope_wire::Origin::Hooked,
    });
    if number.is_multiple_of(2) {
        trace.tag(
            address(number),
            category,
            ["attn.out", "mlp.out", "norm.out", "residual"][(number / 2 % 4) as usize],
        );
    }
}

/// A tenth of a second of the running session: blocks go and others take their place.
fn go_on(trace: &mut Trace, number: &mut u64) {
    let live = *number;
    trace.step(1000 + trace.now / 1_000_000_000);
    for event in 0..EVENTS / 2 {
        trace.now += 200_000;
        let which = (trace.now / 200_000 * 7919 + event) % live;
        trace.free_block(address(which));
        block(trace, which);
    }
}
