//! `memscope config`, and what wins over the configuration file.

use std::fs;

use crate::memscope::{Place, stderr, stdout};

#[test]
fn a_file_is_made_once_and_shown_with_its_sources() {
    let place = Place::new();
    let path = stdout(&place.run("config path"));
    let path = path.trim_end();
    assert!(path.ends_with("/memscope/config.toml") && path.starts_with(place.path("").to_str().unwrap()), "{path}");

    let made = place.run("config init");
    assert!(made.status.success(), "{}", stderr(&made));
    let template = fs::read_to_string(path).expect("the file is there");
    fs::write(path, format!("{template}interval = 500\n")).expect("the file can be edited");

    let refused = place.run("config init");
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("already exists"), "{}", stderr(&refused));
    let shown = place.memscope().args(["config", "print"]).env("NO_COLOR", "1").output().expect("memscope starts");
    let shown = stdout(&shown);
    for (setting, source) in
        [("tui = false", "default"), ("palette = \"mono\"", "NO_COLOR"), ("top.interval = 500", "file")]
    {
        let line = shown.lines().find(|line| line.starts_with(setting)).unwrap_or_else(|| panic!("{setting}: {shown}"));
        assert!(line.ends_with(&format!("# {source}")), "{line}");
    }

    assert!(place.run("config init --force").status.success());
    assert_eq!(fs::read_to_string(path).expect("the file is there"), template);
}

#[test]
fn a_wrong_file_stops_a_run_before_the_program_starts() {
    let place = Place::new();
    assert!(place.run("config init").status.success());
    let path = stdout(&place.run("config path"));
    fs::write(path.trim_end(), "tui = 1\n").expect("the file can be edited");
    let refused = place.run("run -- touch started");
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(said.contains(path.trim_end()) && said.contains("line 1"), "{said}");
    assert!(!place.path("started").exists());
    // What needs no configuration still works.
    assert!(place.run("devices").status.success());
}

#[test]
fn without_a_terminal_a_setting_shows_no_dashboard() {
    let place = Place::new();
    let output =
        place.memscope().args("run -q -o p.mscope -- echo plain".split(' ')).env("MEMSCOPE_TUI", "1").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "plain\n");
    assert!(place.path("p.mscope").exists());
}
