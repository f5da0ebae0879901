//! Programs that have nothing to do with CUDA, and places that are hostile to a recording: output and status are what they are
//! without memscope, and why nothing was captured is said.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::memscope::{Place, number, stderr, stdout};

/// Says that something was not tried here, past the test harness, which hides what passing tests print.
pub fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}");
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// What a program gave, without what is another time's.
fn seen(output: &Output) -> (Option<i32>, String, String) {
    let without_times = |text: String| {
        let lines = text.lines().map(|line| {
            let timed = line.starts_with("Ran ").then(|| line.split_once(" in ")).flatten();
            // A job that a shell has started: its number stays, the process's does not.
            let job = line.split_once("] ").filter(|(_, pid)| pid.trim_end().bytes().all(|byte| byte.is_ascii_digit()));
            timed.or(job).map_or(line, |(kept, _)| kept)
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    (output.status.code(), without_times(stdout(output)), without_times(stderr(output)))
}

/// Runs `words` in a folder of its own without memscope and in another with it; both must have given the same, which is returned.
#[track_caller]
fn same(words: &[&str]) -> (Option<i32>, String, String) {
    let (alone, under) = (Place::new(), Place::new());
    let plain = alone.command(words[0]).args(&words[1..]).stdin(Stdio::null()).output().expect("it starts");
    let mut command = under.memscope();
    command.args(["run", "-q", "-f", "-o", "x.mscope", "--"]).args(words).stdin(Stdio::null());
    let recorded = command.output().expect("memscope starts");
    assert_eq!(seen(&plain), seen(&recorded), "{words:?}");
    seen(&plain)
}

/// The same in a terminal of its own, which `script` makes. What it shows must be what it shows.
#[track_caller]
fn same_in_a_terminal(line: &str) -> Option<String> {
    if !is_there("script") {
        skip(&format!("`{line}` in a terminal: there is no script(1)"));
        return None;
    }
    let [plain, recorded] =
        ["", concat!(env!("CARGO_BIN_EXE_memscope"), " run -q -f -o x.mscope -- ")].map(|wrapper| {
            let place = Place::new();
            let mut command = place.command("script");
            command.args(["-qefc", &format!("{wrapper}{line}"), "/dev/null"]).env("TERM", "dumb").env("PS1", "$ ");
            command.stdin(Stdio::null()).output().expect("script starts")
        });
    assert_eq!(seen(&plain), seen(&recorded), "{line}");
    Some(stdout(&plain))
}

#[test]
fn git_is_as_ever() {
    let script = "set -e; export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' \
                  GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null; git init -q r; cd r; git config user.name n; \
                  git config user.email e; for i in 1 2 3; do echo $i > f$i; git add f$i; git commit -qm c$i; done; \
                  git log --stat; git gc -q; git fsck; git -c advice.detachedHead=false checkout HEAD~1; git merge nothing";
    let (status, text, _) = same(&["sh", "-c", script]);
    assert!(status == Some(1) && text.contains("c3"), "{text}");
}

#[test]
fn pythons_own_tests_are_as_ever() {
    let modules = ["test.test_fork1", "test.test_popen", "test.test_errno"];
    let has_tests = ["-c", "import test.test_fork1, test.test_popen, test.test_errno"];
    if !Command::new("python3").args(has_tests).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skip("Python's own tests: there is no python3 with its package `test`");
    }
    let words: Vec<&str> = ["python3", "-m", "unittest", "-q"].into_iter().chain(modules).collect();
    let (_, _, said) = same(&words);
    assert!(said.contains("Ran "), "{said}");
}

#[test]
fn node_is_as_ever() {
    if !is_there("node") {
        return skip("node: it is not installed");
    }
    let script = "const {Worker} = require('worker_threads'), {execFileSync} = require('child_process');\
                  console.log(execFileSync(process.execPath, ['-p', '6 * 7']).toString());\
                  const w = new Worker('require(\"worker_threads\").parentPort.postMessage(1)', {eval: true});\
                  w.on('message', m => { console.error('worker', m); process.exitCode = 5; });";
    let (status, text, said) = same(&["node", "-e", script]);
    assert_eq!((status, text.as_str(), said.as_str()), (Some(5), "42\n", "worker 1"));
}

#[test]
fn a_java_machine_is_as_ever() {
    if !is_there("java") {
        return skip("a Java machine: it is not installed");
    }
    if !is_there("javac") {
        let (status, _, said) = same(&["java", "-Xmx64m", "-version"]);
        return assert!(status == Some(0) && said.contains("version"), "{said}");
    }
    // Threads, a full heap, a fault that the machine takes for itself, a child, a hook at the end.
    let source = "import java.util.*; import java.util.concurrent.*;\n\
        public class Main { static String nothing;\n\
        public static void main(String[] words) throws Exception {\n\
        var pool = Executors.newFixedThreadPool(4); long sum = 0;\n\
        Callable<Long> work = () -> { long s = 0; for (int i = 0; i < 100000; i++) s += new byte[1000].length; return s; };\n\
        for (var one : pool.invokeAll(Collections.nCopies(8, work))) sum += one.get();\n\
        pool.shutdown(); System.out.println(sum);\n\
        try { nothing.length(); } catch (NullPointerException e) { System.out.println(\"null\"); }\n\
        var child = new ProcessBuilder(\"sh\", \"-c\", \"echo child; exit 4\").start();\n\
        System.out.print(new String(child.getInputStream().readAllBytes())); System.out.println(child.waitFor());\n\
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println(\"hook\")));\n\
        System.exit(9); } }\n";
    let place = Place::new();
    fs::write(place.path("Main.java"), source).unwrap();
    let (status, text, _) = same(&["java", "-Xmx64m", place.path("Main.java").to_str().unwrap()]);
    assert_eq!((status, text.as_str()), (Some(9), "800000000\nnull\nchild\n4\nhook"));
}

#[test]
fn a_shell_with_job_control_is_as_ever() {
    let jobs = "bash --norc -i -c 'sleep 0.3 | cat & fg %1; echo $?; (exit 4) | (exit 5) | (exit 6); echo ${PIPESTATUS[@]}; \
                [ -t 0 ] && stty size; ps -o stat= -p $$ | grep -c +; exit 7'";
    if let Some(text) = same_in_a_terminal(jobs) {
        assert!(text.contains("4 5 6"), "{text}");
    }
}

#[test]
fn interactive_programs_are_as_ever() {
    for (program, line, expected) in [
        (
            "python3",
            "python3 -q -i -c 'import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), flush=True); import os; os._exit(3)'",
            "True True",
        ),
        ("vim", "vim -u NONE -es -c 'put =6*7' -c '%print' -c 'cquit 3'", "42"),
    ] {
        if !is_there(program) {
            skip(&format!("{program} in a terminal: it is not installed"));
        } else if let Some(text) = same_in_a_terminal(line) {
            assert!(text.contains(expected), "{program}: {text}");
        }
    }
}

#[test]
fn a_child_that_outlives_its_parent_is_as_ever() {
    let (status, text, _) = same(&["sh", "-c", "(sleep 0.5; echo late; exec >&-; sleep 1) & echo early; exit 3"]);
    assert_eq!((status, text.as_str()), (Some(3), "early\nlate"));
    // One that records while its session ends, and one that begins when it has ended.
    let place = Place::new();
    let stress = place.compile("stress", &[]).display().to_string();
    let line = format!("{stress} 2 3000000 & (sleep 1.5; {stress} 1 100000) & exit 3");
    let (status, text, _) = same(&["sh", "-c", &line]);
    assert_eq!((status, text.as_str()), (Some(3), "done\ndone"));
}

#[test]
fn programs_into_which_nothing_can_be_loaded_say_so_and_run() {
    let place = Place::new();
    fs::write(place.path("m.c"), "int main(void) { return 7; }").unwrap();
    match place.command("musl-gcc").args(["-o", "m", "m.c"]).status() {
        Ok(made) if made.success() => {
            let (output, report) = place.record("-- ./m");
            assert_eq!(output.status.code(), Some(7));
            assert!(report["findings"].to_string().contains("musl"), "{}", report["findings"]);
        }
        _ => skip("a program of musl: there is no musl-gcc (Debian: musl-tools)"),
    }
    let copied = place.command("sh").args(["-c", "cp /bin/true own && chown 1:1 own"]).output().unwrap();
    if !copied.status.success() {
        return skip("a set-user-ID program: only root can make one of another user");
    }
    fs::set_permissions(place.path("own"), fs::Permissions::from_mode(0o4755)).unwrap();
    let (output, report) = place.record("-- ./own");
    assert_eq!(output.status.code(), Some(0));
    assert!(report["findings"].to_string().contains("set-user-ID"), "{}", report["findings"]);
}

/// Root's home is root's alone; the loader of a program that becomes another user must find the library all the same, also where
/// nobody else may read what root makes.
#[test]
fn a_program_of_another_user_is_as_ever() {
    let place = Place::new();
    fs::create_dir(place.path("home")).unwrap();
    fs::set_permissions(place.path("home"), fs::Permissions::from_mode(0o700)).unwrap();
    let program = "setpriv --reuid=65534 --clear-groups sh -c 'cd /; echo out; echo error >&2; exit 3'";
    let inside = |run: &str| {
        let script = format!("mount -t tmpfs -o mode=755 none /var/cache || exit 99; umask 077; {run} {program}");
        let mut command = place.command("unshare");
        command.args(["--mount", "sh", "-c", &script]).env("RUN", env!("CARGO_BIN_EXE_memscope"));
        command.env("HOME", place.path("home")).env_remove("XDG_CACHE_HOME").output().unwrap()
    };
    let plain = inside("");
    if plain.status.code() != Some(3) {
        return skip(&format!("a program of another user: root may not choose one here: {}", stderr(&plain)));
    }
    let recorded = inside("\"$RUN\" run -q -f -o x.mscope --");
    assert_eq!((recorded.status.code(), &recorded.stdout), (Some(3), &plain.stdout));
    let own = stderr(&recorded).lines().filter(|line| !line.starts_with("memscope:")).collect::<Vec<_>>().join("\n");
    assert_eq!(own + "\n", stderr(&plain));
}

#[test]
fn a_library_bound_deeply_is_the_reason_why_nothing_was_captured() {
    let place = Place::new();
    let host = place.compile("plugin_host", &[]);
    place.compile_linked("three_ways"); // for the folder of the link stub
    let plugin = place.path("libplugin.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/plugin.c");
    let link = format!("-L{}", place.path("link").display());
    let made =
        place.command("cc").args(["-shared", "-fPIC", "-o"]).arg(&plugin).args([source, &link, "-lcuda"]).status();
    assert!(made.unwrap().success());
    let line = format!("--device 1GiB -- {} {} deeply", host.display(), plugin.display());
    let (output, report) = place.record(&line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(report["findings"].to_string().contains("RTLD_DEEPBIND"), "{}", report["findings"]);
}

/// Runs `script` with a file system of its own in /dev/shm and one in `disk`; `None` where none can be mounted. `$RUN` is memscope.
fn with_mounts(shared_memory: &str, disk: &str, script: &str) -> Option<(Place, Output)> {
    let place = Place::new();
    let stress = place.compile("stress", &[]);
    fs::create_dir(place.path("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o {shared_memory} none /dev/shm && mount -t tmpfs -o {disk} none disk || exit 99\n{script}"
    );
    let mut command = place.command("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &script]);
    command.env("RUN", env!("CARGO_BIN_EXE_memscope")).env("STRESS", stress);
    match command.output() {
        Ok(output) if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") => {
            Some((place, output))
        }
        refused => {
            skip(&format!("small file systems: none can be mounted here: {refused:?}"));
            None
        }
    }
}

#[test]
fn little_or_no_shared_memory_is_no_harm() {
    // 400,000 events are 25 MiB; 64 MiB is what containers have. Where shared memory has no room, logs lie on the disk.
    for options in ["size=64m", "size=64m,ro", "size=64k", "size=4k"] {
        let script = "\"$RUN\" run -q -f -o x.mscope --json r.json -- \"$STRESS\" 2 200000";
        let Some((place, output)) = with_mounts(options, "size=1m", script) else { return };
        assert_eq!(
            (output.status.code(), stdout(&output).as_str()),
            (Some(0), "done\n"),
            "{options}: {}",
            stderr(&output)
        );
        let report: serde_json::Value = serde_json::from_slice(&fs::read(place.path("r.json")).unwrap()).unwrap();
        assert_eq!(number(&report, "/dropped_events"), 0, "{options}");
    }
}

#[test]
fn a_full_disk_is_said_and_changes_neither_output_nor_status() {
    let script = "head -c 900000 /dev/zero > disk/full; \"$RUN\" run -f -o disk/x.mscope -- sh -c '\"$STRESS\" 2 500000; exit 6'";
    let Some((_, output)) = with_mounts("size=256m", "size=1m", script) else { return };
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(6), "done\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
}
