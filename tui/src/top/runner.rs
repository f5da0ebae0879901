//! `top` in a real terminal.
//!
//! Owns: the loop between events, views and frames. It waits for whichever comes first, so that at rest it does nothing between
//! two views, and a key is answered at once whatever the devices do. Refuses: state and drawing ([`TopApp`]), and signals to
//! processes: it has them sent.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event, MouseEventKind};
use crossterm::terminal;
use memscope_core::monitor::{self, Monitor};

use super::{Action, Request, TopApp, draw};
use crate::dashboard::Options;
use crate::palette::Palette;
use crate::terminal::{Terminal, wait};

/// How long the first answer may take before the screen shows that there is none yet.
const FIRST: Duration = Duration::from_secs(1);

/// Time after which waiting for keys begins anew.
const LONG: Duration = Duration::from_secs(3600);

/// What happens.
enum Happening {
    Event(Event),
    /// The terminal cannot be read any more.
    Gone(io::Error),
    View,
    Signal(i32),
}

/// How `top` ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The user left.
    Left,
    /// This signal asked memscope to end.
    Signal(i32),
    /// There is nothing to show: why, as a sentence.
    Unavailable(String),
}

/// Shows the machine until the user leaves. `send` sends a signal to a process, once it has made sure that it is the process
/// that was meant, and says what came of it.
///
/// # Errors
/// There is no terminal, or it cannot be read or written any more.
pub fn show(
    watched: monitor::Options,
    options: &Options,
    send: impl Fn(&Request) -> Result<String, String>,
) -> io::Result<Ended> {
    let (sender, happenings) = channel();
    let of_views = sender.clone();
    let notify: Option<Box<dyn Fn() + Send>> = Some(Box::new(move || drop(of_views.send(Happening::View))));
    let monitor = Monitor::start(monitor::Options { notify, ..watched });
    // Before the terminal is taken: where there is no NVML, that is said in plain text.
    if monitor.wait_after(0, FIRST).is_none()
        && let Some(reason) = monitor.unavailable()
    {
        return Ok(Ended::Unavailable(reason));
    }
    let terminal = Terminal::enter(options.mouse)?;
    let palette = Palette::new(options.scheme, options.depth);
    let app = TopApp::new(palette, options.glyphs, terminal.area()?);
    listen(&sender)?;
    Loop { monitor, terminal, app, send }.run(&happenings)
}

/// Threads that wait for keys and for signals. They end with memscope.
fn listen(sender: &Sender<Happening>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH])?;
    let of_signals = sender.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let happening = match signal {
                // The thread that waits for keys is not woken by it.
                SIGWINCH => match terminal::size() {
                    Ok((width, height)) => Happening::Event(Event::Resize(width, height)),
                    Err(_) => continue,
                },
                signal => Happening::Signal(signal),
            };
            if of_signals.send(happening).is_err() {
                return;
            }
        }
    })?;
    let of_keys = sender.clone();
    let next = || if wait(LONG)? { event::read().map(Some) } else { Ok(None) };
    thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let happening = match next() {
                Ok(Some(event)) => Happening::Event(event),
                Ok(None) => continue,
                Err(error) => Happening::Gone(error),
            };
            let gone = matches!(happening, Happening::Gone(_));
            if of_keys.send(happening).is_err() || gone {
                return;
            }
        }
    })?;
    Ok(())
}

struct Loop<S> {
    monitor: Monitor,
    terminal: Terminal,
    app: TopApp,
    send: S,
}

impl<S: Fn(&Request) -> Result<String, String>> Loop<S> {
    fn run(mut self, happenings: &Receiver<Happening>) -> io::Result<Ended> {
        self.look();
        let mut changed = true;
        loop {
            if changed {
                self.terminal.draw(|frame| draw(&self.app, frame))?;
            }
            changed = false;
            // The monitor holds a sender, so that there is always one.
            let Ok(first) = happenings.recv() else { return Ok(Ended::Left) };
            // All that has happened by now, before the next frame.
            for happening in std::iter::once(first).chain(happenings.try_iter()) {
                match happening {
                    Happening::Event(event) => {
                        if let Some(ended) = self.event(&event, &mut changed)? {
                            return Ok(ended);
                        }
                    }
                    Happening::Gone(error) => return Err(error),
                    Happening::Signal(signal) => return Ok(Ended::Signal(signal)),
                    Happening::View => {
                        let (new, ended) = self.look();
                        changed |= new;
                        if let Some(ended) = ended {
                            return Ok(ended);
                        }
                    }
                }
            }
        }
    }

    /// Takes in the latest view: whether it is another one, and whether there will be none.
    fn look(&mut self) -> (bool, Option<Ended>) {
        let changed = self.app.receive(self.monitor.view());
        (changed, self.monitor.unavailable().map(Ended::Unavailable))
    }

    fn event(&mut self, event: &Event, changed: &mut bool) -> io::Result<Option<Ended>> {
        // Terminals tell every movement of the mouse.
        if matches!(event, Event::Mouse(mouse) if mouse.kind == MouseEventKind::Moved) {
            return Ok(None);
        }
        *changed = true;
        match self.app.handle(event) {
            None => {}
            Some(Action::Leave) => return Ok(Some(Ended::Left)),
            Some(Action::Suspend) => self.terminal.suspend()?,
            Some(Action::Signal(request)) => self.app.told((self.send)(&request)),
        }
        Ok(None)
    }
}
