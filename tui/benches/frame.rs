//! How long a frame takes: every screen at 200×60, with everything on it.
//!
//! `cargo bench -p memscope-tui --bench frame`. Goal: 99 of 100 frames within 16 ms, as a display shows them. A frame is drawn
//! and compared with the one before; what would be written to a terminal is measured by `redraw`.

use std::time::{Duration, Instant};

use crossterm::event::KeyCode;

#[path = "../tests/dashboard/sessions.rs"]
#[allow(dead_code, reason = "the tests need more of them")]
mod sessions;
#[path = "../tests/dashboard/trace.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod trace;
#[path = "../tests/dashboard/view.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod view;

use memscope_tui::screens;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use view::View;

const SIZE: (u16, u16) = (200, 60);
/// Frames of each screen.
const FRAMES: usize = 400;
const GOAL: Duration = Duration::from_millis(16);

fn main() {
    let mut all = Vec::new();
    for (name, keys) in [
        ("overview", "o"),
        ("overview, out of memory", "o!"),
        ("overview, eight GPUs", "o8"),
        ("allocations", "a"),
        ("allocations by scope", "ab"),
        ("scopes", "se"),
        ("icicle", "sev"),
        ("segments", "m"),
        ("steps", "t"),
        ("help", "o?"),
    ] {
        let trace = match keys {
            "o!" => sessions::out_of_memory(),
            "o8" => sessions::eight_gpus(),
            _ => sessions::leaking(),
        };
        let mut view = View::new(&trace, SIZE);
        view.press(keys.trim_matches(['!', '8']));
        let mut times = frames(&mut view);
        times.sort_unstable();
        println!("{name:<26} p50 {:>8.3} ms   p99 {:>8.3} ms", ms(at(&times, 50)), ms(at(&times, 99)));
        all.extend(times);
    }
    all.sort_unstable();
    let p99 = at(&all, 99);
    let verdict = if p99 <= GOAL { "reached" } else { "MISSED" };
    println!(
        "all, at {}x{}             p50 {:>8.3} ms   p99 {:>8.3} ms (goal {} ms, {verdict})",
        SIZE.0,
        SIZE.1,
        ms(at(&all, 50)),
        ms(p99),
        GOAL.as_millis()
    );
}

/// Draws while the time cursor and the selection move, so that no frame is like the one before.
fn frames(view: &mut View) -> Vec<Duration> {
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a terminal");
    let mut times = Vec::with_capacity(FRAMES);
    for frame in 0..FRAMES {
        view.key(if frame % 2 == 0 { KeyCode::Left } else { KeyCode::Down });
        let begin = Instant::now();
        terminal.draw(|frame| screens::draw(&view.app, frame)).expect("drawn");
        times.push(begin.elapsed());
    }
    times
}

/// The time that so many of a hundred do not exceed.
fn at(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
