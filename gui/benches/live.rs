//! How often a window that follows a running session shows something new.
//!
//! Owns: the pace of a real window. `MEMSCOPE_BENCH_SESSION=ID cargo bench -p memscope-gui --bench live` while that session runs,
//! under Xvfb with Mesa's software renderer; `benches/live` starts sessions and runs it. MEMSCOPE_BENCH_SECONDS sets how long it
//! looks (default 20). Goal: 10 frames with new data a second. Refuses: frames that only repeat: they do not count.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use memscope_core::explorer::Running;
use memscope_gui::app::App;
use memscope_gui::document::Stage;
use memscope_gui::egui::{self, ViewportBuilder, ViewportCommand};

const GOAL: f64 = 10.0;

struct Window {
    app: App,
    /// Latest time of the session that was drawn, nanoseconds.
    shown: u64,
    allocations: u64,
    /// When counting began: with the first frame that shows something.
    begin: Option<Instant>,
    lasts: Duration,
    /// Begins of the frames that had something new.
    frames: Vec<Instant>,
    /// All frames since the beginning.
    all: usize,
    /// All has been told.
    told: bool,
}

impl Window {
    /// True while there is something to follow.
    fn look(&mut self, frame: Instant) -> bool {
        let Some(document) = self.app.document() else { return true };
        if self.told {
            return false;
        }
        if let Stage::Failed(failure) = document.stage() {
            println!("SKIPPED the bench of a running session: {failure}");
            self.told = true;
            return false;
        }
        let session = &document.answer().session;
        let (time, first) = (session.last_time.0, self.begin.is_none());
        if first && time == 0 {
            return true;
        }
        let begin = *self.begin.get_or_insert(frame);
        if first {
            self.allocations = session.allocations;
        }
        if time > self.shown {
            self.shown = time;
            self.frames.push(frame);
        }
        self.all += 1;
        let lasts = frame - begin < self.lasts && session.state == Running::Live;
        if !lasts {
            self.tell(session.allocations - self.allocations, frame - begin, session.reading);
            self.told = true;
        }
        lasts
    }

    fn tell(&self, allocations: u64, lasted: Duration, behind: bool) {
        let lasted = lasted.as_secs_f64();
        let mut gaps: Vec<f64> = self.frames.windows(2).map(|two| (two[1] - two[0]).as_secs_f64() * 1e3).collect();
        if gaps.is_empty() {
            println!("nothing new was shown in {lasted:.1} s   MISSED");
            return;
        }
        gaps.sort_by(f64::total_cmp);
        let [half, most] = [50, 95].map(|share| gaps[gaps.len() * share / 100]);
        // Of the gaps' sum: neither the wait for the first one nor that after the last counts.
        let rate = gaps.len() as f64 / gaps.iter().sum::<f64>() * 1e3;
        let verdict = if rate >= GOAL { "met" } else { "MISSED" };
        let behind = if behind { ", not as many as the program makes: what is shown is not the present" } else { "" };
        println!(
            "{rate:.2} frames with new data a second, gaps p50 {half:.1} ms, p95 {most:.1} ms, longest {:.1} ms; in {lasted:.1} s {} \
             frames, {:.0} allocations a second taken in{behind}   goal at least {GOAL} a second: {verdict}",
            gaps[gaps.len() - 1],
            self.all,
            allocations as f64 / lasted,
        );
    }
}

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        let begin = Instant::now();
        self.app.frame(ui);
        if !self.look(begin) {
            ui.ctx().send_viewport_cmd(ViewportCommand::Close);
        }
    }
}

fn main() {
    let Some(session) = std::env::var_os("MEMSCOPE_BENCH_SESSION").map(PathBuf::from) else {
        println!("SKIPPED the bench of a running session: MEMSCOPE_BENCH_SESSION names none");
        return;
    };
    let seconds = std::env::var("MEMSCOPE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let viewport = ViewportBuilder::default().with_inner_size([1280.0, 820.0]);
    let options = eframe::NativeOptions { viewport, persist_window: false, ..Default::default() };
    let create = move |creation: &eframe::CreationContext<'_>| {
        let mut app = App::default();
        app.open(&session, &creation.egui_ctx);
        let (lasts, frames) = (Duration::from_secs(seconds), Vec::new());
        let window = Window { app, shown: 0, allocations: 0, begin: None, lasts, frames, all: 0, told: false };
        Ok(Box::new(window) as Box<dyn eframe::App>)
    };
    if let Err(error) = eframe::run_native("memscope-gui-bench", options, Box::new(create)) {
        println!("SKIPPED the bench of a running session: no window can be opened: {error}");
    }
}
