//! Which colour means what, as plain numbers: the same in the terminal and in the window.
//!
//! Owns: the palettes on a dark and on a light background. Refuses: the types of any toolkit, and what is left of a colour where
//! there are fewer.
//!
//! The colour-blind-safe palette is the one of Okabe and Ito ("Color universal design", 2008); its black is a grey here, as black
//! is not seen on black.

use memscope_wire::Category;

use crate::ledger::CATEGORIES;

/// Red, green and blue of sRGB.
pub type Rgb = [u8; 3];

/// A choice of colours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Palette {
    /// memscope's own.
    #[default]
    Default,
    /// Tellable apart with any colour vision.
    ColourBlind,
}

/// What the colours are seen on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Background {
    /// Nearly black.
    #[default]
    Dark,
    /// Nearly white.
    Light,
}

/// Parts of a device's memory beside the program's allocations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

/// How many colours there are for what has none of its own.
pub const SERIES: usize = 8;
/// How many colours there are for sizes.
pub const SIZES: usize = 7;

/// The colours of one palette on one background.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colours {
    /// By category number: see [`Colours::category`].
    pub categories: [Rgb; CATEGORIES],
    /// Reserved memory that is not live: cached and rounding.
    pub idle: Rgb,
    /// By number: see [`Colours::foreign`].
    pub foreign: [Rgb; 4],
    /// What failed.
    pub error: Rgb,
    /// What deserves a look.
    pub warning: Rgb,
    /// What is well.
    pub good: Rgb,
    /// Titles and the time cursor.
    pub accent: Rgb,
    /// What explains the rest: units, rules, labels.
    pub faint: Rgb,
    /// Laid under what is selected.
    pub selected: Rgb,
    /// What has no colour of its own, such as scopes: given out one by one.
    pub series: [Rgb; SERIES],
    /// Sizes, from the smallest to the largest: darker or lighter from one to the next, whatever the colour vision.
    pub sizes: [Rgb; SIZES],
}

impl Colours {
    /// A category's colour.
    pub const fn category(&self, category: Category) -> Rgb {
        self.categories[category as usize]
    }

    /// The colour of what is in use and none of the program's allocations.
    pub const fn foreign(&self, what: Foreign) -> Rgb {
        self.foreign[what as usize]
    }
}

impl Palette {
    /// Its name, as in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Palette::Default => "default",
            Palette::ColourBlind => "colour-blind",
        }
    }

    /// Its colours on a background.
    pub const fn on(self, background: Background) -> &'static Colours {
        match (self, background) {
            (Palette::Default, Background::Dark) => &DARK,
            (Palette::Default, Background::Light) => &LIGHT,
            (Palette::ColourBlind, Background::Dark) => &SAFE_DARK,
            (Palette::ColourBlind, Background::Light) => &SAFE_LIGHT,
        }
    }
}

const fn rgb(colour: u32) -> Rgb {
    let [_, red, green, blue] = colour.to_be_bytes();
    [red, green, blue]
}

const fn all<const N: usize>(colours: [u32; N]) -> [Rgb; N] {
    let mut all = [[0; 3]; N];
    let mut at = 0;
    while at < N {
        all[at] = rgb(colours[at]);
        at += 1;
    }
    all
}

// Categories by number: unknown, weights, gradients, activations, optimizer, inputs, workspace.
const DARK: Colours = Colours {
    categories: all([0x8b95a1, 0x4c9be8, 0xf0883e, 0x57c26d, 0xb083f0, 0x3fc5c9, 0xe6c84b]),
    idle: rgb(0x4a5260),
    foreign: all([0xb08968, 0x5f7299, 0x434b57, 0x6e6480]),
    error: rgb(0xff6b62),
    warning: rgb(0xe3b341),
    good: rgb(0x6cc070),
    accent: rgb(0x79b8ff),
    faint: rgb(0x7d8590),
    selected: rgb(0x2d3748),
    series: all([0x6ea8fe, 0xf2a65a, 0x7bd88f, 0xe06c9f, 0xb794f6, 0x4fd1c5, 0xe6d45a, 0xc0866a]),
    sizes: all([0x4c4384, 0x3f65a8, 0x3a8aa6, 0x3fab8c, 0x7cc66a, 0xc9d455, 0xfff2a0]),
};

const LIGHT: Colours = Colours {
    categories: all([0x8a929c, 0x2b7bd4, 0xdd6b1c, 0x2f9e4a, 0x8a57d6, 0x1a9aa0, 0xc9a10f]),
    idle: rgb(0xc3c9d1),
    foreign: all([0xa57a55, 0x6f86b5, 0xa9b0ba, 0x9a8fb0]),
    error: rgb(0xc62f26),
    warning: rgb(0x8f6400),
    good: rgb(0x2a7d32),
    accent: rgb(0x1861b5),
    faint: rgb(0x5d656f),
    selected: rgb(0xd5e4f7),
    series: all([0x2a72d4, 0xcf6f17, 0x2f934b, 0xc03f7a, 0x7a4fd0, 0x148f88, 0xa88f00, 0x8a5636]),
    sizes: all([0xd5e08c, 0x93cc7c, 0x55b08c, 0x33909a, 0x2f6b98, 0x3c4688, 0x341457]),
};

const OKABE_ITO: [Rgb; CATEGORIES] = all([0x999999, 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0x56b4e9, 0xf0e442]);

const SAFE_DARK: Colours = Colours {
    categories: OKABE_ITO,
    error: rgb(0xd55e00),
    warning: rgb(0xe69f00),
    good: rgb(0x009e73),
    accent: rgb(0x56b4e9),
    faint: rgb(0x8a8a8a),
    series: all([0x56b4e9, 0xe69f00, 0x009e73, 0xcc79a7, 0xf0e442, 0x0072b2, 0xd55e00, 0xf5f5f5]),
    ..DARK
};

const SAFE_LIGHT: Colours = Colours {
    categories: OKABE_ITO,
    error: rgb(0xa84a00),
    warning: rgb(0x8a5f00),
    good: rgb(0x00704f),
    accent: rgb(0x0060a0),
    faint: rgb(0x5e5e5e),
    series: all([0x56b4e9, 0xe69f00, 0x009e73, 0xcc79a7, 0xf0e442, 0x0072b2, 0xd55e00, 0x2b2b2b]),
    ..LIGHT
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of sRGB: W3C, "Web Content Accessibility Guidelines" 2.1.
    fn luminance(colour: Rgb) -> f64 {
        let [red, green, blue] = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn what_is_written_in_a_colour_can_be_read() {
        for palette in [Palette::Default, Palette::ColourBlind] {
            for (background, ground) in [(Background::Dark, [0x14, 0x17, 0x1c]), (Background::Light, [0xfa; 3])] {
                let colours = palette.on(background);
                for text in [colours.error, colours.warning, colours.good, colours.accent, colours.faint] {
                    // 4.5 is asked of text, by the same guidelines.
                    assert!(contrast(text, ground) >= 4.5, "{palette:?} {background:?} {text:x?}");
                }
            }
        }
    }

    #[test]
    fn sizes_are_told_apart_by_how_light_they_are() {
        for palette in [Palette::Default, Palette::ColourBlind] {
            for background in [Background::Dark, Background::Light] {
                let colours = palette.on(background);
                for pair in colours.sizes.windows(2) {
                    assert!(contrast(pair[0], pair[1]) >= 1.2, "{palette:?} {background:?} {pair:x?}");
                }
                let mut series = colours.series.to_vec();
                series.sort_unstable();
                series.dedup();
                assert_eq!(series.len(), SERIES);
            }
        }
    }

    #[test]
    fn categories_have_colours_of_their_own() {
        for palette in [Palette::Default, Palette::ColourBlind] {
            for background in [Background::Dark, Background::Light] {
                let mut colours = palette.on(background).categories.to_vec();
                colours.push(palette.on(background).idle);
                colours.sort_unstable();
                colours.dedup();
                assert_eq!(colours.len(), CATEGORIES + 1, "{palette:?} {background:?}");
            }
        }
    }
}
