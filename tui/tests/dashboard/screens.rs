//! Snapshots of the whole dashboard.

use memscope_tui::glyphs::{ASCII, UNICODE};
use memscope_tui::palette::{Depth, Palette, Scheme};

use crate::sessions;
use crate::trace::Trace;
use crate::view::{COLOURED, Look, View};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn name(what: &str, size: (u16, u16)) -> String {
    format!("{what}_{}x{}", size.0, size.1)
}

fn in_all_sizes(what: &str, trace: &Trace, keys: &str) {
    for size in SIZES {
        let mut view = View::new(trace, size);
        insta::assert_snapshot!(name(what, size), view.press(keys).text());
    }
}

#[test]
fn overview() {
    in_all_sizes("overview", &sessions::training(), "");
}

#[test]
fn overview_at_the_peak() {
    in_all_sizes("overview_peak", &sessions::training(), "p");
}

#[test]
fn allocations() {
    in_all_sizes("allocations", &sessions::training(), "a");
}

#[test]
fn allocations_grouped() {
    in_all_sizes("allocations_by_scope", &sessions::training(), "apb");
}

#[test]
fn scopes() {
    in_all_sizes("scopes", &sessions::training(), "sp");
}

#[test]
fn scopes_as_an_icicle() {
    in_all_sizes("icicle", &sessions::training(), "spv");
}

#[test]
fn segments() {
    in_all_sizes("segments", &sessions::training(), "mp");
}

#[test]
fn steps() {
    in_all_sizes("steps", &sessions::leaking(), "t");
}

#[test]
fn overview_of_a_leak() {
    in_all_sizes("leak", &sessions::leaking(), "");
}

#[test]
fn out_of_memory() {
    in_all_sizes("out_of_memory", &sessions::out_of_memory(), "");
}

#[test]
fn eight_gpus() {
    in_all_sizes("eight_gpus", &sessions::eight_gpus(), "");
}

#[test]
fn styles() {
    let trace = sessions::training();
    let size = (100, 30);
    for (name, scheme, depth) in [
        ("default_true", Scheme::Default, Depth::True),
        ("default_256", Scheme::Default, Depth::Indexed),
        ("default_16", Scheme::Default, Depth::Ansi),
        ("colour_blind_true", Scheme::ColourBlind, Depth::True),
        ("colour_blind_16", Scheme::ColourBlind, Depth::Ansi),
        ("mono", Scheme::Mono, Depth::True),
        ("no_colour", Scheme::Default, Depth::None),
    ] {
        let look = Look { palette: Palette::new(scheme, depth), glyphs: &UNICODE };
        let mut view = View::looking(&trace, size, look);
        insta::assert_snapshot!(format!("styles_{name}"), view.press("p").styled());
    }
}

/// Not compared: `MEMSCOPE_SHOW=folder` writes screens with their styles there, to be looked at.
#[test]
fn shown_when_asked_for() {
    let Some(folder) = std::env::var_os("MEMSCOPE_SHOW").map(std::path::PathBuf::from) else { return };
    for (name, trace, keys) in [
        ("overview", sessions::training(), ""),
        ("oom", sessions::out_of_memory(), ""),
        ("eight", sessions::eight_gpus(), ""),
        ("allocations", sessions::training(), "ap"),
        ("scopes", sessions::training(), "spe"),
        ("icicle", sessions::training(), "spv"),
        ("segments", sessions::training(), "mp"),
        ("steps", sessions::leaking(), "t"),
    ] {
        for size in SIZES {
            let mut view = View::new(&trace, size);
            std::fs::write(folder.join(format!("{name}_{}", size.0)), view.press(keys).styled()).expect("written");
        }
    }
}
