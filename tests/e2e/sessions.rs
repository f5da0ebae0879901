//! `memscope sessions`: a session that runs, one whose memscope died, and one whose program has outlived its memscope.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::memscope::{Place, stderr, stdout};
use crate::screen::{ALL, Screen};

/// A program that holds memory for minutes, under memscope.
struct Held {
    memscope: Child,
    program: u32,
}

impl Held {
    fn start(place: &Place, program: &Path, name: &str) -> Held {
        let mut command = place.memscope();
        command.args(["run", "-q", "-f", "-o", name, "--device", "1GiB", "--"]).arg(program).arg("300000");
        let memscope = command.stdout(Stdio::null()).spawn().expect("memscope starts");
        let mut found = None;
        wait_until("the program has started", || {
            found = child_of(memscope.id(), program);
            found.is_some()
        });
        let logs = place.path(&format!("{name}.session/logs"));
        wait_until("it has a log", || std::fs::read_dir(&logs).is_ok_and(|mut logs| logs.any(|log| is_log(&log))));
        Held { memscope, program: found.expect("found") }
    }

    fn kill_memscope(&mut self) {
        self.memscope.kill().expect("killed");
        self.memscope.wait().expect("gone");
    }

    fn kill_program(&self) {
        // SAFETY: plain numbers; the program is this test's descendant, and has not ended by itself.
        unsafe { libc::kill(self.program as i32, libc::SIGKILL) };
        wait_until("it is gone", || !Path::new(&format!("/proc/{}/exe", self.program)).exists());
    }
}

fn is_log(entry: &std::io::Result<std::fs::DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".log"))
}

#[test]
fn only_what_nobody_cares_for_is_cleaned_and_only_when_agreed() {
    let place = Place::new();
    let program = place.compile_linked("hold");
    let [mut runs, mut abandoned, mut orphan] =
        ["runs", "abandoned", "orphan"].map(|name| Held::start(&place, &program, &format!("{name}.mscope")));
    abandoned.kill_memscope();
    abandoned.kill_program();
    orphan.kill_memscope();
    let exists = |name: &str| place.path(&format!("{name}.mscope.session")).exists();

    let listed = stdout(&place.run("sessions ."));
    let line = |name: &str| {
        let named = |line: &&str| line.ends_with(&format!("/{name}.mscope.session"));
        listed.lines().find(named).unwrap_or_else(|| panic!("no {name} in {listed}")).split_whitespace()
    };
    for (name, standing, of) in [("runs", "running", &runs), ("abandoned", "abandoned", &abandoned)] {
        assert_eq!(line(name).next(), Some(standing), "{listed}");
        assert_eq!(line(name).nth(1), Some(of.memscope.id().to_string().as_str()), "{listed}");
    }
    assert_eq!(line("orphan").next(), Some("abandoned"), "{listed}");
    assert!(listed.contains("memscope recover FOLDER"), "{listed}");
    // Found without a folder too, by the link in the runtime folder.
    let all = stdout(&place.memscope().arg("sessions").current_dir("/").output().expect("memscope starts"));
    assert!(all.contains(&place.path("runs.mscope.session").display().to_string()), "{all}");

    let refused = place.memscope().args(["sessions", "--clean", "."]).stdin(Stdio::null()).output().expect("starts");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("say --yes") && exists("abandoned"), "{}", stderr(&refused));

    let cleaned = place.run("sessions --clean --yes .");
    assert_eq!(cleaned.status.code(), Some(0), "{}", stderr(&cleaned));
    assert!(stderr(&cleaned).contains("removed: 1 session"), "{}", stderr(&cleaned));
    assert!(stderr(&cleaned).contains(&format!("its processes {} still run", orphan.program)), "{}", stderr(&cleaned));
    assert_eq!([exists("runs"), exists("abandoned"), exists("orphan")], [true, false, true]);

    orphan.kill_program();
    for (answer, left) in [("\r", true), ("y\r", false)] {
        let mut command = place.memscope();
        command.args(["sessions", "--clean", "."]);
        let mut screen = Screen::start(command, 24, 200, ALL);
        screen.wait("[y/N]");
        screen.keys(answer);
        assert_eq!(screen.end().code(), Some(0));
        assert_eq!(exists("orphan"), left, "{answer:?}");
    }
    assert!(stdout(&place.run("sessions .")).lines().count() == 2, "its title and the one that runs");
    runs.kill_program();
    assert_eq!(runs.memscope.wait().expect("ends").code(), Some(137));
    assert!(place.path("runs.mscope").exists() && !exists("runs"));
    assert!(stdout(&place.run("sessions .")).starts_with("No sessions"));
}

/// The child of `parent` that runs `program` (memscope's witness of signals is a child too).
fn child_of(parent: u32, program: &Path) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let runs = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program);
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(runs)
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}
