//! `memscope top`: over an NVML whose answers are known (tests/programs/nvml/), printed and on a real pseudo-terminal; and over
//! the simulated device, with what a process's memory is for.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};
use crate::screen::{ALL, Screen};

const MIB: u64 = 1 << 20;

/// The library in a folder of its own, and `memscope top` over it.
struct Machine {
    place: Place,
}

impl Machine {
    fn new() -> Machine {
        let place = Place::new();
        fs::create_dir(place.path("nvml")).expect("a folder");
        let machine = Machine { place };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/nvml/synthetic.c");
        let built = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"])
            .args([machine.path("libnvidia-ml.so.1"), PathBuf::from(source)])
            .status()
            .expect("cc starts");
        assert!(built.success(), "cc could not compile {source}");
        machine.put("live", "");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path("nvml").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path("draft"), text).expect("a draft");
        fs::rename(self.path("draft"), self.path(name)).expect("the file");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("the file was there");
    }

    fn top(&self, arguments: &str) -> Command {
        let mut command = self.place.memscope();
        command.arg("top").args(arguments.split_whitespace());
        command.env("MEMSCOPE_NVML", self.path("libnvidia-ml.so.1"));
        command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLORTERM");
        command
    }

    /// On a terminal of 120 by 40.
    fn screen(&self) -> Screen {
        let screen = Screen::start(self.top("--interval 50"), 40, 120, ALL);
        screen.wait("GPU-MEM");
        screen
    }
}

/// A process that waits, and is ended with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper(Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().expect("sleep starts"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn printed_once_as_text() {
    let machine = Machine::new();
    let own = std::process::id();
    machine.put("processes", &format!("0 {own} {} C -\n", 300 * MIB));
    for arguments in ["--once --interval 20", "-1 --interval 20", "--interval 20"] {
        // Without a terminal it needs no flag.
        let output = machine.top(arguments).output().expect("memscope starts");
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{arguments}");
        let text = stdout(&output);
        assert!(text.starts_with("driver 580.00, 8 GPUs, 1 process\n"), "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with(&own.to_string())).expect("the process");
        assert!(line.contains("compute") && line.contains("300.0 MiB"), "{line}");
        assert!(text.lines().any(|line| line.starts_with("3    NVIDIA T400") && line.contains("N/A")), "{text}");
        assert!(text.ends_with("NVML does not tell the processes of GPU 5.\n"), "{text}");
    }
}

#[test]
fn printed_once_as_json_with_handles_fetched_once() {
    let machine = Machine::new();
    let own = std::process::id();
    machine.put("processes", &format!("7 {own} {MIB} C 4\n"));
    let output = machine.top("--once --json --interval 20").output().expect("memscope starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let view: Value = serde_json::from_str(&stdout(&output)).expect("one JSON document");
    assert_eq!((number(&view, "/schema_version"), view["devices"].as_array().map(Vec::len)), (1, Some(8)));
    assert!(number(&view, "/round") >= 2, "rates need two looks");
    assert_eq!(number(&view, "/processes/0/pid"), u64::from(own));
    assert_eq!(number(&view, "/processes/0/instance"), 4);
    assert!(view["processes"][0]["cpu_percent"].is_number());
    assert_eq!(view["devices"][3]["temperature_celsius"], Value::Null);
    let handles = fs::read_to_string(machine.path("handles")).expect("handles were fetched");
    let mut lines: Vec<&str> = handles.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = (0..8)
        .map(|index| format!("device {index}"))
        .chain([0, 1, 4].map(|index| format!("instance {index}")))
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_device_that_never_answers_is_left_out_of_what_is_printed() {
    let machine = Machine::new();
    machine.put("hold-2", "");
    let output = machine.top("--once --json --interval 20").output().expect("memscope starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let view: Value = serde_json::from_str(&stdout(&output)).expect("one JSON document");
    assert_eq!(view["devices"][2]["age_ms"], Value::Null);
    assert!(view["devices"][1]["age_ms"].is_number());
}

#[test]
fn a_line_of_json_for_each_look_until_nobody_reads_them() {
    let machine = Machine::new();
    let mut child = machine.top("--json --interval 20").stdout(Stdio::piped()).spawn().expect("memscope starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut before = 0;
    for _ in 0..3 {
        let line = lines.next().expect("a line").expect("text");
        let view: Value = serde_json::from_str(&line).expect("one JSON document a line");
        let round = number(&view, "/round");
        assert!(round > before);
        before = round;
    }
    drop(lines);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn without_nvml_it_says_what_to_do() {
    let place = Place::new();
    for arguments in ["top", "top --once --json", "top --json"] {
        let mut command = place.memscope();
        command.args(arguments.split_whitespace()).env("MEMSCOPE_NVML", "/no/such/library");
        let output = command.output().expect("memscope starts");
        assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()), "{arguments}");
        let text = stderr(&output);
        assert!(text.starts_with("memscope: error: libnvidia-ml.so.1 cannot be loaded"), "{text}");
        assert!(text.contains("memscope doctor"), "{text}");
    }
    let output = place.run("top --interval 1");
    assert_eq!(output.status.code(), Some(2), "an impossible interval is wrong usage");
}

#[test]
fn without_nvml_the_terminal_is_left_alone() {
    let place = Place::new();
    let mut command = place.memscope();
    command.arg("top").env("MEMSCOPE_NVML", "/no/such/library");
    let mut screen = Screen::start(command, 24, 80, ALL);
    assert_eq!(screen.end().code(), Some(1));
    assert!(screen.text().contains("libnvidia-ml.so.1 cannot be loaded"), "{}", screen.text());
    assert!(!screen.written().windows(8).any(|bytes| bytes == b"\x1b[?1049h"), "no alternate screen");
}

#[test]
fn keys_are_answered_while_a_device_does_not_answer() {
    let machine = Machine::new();
    machine.put("hold-2", "");
    let mut screen = machine.screen();
    screen.wait("no answer yet");
    // The device answers nothing until the file goes, and that is after the key was handled and drawn.
    screen.keys("/abc");
    screen.wait("filter: abc");
    screen.keys("\x1b");
    screen.wait_gone("filter: abc");
    screen.keys("?");
    screen.wait("memscope top: keys");
    screen.keys("q");
    screen.wait("no answer yet");
    machine.remove("hold-2");
    screen.wait_gone("no answer yet");
    let before = screen.first_settings();
    screen.keys("\x1b[21~");
    assert_eq!(screen.end().code(), Some(0), "F10 leaves");
    assert!(!screen.is_alternate() && !screen.has_modes() && screen.cursor().1, "the terminal is as it was");
    assert_eq!(before.local_modes, screen.settings().local_modes, "raw mode has ended");
}

#[test]
fn a_signal_that_ends_it_gives_the_terminal_back() {
    let machine = Machine::new();
    let mut screen = machine.screen();
    screen.kill(libc::SIGTERM);
    assert_eq!(screen.end().code(), Some(128 + libc::SIGTERM));
    assert!(!screen.is_alternate() && !screen.has_modes() && screen.cursor().1);
}

#[test]
fn a_terminal_that_hangs_up_ends_it() {
    let machine = Machine::new();
    let mut screen = machine.screen();
    screen.hang_up();
    // By the signal, or since the terminal cannot be used any more, whichever is noticed first.
    let status = screen.end().code();
    assert!([Some(128 + libc::SIGHUP), Some(1)].contains(&status), "{status:?}");
}

#[test]
fn the_terminal_may_change_its_size() {
    let machine = Machine::new();
    let screen = machine.screen();
    screen.resize(24, 80);
    screen.wait_until("a footer in the last row", |screen| screen.rows().last().is_some_and(|row| row.contains("F10")));
    screen.resize(60, 200);
    screen.wait("GPU 7");
    screen.keys("q");
}

#[test]
fn the_chosen_process_gets_the_signal_and_no_other() {
    let machine = Machine::new();
    let (mut chosen, mut other) = (Sleeper::new(), Sleeper::new());
    machine.put("processes", &format!("0 {} 20 C -\n1 {} 10 C -\n", other.pid(), chosen.pid()));
    let mut screen = machine.screen();
    // The other one holds more and stands first.
    screen.wait(&chosen.pid().to_string());
    screen.keys("\x1b[B");
    screen.keys("k");
    screen.wait(&format!("signal for process {}", chosen.pid()));
    assert!(chosen.runs() && other.runs(), "nothing is sent before it is confirmed");
    screen.keys("\r");
    screen.wait(&format!("SIGTERM was sent to process {}", chosen.pid()));
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(chosen.0.wait().expect("it ends").signal(), Some(libc::SIGTERM));
    assert!(other.runs());
    screen.keys("q");
    assert_eq!(screen.end().code(), Some(0));
}

#[test]
fn a_process_that_ended_while_the_question_stood_is_not_mistaken_for_another() {
    let machine = Machine::new();
    let mut chosen = Sleeper::new();
    machine.put("processes", &format!("0 {} 20 C -\n", chosen.pid()));
    let screen = machine.screen();
    screen.wait(&chosen.pid().to_string());
    screen.keys("k");
    screen.wait("signal for process");
    chosen.0.kill().and_then(|()| chosen.0.wait()).expect("it ends");
    screen.keys("k");
    screen.wait("nothing was sent");
    screen.keys("q");
}

#[test]
fn what_runs_under_memscope_has_its_ledger() {
    let place = Place::new();
    let program = place.compile_linked("hold");
    // In the session NVML is the simulated device's, which knows the program's memory.
    let script = format!(
        "{} 60000 & p=$!; n=0; \
         until {} top --once --json --interval 100 >view && grep -q '\"by_category\"' view; do \
             n=$((n+1)); [ $n -lt 100 ] || exit 9; sleep 0.1; done; kill $p; echo $p >pid",
        program.display(),
        env!("CARGO_BIN_EXE_memscope")
    );
    fs::write(place.path("script"), script).expect("a script");
    let output = place.run("run -q -f -o p.mscope --device 1GiB -- sh script");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let view: Value = serde_json::from_slice(&fs::read(place.path("view")).expect("a view")).expect("JSON");
    // Other tests have sessions, too.
    assert!(number(&view, "/sessions") >= 1);
    let pid: u64 = fs::read_to_string(place.path("pid")).expect("a pid").trim().parse().expect("a number");
    let processes = view["processes"].as_array().expect("processes");
    let process = processes.iter().find(|process| process["pid"] == pid).expect("the program is listed");
    // 64 and 3 MiB of device memory; nobody has told what for, and pinned host memory is no part of it.
    assert_eq!(number(process, "/ledger/reserved"), 67 * MIB);
    assert_eq!(number(process, "/ledger/by_category/unknown"), 67 * MIB);
    assert!(number(process, "/memory_used") >= 67 * MIB, "NVML counts the context too");
}
