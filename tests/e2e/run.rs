//! `memscope run`: status, descriptors, output files, usage, and what is refused before the program starts.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::Stdio;

use crate::memscope::{Place, stderr, stdout};

#[test]
fn the_status_is_the_programs() {
    let place = Place::new();
    for (script, status) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        let output = place.memscope().args(["run", "-q", "-f", "-o", "x", "--", "sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{script}: {}", stderr(&output));
    }
}

#[test]
fn a_program_that_cannot_start_gives_127_or_126_and_leaves_nothing() {
    let place = Place::new();
    let output = place.run("run -- ./no-such-program");
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-program"), "{}", stderr(&output));

    fs::write(place.path("data"), "not a program").unwrap();
    fs::set_permissions(place.path("data"), fs::Permissions::from_mode(0o644)).unwrap();
    let output = place.run("run -- ./data");
    assert_eq!(output.status.code(), Some(126), "{}", stderr(&output));
    let left: Vec<_> = place.names().into_iter().filter(|name| name.contains("mscope")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn wrong_usage_is_2() {
    let place = Place::new();
    for arguments in [
        "run",
        "run --",
        "run --device no-such-device -- true",
        "run --device 0 -- true",
        "run --device 99999999TiB -- true",
        "run --device h100-80gb --devices 0 -- true",
        "run --device h100-80gb --devices 17 -- true",
        "run --devices 2 -- true",
        "run --no-compute -- true",
        "run --interval 0 -- true",
        "run --no-such-flag -- true",
        "report",
        "report x --at nonsense",
        "export x",
        "nonsense",
        "",
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "`{arguments}`: {}", stderr(&output));
        assert!(!output.stderr.is_empty(), "`{arguments}` said nothing");
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn existing_output_needs_force() {
    let place = Place::new();
    fs::write(place.path("x.mscope"), "precious").unwrap();
    let output = place.run("run -q -o x.mscope -- touch started");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("x.mscope") && stderr(&output).contains("-f"), "{}", stderr(&output));
    assert!(!place.path("started").exists(), "the program ran all the same");
    assert_eq!(fs::read(place.path("x.mscope")).unwrap(), b"precious");

    let output = place.run("run -q -f -o x.mscope -- touch started");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_ne!(fs::read(place.path("x.mscope")).unwrap(), b"precious");
}

#[test]
fn an_unwritable_folder_is_said_before_the_start() {
    let place = Place::new();
    for target in ["/proc/x.mscope", "/proc/no/such/folder/x.mscope"] {
        let output = place.run(&format!("run -q -o {target} -- touch started"));
        assert_eq!(output.status.code(), Some(1), "{target}: {}", stderr(&output));
        assert!(stderr(&output).contains(target.rsplit_once('/').unwrap().0), "{}", stderr(&output));
        assert!(!place.path("started").exists());
    }
    let output = place.run("run -q -o x.mscope --json /proc/r.json -- touch started");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(!place.path("started").exists());
    assert!(!place.names().iter().any(|name| name.contains("session")), "{:?}", place.names());
}

#[test]
fn a_folder_that_is_not_there_is_made() {
    let place = Place::new();
    let output = place.run("run -q -o run/of/today/x.mscope --json other/x.json -- true");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(place.path("run/of/today/x.mscope").is_file() && place.path("other/x.json").is_file());
}

#[test]
fn only_ordinary_files_are_replaced() {
    let place = Place::new();
    let made = place.command("mkfifo").arg("fifo").status().unwrap();
    assert!(made.success());
    symlink("nowhere", place.path("dangling")).unwrap();
    symlink("/dev/null", place.path("null")).unwrap();
    for name in ["fifo", "dangling", "null", "/dev/null", "."] {
        for flag in ["-o", "--json"] {
            let other = if flag == "-o" { "" } else { "-o p" };
            let output = place.run(&format!("run -q -f {other} {flag} {name} -- touch started"));
            assert_eq!(output.status.code(), Some(1), "{flag} {name}: {}", stderr(&output));
            assert!(!place.path("started").exists(), "{flag} {name}: the program ran all the same");
        }
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    // A link to a file stays a link, and its file is replaced.
    fs::write(place.path("real"), "old").unwrap();
    symlink("real", place.path("link")).unwrap();
    assert!(place.run("run -q -f -o link -- true").status.success());
    assert!(place.path("link").is_symlink());
    assert_ne!(fs::read(place.path("real")).unwrap(), b"old");
}

#[test]
fn profile_and_json_need_two_files() {
    let place = Place::new();
    let output = place.run("run -q -o x --json ./x -- touch started");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!place.path("started").exists());
}

#[test]
fn closed_descriptors_stay_closed() {
    let place = Place::new();
    for redirection in ["<&-", ">&-", "2>&-"] {
        let statuses = ["", concat!(env!("CARGO_BIN_EXE_memscope"), " run -q -f -o x -- ")].map(|wrapper| {
            // The program tells through its status which of its standard descriptors are open.
            let program =
                "sh -c 'n=0; for d in 0 1 2; do [ -e /proc/$$/fd/$d ] && n=$((n + 1 + d * d)); done; exit $n'";
            let script = format!("{wrapper}{program} {redirection}");
            place.command("sh").args(["-c", &script]).output().unwrap().status.code()
        });
        assert_eq!(statuses[0], statuses[1], "{redirection}");
    }
}

#[test]
fn a_cache_folder_that_the_loader_cannot_read_is_passed_over() {
    let place = Place::new();
    let output = place
        .memscope()
        .env("XDG_CACHE_HOME", place.path("a b:c"))
        .env("HOME", place.path("d e"))
        .args(["run", "-q", "-f", "-o", "p", "--", "true"])
        .output()
        .unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn output_and_descriptors_are_the_programs_own() {
    let place = Place::new();
    let script = "cat; printf out; printf err >&2; printf five >&5; ls -l /proc/self/fd | wc -l; ulimit -n";
    let mut outputs = Vec::new();
    for wrapper in [&[][..], &[env!("CARGO_BIN_EXE_memscope"), "run", "-q", "-f", "-o", "x", "--"]] {
        let words: Vec<&str> = wrapper.iter().copied().chain(["sh", "-c", script]).collect();
        // A shell opens descriptor 5 first, so that both get it.
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let mut command = place.command("sh");
        command.args(["-c", &format!("{line} 5>five <<'END'\nfed\nEND\n")]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        outputs.push((stdout(&output), stderr(&output), fs::read(place.path("five")).unwrap(), output.status.code()));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert!(outputs[0].0.starts_with("fed\nout"));
}

#[test]
fn quiet_says_nothing_and_the_summary_goes_to_stderr() {
    let place = Place::new();
    let output = place.run("run -q -o a -- echo hello");
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("hello\n", ""));
    let output = place.run("run -o b -- echo hello");
    assert_eq!(stdout(&output), "hello\n");
    assert!(stderr(&output).contains('b'), "{}", stderr(&output));
    assert!(!stderr(&output).contains('\r'), "progress belongs on a terminal only");
}

#[test]
fn nothing_captured_comes_with_its_reason() {
    let place = Place::new();
    let (output, report) = place.record("-- true");
    assert_eq!(output.status.code(), Some(0));
    let findings = report["findings"].to_string();
    assert!(findings.contains("nothing_captured"), "{findings}");
    assert_eq!(report["totals"]["allocations"], 0);

    fs::write(place.path("s.c"), "int main(void) { return 7; }").unwrap();
    let compiled = place.command("cc").args(["-static", "-o", "s", "s.c"]).status().unwrap();
    assert!(compiled.success(), "cc -static");
    let (output, report) = place.record("-- ./s");
    assert_eq!(output.status.code(), Some(7));
    assert!(report["findings"].to_string().contains("statically linked"), "{}", report["findings"]);
}

#[test]
fn a_session_is_gone_when_its_profile_is_written() {
    let place = Place::new();
    let output = place.run("run -q -o x.mscope -- sh -c ls");
    assert!(stdout(&output).contains("x.mscope.session"), "{}", stdout(&output));
    assert_eq!(place.names(), ["x.mscope"]);
}

#[test]
fn ranks_and_nodes_on_one_disk_have_files_of_their_own() {
    const RANKS: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
    let place = Place::new();
    let run = |rank: Option<&str>, arguments: &[&str]| {
        let mut command = place.memscope();
        for name in RANKS {
            command.env_remove(name);
        }
        command.env("SLURMD_NODENAME", "node07").args(["run", "-q"]).args(arguments).args(["--", "touch", "started"]);
        if let Some(rank) = rank {
            command.env("SLURM_PROCID", rank);
        }
        command.output().unwrap()
    };
    let refused = run(None, &["-o", "{rank}.mscope"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("none of RANK,"), "{}", stderr(&refused));
    assert!(place.names().is_empty(), "nothing was started: {:?}", place.names());
    for rank in ["0", "1"] {
        let output = run(Some(rank), &["-o", "{node}-{rank}.mscope", "--json", "{rank}.json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(place.names(), ["0.json", "1.json", "node07-0.mscope", "node07-1.mscope", "started"]);
    assert_eq!(run(Some("5"), &[]).status.code(), Some(0));
    assert!(place.names().iter().any(|name| name.starts_with("memscope-touch-rank5-")), "{:?}", place.names());
}
