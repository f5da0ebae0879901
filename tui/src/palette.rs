//! Which colour means what.
//!
//! Owns: what is left of core's palettes on terminals with fewer colours. Refuses: shapes (`glyphs`).

use memscope_core::Category;
pub use memscope_core::colours::Foreign;
use memscope_core::colours::{Background, Colours, Palette as Table, Rgb};
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

/// A colour as 24 bits, and its nearest in meaning among the 16.
type Ink = (Rgb, Color);

/// Categories by number, among the 16: unknown, weights, gradients, activations, optimizer, inputs, workspace.
const DEFAULT: [Color; 7] = [
    Color::Gray,
    Color::LightBlue,
    Color::LightRed,
    Color::LightGreen,
    Color::LightMagenta,
    Color::LightCyan,
    Color::LightYellow,
];

const OKABE_ITO: [Color; 7] =
    [Color::Gray, Color::Blue, Color::Red, Color::Green, Color::LightMagenta, Color::LightCyan, Color::LightYellow];

/// Error, warning, good, accent, faint; with each palette but mono.
const ROLES: [Color; 5] = [Color::LightRed, Color::LightYellow, Color::LightGreen, Color::LightCyan, Color::DarkGray];
const OKABE_ITO_ROLES: [Color; 5] = [Color::Red, Color::Yellow, Color::Green, Color::LightCyan, Color::DarkGray];

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
        let of_16 = match self.scheme {
            Scheme::Default => DEFAULT[category as usize],
            Scheme::ColourBlind => OKABE_ITO[category as usize],
            Scheme::Mono => return Color::Reset,
        };
        self.ink((self.table().category(category), of_16))
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
            _ => Style::new().fg(self.ink((self.table().idle, Color::DarkGray))),
        }
    }

    /// What is in use and none of the program's allocations.
    pub fn foreign(&self, what: Foreign) -> Style {
        const OF_16: [Color; 4] = [Color::Red, Color::Blue, Color::DarkGray, Color::Magenta];
        let ink = (self.table().foreign(what), OF_16[what as usize]);
        if self.mono() { Style::new() } else { Style::new().fg(self.ink(ink)) }
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
                Style::new().bg(self.ink((self.table().selected, Color::DarkGray))).add_modifier(Modifier::BOLD)
            }
            _ => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    fn role(&self, role: usize, plain: Modifier) -> Style {
        let of_16 = match self.scheme {
            Scheme::Default => ROLES[role],
            Scheme::ColourBlind => OKABE_ITO_ROLES[role],
            Scheme::Mono => return Style::new().add_modifier(plain),
        };
        let Colours { error, warning, good, accent, faint, .. } = *self.table();
        Style::new().fg(self.ink(([error, warning, good, accent, faint][role], of_16)))
    }

    /// The colours that the window has too. A terminal's background is not known: most are dark.
    fn table(&self) -> &'static Colours {
        let table = if self.scheme == Scheme::ColourBlind { Table::ColourBlind } else { Table::Default };
        table.on(Background::Dark)
    }

    fn ink(&self, (rgb, ansi): Ink) -> Color {
        let [red, green, blue] = rgb;
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
