//! How the terminal views look: what flags and settings ask for, as tui/ takes it.
//!
//! Owns: that translation. Refuses: to look at the terminal; tui/ finds out what it can do.

use memscope_tui::dashboard;
use memscope_tui::glyphs;
use memscope_tui::output::Output;
use memscope_tui::palette::{Depth, Scheme};

use crate::arguments::{Colors, Palette, ScreenArguments};
use crate::config::Config;

/// The look of a view that shows this output, if there is any: flags first, then settings, then what the environment says.
pub fn options(config: &Config, flags: &ScreenArguments, output: Option<Output>) -> dashboard::Options {
    let found = dashboard::Options::default();
    let ascii = if flags.ascii { Some(true) } else { config.ascii.value };
    dashboard::Options {
        scheme: match flags.palette.unwrap_or(config.palette.value) {
            Palette::Default => Scheme::Default,
            Palette::ColorBlind => Scheme::ColourBlind,
            Palette::Mono => Scheme::Mono,
        },
        depth: match flags.colors.unwrap_or(config.colors.value) {
            Colors::Auto => found.depth,
            Colors::Ansi => Depth::Ansi,
            Colors::Indexed => Depth::Indexed,
            Colors::Truecolor => Depth::True,
        },
        glyphs: match ascii {
            None => found.glyphs,
            Some(true) => &glyphs::ASCII,
            Some(false) => &glyphs::UNICODE,
        },
        mouse: config.mouse.value && !flags.no_mouse,
        output,
    }
}
