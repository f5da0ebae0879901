//! How long the window takes to show a large profile, and how long a frame takes while one zooms and moves through it.
//!
//! Owns: the figures of the window's own thread. `MEMSCOPE_BENCH_PROFILE=x.mscope cargo bench -p memscope-gui --bench frame`; a
//! profile of 10 million allocations is made by `MEMSCOPE_BENCH_KEEP=x.mscope cargo bench -p memscope-core --bench profile`
//! (`MEMSCOPE_BENCH_ALLOCATIONS=1000000` for one million). Goals: something of the profile seen within 2 s, the shapes of a frame
//! within 8 ms (95 of 100), 1.5 GiB of memory. Refuses: pixels: how long those take is the renderer's.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memscope_gui::action::{Action, TABLE};
use memscope_gui::app::App;
use memscope_gui::egui::{
    self, Event, Modifiers, MouseWheelSource, MouseWheelUnit, Pos2, Rect, TouchPhase, Vec2, vec2,
};

const SIZE: Vec2 = vec2(1280.0, 800.0);
/// Height of the pointer in the timeline, and in the view below it.
const TIMELINE: f32 = 220.0;
const BELOW: f32 = 640.0;
/// Frames of each view.
const FRAMES: usize = 400;
const GOAL: Duration = Duration::from_millis(8);
const SEEN: Duration = Duration::from_secs(2);
const MEMORY: u64 = 3 << 29;
/// A display's pace.
const PACE: Duration = Duration::from_millis(16);

/// A window without a screen.
struct Window {
    context: egui::Context,
    app: App,
    begin: Instant,
}

/// How long the parts of a frame took.
struct Took {
    shapes: Duration,
    triangles: Duration,
}

impl Window {
    fn frame(&mut self, events: Vec<Event>) -> Took {
        let input = egui::RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SIZE)),
            time: Some(self.begin.elapsed().as_secs_f64()),
            events,
            ..Default::default()
        };
        let begin = Instant::now();
        let app = &mut self.app;
        let mut output = self.context.run_ui(input, |ui| app.frame(ui));
        let shapes = begin.elapsed();
        output.textures_delta.clear();
        let begin = Instant::now();
        drop(self.context.tessellate(std::mem::take(&mut output.shapes), output.pixels_per_point));
        Took { shapes, triangles: begin.elapsed() }
    }
}

fn main() {
    let Some(path) = std::env::var_os("MEMSCOPE_BENCH_PROFILE").map(PathBuf::from) else {
        println!("SKIPPED the bench of frames: MEMSCOPE_BENCH_PROFILE names no profile");
        return;
    };
    let begin = Instant::now();
    let mut window = Window { context: egui::Context::default(), app: App::default(), begin };
    window.app.open(&path, &window.context);
    let first = window.frame(Vec::new()).shapes;
    println!("{:<34} {:>9.3} ms", "first frame, nothing known yet", ms(first));
    let seen = until(&mut window, |app| app.document().is_some_and(|shown| !shown.answer().series.buckets.is_empty()));
    goal("memory over time is seen", seen.as_secs_f64(), SEEN.as_secs_f64(), "s");
    let known = until(&mut window, |app| {
        app.document().is_some_and(|shown| !shown.answer().session.reading && shown.answer().window.is_some())
    });
    println!("{:<34} {:>9.3} s", "all of it is known", known.as_secs_f64());
    let answer = window.app.document().map(|shown| shown.answer().session.allocations).unwrap_or_default();
    println!("{:<34} {answer:>9}", "allocations");

    let panes = TABLE.iter().filter_map(|row| match row.action {
        Action::Pane(pane) => Some(pane),
        _ => None,
    });
    let mut all = Vec::new();
    for pane in panes {
        let name = window.app.pane_name(pane);
        let Some(name) = name else { continue };
        window.app.act(Action::Pane(pane), &window.context.clone());
        for (place, y) in [("", TIMELINE), (", the wheel in it", BELOW)] {
            if pane == 0 && y == BELOW {
                continue;
            }
            let mut times = through(&mut window, y);
            times.sort_unstable_by_key(|took| took.shapes);
            let [half, most] = [50, 95].map(|share| &times[times.len() * share / 100]);
            println!(
                "{:<34} shapes p50 {:>7.3} ms, p95 {:>7.3} ms; triangles there {:>7.3} ms",
                format!("{name}{place}"),
                ms(half.shapes),
                ms(most.shapes),
                ms(most.triangles)
            );
            all.extend(times.into_iter().map(|took| took.shapes));
        }
    }
    all.sort_unstable();
    goal("shapes of a frame, p95", ms(all[all.len() * 95 / 100]), ms(GOAL), "ms");
    goal("largest memory", resident() as f64 / f64::from(1 << 20), MEMORY as f64 / f64::from(1 << 20), "MiB");
}

/// Zooms in and out and moves, as a hand does, at a display's pace, with the pointer at this height.
fn through(window: &mut Window, y: f32) -> Vec<Took> {
    let mut times = Vec::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    window.app.act(Action::ZoomAll, &window.context.clone());
    for frame in 0..FRAMES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let x = 120.0 + (random % 700) as f32;
        let pointer = Pos2::new(x, y);
        let [deeper, sideways] = [(frame / 60).is_multiple_of(2), frame % 5 == 4];
        let delta = match (sideways, deeper) {
            (true, _) => vec2(40.0, 0.0),
            (false, true) => vec2(0.0, 30.0),
            (false, false) => vec2(0.0, -30.0),
        };
        let wheel = Event::MouseWheel {
            source: MouseWheelSource::Wheel,
            unit: MouseWheelUnit::Point,
            delta,
            phase: TouchPhase::Move,
            modifiers: Modifiers::NONE,
        };
        let begin = Instant::now();
        times.push(window.frame(vec![Event::PointerMoved(pointer), wheel]));
        std::thread::sleep(PACE.saturating_sub(begin.elapsed()));
    }
    times
}

/// Draws frames until something is so; how long that was since the beginning.
fn until(window: &mut Window, is_so: impl Fn(&App) -> bool) -> Duration {
    while !is_so(&window.app) {
        assert!(window.begin.elapsed() < Duration::from_secs(300), "it takes too long");
        let begin = Instant::now();
        window.frame(Vec::new());
        std::thread::sleep(PACE.saturating_sub(begin.elapsed()));
    }
    window.begin.elapsed()
}

fn goal(what: &str, figure: f64, goal: f64, unit: &str) {
    let verdict = if figure <= goal { "met" } else { "MISSED" };
    println!("{what:<34} {figure:>9.3} {unit}   goal {goal:.0} {unit}: {verdict}");
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Largest resident memory of this process so far, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() * 1024
}
