//! Every key of the dashboard's table, pressed in a real terminal while the sample trains: it does what the help says.
//!
//! The table itself is walked, so a key that is added there and not expected here fails this test.

use std::os::unix::process::ExitStatusExt;
use std::thread::sleep;
use std::time::Duration;

use memscope_tui::app::Screen as View;
use memscope_tui::keys::{BINDINGS, Binding, Command, Key, Place as Where};
use memscope_tui::output::Output;

use crate::memscope::Place;
use crate::screen::{ALL, Screen};

const ROWS: u16 = 40;
const COLUMNS: u16 = 120;
/// What a terminal needs to tell an Esc from the begin of another key.
const AFTER_ESC: Duration = Duration::from_millis(300);

/// The dashboard of a sample that trains for longer than any test, in the state in which the others begin.
struct Dashboard {
    screen: Screen,
    _place: Place,
}

impl Dashboard {
    fn start() -> Dashboard {
        let place = Place::new();
        let mut command = place.memscope();
        command.args("run --tui -q -f -o x --device 2GiB --devices 2 --".split(' '));
        command.arg(env!("CARGO_BIN_EXE_memscope")).args("sample gpt --steps 1000000".split(' '));
        command.env("LC_ALL", "C.UTF-8").env("COLORTERM", "truecolor").env_remove("NO_COLOR");
        let screen = Screen::start(command, ROWS, COLUMNS, ALL);
        let dashboard = Dashboard { screen, _place: place };
        // Some steps must be there to be moved between.
        dashboard.screen.wait_until("a dozen steps", |screen| moment(&screen.text()).is_some_and(|at| at.step > 12));
        dashboard
    }

    /// Sends keys; after an Esc that does not begin the bytes of another key there is a pause.
    fn press(&self, keys: &str) {
        let mut rest = keys;
        while let Some(position) = rest.find('\x1b') {
            let (before, after) = rest.split_at(position);
            let alone = !after[1..].starts_with(['[', 'O']);
            let end = position + if alone { 1 } else { 2 };
            self.screen.keys(if alone { &rest[..end] } else { before });
            if alone {
                sleep(AFTER_ESC);
                rest = &rest[end..];
                continue;
            }
            let length =
                after[2..].find(|c: char| c.is_ascii_alphabetic() || c == '~').map_or(after.len(), |at| at + 3);
            self.screen.keys(&after[..length]);
            rest = &after[length..];
        }
        self.screen.keys(rest);
    }

    /// Back to the overview of everything, live and whole, with nothing typed, filtered, grouped or searched.
    fn rest(&self) {
        self.until("neither dialog nor entry nor typing", "\x1b", |text| {
            let marks = ["TYPING", "─ Keys ─", "─ Leave? ─"].iter().filter(|mark| text.contains(**mark));
            let footer = text.lines().last().unwrap_or_default();
            let other = (!footer.contains("q leave")).then_some(footer);
            marks.copied().chain(other).next().map(str::to_owned)
        });
        self.go("a", "─ Live allocations");
        self.until("no filter", "\x1b", |text| says(text, "─ Live allocations / "));
        self.until("no groups", "b", |text| says(text, "allocations by "));
        self.go("s", "─ Scopes");
        self.screen.wait_until("the scopes", |screen| !screen.text().contains("─ 0 scopes ─"));
        self.until("no search", "\x1b", |text| says(text, "─ Scopes / "));
        self.until("no icicle", "v", |text| (!text.contains("by category")).then(String::new));
        self.go("u", "loss ");
        self.until("no search", "\x1b", |text| hit(text).map(|_| String::new()));
        self.go("o", "─ Categories");
        self.press("0l----");
        self.until("not paused", " ", |text| says(text, "PAUSED"));
        self.screen.wait("LIVE");
    }

    /// Shows a screen.
    fn go(&self, key: &str, title: &str) {
        self.until(title, key, |text| (!text.contains(title)).then(String::new));
    }

    /// Presses a key until `unlike` has nothing more to say; it says what is not as wanted. The key is pressed again when that
    /// changes, or does not change for long: the machine may be busy.
    fn until(&self, what: &str, key: &str, unlike: impl Fn(&str) -> Option<String>) {
        for _ in 0..12 {
            let Some(before) = unlike(&self.text()) else { return };
            self.press(key);
            for _ in 0..250 {
                if unlike(&self.text()).as_ref() != Some(&before) {
                    break;
                }
                sleep(Duration::from_millis(20));
            }
        }
        panic!("{what}: the screen is\n{}", self.text());
    }

    fn text(&self) -> String {
        self.screen.text()
    }

    /// The screen once it stands still: what was asked for has been answered.
    fn still(&self) -> String {
        let (mut before, mut alike) = (self.text(), 0);
        for _ in 0..200 {
            sleep(Duration::from_millis(150));
            let now = self.text();
            // An answer to a key may come between two looks: three alike in a row are still.
            alike = if now == before { alike + 1 } else { 0 };
            if alike == 2 {
                break;
            }
            before = now;
        }
        before
    }
}

/// What the header says of the moment.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    kind: String,
    seconds: f64,
    step: u64,
}

fn moment(text: &str) -> Option<Moment> {
    let header = text.lines().next()?;
    let (kind, rest) = ["STEP'S LIVE PEAK", "PEAK OF LIVE", "LIVE", "AT"]
        .iter()
        .find_map(|kind| header.rsplit_once(&format!(" {kind} ")).map(|(_, rest)| (*kind, rest)))?;
    let seconds = rest.split(' ').next()?.parse().ok()?;
    let step = rest.split("step ").nth(1)?.split([',', ' ']).next()?.parse().ok()?;
    Some(Moment { kind: kind.to_owned(), seconds, step })
}

/// What is said of the selected row: the two lines above the footer.
fn selected(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(4)..lines.len() - 1].join("\n")
}

/// The target, at the right end of the line of tabs.
fn target(text: &str) -> String {
    text.lines().nth(1).and_then(|line| line.rsplit_once("  ")).map_or(String::new(), |(_, target)| target.to_owned())
}

/// The word that follows a mark, where the mark is.
fn says(text: &str, mark: &str) -> Option<String> {
    text.split(mark).nth(1).map(|rest| rest.split(' ').next().unwrap_or_default().to_owned())
}

/// How often something is on the screen.
fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

/// What a key is pressed in, and what must be there afterwards.
struct Expectation {
    /// Keys that lead there, from the state of rest.
    before: &'static str,
    /// Whether the view is paused first, so that nothing changes by itself.
    paused: bool,
    /// Whether the terminal is small, so that a text must be scrolled.
    small: bool,
    /// What those keys lead to: waited for, the machine may be busy.
    ready: fn(&str) -> bool,
    /// Given what was shown before and what is shown then.
    holds: fn(&str, &str) -> bool,
}

impl Expectation {
    fn once(self, ready: fn(&str) -> bool) -> Self {
        Self { ready, ..self }
    }
}

fn expect(before: &'static str, holds: fn(&str, &str) -> bool) -> Expectation {
    Expectation { before, paused: true, small: false, ready: |_| true, holds }
}

fn running(before: &'static str, holds: fn(&str, &str) -> bool) -> Expectation {
    Expectation { before, paused: false, small: false, ready: |_| true, holds }
}

/// Keys that lead to a place.
fn way(place: Where) -> &'static str {
    match place {
        Where::Everywhere => "",
        Where::Lists | Where::Allocations => "a",
        Where::Scopes => "s",
        Where::Steps => "t",
        Where::Output => "u",
        Where::Reading => "?",
        Where::Leaving => "q",
        Where::Entry => "a/",
        Where::Typing => "ui",
    }
}

fn at(text: &str) -> Moment {
    moment(text).unwrap_or(Moment { kind: String::new(), seconds: -1.0, step: 0 })
}

/// What each command does where it is bound; `key` for those whose keys differ.
fn expectation(command: Command, place: Where, key: &Key) -> Expectation {
    let device = key.name(true).parse::<u32>().unwrap_or(0);
    match (command, place) {
        (Command::Show(View::Overview), _) => running("s", |_, now| now.contains("─ Categories")),
        (Command::Show(View::Allocations), _) => running("", |_, now| now.contains("─ Live allocations")),
        (Command::Show(View::Scopes), _) => running("", |_, now| now.contains("─ Scopes")),
        (Command::Show(View::Segments), _) => running("", |_, now| now.contains("─ Segments")),
        (Command::Show(View::Steps), _) => running("", |_, now| now.contains("─ Steps")),
        (Command::Show(View::Output), _) => running("", |_, now| count(now, "loss ") > 8),
        (Command::NextTarget | Command::PreviousTarget, _) => running("", |_, now| target(now) == "GPU 0"),
        (Command::Total, _) => running("1", |_, now| target(now) == "total").once(|text| target(text) == "GPU 0"),
        (Command::Device, _) if device == 1 => running("", |_, now| target(now) == "GPU 0"),
        (Command::Device, _) => running("", |_, now| target(now) == "total" || target(now) == "GPU 1"),
        (Command::Earlier, _) => expect("", |before, now| {
            let (from, to) = (at(before), at(now));
            to.seconds <= from.seconds && to.seconds > from.seconds * 0.96 && before != now
        }),
        (Command::Later, _) => expect("[\x1b[1;2D", |before, now| {
            let (from, to) = (at(before), at(now));
            to.seconds >= from.seconds && to.seconds < from.seconds * 1.05 && before != now
        }),
        (Command::MuchEarlier, _) => expect("", |before, now| {
            let (before, now) = (at(before), at(now));
            now.seconds < before.seconds * 0.95 && now.seconds > before.seconds * 0.8
        }),
        (Command::MuchLater, _) => expect("[\x1b[1;2D\x1b[1;2D", |before, now| {
            let (before, now) = (at(before), at(now));
            now.seconds > before.seconds * 1.05
        }),
        (Command::PreviousStep, _) => expect("[", |before, now| {
            let (before, now) = (at(before), at(now));
            now.kind == "STEP'S LIVE PEAK" && now.step + 1 == before.step
        }),
        (Command::NextStep, _) => expect("[[[", |before, now| {
            let (before, now) = (at(before), at(now));
            now.kind == "STEP'S LIVE PEAK" && now.step == before.step + 1
        }),
        (Command::Peak, _) => running("", |_, now| at(now).kind == "PEAK OF LIVE"),
        (Command::Refusal, _) => running("", |_, now| now.contains("The driver has refused no allocation so far")),
        // Of a session of which all is kept; the others: `kept` in the dashboard's own tests.
        (Command::Whole, _) => running("", |_, now| now.contains("The lists of this moment are whole")),
        (Command::Live, _) => {
            running("p", |_, now| at(now).kind == "LIVE").once(|text| at(text).kind == "PEAK OF LIVE")
        }
        (Command::Pause, _) => running("", |_, now| now.contains("PAUSED")).once(|text| !text.contains("PAUSED")),
        (Command::ZoomIn, _) => expect("", |_, now| !now.contains(" 0.000 s ")).once(|text| text.contains(" 0.000 s ")),
        (Command::ZoomOut, _) => {
            expect("+", |_, now| now.contains(" 0.000 s ")).once(|text| !text.contains(" 0.000 s "))
        }
        (Command::Findings, _) => running("", |_, now| now.contains("To do: do not use checkpoints")),
        (Command::Palette, _) => running("", |_, _| true), // its colours are looked at by `palettes_follow_one_another`
        (Command::Help, _) => running("", |_, now| now.contains("─ Keys ─") && now.contains("live allocations")),
        (Command::Leave, _) => running("", |_, now| now.contains("─ Leave? ─")),
        // Under `run` there is a program, and nothing is suspended.
        (Command::Suspend, _) => running("", |_, now| now.contains("running")),
        (Command::Type, _) => running("", |_, now| now.contains("TYPING")),

        (Command::Up, Where::Lists) => expect("a\x1b[Hjj", |before, now| selected(before) != selected(now)),
        (Command::Down | Command::PageDown | Command::End, Where::Lists) => {
            expect("a\x1b[H", |before, now| selected(before) != selected(now))
        }
        (Command::PageUp | Command::Home, Where::Lists) => {
            expect("a\x1b[F", |before, now| selected(before) != selected(now))
        }
        (Command::SortRight, _) => expect("a", |before, now| sorted(before).0 < sorted(now).0),
        (Command::SortLeft, _) => expect("a>", |before, now| sorted(before).0 > sorted(now).0),
        (Command::Reverse, _) => expect("a", |before, now| {
            let (before, now) = (sorted(before), sorted(now));
            before.0 == now.0 && before.1 != now.1
        }),
        (Command::Group, _) => expect("a", |_, now| now.contains("─ Live allocations by name")),
        (Command::Open, Where::Allocations) => {
            expect("abb", |_, now| !now.contains("by scope") && now.contains("Live allocations"))
                .once(|text| text.contains("allocations by scope"))
        }
        (Command::Clear, Where::Allocations) => {
            expect("a/adam\r", |_, now| !now.contains("/ adam")).once(|text| text.contains("/ adam"))
        }
        (Command::Search, _) => running("", |_, now| now.lines().last().is_some_and(|line| line.trim_end() == " /")),
        (Command::NextHit | Command::PreviousHit, Where::Scopes) => expect("s/ln_1\r", |before, now| {
            let (before, now) = (selected(before), selected(now));
            now.contains("/ln_1 ") && before != now
        }),
        (Command::Open, Where::Scopes) => expect("s", |before, now| count(before, "▾") > count(now, "▾")),
        (Command::OpenAll, _) => expect("s", |before, now| count(now, "▾") > count(before, "▾")),
        (Command::Icicle, _) => {
            expect("s", |_, now| !now.contains("by category")).once(|text| text.contains("by category"))
        }
        (Command::Clear, Where::Scopes) => {
            expect("s/ln_1\r", |_, now| !now.contains("hits)")).once(|text| text.contains("hits)"))
        }
        (Command::GoToStep, _) => expect("t\x1b[H", |_, now| at(now).kind == "STEP'S LIVE PEAK" && at(now).step == 1),
        (Command::NextHit | Command::PreviousHit, Where::Output) => {
            running("u/loss\r", |before, now| hit(now).is_some() && hit(before) != hit(now))
                .once(|text| hit(text).is_some())
        }
        (Command::Clear, Where::Output) => {
            running("u/step 1/\r", |_, now| hit(now).is_none()).once(|text| hit(text).is_some())
        }

        (Command::Down | Command::PageDown | Command::End, _) => {
            Expectation { small: true, ..expect("?", |before, now| shown(now) > shown(before)) }
        }
        (Command::Up | Command::PageUp | Command::Home, _) => {
            Expectation { small: true, ..expect("?\x1b[6~\x1b[6~", |before, now| shown(now) < shown(before)) }
        }
        (Command::Close, _) => running("?", |_, now| !now.contains("─ Keys ─")).once(|text| text.contains("─ Keys ─")),
        (Command::Back, _) => running("q", |_, now| !now.contains("Leave?")).once(|text| text.contains("Leave?")),

        (Command::Keep, _) => expect("a/adam", |_, now| {
            now.contains("Live allocations / adam") && now.lines().last().is_some_and(|line| line.contains("filter"))
        }),
        (Command::Discard, _) => expect("a/adam", |_, now| {
            !now.contains("adam") && now.lines().last().is_some_and(|line| line.contains("filter"))
        })
        .once(|text| text.contains("/ adam")),
        (Command::Erase, _) => expect("a/adam", |_, now| now.contains("Live allocations / ada ")),
        (Command::EraseWord, _) => {
            expect("a/adam", |_, now| !now.contains("adam")).once(|text| text.contains("/ adam"))
        }
        (Command::StopTyping, _) => {
            running("ui", |_, now| !now.contains("TYPING")).once(|text| text.contains("TYPING"))
        }

        (Command::GoOn | Command::EndProgram, _) => unreachable!("they end the dashboard: `ways_out`"),
        (command, place) => panic!("no expectation for {command:?} {place:?}: say here what it is to do"),
    }
}

/// Where the mark of the sorted column is, and which it is.
fn sorted(text: &str) -> (usize, char) {
    let titles = text.lines().find(|line| line.contains("category") && line.contains(['▲', '▼'])).unwrap_or_default();
    titles.chars().enumerate().find(|(_, c)| ['▲', '▼'].contains(c)).unwrap_or((0, ' '))
}

/// The number of the current hit.
fn hit(text: &str) -> Option<u64> {
    text.split("hit ").nth(1)?.split(' ').next()?.parse().ok()
}

/// The first line that a dialog shows.
fn shown(text: &str) -> u64 {
    let title = text.lines().find(|line| line.contains("─ Keys ─")).unwrap_or_default();
    title.split(" to ").next().and_then(|before| before.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// The bytes that a terminal sends for a key.
fn bytes(key: &Key) -> String {
    String::from_utf8(Output::new(24, 80).encode(&key.event())).expect("keys are ASCII")
}

/// Presses one key of one row of the table, and waits until it has done what is expected of it.
#[track_caller]
fn check(dashboard: &Dashboard, binding: &Binding, key: &Key) {
    let expectation = expectation(binding.command, binding.place, key);
    dashboard.rest();
    if expectation.small {
        dashboard.screen.resize(24, 100);
    }
    if expectation.paused {
        dashboard.until("paused", " ", |text| (!text.contains("PAUSED")).then(String::new));
    }
    // A command of every place is tried where the expectation leads; any other one in its own place.
    let before = if expectation.before.is_empty() { way(binding.place) } else { expectation.before };
    // The screen first, then what is done in it, once its list is there.
    let screen = before.len().min(1);
    dashboard.press(&before[..screen]);
    after_a_moment(dashboard);
    dashboard.press(&before[screen..]);
    let name = format!("{} ({:?}): {}", key.name(true), binding.place, binding.help);
    dashboard.screen.wait_until(&format!("what {name} is pressed in"), |screen| (expectation.ready)(&screen.text()));
    let before = if expectation.paused { dashboard.still() } else { after_a_moment(dashboard) };
    dashboard.press(&bytes(key));
    dashboard
        .screen
        .wait_until(&format!("{name}\nbefore:\n{before}\n"), |screen| (expectation.holds)(&before, &screen.text()));
    if expectation.small {
        dashboard.screen.resize(ROWS, COLUMNS);
    }
}

fn after_a_moment(dashboard: &Dashboard) -> String {
    sleep(Duration::from_millis(300));
    dashboard.text()
}

fn walk(places: &[Where]) {
    let dashboard = Dashboard::start();
    let rows = BINDINGS.iter().filter(|row| places.contains(&row.place));
    let mut walked = 0;
    for binding in rows.filter(|row| !matches!(row.command, Command::GoOn | Command::EndProgram)) {
        for key in binding.keys {
            check(&dashboard, binding, key);
            walked += 1;
        }
    }
    assert!(walked > 3, "{places:?}");
}

#[test]
fn every_key_of_every_screen_does_what_the_help_says() {
    walk(&[Where::Everywhere]);
}

#[test]
fn every_key_of_lists_does_what_the_help_says() {
    walk(&[Where::Lists, Where::Allocations]);
}

#[test]
fn every_key_of_scopes_steps_and_output_does_what_the_help_says() {
    walk(&[Where::Scopes, Where::Steps, Where::Output]);
}

#[test]
fn every_key_of_dialogs_and_entries_does_what_the_help_says() {
    walk(&[Where::Reading, Where::Leaving, Where::Entry, Where::Typing]);
}

#[test]
fn palettes_follow_one_another() {
    let dashboard = Dashboard::start();
    dashboard.until("paused", " ", |text| (!text.contains("PAUSED")).then(String::new));
    dashboard.still();
    let first = dashboard.screen.colours();
    dashboard.press("c");
    dashboard.screen.wait_until("other colours", |screen| screen.colours() != first);
    dashboard.still();
    let second = dashboard.screen.colours();
    dashboard.press("c");
    dashboard.screen.wait_until("no colours", |screen| screen.colours().is_empty());
    dashboard.press("c");
    dashboard.screen.wait_until("the first ones", |screen| screen.colours() == first);
    assert_ne!(first, second);
}

/// The keys of the question how to leave: each with a program of its own.
#[test]
fn ways_out() {
    let rows = BINDINGS.iter().filter(|row| row.place == Where::Leaving);
    let mut walked = 0;
    for (binding, key) in rows.flat_map(|row| row.keys.iter().map(move |key| (row, key))) {
        let mut dashboard = match binding.command {
            Command::GoOn | Command::EndProgram => Dashboard::start(),
            _ => continue,
        };
        walked += 1;
        dashboard.press("q");
        dashboard.screen.wait("─ Leave? ─");
        dashboard.press(&bytes(key));
        if binding.command == Command::GoOn {
            dashboard.screen.wait_gone("u Output");
            dashboard.screen.wait("loss ");
            dashboard.press("\x03");
        }
        assert_eq!(dashboard.screen.end().signal(), Some(libc::SIGINT), "{}", key.name(true));
        assert!(!dashboard.screen.is_alternate());
    }
    assert!(walked >= 2);
}
