//! `--stacks native`: functions and lines of programs in C++ and Rust, and what is told where debug information is missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use memscope_core::allocation::Model;
use memscope_core::profile::Profile;

use crate::memscope::{Place, stderr};

/// File's last name, line and function.
type Frame = (String, u32, String);

/// The frames of each allocation of a program that is recorded, from the inside outwards.
fn recorded(place: &Place, program: &Path, stacks: &str) -> (Model, Vec<Vec<Frame>>) {
    let (output, _) = place.record(&format!("--stacks {stacks} --device 1GiB -- {}", program.display()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let model = Profile::open(place.path("p.mscope")).unwrap().model().unwrap();
    let text = |name| model.names().text(name);
    let last = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let frames = model.allocations().iter().map(|allocation| {
        let outwards = model.stacks().outwards(allocation.stack);
        outwards.map(|(_, node)| (last(text(node.file)), node.line, text(node.function))).collect()
    });
    let frames = frames.collect();
    (model, frames)
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The line of a source that is named by a comment.
fn line(name: &str, mark: &str) -> u32 {
    let text = std::fs::read_to_string(source(name)).unwrap();
    let mark = format!("// place: {mark}");
    text.lines().position(|line| line.ends_with(&mark)).unwrap_or_else(|| panic!("no {mark} in {name}")) as u32 + 1
}

fn build(place: &Place, compiler: &str, name: &str, arguments: &[&str]) -> PathBuf {
    let program = place.path(&format!("{name}.out"));
    let link = format!("-L{}", place.link_folder().display());
    let status = Command::new(compiler).arg(source(name)).arg("-o").arg(&program).args(arguments).arg(link).status();
    assert!(status.unwrap_or_else(|error| panic!("{compiler}: {error}")).success(), "{compiler} {name} {arguments:?}");
    program
}

fn cxx(place: &Place, arguments: &[&str]) -> PathBuf {
    build(place, "c++", "functions.cc", &[arguments, &["-std=c++17", "-lcuda"]].concat())
}

#[test]
fn functions_and_lines_of_cxx_are_those_of_the_source() {
    let place = Place::new();
    let expected = |which: &str, number: &str| {
        let at =
            |mark: &str, function: &str| ("functions.cc".to_owned(), line("functions.cc", mark), function.to_owned());
        [
            // Built into its caller, a function that no other file can call is known by its bare name.
            at("take", "take"),
            at("forward", &format!("net::Layer<{number}>::forward(unsigned long)")),
            at(which, "train(int)::{lambda(unsigned long)#1}::operator()(unsigned long) const"),
            at("step", "train(int)"),
            at("main", "main"),
        ]
    };
    for arguments in [["-O0", "-g"], ["-O2", "-g"]] {
        let (model, frames) = recorded(&place, &cxx(&place, &arguments), "native");
        assert_eq!(frames.len(), 6);
        for (index, frames) in frames.iter().enumerate() {
            let (which, number) = [("float", "float"), ("double", "double")][index % 2];
            assert_eq!(frames[..5], expected(which, number), "{arguments:?}");
            assert!(frames[5..].iter().all(|(file, ..)| file != "functions.cc"), "{frames:?}");
        }
        // Where an allocation was made is told by the program's own line, and each place once.
        let stacks: Vec<_> = model.allocations().iter().map(|allocation| allocation.stack).collect();
        assert!(stacks[0] == stacks[2] && stacks[1] == stacks[3] && stacks[0] != stacks[1]);
        let site = model.stacks().text(stacks[0], model.names());
        assert!(site.ends_with(&format!("functions.cc:{} in take", line("functions.cc", "take"))), "{site}");
        assert!(model.stacks().is_own(stacks[0], model.names()));
    }
}

#[test]
fn without_debug_information_there_are_functions_and_without_symbols_addresses() {
    let place = Place::new();
    let (_, frames) = recorded(&place, &cxx(&place, &["-O2"]), "native");
    let functions: Vec<_> = frames[0].iter().map(|(_, line, function)| (*line, function.as_str())).collect();
    assert_eq!(functions[0], (0, "net::Layer<float>::forward(unsigned long)"));
    assert!(functions.contains(&(0, "main")), "{functions:?}");
    let (model, frames) = recorded(&place, &cxx(&place, &["-O2", "-s"]), "native");
    let (file, line, function) = &frames[0][0];
    assert_eq!((file.as_str(), *line), ("functions.cc.out", 0));
    assert!(u64::from_str_radix(function.strip_prefix("+0x").unwrap(), 16).is_ok(), "{function}");
    let text = model.stacks().text(model.allocations()[0].stack, model.names());
    assert!(text.ends_with(&format!("functions.cc.out{function}")), "{text}");
}

#[test]
fn functions_and_lines_of_rust_are_those_of_the_source() {
    let place = Place::new();
    for optimisation in ["-Copt-level=0", "-Copt-level=3"] {
        let program = build(&place, "rustc", "functions.rs", &["--edition=2024", "-g", optimisation]);
        let (_, frames) = recorded(&place, &program, "native");
        assert_eq!(frames.len(), 3);
        for frames in &frames {
            let own: Vec<_> = frames.iter().filter(|(file, ..)| file == "functions.rs").collect();
            let told: Vec<_> = own.iter().map(|(_, line, function)| (*line, function.as_str())).collect();
            let at = |mark| line("functions.rs", mark);
            let expected = [
                (at("take"), "functions::take"),
                (at("forward"), "functions::Layer::forward"),
                (at("train"), "functions::train::{{closure}}"),
                (at("train"), "functions::train"),
                (at("main"), "functions::main"),
            ];
            assert_eq!(told, expected, "{optimisation}");
        }
    }
}

#[test]
fn a_program_that_is_gone_is_told_by_its_addresses() {
    let place = Place::new();
    let program = cxx(&place, &["-O2", "-g"]);
    let gone = format!("--stacks native --device 1GiB -- sh -c {}&&rm+{}", program.display(), program.display());
    let mut command = place.memscope();
    command
        .args(["run", "-q", "-o", "p.mscope"])
        .args(gone.split(' ').map(|word| word.replace("&&", " && ").replace('+', " ")));
    assert!(command.status().unwrap().success());
    let model = Profile::open(place.path("p.mscope")).unwrap().model().unwrap();
    let text = model.stacks().text(model.allocations()[0].stack, model.names());
    assert!(text.contains("functions.cc.out+0x"), "{text}");
}

#[test]
fn without_the_flag_there_are_no_stacks() {
    let place = Place::new();
    let program = cxx(&place, &["-O2"]);
    for stacks in ["off", "module", "python"] {
        let (model, frames) = recorded(&place, &program, stacks);
        assert!(model.stacks().is_empty() && frames.iter().all(Vec::is_empty));
    }
}
