//! The dashboard in a real terminal: entering and leaving it, and the loop between events, answers and frames.
//!
//! Owns: raw mode, the alternate screen, the mouse, and that the terminal is as it was on every way out, a panic included;
//! when a frame is drawn: at once after a key, at most ten times a second otherwise, never when nothing has changed. Refuses:
//! state (`app`), drawing (`screens`), and the program: it is asked through [`Program`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossterm::event;
use memscope_core::explorer::{Answer, Follower, Query};
use ratatui::layout::Rect;

use crate::app::{Action, App, Left};
use crate::glyphs::Glyphs;
use crate::output::Output;
use crate::palette::{Depth, Palette, Scheme};
use crate::program::Program;
use crate::screens;
use crate::terminal::{Terminal, wait};

/// Least time between frames that nobody pressed a key for.
const FRAME: Duration = Duration::from_millis(100);
/// How long one looks for events before one looks whether there is a new answer.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same while an answer to a key is awaited.
const IMPATIENCE: Duration = Duration::from_millis(4);
/// After that an answer is not awaited any more; it is still taken when it comes.
const OVERDUE: Duration = Duration::from_secs(2);

/// How the dashboard looks, and what it shows beside the session.
pub struct Options {
    /// Colours by meaning.
    pub scheme: Scheme,
    /// Colours that the terminal has.
    pub depth: Depth,
    /// Characters.
    pub glyphs: &'static Glyphs,
    /// Whether clicks and the wheel are the dashboard's. Otherwise the terminal selects text with them.
    pub mouse: bool,
    /// What the program writes, where that is known.
    pub output: Option<Output>,
}

impl Default for Options {
    /// What the environment says.
    fn default() -> Options {
        let variable = |name: &str| std::env::var(name).ok();
        Options {
            scheme: Scheme::Default,
            depth: Depth::detect(variable),
            glyphs: Glyphs::choose(false, variable),
            mouse: true,
            output: None,
        }
    }
}

/// Who answers the dashboard's questions.
pub trait Answers {
    /// Asks; a later question takes the place of an earlier one.
    fn ask(&self, query: Query);
    /// The latest answer.
    fn answer(&self) -> Arc<Answer>;
    /// Changes when there is a new answer.
    fn version(&self) -> u64;
}

impl Answers for Follower {
    fn ask(&self, query: Query) {
        Follower::ask(self, query);
    }

    fn answer(&self) -> Arc<Answer> {
        Follower::answer(self)
    }

    fn version(&self) -> u64 {
        Follower::version(self)
    }
}

/// Shows the dashboard until it is left. Draws on the terminal even where standard output is none.
///
/// # Errors
/// There is no terminal, or it cannot be read or written any more.
pub fn show(answers: &impl Answers, program: Option<Box<dyn Program>>, options: Options) -> io::Result<Left> {
    let terminal = Terminal::enter(options.mouse)?;
    let palette = Palette::new(options.scheme, options.depth);
    let app = App::new(palette, options.glyphs, terminal.area()?, options.output, program.is_some());
    let signals = if program.is_none() { Signals::catch()? } else { Signals::default() };
    Loop { answers, program, terminal, app, signals, asked: None, awaited: None, seen: 0, output_seen: 0 }.run()
}

/// Rows and columns that the program's terminal will have behind a dashboard on a terminal of this size: for a program that is
/// started before the dashboard is shown.
pub fn program_size(rows: u16, columns: u16) -> (u16, u16) {
    let Rect { width, height, .. } = screens::output_body_of(Rect::new(0, 0, columns, rows));
    (height.max(1), width.max(1))
}

/// Signals that ask to end. Where there is a program its owner passes them on, and says when to leave.
#[derive(Default)]
struct Signals {
    caught: Arc<AtomicUsize>,
    registered: Vec<signal_hook::SigId>,
}

impl Signals {
    fn catch() -> io::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let mut signals = Signals::default();
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let id = signal_hook::flag::register_usize(signal, Arc::clone(&signals.caught), signal as usize)?;
            signals.registered.push(id);
        }
        Ok(signals)
    }

    fn caught(&self) -> Option<i32> {
        match self.caught.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

struct Loop<'a, A: Answers> {
    answers: &'a A,
    program: Option<Box<dyn Program>>,
    terminal: Terminal,
    app: App,
    signals: Signals,
    asked: Option<Query>,
    /// Since when an answer to a key is awaited.
    awaited: Option<Instant>,
    seen: u64,
    output_seen: u64,
}

impl<A: Answers> Loop<'_, A> {
    fn run(mut self) -> io::Result<Left> {
        self.tell_size();
        // What has to be drawn, and whether that may wait.
        let (mut changed, mut urgent) = (true, true);
        let mut drawn: Option<Instant> = None;
        loop {
            changed |= self.look_at_size()?;
            self.ask();
            if let Some(left) = self.look(&mut changed, &mut urgent) {
                return Ok(left);
            }
            let since = drawn.map_or(FRAME, |drawn| drawn.elapsed());
            if changed && (urgent || since >= FRAME) {
                self.terminal.draw(|frame| screens::draw(&self.app, frame))?;
                drawn = Some(Instant::now());
                (changed, urgent) = (false, false);
            }
            let mut patience = if self.awaited.is_some() { IMPATIENCE } else { PATIENCE };
            if changed {
                patience = patience.min(FRAME.saturating_sub(since));
            }
            if wait(patience)? {
                // All that has been pressed by now, before the next frame.
                loop {
                    let event = event::read()?;
                    let action = self.app.handle(&event);
                    if let Some(left) = action.map_or(Ok(None), |action| self.act(action))? {
                        return Ok(left);
                    }
                    if matches!(event, event::Event::Resize(..)) {
                        self.tell_size();
                    }
                    if !wait(Duration::ZERO)? {
                        break;
                    }
                }
                (changed, urgent) = (true, true);
            }
        }
    }

    /// Takes in another size. crossterm tells of it too, but not when a key comes at the same moment.
    fn look_at_size(&mut self) -> io::Result<bool> {
        let Rect { width, height, .. } = self.terminal.area()?;
        let differs = (width, height) != (self.app.area.width, self.app.area.height);
        if differs {
            self.app.handle(&event::Event::Resize(width, height));
            self.tell_size();
        }
        Ok(differs)
    }

    /// Asks what is to be known now, if that is something else than before.
    fn ask(&mut self) {
        let query = self.app.query();
        if self.asked.as_ref() != Some(&query) {
            self.answers.ask(query.clone());
            self.asked = Some(query);
            self.awaited = Some(Instant::now());
        }
    }

    /// Looks whether there is anything new.
    fn look(&mut self, changed: &mut bool, urgent: &mut bool) -> Option<Left> {
        if let Some(signal) = self.signals.caught() {
            return Some(Left::Signal(signal));
        }
        let version = self.answers.version();
        if version != self.seen {
            self.seen = version;
            self.app.receive(self.answers.answer());
            *changed = true;
            // An answer that was on its way when the key was pressed is not the one that is awaited.
            if self.awaited.is_some() && self.app.is_answered() {
                self.awaited = None;
                *urgent = true;
            }
        }
        if self.awaited.is_some_and(|since| since.elapsed() > OVERDUE) {
            self.awaited = None;
        }
        if let Some(version) = self.app.output_version()
            && version != self.output_seen
        {
            self.output_seen = version;
            // Only where it is seen.
            *changed |= self.app.screen() == crate::app::Screen::Output;
        }
        let program = self.program.as_ref()?;
        if program.must_leave() {
            return Some(Left::Told);
        }
        *changed |= self.app.program_stopped(program.is_stopped());
        let (ended, action) = self.app.program_status(program.status());
        *changed |= ended;
        match action {
            Some(Action::Leave(left)) => Some(left),
            _ => None,
        }
    }

    fn act(&mut self, action: Action) -> io::Result<Option<Left>> {
        match (action, &mut self.program) {
            (Action::Leave(left), _) => return Ok(Some(left)),
            (Action::Suspend, _) => self.terminal.suspend()?,
            (Action::TypeIn(bytes), Some(program)) => program.type_in(&bytes),
            (Action::End(how), Some(program)) => program.end(how),
            (Action::TypeIn(_) | Action::End(_), None) => {}
        }
        Ok(None)
    }

    /// The program's terminal, and its screen, are as large as the place where its output is drawn.
    fn tell_size(&mut self) {
        let Rect { width, height, .. } = self.app.output_area();
        let (rows, columns) = (height.max(1), width.max(1));
        // Lines of a transcript are broken where they are shown.
        self.app.resize_output(rows, columns);
        if let Some(program) = &mut self.program {
            program.resize(rows, columns);
        }
    }
}
