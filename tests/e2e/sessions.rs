//! `memscope sessions`: a session that runs, one whose memscope died, and one whose program has outlived its memscope.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
        let held = Held::of(&mut command, program);
        let logs = place.path(&format!("{name}.session/logs"));
        wait_until("it has a log", || std::fs::read_dir(&logs).is_ok_and(|mut logs| logs.any(|log| is_log(&log))));
        held
    }

    fn of(command: &mut Command, program: &Path) -> Held {
        let memscope = command.stdout(Stdio::null()).spawn().expect("memscope starts");
        let mut found = None;
        wait_until("the program has started", || {
            found = child_of(memscope.id(), program);
            found.is_some()
        });
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
    assert!(
        stderr(&cleaned).contains(&format!("its processes {} (hold) still run", orphan.program)),
        "{}",
        stderr(&cleaned)
    );
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

/// Copies of an abandoned session, each with a journal and logs of its own.
fn copies(place: &Place, of: &Path, count: usize) {
    for copy in 0..count {
        let folder = place.path(&format!("copies/{copy}.mscope.session"));
        std::fs::create_dir_all(folder.join("logs")).expect("a folder");
        for name in ["manifest.json", "journal"] {
            std::fs::copy(of.join(name), folder.join(name)).expect("copied");
        }
        std::fs::write(folder.join("logs/1-2-0.log"), vec![0; 4096]).expect("written");
    }
}

/// An abandoned session, whose program has ended too.
fn abandoned(place: &Place) -> PathBuf {
    let program = place.compile_linked("hold");
    let mut held = Held::start(place, &program, "abandoned.mscope");
    held.kill_memscope();
    held.kill_program();
    place.path("abandoned.mscope.session")
}

#[test]
fn a_cleaning_that_is_killed_leaves_only_what_the_next_one_finds() {
    const COUNT: usize = 300;
    let place = Place::new();
    copies(&place, &abandoned(&place), COUNT);
    let left = || std::fs::read_dir(place.path("copies")).expect("a folder").count();
    let mut killed = 0;
    while left() > COUNT / 4 && killed < 20 {
        let before = left();
        let mut command = place.memscope();
        command.args(["sessions", "--clean", "--yes", "copies"]).stderr(Stdio::null());
        let mut cleaning = command.spawn().expect("memscope starts");
        wait_until("it removes some", || left() + killed < before || cleaning.try_wait().expect("a child").is_some());
        cleaning.kill().expect("killed");
        cleaning.wait().expect("gone");
        killed += 1;
        // All that is left are sessions, but for the folder that was about to go each time.
        let listed = stdout(&place.run("sessions copies"));
        let sessions = listed.lines().filter(|line| line.starts_with("abandoned")).count();
        assert!(sessions + killed >= left(), "{sessions} of {}: {listed}", left());
    }
    println!("killed {killed} times, {} left", left());
    let cleaned = place.run("sessions --clean --yes copies");
    assert_eq!(cleaned.status.code(), Some(0), "{}", stderr(&cleaned));
    let unlisted = stdout(&place.run("sessions copies")).matches("  copies/").count();
    assert_eq!(left(), unlisted, "nothing is left but what is named");
    assert!(unlisted <= killed, "{unlisted}");
}

#[test]
fn what_cannot_be_removed_is_left_whole() {
    let place = Place::new();
    copies(&place, &abandoned(&place), 1);
    // As on a disk that is mounted to be read.
    let script =
        "mount --bind copies copies && mount -o remount,bind,ro copies && exec \"$0\" sessions --clean --yes copies";
    let mut command = place.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_memscope")]);
    let cleaned = command.output().expect("unshare starts");
    if !stderr(&cleaned).contains("memscope: ") {
        use std::io::Write;
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED a read-only folder: no namespace of mounts here: {}",
            stderr(&cleaned)
        );
        return;
    }
    assert_eq!(cleaned.status.code(), Some(1), "{}", stderr(&cleaned));
    assert!(stderr(&cleaned).contains("0.mscope.session could not be removed: "), "{}", stderr(&cleaned));
    assert!(stderr(&cleaned).contains("removed: 0 sessions"), "{}", stderr(&cleaned));
    let folder = place.path("copies/0.mscope.session");
    for part in ["manifest.json", "journal", "logs/1-2-0.log"] {
        assert!(folder.join(part).is_file(), "{part}");
    }
}

#[test]
fn what_is_removed_and_what_cannot_be_read_is_named() {
    let place = Place::new();
    copies(&place, &abandoned(&place), 1);
    std::fs::create_dir(place.path("copies/other.mscope.session")).expect("a folder");
    let listed = stdout(&place.run("sessions copies"));
    assert!(
        listed.contains("Not listed, what belongs to another user")
            && listed.contains("  copies/other.mscope.session\n"),
        "{listed}"
    );
    let cleaned = place.run("sessions --clean --yes copies");
    assert_eq!(cleaned.status.code(), Some(0));
    let said = stderr(&cleaned);
    assert!(said.contains("/copies/0.mscope.session (") && said.contains("no profile was made of it"), "{said}");
    assert!(said.contains("copies/other.mscope.session belongs to another user"), "{said}");
    assert!(place.path("copies/other.mscope.session").exists());
}

/// A shared memory of its own, in which no other test leaves anything.
struct Apart {
    process: Child,
}

impl Apart {
    /// `None` where there are no namespaces.
    fn make(place: &Place) -> Option<Apart> {
        let script = "mount -t tmpfs none /dev/shm && echo made && exec sleep 600";
        let mut command = place.command("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("unshare starts");
        let mut said = String::new();
        let answers = process.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(answers), &mut said).expect("text");
        let apart = Apart { process };
        (said == "made\n").then_some(apart)
    }

    /// `memscope` there.
    fn memscope(&self, place: &Place) -> Command {
        let mut command = place.command("nsenter");
        command.args(["--user", "--mount", "--preserve-credentials", "--wd=.", "--target"]);
        command.arg(self.process.id().to_string()).arg(env!("CARGO_BIN_EXE_memscope"));
        command
    }

    /// A path there, as it is seen from here.
    fn path(&self, path: &Path) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.process.id())).join(path.strip_prefix("/").expect("an absolute path"))
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn who_outlives_the_program_is_named_and_keeps_the_simulated_device() {
    let place = Place::new();
    let Some(apart) = Apart::make(&place) else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "SKIPPED who outlives the program: no shared memory of its own here");
        return;
    };
    let run =
        |arguments: &str| apart.memscope(&place).args(arguments.split_whitespace()).output().expect("memscope starts");
    let program = place.compile_linked("turns");
    let line = format!(
        "(exec >/dev/null 2>&1; while [ ! -e go ]; do sleep 0.1; done; {} plain 4 2 2>said; echo $? >ended) & echo $MEMSCOPE_LOG_DIR; exit 3",
        program.display()
    );
    let mut command = apart.memscope(&place);
    command.args(["run", "-o", "p.mscope", "--json", "r.json", "--device", "1GiB", "--", "sh", "-c", &line]);
    let output = command.output().expect("memscope starts");
    assert_eq!(output.status.code(), Some(3));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("r.json")).expect("a report")).expect("JSON");
    let shell = report["outlived"].as_array().expect("processes").iter().find(|survivor| survivor["name"] == "sh");
    let shell = format!("{} (sh)", shell.expect("the one in the background")["pid"]);
    let said = stderr(&output);
    assert!(said.contains("the program has ended with status 3; "), "{said}");
    assert!(said.contains("no longer recorded: ") && said.matches(&shell).count() == 2, "{said}");
    let again = stdout(&run("report p.mscope"));
    assert!(again.contains("still running when the recording ended") && again.contains(&shell), "{again}");

    let session = place.path("p.mscope.session").display().to_string();
    let listed = || stdout(&run("sessions"));
    let line =
        listed().lines().find(|line| line.starts_with("Processes ") && line.contains(&session)).map(str::to_owned);
    assert!(
        line.as_ref().is_some_and(|line| line.contains(&shell) && line.contains("recording has ended")),
        "{line:?}"
    );
    // The program's first call of the driver comes when memscope is gone.
    std::fs::write(place.path("go"), "").expect("written");
    let ended = || std::fs::read_to_string(place.path("ended")).is_ok_and(|status| status.ends_with('\n'));
    wait_until("it has ended", ended);
    let read = |name: &str| std::fs::read_to_string(place.path(name)).expect("a file");
    assert_eq!((read("ended").as_str(), read("said").as_str()), ("0\n", ""));
    wait_until("nobody is left", || !listed().contains(&format!("of {session} still run")));
    let (named, logs) = (stdout(&output), apart.path(Path::new(stdout(&output).trim())));
    if named.starts_with("/dev/shm") {
        let old = place.command("touch").args(["-d", "1 hour ago"]).arg(&logs).status().expect("touch");
        assert!(old.success() && listed().contains(&format!("{}  nobody uses it", named.trim())), "{}", listed());
        let cleaned = run("sessions --clean --yes");
        assert!(!logs.exists(), "{}", stderr(&cleaned));
    }
}

#[test]
fn logs_that_nobody_uses_are_removed_and_others_are_left_with_the_reason() {
    let place = Place::new();
    let Some(apart) = Apart::make(&place) else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "SKIPPED logs that are left behind: no shared memory of its own here");
        return;
    };
    let program = place.compile_linked("hold");
    // One that does not say of which session it is.
    let silent = ["env", "-u", "MEMSCOPE_SESSION"];
    let logs = |name: &str| {
        let link = place.path(&format!("{name}.mscope.session/logs"));
        apart.path(&std::fs::read_link(link).expect("a link to the logs"))
    };
    let start = |name: &str, words: &[&str]| {
        let mut command = apart.memscope(&place);
        command.args(["run", "-q", "-o", &format!("{name}.mscope"), "--device", "1GiB", "--"]).args(words);
        let held = Held::of(command.arg(&program).arg("300000"), &program);
        wait_until("there is a log", || {
            place.path(&format!("{name}.mscope.session/logs")).is_symlink()
                && std::fs::read_dir(logs(name)).is_ok_and(|mut logs| logs.any(|log| is_log(&log)))
        });
        held
    };
    let mut held: Vec<Held> = [("gone", &[][..]), ("says", &[]), ("silent", &silent), ("young", &[]), ("whole", &[])]
        .into_iter()
        .map(|(name, words)| start(name, words))
        .collect();
    for one in &mut held {
        one.kill_memscope();
    }
    for position in [0, 3, 4] {
        held[position].kill_program();
    }
    let [gone, says, silent, young, whole] = ["gone", "says", "silent", "young", "whole"].map(logs);
    for name in ["gone", "says", "silent", "young"] {
        std::fs::remove_dir_all(place.path(&format!("{name}.mscope.session"))).expect("removed");
    }
    let old = std::time::SystemTime::now() - Duration::from_secs(120);
    for folder in [&gone, &says, &silent, &whole] {
        std::fs::File::open(folder).and_then(|folder| folder.set_modified(old)).expect("older");
    }
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();

    let listed = stdout(&apart.memscope(&place).arg("sessions").output().expect("memscope starts"));
    let line =
        |path: &Path| listed.lines().find(|line| line.contains(&name(path))).unwrap_or_else(|| panic!("{listed}"));
    assert!(line(&gone).ends_with("nobody uses it"), "{listed}");
    assert!(line(&says).contains(&format!("its processes {} (hold) still run", held[1].program)), "{listed}");
    assert!(line(&silent).contains(&format!("processes {} (hold) have it open", held[2].program)), "{listed}");
    assert!(line(&young).contains("just been made"), "{listed}");

    let cleaned = apart.memscope(&place).args(["sessions", "--clean", "--yes"]).output().expect("memscope starts");
    let said = stderr(&cleaned);
    assert_eq!(cleaned.status.code(), Some(0), "{said}");
    assert!(said.contains("left behind: ") && said.contains("removed: 1 folder of logs"), "{said}");
    assert!(said.contains("removed: 1 session"), "the one that is whole: {said}");
    assert_eq!(said.matches(" is kept: ").count(), 3, "{said}");
    assert_eq!([gone, says, silent, young, whole].map(|path| path.exists()), [false, true, true, true, false]);
    held[1].kill_program();
    held[2].kill_program();
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
