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
