//! The question which signal a process is to get.
//!
//! Owns: which process it is about, from the moment it is asked, and the chosen signal. Refuses: to send it.

use memscope_core::monitor::MonitorProcess;
use ratatui::layout::Rect;

use super::TopApp;
use crate::canvas::Canvas;

/// A signal that may be sent, gentlest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGKILL.
    Kill,
}

impl Signal {
    /// All, in the order of the list.
    pub const ALL: [Signal; 3] = [Signal::Terminate, Signal::Interrupt, Signal::Kill];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Terminate => "SIGTERM",
            Signal::Interrupt => "SIGINT",
            Signal::Kill => "SIGKILL",
        }
    }

    /// What it means to the process.
    const fn meaning(self) -> &'static str {
        match self {
            Signal::Terminate => "asks it to end",
            Signal::Interrupt => "as Ctrl-C does",
            Signal::Kill => "ends it at once; it saves nothing",
        }
    }
}

/// A signal for one process: the pid alone may by now be another one's, so its start time is checked before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Process id.
    pub pid: u32,
    /// Start of the process, in clock ticks since boot.
    pub start_time: u64,
    /// What it gets.
    pub signal: Signal,
}

/// The open question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Question {
    pub pid: u32,
    pub start_time: u64,
    user: String,
    command: String,
    /// Position of the chosen signal.
    pub chosen: usize,
}

impl Question {
    /// About this process. Errors: why it cannot get a signal, as a sentence.
    pub fn about(process: &MonitorProcess) -> Result<Question, String> {
        let pid = process.pid;
        let start_time = process.start_time.ok_or_else(|| {
            format!("process {pid} cannot be seen from here: it has ended, or belongs to another container")
        })?;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Ok(Question { pid, start_time, user: text(&process.user), command: text(&process.command), chosen: 0 })
    }

    /// Chooses a signal before or behind the chosen one.
    pub fn step(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(Signal::ALL.len() - 1);
    }

    /// The answer.
    pub fn request(&self, signal: Signal) -> Request {
        Request { pid: self.pid, start_time: self.start_time, signal }
    }
}

/// Lines of the box.
const HEIGHT: u16 = 8;
/// Columns of the box.
const WIDTH: u16 = 64;

/// Where the question stands.
pub(super) fn area(app: &TopApp) -> Rect {
    let (width, height) = (WIDTH.min(app.area.width), HEIGHT.min(app.area.height));
    Rect::new(app.area.x + (app.area.width - width) / 2, app.area.y + (app.area.height - height) / 2, width, height)
}

/// The signal on a line of the screen, for the mouse.
pub(super) fn signal_at(app: &TopApp, y: u16) -> Option<usize> {
    let first = area(app).y + 3;
    (first..first + Signal::ALL.len() as u16).contains(&y).then(|| usize::from(y - first))
}

pub(super) fn draw(app: &TopApp, question: &Question, canvas: &mut Canvas<'_>) {
    let area = area(app);
    canvas.clear(area);
    canvas.heading(area, &format!("signal for process {}", question.pid), &question.user);
    let (x, width) = (area.x + 2, area.width.saturating_sub(4));
    canvas.fitted(x, area.y + 1, width, &question.command, canvas.palette.strong());
    for (index, signal) in Signal::ALL.iter().enumerate() {
        let y = area.y + 3 + index as u16;
        let mark = if index == question.chosen { canvas.glyphs.mark } else { " " };
        let text = format!("{mark} {:<8} {}", signal.name(), signal.meaning());
        canvas.text(x, y, width, &text, canvas.palette.strong());
        if index == question.chosen {
            canvas.dress(Rect::new(x, y, width, 1), canvas.palette.selected());
        }
    }
    let bottom = Rect::new(area.x, area.bottom().saturating_sub(1), area.width, 1);
    canvas.heading(bottom, "Enter sends it, Esc sends nothing", "");
}
