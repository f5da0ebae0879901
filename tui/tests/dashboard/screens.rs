//! Snapshots of the whole dashboard.

use crossterm::event::KeyCode;
use memscope_core::explorer::Explorer;
use memscope_core::keep::Keep;
use memscope_tui::glyphs::{ASCII, UNICODE};
use memscope_tui::output::Output;
use memscope_tui::palette::{Depth, Palette, Scheme};
use ratatui::style::Color;

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
fn a_program_on_the_cpu_is_its_host_memory() {
    let mut view = View::new(&sessions::on_the_cpu(), (120, 40));
    insta::assert_snapshot!("on_the_cpu_120x40", view.press("p").text());
    insta::assert_snapshot!("on_the_cpu_steps_120x40", view.press("t").text());
    // It is all there is: no other target.
    let before = view.press("op").text();
    view.key(KeyCode::Tab);
    assert_eq!(view.text(), before);
}

#[test]
fn a_large_terminal() {
    let mut view = View::new(&sessions::leaking(), (250, 70));
    insta::assert_snapshot!("leak_250x70", view.press("p+").text());
}

#[test]
fn allocations() {
    in_all_sizes("allocations", &sessions::training(), "a");
}

#[test]
fn allocations_grouped() {
    in_all_sizes("allocations_by_scope", &sessions::training(), "apbb");
}

#[test]
fn allocations_by_name() {
    in_all_sizes("allocations_by_name", &sessions::training(), "apb");
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

#[test]
fn a_session_with_nothing_in_it_says_what_it_waits_for() {
    in_all_sizes("nothing_yet", &sessions::nothing_yet(), "");
    let mut view = View::new(&sessions::nothing_captured(), (80, 24));
    insta::assert_snapshot!("nothing_captured_80x24", view.press("").text());
}

#[test]
fn one_allocation() {
    in_all_sizes("one_allocation", &sessions::one_allocation(), "");
    let mut view = View::new(&sessions::one_allocation(), (80, 24));
    for (name, key) in [("allocations", "a"), ("scopes", "s"), ("segments", "m"), ("steps", "t"), ("output", "u")] {
        insta::assert_snapshot!(format!("one_allocation_{name}_80x24"), view.press(key).text());
    }
}

#[test]
fn what_is_wrong_with_figures_is_said_on_every_screen() {
    for trace in [sessions::dropped(), sessions::training()] {
        for size in [(40, 10), (80, 24), (200, 60)] {
            let mut view = View::new(&trace, size);
            for screen in "oasmtu".chars() {
                let first = view.press(&screen.to_string()).text().lines().next().expect("a header").to_owned();
                assert!(first.contains("SIMULATED"), "{screen} at {size:?}: {first}");
                let dropped = trace.entries.len() != sessions::training().entries.len();
                let said = if size.0 < 70 { "3 DROPPED" } else { "3 EVENTS DROPPED" };
                assert_eq!(first.contains(said), dropped, "{screen} at {size:?}: {first}");
            }
        }
    }
    in_all_sizes("dropped", &sessions::dropped(), "");
}

#[test]
fn ascii_is_ascii() {
    let look = Look { palette: Palette::new(Scheme::Default, Depth::None), glyphs: &ASCII };
    let mut trace = sessions::training();
    trace.tagged(0x7000_0000_0000, 3 << 30, memscope_core::Category::Inputs, "größe");
    for size in SIZES {
        let mut view = View::looking(&trace, size, look);
        for (screen, keys) in [
            ("overview", "op"),
            ("allocations", "al"),
            ("scopes", "sp"),
            ("icicle", "v"),
            ("segments", "m"),
            ("steps", "t"),
            ("output", "u"),
            ("help", "?"),
        ] {
            let text = view.press(keys).text();
            assert!(text.is_ascii(), "{screen}: {:?}", text.chars().find(|char| !char.is_ascii()));
            if size.0 == 120 {
                insta::assert_snapshot!(format!("ascii_{screen}"), text);
            }
        }
    }
}

#[test]
fn without_colours_patterns_tell_categories_apart() {
    let look = Look { palette: Palette::new(Scheme::Default, Depth::None), glyphs: &UNICODE };
    let trace = sessions::training();
    for (name, keys) in [("overview", "p"), ("segments", "mp"), ("icicle", "spv"), ("steps", "t")] {
        let mut view = View::looking(&trace, (120, 40), look);
        let text = view.press(keys).styled();
        insta::assert_snapshot!(format!("no_colour_{name}"), text);
        let colours = view.buffer().content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert!(!colours, "{name}");
    }
}

#[test]
fn tiny_terminals_get_a_sentence() {
    for (width, height) in [(1, 1), (20, 5), (39, 9), (40, 9), (39, 40)] {
        let view = View::new(&sessions::training(), (width, height));
        let text = view.text();
        let first: String = "memscope needs".chars().take(usize::from(width)).collect();
        assert!(text.starts_with(&first), "{text}");
    }
    for keys in ["o", "a", "s", "m", "t", "u"] {
        let mut view = View::new(&sessions::training(), (40, 10));
        insta::assert_snapshot!(format!("smallest_{keys}"), view.press(keys).text());
    }
}

#[test]
fn dialogs() {
    let mut view = View::new(&sessions::out_of_memory(), (80, 24));
    insta::assert_snapshot!("findings_80x24", view.press("f").text());
    let mut view = View::new(&sessions::simulated_libraries(), (100, 40));
    insta::assert_snapshot!("findings_of_simulated_libraries", view.press("f").text());
    let mut view = View::new(&sessions::training(), (80, 24));
    insta::assert_snapshot!("help_80x24", view.press("?").text());
    let mut view = View::of_program(&sessions::training(), (80, 24), None);
    insta::assert_snapshot!("leaving_80x24", view.press("q").text());
}

#[test]
fn the_programs_output() {
    let output = Output::new(21, 80);
    let _ = output.feed(b"epoch 1\r\n\x1b[32mloss 0.25\x1b[0m\r\nprogress [####    ]\r");
    let mut view = View::of_program(&sessions::training(), (80, 24), Some(output));
    insta::assert_snapshot!("output_80x24", view.press("u").styled());
    insta::assert_snapshot!("output_typing_80x24", view.press("i").text());
}

/// A profile's figures are those of the session that it was made of.
#[test]
fn a_profile_looks_as_its_session_did() {
    let trace = sessions::leaking();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    let mut model = memscope_core::allocation::Model::new();
    for entry in &trace.entries {
        model.apply(entry);
    }
    memscope_core::profile::write(&model, &path, false).expect("written");
    let profile = memscope_core::profile::Profile::open(&path).expect("opened");
    for keys in ["o", "ap", "sp", "mp", "t"] {
        let explorer = Explorer::of_profile(&profile).expect("explored");
        let mut of_profile = View::of(explorer, (120, 40), COLOURED, None, false);
        let mut of_session = View::new(&trace, (120, 40));
        assert_eq!(of_profile.press(keys).text(), of_session.press(keys).text(), "{keys}");
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

#[test]
fn lists_of_what_is_not_kept_say_so() {
    let kept =
        |size| View::of(sessions::training().kept(Keep::Steps(Some(6), Some(7)), 50), size, COLOURED, None, false);
    let mut view = kept((120, 40));
    insta::assert_snapshot!("kept_live_120x40", view.text());
    // Step 3 is summed only; the nearest moment whose lists are whole is the first of step 6.
    view.press("t");
    for key in [KeyCode::Home, KeyCode::Down, KeyCode::Down, KeyCode::Enter] {
        view.key(key);
    }
    for (screen, key) in [("overview", "o"), ("allocations", "a"), ("scopes", "s"), ("segments", "m"), ("steps", "t")] {
        insta::assert_snapshot!(format!("kept_summed_{screen}_120x40"), view.press(key).text());
    }
    insta::assert_snapshot!("kept_groups_120x40", view.press("abb").text());
    insta::assert_snapshot!("kept_again_120x40", view.press("bbbbow").text());
    // Of the peak the largest scopes were told before its allocations went.
    insta::assert_snapshot!("kept_peak_120x40", view.press("p").text());
    let mut small = kept((80, 24));
    small.press("t");
    for key in [KeyCode::Home, KeyCode::Enter] {
        small.key(key);
    }
    insta::assert_snapshot!("kept_summed_overview_80x24", small.press("o").text());
    insta::assert_snapshot!("kept_summed_allocations_80x24", small.press("a").text());
}
