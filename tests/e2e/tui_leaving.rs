//! Ways out of the dashboard: the program goes on or ends, the status is the program's, and the terminal is as it was.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::memscope::Place;
use crate::screen::{ALL, Screen};
use crate::tui_program::{command, leave, show};

/// A program that counts seconds until it is told to end, says which signals it got, and ends with 9 on SIGUSR2.
const COUNTER: &str =
    "trap 'echo got INT' INT; trap 'echo got TERM' TERM; trap 'echo got HUP >hup' HUP; trap 'exit 9' USR2
    i=0; while :; do i=$((i+1)); echo count $i; sleep 0.1; done";

/// The terminal is as it was before, and what is on it is the ordinary screen.
#[track_caller]
fn check_restored(screen: &Screen, before: &rustix::termios::Termios) {
    let after = screen.settings();
    let of = |settings: &rustix::termios::Termios| {
        let modes = (settings.input_modes, settings.output_modes, settings.control_modes, settings.local_modes);
        format!("{modes:?} {:?}", settings.special_codes)
    };
    assert_eq!(of(&after), of(before));
    assert!(!screen.is_alternate(), "the alternate screen was not left");
    assert!(!screen.has_modes(), "mouse or pasting modes are still on");
    assert!(screen.cursor().1, "the cursor is hidden");
}

fn status(screen: &mut Screen) -> (Option<i32>, Option<i32>) {
    let status = screen.end();
    (status.code(), status.signal())
}

#[test]
fn the_status_is_the_programs() {
    let place = Place::new();
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        let mut screen = show(&place, &["sh", "-c", script]);
        assert_eq!(leave(&mut screen), code, "{script}");
    }
}

#[test]
fn a_program_that_cannot_start_gives_127_and_leaves_nothing() {
    let place = Place::new();
    let mut screen = Screen::start(command(&place, &["./no-such-program"]), 30, 100, ALL);
    let before = screen.first_settings();
    assert_eq!(status(&mut screen), (Some(127), None));
    assert!(screen.text().contains("no such program"), "{}", screen.text());
    check_restored(&screen, &before);
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn the_program_goes_on_in_plain_form() {
    let place = Place::new();
    let mut screen = Screen::start(command(&place, &["sh", "-c", COUNTER]), 30, 100, ALL);
    let before = screen.first_settings();
    screen.wait("u Output");
    screen.keys("u");
    screen.wait("count 3");
    screen.keys("q");
    screen.wait("Leave?");
    screen.keys("g");
    screen.wait_gone("u Output");
    screen.wait_until("the program's screen, and what comes", |screen| {
        let rows = screen.rows();
        let counts: Vec<u32> = rows.iter().filter_map(|row| row.strip_prefix("count ")?.parse().ok()).collect();
        // From the first line on, without a gap: what was shown so far, and what the program writes now.
        counts.starts_with(&[1, 2, 3]) && counts.len() > 12 && counts.windows(2).all(|pair| pair[1] == pair[0] + 1)
    });
    assert!(!screen.is_alternate());
    screen.keys("\x03");
    screen.wait("^C"); // by the program's own terminal
    screen.wait("got INT");
    screen.kill(libc::SIGUSR2);
    assert_eq!(status(&mut screen), (Some(9), None));
    check_restored(&screen, &before);
    let transcript = fs::read_to_string(place.path("x.transcript")).expect("a transcript");
    assert!(transcript.contains("count 1\r\ncount 2\r\n") && transcript.contains("got INT\r\n"));
    assert!(place.path("x").exists(), "no profile");
}

#[test]
fn typing_goes_on_in_plain_form_and_so_do_sizes_and_suspending() {
    let place = Place::new();
    // Beside the loop that reads, one that notes the size.
    let script = "while :; do stty size </dev/tty >now; mv now size; sleep 0.1; done &
        while read line; do echo got $line; done; kill $!; echo over";
    let mut screen = Screen::start(command(&place, &["sh", "-c", script]), 30, 100, ALL);
    let before = screen.first_settings();
    let has_size = |size: &str| fs::read_to_string(place.path("size")).is_ok_and(|text| text.trim_end() == size);
    screen.wait("u Output");
    screen.wait_until("the place of the output", |_| has_size("27 100"));
    screen.keys("qg");
    screen.wait_until("all of the terminal is the program's now", |_| has_size("30 100"));
    screen.resize(20, 70);
    screen.wait_until("the new size", |_| has_size("20 70"));
    screen.keys("one\r");
    screen.wait("got one");
    // Suspended, the shell would have the terminal.
    screen.keys("\x1a");
    screen.wait_until("memscope has stopped", |screen| state(screen.pid()) == 'T');
    check_restored(&screen, &before);
    screen.kill(libc::SIGCONT);
    screen.wait_until("memscope goes on", |screen| state(screen.pid()) != 'T');
    sleep(Duration::from_millis(200));
    screen.keys("two\r");
    screen.wait("got two");
    screen.keys("\x04");
    screen.wait("over");
    assert_eq!(status(&mut screen), (Some(0), None));
    check_restored(&screen, &before);
}

#[test]
fn the_program_is_ended_harder_each_time() {
    let place = Place::new();
    for (script, keys, code, signal) in [
        ("echo rea''dy; sleep 60", "e", None, Some(libc::SIGINT)),
        ("trap '' INT; echo rea''dy; sleep 60", "ee", Some(143), None),
        ("trap '' INT TERM; echo rea''dy; sleep 60", "eee", Some(137), None),
        ("trap 'exit 5' INT; echo rea''dy; sleep 60", "e", Some(5), None),
    ] {
        let mut screen = Screen::start(command(&place, &["sh", "-c", script]), 30, 100, ALL);
        let before = screen.first_settings();
        screen.wait("u Output");
        screen.keys("u");
        screen.wait("ready");
        screen.keys("q");
        for key in keys.chars() {
            screen.wait("Leave?");
            sleep(Duration::from_millis(200));
            screen.keys(key.to_string());
        }
        assert_eq!(status(&mut screen), (code, signal), "{script}");
        check_restored(&screen, &before);
        screen.wait("ready"); // the last screen
    }
}

#[test]
fn the_profile_is_written_while_the_dashboard_is_open() {
    let place = Place::new();
    let mut command = place.memscope();
    command.args(["run", "--tui", "-f", "-o", "x", "--", "sh", "-c", "echo hello; exit 3"]);
    let mut screen = Screen::start(command, 30, 100, ALL);
    let before = screen.first_settings();
    screen.wait("ended");
    screen.wait_until("a profile", |_| place.path("x").exists() && !place.path("x.session").exists());
    sleep(Duration::from_millis(300));
    assert!(screen.is_alternate(), "the dashboard stays until it is left");
    assert!(!screen.text().contains("look again"), "memscope speaks into its dashboard: {}", screen.text());
    screen.keys("q");
    assert_eq!(status(&mut screen), (Some(3), None));
    check_restored(&screen, &before);
    let written = String::from_utf8_lossy(&screen.written()).into_owned();
    let after = written.rsplit_once("\x1b[?1049l").expect("the alternate screen was left").1.to_owned();
    let at = |what: &str| after.find(what).unwrap_or_else(|| panic!("no `{what}` in {after}"));
    assert!(at("hello") < at("x.transcript") && at("x.transcript") < at("exit status 3"), "{after}");
    assert!(at("exit status 3") < at("profile:"), "{after}");
}

#[test]
fn a_signal_to_memscope_reaches_the_program_once() {
    let place = Place::new();
    let program = place.compile("count_signals", &[]);
    let mut screen = show(&place, &[program.to_str().expect("a path")]);
    screen.wait("ready");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1] {
        screen.kill(signal);
        sleep(Duration::from_millis(100));
    }
    screen.kill(libc::SIGUSR2);
    // Told to end, memscope does not wait for somebody to leave the dashboard of a program that has ended.
    assert_eq!(status(&mut screen), (Some(9), None));
    screen.wait("HUP 1 INT 1 QUIT 1 USR1 1 TERM 1 CONT 0");
}

#[test]
fn a_signal_that_ends_the_program_ends_memscope_too() {
    let place = Place::new();
    for (signal, expected) in [
        (libc::SIGTERM, (Some(143), None)),
        (libc::SIGINT, (None, Some(libc::SIGINT))),
        (libc::SIGQUIT, (Some(131), None)),
    ] {
        let mut screen = Screen::start(command(&place, &["sh", "-c", "echo rea''dy; exec sleep 60"]), 30, 100, ALL);
        let before = screen.first_settings();
        screen.wait("u Output");
        screen.keys("u");
        screen.wait("ready");
        screen.kill(signal);
        assert_eq!(status(&mut screen), expected);
        check_restored(&screen, &before);
        assert!(place.path("x").exists(), "no profile after signal {signal}");
    }
}

#[test]
fn when_the_terminal_goes_the_program_is_told_and_the_profile_is_written() {
    let place = Place::new();
    // One program that dies of it, one that goes on for a while.
    for (script, code) in
        [("echo rea''dy; sleep 60", 129), ("trap 'echo x >hup' HUP; echo rea''dy; sleep 1; sleep 1; exit 6", 6)]
    {
        let mut screen = show(&place, &["sh", "-c", script]);
        screen.wait("ready");
        screen.hang_up();
        let ended = screen.end();
        assert_eq!(ended.code(), Some(code), "{script}: {ended:?}");
        assert!(place.path("x").exists(), "no profile");
        assert!(place.path("x.transcript").exists(), "no transcript");
        fs::remove_file(place.path("x")).expect("the profile");
    }
    assert!(place.path("hup").exists(), "the program was not told");
}

#[test]
fn a_program_that_is_killed_is_shown_as_it_was() {
    let place = Place::new();
    let mut screen = show(&place, &["sh", "-c", "echo $$ >pid; echo rea''dy; exec sleep 60"]);
    let deadline = Instant::now() + Duration::from_secs(30);
    while !place.path("pid").exists() && Instant::now() < deadline {
        sleep(Duration::from_millis(10));
    }
    screen.wait("ready");
    let pid: i32 = fs::read_to_string(place.path("pid")).expect("a pid").trim().parse().expect("a number");
    // SAFETY: plain numbers; the process is the program of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    screen.wait("137");
    assert_eq!(leave(&mut screen), 137);
    screen.wait("ready");
}

/// State letter of a process, from /proc.
fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

#[test]
fn the_transcript_of_a_memscope_that_was_killed_is_recovered() {
    let place = Place::new();
    // The word stands in the output only, and not in the header too.
    let mut screen = show(&place, &["sh", "-c", "echo rea''dy; sleep 60"]);
    screen.wait("ready");
    screen.kill(libc::SIGKILL);
    assert_eq!(status(&mut screen), (None, Some(libc::SIGKILL)));
    sleep(Duration::from_millis(500)); // the program ends with its terminal
    let recovered = place.run("recover x.session");
    assert!(recovered.status.success(), "{}", crate::memscope::stderr(&recovered));
    assert_eq!(fs::read_to_string(place.path("x.transcript")).expect("a transcript"), "ready\r\n");
    assert!(!place.path("x.session").exists());
}

/// A run whose last output, the JSON report, cannot be written before this test has read it: its temporary file is a pipe.
fn slow(place: &Place, dashboard: bool, end: &str) -> Screen {
    let script = format!("mkfifo y.json.$PPID; echo rea''dy; {end}");
    let mut command = place.memscope();
    command.args(if dashboard { &["run", "--tui"][..] } else { &["run"][..] });
    command.args(["-f", "-o", "x", "--json", "y.json", "--", "sh", "-c", &script]);
    command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLORTERM");
    Screen::start(command, 30, 100, ALL)
}

/// Lets the JSON report be written.
fn let_write(place: &Place, screen: &Screen) {
    let report = fs::read(place.path(&format!("y.json.{}", screen.pid()))).expect("a report");
    serde_json::from_slice::<serde_json::Value>(&report).expect("JSON");
}

/// Waits for a text among all that was written, however the terminal has broken it.
#[track_caller]
fn wait_for_words(screen: &Screen, words: &str) {
    screen.wait_until(words, |screen| String::from_utf8_lossy(&screen.written()).contains(words));
}

/// A run that is over and left, whose profile is being written; its program ended with status 3.
fn left_while_it_is_written(place: &Place, dashboard: bool) -> Screen {
    let screen = slow(place, dashboard, "exit 3");
    if dashboard {
        screen.wait("ended, status 3");
        screen.keys("q");
    }
    screen.wait("writing the profile");
    screen
}

#[test]
fn a_first_signal_does_not_lose_the_profile_that_is_being_written() {
    for dashboard in [true, false] {
        let place = Place::new();
        let mut screen = left_while_it_is_written(&place, dashboard);
        assert!(!screen.is_alternate());
        screen.keys("\x03");
        wait_for_words(&screen, "a second signal stops that");
        sleep(Duration::from_millis(200));
        assert!(place.path("x.session").exists(), "it is not done yet");
        let_write(&place, &screen);
        assert_eq!(status(&mut screen), (Some(3), None));
        assert!(place.path("x").exists() && !place.path("x.session").exists(), "{:?}", place.names());
    }
}

#[test]
fn a_second_signal_ends_memscope_and_names_what_makes_the_profile() {
    for dashboard in [true, false] {
        let place = Place::new();
        let mut screen = left_while_it_is_written(&place, dashboard);
        screen.kill(libc::SIGTERM);
        wait_for_words(&screen, "a second signal stops that");
        screen.keys("\x03");
        assert_eq!(status(&mut screen), (Some(3), None));
        wait_for_words(&screen, "`memscope recover /");
        let recovered = place.run("recover -f x.session");
        assert!(recovered.status.success(), "{}", crate::memscope::stderr(&recovered));
    }
}

#[test]
fn a_memscope_that_is_told_to_end_leaves_while_the_profile_is_written() {
    let place = Place::new();
    let mut screen = slow(&place, true, "exec sleep 60");
    let before = screen.first_settings();
    screen.wait("u Output");
    screen.keys("u");
    screen.wait_until("a pipe", |screen| place.path(&format!("y.json.{}", screen.pid())).exists());
    screen.kill(libc::SIGTERM);
    screen.wait("writing the profile");
    check_restored(&screen, &before);
    let_write(&place, &screen);
    assert_eq!(status(&mut screen), (Some(143), None));
    assert!(place.path("x").exists());
}

#[test]
fn a_profile_that_is_not_there_yet_is_told_from_one_that_never_was() {
    let place = Place::new();
    let mut screen = show(&place, &["sh", "-c", "echo rea''dy; sleep 60"]);
    screen.wait("ready");
    let verbs = ["view x", "report x", "export --json x"];
    for verb in verbs {
        let refused = crate::memscope::stderr(&place.run(verb));
        assert!(
            refused.contains("still being recorded") && refused.contains("`memscope attach x.session`"),
            "{refused}"
        );
    }
    screen.kill(libc::SIGKILL);
    screen.end();
    for verb in verbs {
        let refused = crate::memscope::stderr(&place.run(verb));
        assert!(refused.contains("broken off") && refused.contains("`memscope recover x.session`"), "{refused}");
    }
    let other = crate::memscope::stderr(&place.run("report z"));
    assert!(!other.contains("session"), "{other}");
}

#[test]
fn a_view_that_only_looks_says_so() {
    let place = Place::new();
    let mut screen = show(&place, &["sh", "-c", "echo rea''dy; sleep 60"]);
    screen.wait("ready");
    let mut attach = place.memscope();
    attach.args(["attach", "x.session"]).env("LC_ALL", "C.UTF-8");
    let mut view = Screen::start(attach, 30, 100, ALL);
    view.wait("u Output");
    view.keys("i");
    view.wait("this view only looks");
    view.keys("q");
    assert_eq!(status(&mut view), (Some(0), None));
    screen.kill(libc::SIGTERM);
    assert_eq!(status(&mut screen), (Some(143), None));
}
