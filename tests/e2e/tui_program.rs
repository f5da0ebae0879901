//! The program's terminal under `run --tui`: what it gets, and that nothing of what it writes is lost.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::memscope::Place;
use crate::screen::{ALL, Screen};

const ROWS: u16 = 30;
const COLUMNS: u16 = 100;
/// Rows of the dashboard around the program's screen.
const AROUND: u16 = 3;

/// `memscope run --tui -q -f -o x -- …`, not yet started.
pub fn command(place: &Place, program: &[&str]) -> Command {
    let mut command = place.memscope();
    command.args(["run", "--tui", "-q", "-f", "-o", "x", "--"]).args(program);
    command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLORTERM");
    command
}

/// The dashboard on a program, with the program's output shown.
pub fn show(place: &Place, program: &[&str]) -> Screen {
    let screen = Screen::start(command(place, program), ROWS, COLUMNS, ALL);
    screen.wait("u Output");
    screen.keys("u");
    screen
}

/// The same on a shell script, whose text then does not stand in the dashboard's header.
fn show_script(place: &Place, script: &str) -> Screen {
    fs::write(place.path("script"), script).expect("a file");
    show(place, &["sh", "script"])
}

/// Leaves the dashboard of a program that has ended; returns the status as a shell shows it.
#[track_caller]
pub fn leave(screen: &mut Screen) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    screen.wait("ended");
    screen.keys("q");
    let status = screen.end();
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("an end")
}

fn transcript(place: &Place) -> String {
    String::from_utf8_lossy(&fs::read(place.path("x.transcript")).expect("a transcript")).into_owned()
}

#[test]
fn each_descriptor_that_was_a_terminal_is_one_and_the_others_are_what_they_were() {
    // The program tells through a file which of its descriptors are terminals, and what the others lead to; then it writes to
    // its controlling terminal, which it has in any case.
    let script = "for d in 0 1 2; do
            if [ -t $d ]; then r=\"$r terminal:$(readlink /proc/$$/fd/$d)\"; else r=\"$r $(stat -L -c %d:%i /proc/$$/fd/$d)\"; fi
        done
        echo $r >report; echo $(ls /proc/$$/fd) >>report
        echo out; echo err >&2; echo own >/dev/tty";
    // Descriptors that this test itself has inherited and passes on.
    let plain = Place::new();
    let mut reference = plain.command("sh");
    reference.args(["-c", script]);
    let mut screen = Screen::start(reference, ROWS, COLUMNS, ALL);
    assert!(screen.end().success());
    let report = fs::read_to_string(plain.path("report")).expect("a report");
    let inherited = report.split_once('\n').expect("two lines").1.to_owned();
    for combination in 0..8 {
        let on_terminal = [0, 1, 2].map(|descriptor| combination & (1 << descriptor) != 0);
        let place = Place::new();
        let files = ["in", "out", "err"].map(|name| File::create(place.path(name)).expect("a file"));
        let mut command = command(&place, &["sh", "-c", script]);
        if !on_terminal[0] {
            command.stdin(File::open(place.path("in")).expect("a file"));
        }
        if !on_terminal[1] {
            command.stdout(files[1].try_clone().expect("a descriptor"));
        }
        if !on_terminal[2] {
            command.stderr(files[2].try_clone().expect("a descriptor"));
        }
        let mut screen = Screen::start(command, ROWS, COLUMNS, on_terminal);
        assert_eq!(leave(&mut screen), 0, "{on_terminal:?}");

        let report = fs::read_to_string(place.path("report")).expect("a report");
        let (descriptors, open) = report.split_once('\n').expect("two lines");
        let mut terminals = Vec::new();
        for ((descriptor, file), told) in files.iter().enumerate().zip(descriptors.split(' ')) {
            if on_terminal[descriptor] {
                terminals.push(told.strip_prefix("terminal:/dev/pts/").expect(told).to_owned());
            } else {
                let metadata = file.metadata().expect("metadata");
                assert_eq!(told, format!("{}:{}", metadata.dev(), metadata.ino()), "{on_terminal:?} {descriptor}");
            }
        }
        terminals.dedup();
        assert!(terminals.len() <= 1, "one terminal for all: {terminals:?}");
        assert_eq!(open, inherited, "nothing else is inherited");

        let read = |name: &str| fs::read_to_string(place.path(name)).expect("a file");
        let expected = |on_terminal: bool, text: &str| if on_terminal { String::new() } else { format!("{text}\n") };
        assert_eq!((read("out"), read("err")), (expected(on_terminal[1], "out"), expected(on_terminal[2], "err")));
        let shown = [(on_terminal[1], "out\r\n"), (on_terminal[2], "err\r\n"), (true, "own\r\n")];
        let shown: String = shown.iter().filter(|(shown, _)| *shown).map(|(_, text)| *text).collect();
        assert_eq!(transcript(&place), shown, "{on_terminal:?}");
    }
}

#[test]
fn the_terminal_is_the_programs_own_and_has_the_size_of_its_place() {
    let place = Place::new();
    let script = "stty size; ps -o sid= -p $$ | tr -d ' '; echo $$; stty -a | grep -o -- '-\\?icanon'
        trap 'stty size' WINCH; while :; do sleep 0.1; done";
    let mut screen = show_script(&place, script);
    screen.wait(&format!("{} {COLUMNS}", ROWS - AROUND));
    screen.wait("icanon");
    let rows = screen.rows();
    let first = rows.iter().position(|row| row.starts_with(&format!("{} ", ROWS - AROUND))).expect("the size");
    assert_eq!(rows[first + 1], rows[first + 2], "the program leads its session");
    assert_eq!(rows[first + 3], "icanon", "the settings are those of the terminal before the dashboard");
    screen.resize(50, 120);
    screen.wait(&format!("{} 120", 50 - AROUND));
    screen.keys("qe");
    assert_eq!(leave_ended(&mut screen), 130);
}

/// The status after the user has had the program ended.
#[track_caller]
fn leave_ended(screen: &mut Screen) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let status = screen.end();
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("an end")
}

#[test]
fn a_flood_loses_nothing() {
    const BYTES: usize = 50 << 20;
    let place = Place::new();
    let program = place.compile("flood", &[]);
    let mut screen = show(&place, &[program.to_str().expect("a path"), &BYTES.to_string()]);
    let last = format!("{:.<63}", BYTES / 64 - 1);
    screen.wait(&last);
    assert_eq!(leave(&mut screen), 0);
    let transcript = fs::read(place.path("x.transcript")).expect("a transcript");
    assert_eq!(transcript.len(), BYTES / 64 * 65, "each line has a carriage return more");
    for (number, line) in transcript.chunks(65).enumerate() {
        let expected = format!("{number:.<63}\r\n");
        assert!(line == expected.as_bytes(), "line {number} is {:?}", String::from_utf8_lossy(line));
    }
}

#[test]
fn what_is_written_last_is_not_lost() {
    let place = Place::new();
    for _ in 0..20 {
        let mut screen = Screen::start(command(&place, &["sh", "-c", "seq 1 8000"]), ROWS, COLUMNS, ALL);
        assert_eq!(leave(&mut screen), 0);
        let expected: String = (1..=8000).map(|number| format!("{number}\r\n")).collect();
        assert!(transcript(&place) == expected, "{}", transcript(&place).len());
    }
}

#[test]
fn one_types_into_a_prompt() {
    let place = Place::new();
    let script = "printf '(Pdb) '; read line; echo \"value of $line\"; stty -echo; printf 'password: '; read secret; \
                  stty echo; echo; echo \"${#secret} characters\"; read rest || echo end of input";
    let mut screen = show_script(&place, script);
    screen.wait("(Pdb)");
    screen.keys("i");
    screen.wait("TYPING");
    screen.keys("p loss\x08\x7f5\r"); // Backspace, sent both ways; the line discipline knows one of them
    screen.wait("value of p los");
    screen.wait("password:");
    screen.keys("hunter2\r");
    screen.wait("7 characters");
    assert!(!screen.text().contains("hunter2"), "{}", screen.text());
    assert!(screen.cursor().1, "the program's cursor is shown while one types");
    screen.keys("\x04"); // the end of input, by the line discipline
    screen.wait("end of input");
    assert_eq!(leave(&mut screen), 0);
    assert!(!transcript(&place).contains("hunter2"));
}

#[test]
fn typing_ends_with_escape_and_ctrl_c_reaches_the_program() {
    let place = Place::new();
    let script = "trap 'echo interrupted' INT; echo rea''dy; while :; do read line && echo \"line $line\"; done";
    let mut screen = show_script(&place, script);
    screen.wait("ready");
    screen.keys("i");
    screen.wait("TYPING");
    screen.keys("\x03");
    screen.wait("interrupted");
    screen.keys("q\r");
    screen.wait("line q");
    screen.keys("\x1b");
    screen.wait_gone("TYPING");
    screen.keys("q");
    screen.wait("Leave?");
    screen.keys("ee");
    assert_eq!(leave_ended(&mut screen), 143);
}

#[test]
fn a_program_may_fill_the_screen() {
    let place = Place::new();
    // What ncurses sends for a menu in a box with a hidden cursor.
    let script = r"printf 'before\n\033[?1049h\033[2J\033[?25l\033[5;10H\033(0lqqk\033(B\033[6;10H\033[7mmenu\033[m';
        read key; printf '\033[?1049l\033[?25h'; echo after $key";
    let mut screen = show_script(&place, script);
    screen.wait("┌──┐");
    let rows = screen.rows();
    assert_eq!(rows[4 + 2], format!("{:9}┌──┐", ""), "the box stands where the program has put it: {rows:#?}");
    assert_eq!(rows[5 + 2], format!("{:9}menu", ""));
    assert!(!rows.iter().any(|row| row.contains("before")));
    screen.keys("i");
    screen.wait("TYPING");
    screen.keys("x\r");
    screen.wait("after x");
    screen.wait("before");
    assert_eq!(leave(&mut screen), 0);
}

#[test]
fn a_progress_bar_stays_in_its_line() {
    let place = Place::new();
    let script = r"for i in 10 20 30 40; do printf '\r%d%%|####' $i; sleep 0.05; done; printf '\n'";
    let mut screen = show_script(&place, script);
    screen.wait("40%|####");
    assert_eq!(screen.text().matches("%|####").count(), 1, "{}", screen.text());
    assert_eq!(leave(&mut screen), 0);
}

#[test]
fn the_output_is_searched_and_scrolled() {
    let place = Place::new();
    let mut screen = show_script(&place, "for i in $(seq 1 500); do echo line $i; done; echo the end");
    screen.wait("the end");
    screen.keys("/line 77\r");
    screen.wait("hit 1 of 1");
    screen.wait("line 77");
    assert!(!screen.text().contains("the end"));
    screen.keys("\x1b");
    screen.wait("the end");
    screen.keys("\x1b[H"); // Home
    screen.wait("line 1 ");
    screen.wait("line 2\n");
    screen.keys("\x1b[F"); // End
    screen.wait("the end");
    assert_eq!(leave(&mut screen), 0);
}

#[test]
fn a_process_that_outlives_the_program_does_not_hold_memscope_up() {
    let place = Place::new();
    // It keeps the terminal open in a session of its own, and writes to it without an end.
    let script = "(trap '' HUP; exec setsid sh -c 'echo $$ >pid; while :; do echo noise; sleep 0.01; done') & 
        while [ ! -s pid ]; do sleep 0.01; done; echo done";
    let mut screen = show_script(&place, script);
    screen.wait("done");
    assert_eq!(leave(&mut screen), 0);
    let pid = fs::read_to_string(place.path("pid")).expect("a pid");
    // It may have ended already: its terminal is gone.
    let _ = Command::new("kill").arg(pid.trim()).output();
    assert!(transcript(&place).contains("done\r\n"));
}

#[test]
fn a_stopped_program_is_said_to_be_and_goes_on_when_one_types() {
    let place = Place::new();
    let mut screen = show_script(&place, "echo $$ >pid; echo rea''dy; kill -STOP $$; read line; echo got $line");
    screen.wait("stopped");
    std::thread::sleep(Duration::from_millis(300));
    assert!(screen.text().contains("ready") && !screen.text().contains("got"), "{}", screen.text());
    screen.keys("i");
    screen.wait("TYPING");
    screen.keys("on\r");
    screen.wait("got on");
    assert_eq!(leave(&mut screen), 0);
}

#[test]
fn resizes_without_number_do_no_harm() {
    let place = Place::new();
    let script = "trap 'exit 4' USR1; i=0; while :; do i=$((i+1)); echo \"$i 漢字 a line of some length\"; done";
    let mut screen = show_script(&place, script);
    screen.wait("漢字");
    let sizes = [(1, 1), (1, 200), (100, 1), (2, 2), (3, 5), (24, 80), (70, 250), (4, 300), (300, 4), (12, 40)];
    for round in 0..10_u16 {
        for (rows, columns) in sizes {
            screen.resize(rows + round, columns + 3 * round);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    screen.resize(ROWS, COLUMNS);
    screen.wait("u Output");
    screen.wait("a line of some length");
    screen.kill(libc::SIGUSR1);
    assert_eq!(leave(&mut screen), 4);
}

/// The terminal in which a test runs is none of its business.
#[test]
fn without_a_terminal_there_is_no_dashboard() {
    use std::os::unix::process::CommandExt;
    let place = Place::new();
    let mut command = command(&place, &["touch", "started"]);
    // SAFETY: an async-signal-safe call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        })
    };
    let output = command.output().expect("memscope starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("terminal"));
    assert!(!Path::new(&place.path("started")).exists());
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn a_transcript_that_is_there_is_not_replaced_unasked() {
    let place = Place::new();
    fs::write(place.path("x.transcript"), "precious").expect("a file");
    let mut refused = place.memscope();
    refused.args(["run", "--tui", "-q", "-o", "x", "--", "touch", "started"]);
    let mut screen = Screen::start(refused, ROWS, COLUMNS, ALL);
    screen.wait("x.transcript already exists");
    assert_eq!(screen.end().code(), Some(1));
    assert!(!place.path("started").exists());
    assert_eq!(transcript(&place), "precious");

    let mut screen = show(&place, &["echo", "new"]);
    assert_eq!(leave(&mut screen), 0);
    assert_eq!(transcript(&place), "new\r\n");
}

#[test]
fn the_demo_has_a_dashboard_too() {
    let place = Place::new();
    let mut command = place.memscope();
    command.args("demo --tui -q -f -o x --device 2GiB -- --steps 3".split(' ')).env("LC_ALL", "C.UTF-8");
    let mut screen = Screen::start(command, ROWS, COLUMNS, ALL);
    screen.wait("u Output");
    screen.keys("u");
    screen.wait("step 3/3");
    assert_eq!(leave(&mut screen), 0);
    assert!(transcript(&place).contains("step 1/3"));
}

#[test]
fn a_transcript_is_shown_by_attach_and_by_view() {
    let place = Place::new();
    let mut screen = show_script(&place, "echo first; read line; echo second $line");
    screen.wait("first");
    let mut command = place.memscope();
    command.args(["attach", "x.session"]).env("LC_ALL", "C.UTF-8");
    let mut attached = Screen::start(command, 24, 80, ALL);
    attached.wait("u Output");
    attached.keys("u");
    attached.wait("first");
    screen.keys("i");
    screen.wait("TYPING");
    screen.keys("time\r");
    screen.wait("second time");
    attached.wait("second time");
    attached.keys("q");
    assert!(attached.end().success());
    assert_eq!(leave(&mut screen), 0);

    let mut command = place.memscope();
    command.args(["view", "x"]).env("LC_ALL", "C.UTF-8");
    let mut viewed = Screen::start(command, 24, 80, ALL);
    viewed.wait("u Output");
    viewed.keys("u");
    viewed.wait("second time");
    viewed.keys("q");
    assert!(viewed.end().success());
}
