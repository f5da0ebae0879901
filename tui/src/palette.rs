//! Which colour means what.
//!
//! Owns: the palettes, and what is left of them on terminals with fewer colours. Refuses: shapes (`glyphs`).
//!
//! The colour-blind-safe palette is the one of Okabe and Ito ("Color universal design", 2008); its black, which no terminal
//! shows on black, is a grey here.

use memscope_core::Category;
use ratatui::style::{Color, Modifier, Style};

/// A choice of colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheme {
    /// memscope's own.
    #[default]
    Default,
    /// Tellable apart with any colour vision.
    ColourBlind,
    /// Bold, dim and reverse alone; categories are told apart by patterns.
    Mono,
}

/// How many colours the terminal has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// None.
    None,
    /// The 16 of ANSI.
    Ansi,
    /// 256, as xterm has them.
    Indexed,
    /// 24 bits.
    True,
}

/// Colours for everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Palette {
    /// Which one.
    pub scheme: Scheme,
    /// For which terminal.
    pub depth: Depth,
}

/// Parts of a device's memory beside the program's allocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foreign {
    /// Contexts, libraries: of the program, and not allocated by it.
    Unexplained,
    /// Of other processes.
    Others,
    /// Of firmware and driver.
    Firmware,
    /// Of nobody that the driver names.
    Unowned,
}

/// A colour as 24 bits, and its nearest in meaning among the 16.
type Ink = (u32, Color);

/// Categories by number: unknown, weights, gradients, activations, optimizer, inputs, workspace.
const DEFAULT: [Ink; 7] = [
    (0x8b95a1, Color::Gray),
    (0x4c9be8, Color::LightBlue),
    (0xf0883e, Color::LightRed),
    (0x57c26d, Color::LightGreen),
    (0xb083f0, Color::LightMagenta),
    (0x3fc5c9, Color::LightCyan),
    (0xe6c84b, Color::LightYellow),
];

const OKABE_ITO: [Ink; 7] = [
    (0x999999, Color::Gray),
    (0x0072b2, Color::Blue),
    (0xd55e00, Color::Red),
    (0x009e73, Color::Green),
    (0xcc79a7, Color::LightMagenta),
    (0x56b4e9, Color::LightCyan),
    (0xf0e442, Color::LightYellow),
];

/// Error, warning, good, accent, faint; with each palette but mono.
const ROLES: [Ink; 5] = [
    (0xff6b62, Color::LightRed),
    (0xe3b341, Color::LightYellow),
    (0x6cc070, Color::LightGreen),
    (0x79b8ff, Color::LightCyan),
    (0x7d8590, Color::DarkGray),
];
const OKABE_ITO_ROLES: [Ink; 5] = [
    (0xd55e00, Color::Red),
    (0xe69f00, Color::Yellow),
    (0x009e73, Color::Green),
    (0x56b4e9, Color::LightCyan),
    (0x8a8a8a, Color::DarkGray),
];

impl Scheme {
    /// Its name, as in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Default => "default",
            Scheme::ColourBlind => "colour-blind",
            Scheme::Mono => "mono",
        }
    }

    /// The one after it.
    pub const fn next(self) -> Scheme {
        match self {
            Scheme::Default => Scheme::ColourBlind,
            Scheme::ColourBlind => Scheme::Mono,
            Scheme::Mono => Scheme::Default,
        }
    }
}

impl Depth {
    /// What the environment says of the terminal: NO_COLOR and TERM=dumb have none, COLORTERM announces 24 bits, TERM the
    /// rest.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Depth {
        let term = variable("TERM").unwrap_or_default();
        if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) || matches!(term.as_str(), "dumb" | "vt100") {
            return Depth::None;
        }
        let announced = variable("COLORTERM").unwrap_or_default();
        if matches!(announced.as_str(), "truecolor" | "24bit") || term.ends_with("-direct") {
            Depth::True
        } else if term.contains("256color") {
            Depth::Indexed
        } else {
            Depth::Ansi
        }
    }
}

impl Palette {
    /// The palette of a scheme; without colours it is [`Scheme::Mono`].
    pub const fn new(scheme: Scheme, depth: Depth) -> Palette {
        Palette { scheme: if matches!(depth, Depth::None) { Scheme::Mono } else { scheme }, depth }
    }

    /// The next palette that this terminal can show.
    pub const fn next(self) -> Palette {
        Palette::new(self.scheme.next(), self.depth)
    }

    /// True when colours say nothing, and patterns must.
    pub const fn mono(&self) -> bool {
        matches!(self.scheme, Scheme::Mono)
    }

    /// A category's colour; [`Color::Reset`] in mono.
    pub fn category(&self, category: Category) -> Color {
        match self.scheme {
            Scheme::Default => self.ink(DEFAULT[category as usize]),
            Scheme::ColourBlind => self.ink(OKABE_ITO[category as usize]),
            Scheme::Mono => Color::Reset,
        }
    }

    /// A category's name or figure.
    pub fn category_text(&self, category: Category) -> Style {
        Style::new().fg(self.category(category))
    }

    /// Reserved memory that is not live: cached and rounding.
    pub fn idle(&self) -> Style {
        match self.depth {
            Depth::None => Style::new(),
            _ if self.mono() => Style::new(),
            _ => Style::new().fg(self.ink((0x4a5260, Color::DarkGray))),
        }
    }

    /// What is in use and none of the program's allocations.
    pub fn foreign(&self, what: Foreign) -> Style {
        const INKS: [Ink; 4] =
            [(0xb08968, Color::Red), (0x5f7299, Color::Blue), (0x434b57, Color::DarkGray), (0x6e6480, Color::Magenta)];
        if self.mono() { Style::new() } else { Style::new().fg(self.ink(INKS[what as usize])) }
    }

    /// What failed.
    pub fn error(&self) -> Style {
        self.role(0, Modifier::BOLD | Modifier::REVERSED).add_modifier(Modifier::BOLD)
    }

    /// What deserves a look.
    pub fn warning(&self) -> Style {
        self.role(1, Modifier::BOLD).add_modifier(Modifier::BOLD)
    }

    /// What is well.
    pub fn good(&self) -> Style {
        self.role(2, Modifier::empty())
    }

    /// Keys, titles and the time cursor.
    pub fn accent(&self) -> Style {
        self.role(3, Modifier::BOLD)
    }

    /// What explains the rest: units, rules, labels.
    pub fn faint(&self) -> Style {
        self.role(4, Modifier::DIM)
    }

    /// What matters most of a line.
    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Laid over a selected line.
    pub fn selected(&self) -> Style {
        match self.depth {
            Depth::True | Depth::Indexed if !self.mono() => {
                Style::new().bg(self.ink((0x2d3748, Color::DarkGray))).add_modifier(Modifier::BOLD)
            }
            _ => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    fn role(&self, role: usize, plain: Modifier) -> Style {
        match self.scheme {
            Scheme::Default => Style::new().fg(self.ink(ROLES[role])),
            Scheme::ColourBlind => Style::new().fg(self.ink(OKABE_ITO_ROLES[role])),
            Scheme::Mono => Style::new().add_modifier(plain),
        }
    }

    fn ink(&self, (rgb, ansi): Ink) -> Color {
        let [_, red, green, blue] = rgb.to_be_bytes();
        match self.depth {
            Depth::None => Color::Reset,
            Depth::Ansi => ansi,
            Depth::Indexed => Color::Indexed(nearest(red, green, blue)),
            Depth::True => Color::Rgb(red, green, blue),
        }
    }
}

/// The nearest of xterm's 256 colours: its cube of 6×6×6 (16 to 231) and its ramp of 24 greys (232 to 255). The first 16 are
/// what the user made of them, and are left alone.
fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level = |value: u8| (0..6u8).min_by_key(|index| LEVELS[*index as usize].abs_diff(value)).unwrap_or_default();
    let distance = |other: [u8; 3]| {
        [red, green, blue].iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum::<u32>()
    };
    let (r, g, b) = (level(red), level(green), level(blue));
    let cube = (16 + 36 * r + 6 * g + b, [r, g, b].map(|index| LEVELS[index as usize]));
    let grey = |step: u8| (232 + step, [8 + 10 * step; 3]);
    (0..24).map(grey).chain([cube]).min_by_key(|(_, colour)| distance(*colour)).map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(variables: &[(&str, &str)]) -> Depth {
        Depth::detect(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_says_how_many_colours_there_are() {
        assert_eq!(depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), Depth::True);
        assert_eq!(depth(&[("TERM", "xterm-256color")]), Depth::Indexed);
        assert_eq!(depth(&[("TERM", "xterm")]), Depth::Ansi);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), Depth::None);
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "")]), Depth::Ansi, "empty means not set: no-color.org");
        assert_eq!(depth(&[("TERM", "dumb"), ("COLORTERM", "24bit")]), Depth::None);
    }

    #[test]
    fn the_nearest_of_256_colours_is_found() {
        // From the definition of the cube: pure red is 16 + 36·5.
        assert_eq!(nearest(255, 0, 0), 196);
        assert_eq!(nearest(0, 0, 0), 16);
        // 8 + 10·10 = 108 is a grey of the ramp, and no level of the cube.
        assert_eq!(nearest(108, 108, 108), 242);
        assert_eq!(nearest(95, 135, 175), 16 + 36 + 12 + 3);
    }

    #[test]
    fn categories_are_told_apart_wherever_there_is_colour() {
        for scheme in [Scheme::Default, Scheme::ColourBlind] {
            for depth in [Depth::Ansi, Depth::Indexed, Depth::True] {
                let palette = Palette::new(scheme, depth);
                let colours: std::collections::HashSet<_> =
                    Category::ALL.iter().map(|category| palette.category(*category)).collect();
                assert_eq!(colours.len(), Category::ALL.len(), "{palette:?}");
            }
        }
    }

    #[test]
    fn without_colours_every_palette_is_mono() {
        let mut palette = Palette::new(Scheme::ColourBlind, Depth::None);
        for _ in 0..3 {
            assert!(palette.mono());
            for style in [palette.error(), palette.faint(), palette.selected(), palette.idle()] {
                assert_eq!((style.fg, style.bg), (None, None));
            }
            palette = palette.next();
        }
    }
}
