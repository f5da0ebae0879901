//! Programs of other loaders and of sanitizers, started by memscope or by a program that it started: output and status are what
//! they are without memscope, and what can be recorded is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::harmless::skip;
use crate::memscope::{Place, number, stderr, stdout};

/// Prints and becomes the program that the arguments name, or ends with 7.
const RELAY: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
                     int main(int count, char **arguments) {\n\
                     puts(\"relay\"); fflush(stdout);\n\
                     arguments++; if (count > 2 && **arguments == '-') arguments += 2;\n\
                     if (count > 1) { execvp(*arguments, arguments); perror(*arguments); return 9; }\n\
                     return 7; }\n";

/// Compiles `source` in `place` by a compiler and its arguments; false where that cannot be done here.
fn made(place: &Place, source: &str, name: &str, words: &[&str]) -> bool {
    fs::write(place.path("source.c"), source).unwrap();
    let mut command = place.command(words[0]);
    command.args(["-o", name, "source.c"]).args(&words[1..]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// What a shell's line gives in `place`, alone and recorded, must be the same.
#[track_caller]
fn same(place: &Place, line: &str) -> Output {
    let words = ["sh", "-c", line];
    let plain = place.command(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap();
    let mut command = place.memscope();
    command.args(["run", "-q", "-f", "-o", "x.mscope", "--"]).args(words).stdin(Stdio::null());
    let recorded = command.output().expect("memscope starts");
    assert_eq!(
        (plain.status.code(), stdout(&plain), without_numbers(&plain)),
        (recorded.status.code(), stdout(&recorded), without_numbers(&recorded)),
        "{line}"
    );
    plain
}

/// What a program has said of errors, without addresses and the numbers of processes.
fn without_numbers(output: &Output) -> String {
    let text = stderr(output);
    let words = text.split_inclusive(|character: char| !character.is_ascii_alphanumeric()).map(|word| {
        let digits = word.trim_start_matches("0x");
        if digits.len() > 3 && digits.starts_with(|first: char| first.is_ascii_digit()) { "#" } else { word }
    });
    words.collect()
}

#[test]
fn programs_of_musl_are_as_ever_wherever_they_come_from() {
    let place = Place::new();
    if !made(&place, RELAY, "relay", &["musl-gcc"]) {
        return skip("programs of musl: there is no musl-gcc (Debian: musl-tools)");
    }
    assert!(made(&place, RELAY, "still", &["musl-gcc", "-static"]));
    fs::write(place.path("script"), format!("#!{} -x\n", place.path("relay").display())).unwrap();
    fs::set_permissions(place.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    for (line, status, text) in [
        ("./relay; echo $?", 0, "relay\n7\n"),
        ("./relay | ./relay cat | cat; ./still; exit $?", 7, "relay\nrelay\nrelay\n"),
        ("./script sh -c 'exit 5'", 5, "relay\n"),
        ("exec ./relay ./still sh -c './relay ./relay; exit 4'", 4, "relay\nrelay\nrelay\nrelay\n"),
        ("echo './relay' | xargs -n 1 env; echo $?", 0, "relay\n123\n"),
    ] {
        let output = same(&place, line);
        assert_eq!(
            (output.status.code(), stdout(&output).as_str(), stderr(&output).as_str()),
            (Some(status), text, "")
        );
    }
}

#[test]
fn what_a_program_of_musl_starts_is_recorded() {
    let place = Place::new();
    if !made(&place, RELAY, "relay", &["musl-gcc"]) {
        return skip("a program of musl that starts others: there is no musl-gcc (Debian: musl-tools)");
    }
    let program = place.compile_linked("three_ways");
    // With simulated CUDA libraries, which musl's loader could find as little.
    let (output, report) = place.record(&format!("--device 2GiB -- ./relay ./relay {} link", program.display()));
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("relay\nrelay\nstart 0\n"), "{}", stdout(&output));
    assert_eq!(number(&report, "/totals/allocations"), 153);
}

#[test]
fn programs_of_32_bits_are_as_ever() {
    let place = Place::new();
    // Without a C library's start files, which are rarely there for 32 bits.
    let source = "int puts(const char *); int fflush(void *); void _exit(int);\n\
                  void _start(void) { puts(\"32 bits\"); fflush((void *)0); _exit(6); }\n";
    let alone = "void _start(void) { __asm__ volatile(\"int $0x80\" :: \"a\"(1), \"b\"(5)); }\n";
    let bare = ["cc", "-m32", "-nostdlib", "-fno-pic", "-no-pie", "-fno-stack-protector", "-mstackrealign"];
    assert!(made(&place, alone, "alone", &bare), "the compiler makes programs of 32 bits");
    if place.command("./alone").status().is_err() {
        return skip("programs of 32 bits: this kernel runs none");
    }
    let folder = ["/lib32", "/usr/lib32", "/lib/i386-linux-gnu", "/lib", "/usr/lib"];
    let library = folder
        .map(|folder| format!("{folder}/libc.so.6"))
        .into_iter()
        .find(|path| fs::read(path).is_ok_and(|content| content.starts_with(b"\x7fELF\x01")));
    assert_eq!(same(&place, "./alone; echo $?").stdout, b"5\n");
    let Some(library) = library.filter(|_| Path::new("/lib/ld-linux.so.2").exists()) else {
        return skip("a program of 32 bits with libraries: there is no C library for it (Debian: libc6-i386)");
    };
    assert!(made(
        &place,
        source,
        "shared",
        &[&bare[..], &[&library, "-Wl,-dynamic-linker,/lib/ld-linux.so.2"]].concat()
    ));
    let output = same(&place, "./shared; echo $?; ./shared | cat; exec ./shared");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(6), "32 bits\n6\n32 bits\n32 bits\n"));
    assert_eq!(stderr(&output), "");
    let (output, report) = place.record("--device 1GiB -- ./shared");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(6), ""));
    assert!(report["findings"].to_string().contains("32-bit"), "{}", report["findings"]);
}

/// The sanitizers that gcc has as shared libraries, and one that is linked statically.
const SANITIZERS: [&[&str]; 5] = [
    &["-fsanitize=address"],
    &["-fsanitize=address", "-static-libasan"],
    &["-fsanitize=thread"],
    &["-fsanitize=undefined"],
    &["-fsanitize=leak"],
];

/// Does what sanitizers find, as the argument says.
const FAULTY: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
                      static int shared; static char *volatile kept;\n\
                      static void *race(void *nothing) { shared++; return nothing; }\n\
                      int main(int count, char **arguments) {\n\
                      const char *what = count > 1 ? arguments[1] : \"\"; kept = malloc(10); memset(kept, 1, 10);\n\
                      if (!strcmp(what, \"bounds\")) kept[atoi(\"10\")] = 1;\n\
                      if (!strcmp(what, \"overflow\")) printf(\"%d\\n\", 2147483647 + count);\n\
                      if (!strcmp(what, \"race\")) { pthread_t other; pthread_create(&other, 0, race, 0); usleep(200000); shared++;\n\
                      pthread_join(other, 0); }\n\
                      if (strcmp(what, \"leak\")) free(kept); else kept = 0;\n\
                      puts(\"end\"); return 3; }\n";

#[test]
fn programs_of_sanitizers_are_as_ever_and_recorded() {
    for flags in SANITIZERS {
        let place = Place::new();
        let words = [&["cc", "-g", "-pthread"], flags].concat();
        let runs = || place.command("./faulty").output().is_ok_and(|output| output.status.code() == Some(3));
        if !made(&place, FAULTY, "faulty", &words) || !runs() {
            skip(&format!("programs of a sanitizer: cc {flags:?} makes none that runs here"));
            continue;
        }
        let mut found = 0;
        for what in ["", "bounds", "overflow", "race", "leak"] {
            let output = same(&place, &format!("./faulty {what}; echo $?; exec ./faulty {what}"));
            found += usize::from(!output.stderr.is_empty());
        }
        assert!(found > 0, "{flags:?} finds something");

        let folder = format!("-L{}", place.link_folder().display());
        let program = place.compile("three_ways", &[flags, &[&folder, "-lcuda"]].concat());
        for line in ["-- ", "-- env "] {
            let (output, report) = place.record(&format!("--device 2GiB {line}{} link", program.display()));
            assert_eq!(output.status.code(), Some(4), "{flags:?}: {}{}", stdout(&output), stderr(&output));
            assert_eq!(number(&report, "/totals/allocations"), 153, "{flags:?}");
            assert_eq!(number(&report, "/totals/frees"), 152, "{flags:?}");
        }
    }
}

#[test]
fn a_program_whose_glibc_is_too_old_runs_without_the_preload_and_says_so() {
    let place = Place::new();
    // The loader itself, but beside it a C library with the versions of an old one: what is looked at before the start.
    let loader = "/lib64/ld-linux-x86-64.so.2";
    fs::create_dir(place.path("old")).unwrap();
    fs::copy(loader, place.path("old/loader")).unwrap();
    fs::write(place.path("versions"), "GLIBC_2.2.5 { global: main; };\nGLIBC_2.12 { } GLIBC_2.2.5;\n").unwrap();
    let library = "int main(void) { return 0; }\n";
    assert!(made(&place, library, "old/libc.so.6", &["cc", "-shared", "-fPIC", "-Wl,--version-script=versions"]));
    let named = format!("-Wl,-dynamic-linker,{}", place.path("old/loader").display());
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"LD_PRELOAD\") ? \"with\" : \"without\"); return 7; }\n";
    assert!(made(&place, source, "program", &["cc", &named]));
    let (output, report) = place.record("-- ./program");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(7), "without\n"), "{}", stderr(&output));
    let findings = report["findings"].to_string();
    assert!(findings.contains("2.12") && findings.contains("2.17"), "{findings}");
}
