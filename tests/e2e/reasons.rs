//! Why nothing was captured: each reason by what makes it true, with what to do about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harmless::skip;
use crate::memscope::{Place, stderr};

/// Records `words` in `place`: what the report says of it, in one line, after the demand that there is one finding.
#[track_caller]
fn said(place: &Place, words: &[&str]) -> String {
    let mut command = place.memscope();
    let output = command.args(["run", "-f", "-o", "p.mscope", "--json", "r.json", "--"]).args(words).output().unwrap();
    let report = fs::read(place.path("r.json")).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0]["kind"], "nothing_captured");
    let (message, advice) = (findings[0]["message"].as_str().unwrap(), findings[0]["advice"].as_str().unwrap());
    // In its text long paths are shortened.
    let again = place.run("report p.mscope --format json");
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(again["findings"], report["findings"], "the profile says the same");
    format!("{message}. {advice}")
}

#[track_caller]
fn expect(place: &Place, words: &[&str], parts: &[&str]) {
    let said = said(place, words);
    for part in parts {
        assert!(said.contains(part), "{words:?} misses {part:?}: {said}");
    }
}

fn compiled(place: &Place, source: &str, flags: &[&str], name: &str) {
    fs::write(place.path("source.c"), source).unwrap();
    let status = place.command("cc").args(["-o", name, "source.c"]).args(flags).status().unwrap();
    assert!(status.success(), "cc {flags:?}");
}

const SLEEPS: &str = "#include <unistd.h>\nint main(void) { return sleep(1); }\n";

#[test]
fn a_program_without_cuda() {
    let place = Place::new();
    for words in [&["true"][..], &["git", "--version"], &["python3", "-c", "pass"], &["sh", "-c", "ls; sleep 0.3; ls"]]
    {
        expect(&place, words, &["no process with memscope's library called a CUDA function that memscope records"]);
    }
    expect(&place, &["sleep", "1"], &["records; none had loaded the CUDA driver when memscope last looked"]);
    expect(&place, &["ls", "/nowhere"], &["ended with status 2 before any process with memscope's library called"]);
}

#[test]
fn a_driver_that_nobody_used() {
    let place = Place::new();
    place.link_folder();
    compiled(&place, SLEEPS, &["-Wl,--no-as-needed", "-Llink", "-Wl,-rpath,link", "-lcuda"], "idle");
    fs::copy(place.path("link/libcuda.so"), place.path("link/libcuda.so.1")).unwrap();
    expect(&place, &["./idle"], &["/idle loaded the CUDA driver and called no function of it that memscope records"]);
}

#[test]
fn an_emptied_environment() {
    let place = Place::new();
    let words = ["env", "-i", "/bin/true"];
    expect(
        &place,
        &words,
        &["`env -i` takes LD_PRELOAD out", "env -i memscope run -- /bin/true", "doctor -- env -i /bin/true`"],
    );
    // Where the command does not tell, the program that runs does.
    let parts = [
        "/sleep was started without memscope's library, because LD_PRELOAD is not in its environment",
        "sudo memscope run",
    ];
    expect(&place, &["sh", "-c", "env -i sleep 1; true"], &parts);
}

#[test]
fn a_child_into_which_nothing_can_be_loaded() {
    let place = Place::new();
    compiled(&place, SLEEPS, &["-static"], "still");
    expect(&place, &["sh", "-c", "./still; true"], &["/still is statically linked", "the program has started it"]);
    // As the program that it becomes, it is seen before the start.
    expect(&place, &["sh", "-c", "exec ./still"], &["./still is statically linked", "doctor -- sh -c 'exec ./still'"]);
    fs::write(place.path("source.c"), SLEEPS).unwrap();
    match place.command("musl-gcc").args(["-o", "musl", "source.c"]).status() {
        Ok(made) if made.success() => expect(&place, &["sh", "-c", "./musl; true"], &["/musl uses musl"]),
        _ => skip("a child of musl: there is no musl-gcc (Debian: musl-tools)"),
    }
    compiled(&place, SLEEPS, &[], "own");
    if !place.command("chown").args(["1:1", "own"]).output().unwrap().status.success() {
        return skip("a set-user-ID child: only root can make one of another user");
    }
    fs::set_permissions(place.path("own"), fs::Permissions::from_mode(0o4755)).unwrap();
    expect(&place, &["sh", "-c", "./own; true"], &["/own is set-user-ID", "the program has started it"]);
}

#[test]
fn a_place_from_which_the_logs_cannot_be_reached() {
    let place = Place::new();
    fs::create_dir(place.path("root")).unwrap();
    compiled(&place, SLEEPS, &["-static"], "root/still");
    if !place.command("chroot").args(["root", "/still"]).status().is_ok_and(|status| status.success()) {
        return skip("another root folder and another user: only root may choose them");
    }
    expect(
        &place,
        &["chroot", "root", "/still"],
        &["/still was started in another root folder", "start memscope inside"],
    );
    let words = ["setpriv", "--reuid=65534", "--clear-groups", "sleep", "1"];
    expect(&place, &words, &["sleep was started as another user (65534), who cannot reach the folder of the logs"]);
}

#[test]
fn a_place_in_which_the_library_is_not() {
    let place = Place::new();
    compiled(&place, SLEEPS, &[], "inside");
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    fs::create_dir_all(cache).unwrap();
    let line = format!("mount -t tmpfs none '{cache}' && exec ./inside");
    if !place.command("unshare").args(["-m", "sh", "-c", &line]).output().is_ok_and(|output| output.status.success()) {
        return skip("a program in a mount namespace without memscope's library: none can be made here");
    }
    let parts = ["/inside was started where memscope's library, /", "is not there", "start memscope inside"];
    expect(&place, &["unshare", "-m", "sh", "-c", &line], &parts);
}

/// Programs that live a few milliseconds, which no look may meet. Each is tried often: none may be missed.
#[test]
fn what_lives_only_milliseconds() {
    const TIMES: usize = 20;
    let place = Place::new();
    compiled(&place, "#include <unistd.h>\nint main(void) { return usleep(3000); }\n", &[], "short");
    let short = "/short was started without memscope's library, because LD_PRELOAD is not in its environment";
    // Python looks for the second one in all folders of PATH.
    let python = |arguments: &str| format!("import subprocess; subprocess.run({arguments}, check=True)");
    for _ in 0..TIMES {
        expect(&place, &["sh", "-c", "LD_PRELOAD= ./short; true"], &[short]);
        expect(&place, &["sh", "-c", "unset LD_PRELOAD; ./short; true"], &[short]);
        expect(&place, &["python3", "-c", &python("['./short'], env={}")], &[short]);
        let words = python("['true'], env={'PATH': '/nowhere:/bin'}");
        expect(&place, &["python3", "-c", &words], &["/true was started without memscope's library"]);
    }
}

#[test]
fn a_program_that_was_killed() {
    let place = Place::new();
    expect(
        &place,
        &["sh", "-c", "kill -9 $$"],
        &["signal 9 (SIGKILL) ended the program before any process with memscope's library called a CUDA function"],
    );
}

#[test]
fn a_program_that_ends_past_its_exit_handlers() {
    let place = Place::new();
    compiled(&place, "#include <unistd.h>\nint main(void) { _exit(3); }\n", &[], "leaves");
    expect(&place, &["./leaves"], &["ended with status 3 before any process with memscope's library called"]);
}

#[test]
fn a_driver_that_is_used_out_of_sight() {
    let place = Place::new();
    place.link_folder();
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint cuInit(unsigned);\nint main(void) { cuInit(0); return sleep(1); }\n";
    compiled(&place, source, &["-Llink", "-lcuda"], "uses");
    fs::copy(place.path("link/libcuda.so"), place.path("link/libcuda.so.1")).unwrap();
    // An idle static program beside it explains less.
    compiled(&place, SLEEPS, &["-static"], "still");
    let line = "./still & env -i LD_LIBRARY_PATH=link ./uses; wait";
    expect(&place, &["sh", "-c", line], &["/uses uses the CUDA driver without memscope's library"]);
}
