//! How long it takes from the program's start to the first picture of a file, in a real window.
//!
//! Owns: the moments of opening as a person sees them. `MEMSCOPE_BENCH_PROFILE=x.mscope cargo bench -p memscope-gui --bench opening`
//! under Xvfb with Mesa's software renderer; `benches/viewer` runs it beside PyTorch's own viewer. Each moment is a line, written
//! when its frame is on the screen. Refuses: what comes after: `frame` and `window` have it.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use memscope_gui::app::App;
use memscope_gui::egui::{self, ViewportBuilder};

/// What a frame shows of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shows {
    Nothing,
    /// Memory over time, the peak or what did not fit, what held memory then.
    Picture,
    /// All lists and any moment, exactly.
    Everything,
}

struct Window {
    app: App,
    begin: Instant,
    drawn: Shows,
    told: Shows,
}

impl Window {
    fn shows(&self) -> Shows {
        let Some(document) = self.app.document() else { return Shows::Nothing };
        let answer = document.answer();
        match (answer.series.buckets.is_empty(), answer.session.reading || answer.window.is_none()) {
            (true, _) => Shows::Nothing,
            (false, true) => Shows::Picture,
            (false, false) => Shows::Everything,
        }
    }

    fn tell(&mut self) {
        let seconds = self.begin.elapsed().as_secs_f64();
        let names = [(Shows::Picture, "picture"), (Shows::Everything, "everything")];
        for (_, name) in names.into_iter().filter(|(shows, _)| *shows > self.told && *shows <= self.drawn) {
            println!("{name} {seconds:.3} s");
        }
        if self.drawn == Shows::Everything {
            println!("memory {} bytes", resident());
        }
        self.told = self.drawn;
        // Whoever measures from outside waits for the line.
        drop(std::io::stdout().flush());
    }
}

impl eframe::App for Window {
    fn ui(&mut self, ui: &mut egui::Ui, _frame: &mut eframe::Frame) {
        // The frame before this one is on the screen.
        if self.drawn > self.told {
            self.tell();
        }
        if self.told == Shows::Everything {
            ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
        }
        self.app.frame(ui);
        let shows = self.shows();
        if shows > self.drawn {
            self.drawn = shows;
            ui.ctx().request_repaint();
        }
    }
}

/// Largest resident memory of this process so far, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() * 1024
}

fn main() {
    let begin = Instant::now();
    let Some(path) = std::env::var_os("MEMSCOPE_BENCH_PROFILE").map(PathBuf::from) else {
        println!("SKIPPED the bench of opening: MEMSCOPE_BENCH_PROFILE names no profile");
        return;
    };
    let viewport = ViewportBuilder::default().with_inner_size([1280.0, 820.0]);
    let options = eframe::NativeOptions { viewport, persist_window: false, ..Default::default() };
    let create = move |creation: &eframe::CreationContext<'_>| {
        let mut app = App::default();
        app.open(&path, &creation.egui_ctx);
        Ok(Box::new(Window { app, begin, drawn: Shows::Nothing, told: Shows::Nothing }) as Box<dyn eframe::App>)
    };
    if let Err(error) = eframe::run_native("memscope-gui-bench", options, Box::new(create)) {
        println!("SKIPPED the bench of opening: no window can be opened: {error}");
    }
}
