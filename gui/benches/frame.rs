//! How long the window takes to show a large profile, and how long a frame takes while one zooms and moves through it.
//!
//! Owns: the figures of the window's own thread. `MEMSCOPE_BENCH_PROFILE=x.mscope cargo bench -p memscope-gui --bench frame`; a
//! profile of 10 million allocations is made by `MEMSCOPE_BENCH_KEEP=x.mscope cargo bench -p memscope-core --bench profile`
//! (`MEMSCOPE_BENCH_ALLOCATIONS=1000000` for one million). Each view is measured, of allocations also the table of steps; and the
//! flame once more on a profile that the bench makes, with thousands of nodes that are wide enough to be seen. Goals: something of
//! the profile seen within 2 s, the shapes of a frame of each view within 8 ms (95 of 100), 1.5 GiB of memory. Refuses: pixels: how
//! long those take is the renderer's.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memscope_core::Category;
use memscope_core::allocation::Model;
use memscope_gui::action::Action;
use memscope_gui::app::App;
use memscope_gui::egui::{
    self, Event, Modifiers, MouseWheelSource, MouseWheelUnit, Pos2, Rect, TouchPhase, Vec2, vec2,
};
use memscope_gui::view::View;
use memscope_gui::views::{self, allocations::Allocations};

#[path = "../../tui/tests/dashboard/trace.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod trace;

const SIZE: Vec2 = vec2(1280.0, 800.0);
/// Height of the pointer in the timeline, and in the view below it.
const TIMELINE: f32 = 220.0;
const BELOW: f32 = 640.0;
/// Frames of each view.
const FRAMES: usize = 400;
const GOAL: Duration = Duration::from_millis(8);
const SEEN: Duration = Duration::from_secs(2);
const MEMORY: u64 = 3 << 29;
/// Modules beside each other in the profile that the bench makes, and how deep each is.
const WIDE: u64 = 280;
const DEEP: u64 = 14;
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

/// The views below the timeline, and after them the table of steps.
fn below() -> Vec<Box<dyn View>> {
    let mut below = views::below();
    below.push(Box::new(Allocations::of_steps()));
    below
}

impl Window {
    fn opens(path: &Path) -> Window {
        let app = App::with_views(below);
        let mut window = Window { context: egui::Context::default(), app, begin: Instant::now() };
        window.app.open(path, &window.context);
        window
    }

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
    let mut window = Window::opens(&path);
    let first = window.frame(Vec::new()).shapes;
    println!("{:<34} {:>9.3} ms", "first frame, nothing known yet", ms(first));
    let seen = until(&mut window, |app| app.document().is_some_and(|shown| !shown.answer().series.buckets.is_empty()));
    goal("memory over time is seen", seen.as_secs_f64(), SEEN.as_secs_f64(), "s");
    let known = all_is_known(&mut window);
    println!("{:<34} {:>9.3} s", "all of it is known", known.as_secs_f64());
    let answer = window.app.document().map(|shown| shown.answer().session.allocations).unwrap_or_default();
    println!("{:<34} {answer:>9}", "allocations");

    let steps = below().len();
    for pane in 0..=steps {
        let name = match window.app.pane_name(pane as u8) {
            Some(_) if pane == steps => "Steps",
            Some(name) => name,
            None => continue,
        };
        measure(&mut window, (pane as u8, name), TIMELINE);
        if pane > 0 {
            measure(&mut window, (pane as u8, &format!("{name}, the wheel in it")), BELOW);
        }
    }
    goal("largest memory", resident() as f64 / f64::from(1 << 20), MEMORY as f64 / f64::from(1 << 20), "MiB");
    drop(window);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep.mscope");
    deep(&path);
    let mut window = Window::opens(&path);
    all_is_known(&mut window);
    let flame = 1 + below().iter().position(|view| view.title() == "Flame").expect("there is one");
    window.app.act(Action::Pane(flame as u8), &window.context.clone());
    let nodes = |app: &App| app.document()?.answer().flame.as_ref().map(|flame| flame.nodes.len());
    until(&mut window, |app| nodes(app).is_some_and(|nodes| nodes > 1000));
    println!("{:<34} {:>9}", "nodes of a deep flame", nodes(&window.app).unwrap_or_default());
    measure(&mut window, (flame as u8, "that flame"), TIMELINE);
    measure(&mut window, (flame as u8, "that flame, the wheel in it"), BELOW);
}

/// Until any question is answered exactly.
fn all_is_known(window: &mut Window) -> Duration {
    until(window, |app| {
        app.document().is_some_and(|shown| !shown.answer().session.reading && shown.answer().window.is_some())
    })
}

/// The frames of a view, with the wheel at this height.
fn measure(window: &mut Window, (pane, name): (u8, &str), y: f32) {
    window.app.act(Action::Pane(pane), &window.context.clone());
    let mut times = through(window, y);
    times.sort_unstable_by_key(|took| took.shapes);
    let [half, most] = [50, 95].map(|share| &times[times.len() * share / 100]);
    let verdict = if most.shapes <= GOAL { "met" } else { "MISSED" };
    println!(
        "{name:<34} shapes p50 {:>7.3} ms, p95 {:>7.3} ms, goal {:.0} ms: {verdict}; triangles there {:>7.3} ms",
        ms(half.shapes),
        ms(most.shapes),
        ms(GOAL),
        ms(most.triangles)
    );
}

/// Makes a profile of modules that lie deep in each other, and whose innermost has an allocation: all of them are equally wide.
fn deep(path: &Path) {
    const MIB: u64 = 1 << 20;
    let mut trace = trace::Trace::new(trace::Trace::session(&["./deep"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 << 30);
    trace.now = 1_000_000;
    for module in 0..WIDE {
        for layer in 0..DEEP {
            trace.push(&format!("module{module}.layer{layer}"));
        }
        trace.tagged(0x10_0000_0000 + module * MIB, MIB, Category::Activations, &format!("out.{module}"));
        (0..DEEP).for_each(|_| trace.pop());
        trace.now += 1_000_000;
    }
    trace.end(0);
    let mut model = Model::new();
    for entry in &trace.entries {
        model.apply(entry);
    }
    memscope_core::profile::write(&model, path, false).expect("a profile");
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
