//! Core's colours as egui has them.
//!
//! Owns: which of core's tables is in use, and egui's visuals to go with it. Refuses: colours of its own for what core colours.

use eframe::egui::{self, Color32, Theme as Ground, ThemePreference, Visuals};
use memscope_core::Category;
use memscope_core::colours::{Background, Colours, Foreign, Palette, Rgb, SERIES, SIZES};
use serde::{Deserialize, Serialize};

/// What the user wants colours to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Look {
    /// Dark or light.
    pub ground: Wish,
    /// True for colours that are told apart with any colour vision.
    pub colour_blind: bool,
}

/// Dark or light.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Wish {
    /// As the system has it.
    #[default]
    System,
    /// Dark.
    Dark,
    /// Light.
    Light,
}

/// The colours that are drawn with.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    colours: &'static Colours,
    /// True on a dark background.
    pub dark: bool,
}

impl Look {
    /// From what the system has to the other one, so that a key press is seen; then dark, then as the system has it.
    pub fn next_ground(&mut self, is_dark: bool) {
        self.ground = match self.ground {
            Wish::System if is_dark => Wish::Light,
            Wish::System | Wish::Light => Wish::Dark,
            Wish::Dark => Wish::System,
        };
    }

    /// The palette of core.
    pub fn palette(self) -> Palette {
        if self.colour_blind { Palette::ColourBlind } else { Palette::Default }
    }

    /// Tells egui, and says which colours are in use.
    pub fn apply(self, context: &egui::Context) -> Theme {
        let preference = match self.ground {
            Wish::System => ThemePreference::System,
            Wish::Dark => ThemePreference::Dark,
            Wish::Light => ThemePreference::Light,
        };
        context.set_theme(preference);
        // Scroll bars have room of their own: they lie over no figure.
        context.all_styles_mut(|style| {
            style.spacing.scroll.floating_allocated_width = style.spacing.scroll.bar_width;
        });
        for (ground, background) in [(Ground::Dark, Background::Dark), (Ground::Light, Background::Light)] {
            context.set_visuals_of(ground, visuals(ground, self.palette().on(background)));
        }
        Theme::of(context, self.palette())
    }
}

impl Theme {
    /// The colours for a window as it is now.
    pub fn of(context: &egui::Context, palette: Palette) -> Theme {
        let dark = context.theme() == Ground::Dark;
        let background = if dark { Background::Dark } else { Background::Light };
        Theme { colours: palette.on(background), dark }
    }

    /// A category's colour.
    pub fn category(&self, category: Category) -> Color32 {
        colour(self.colours.category(category))
    }

    /// Reserved and not live: cached, then rounding.
    pub fn cached(&self) -> Color32 {
        colour(self.colours.idle)
    }

    /// Granted beyond what was asked for: a shade of what is cached.
    pub fn rounding(&self) -> Color32 {
        self.cached().lerp_to_gamma(self.text(), 0.35)
    }

    /// One of several things that have no colour of their own, by its number among them.
    pub fn series(&self, number: usize) -> Color32 {
        colour(self.colours.series[number % SERIES])
    }

    /// Sizes, from the smallest, 0, to the largest.
    pub fn size(&self, class: usize) -> Color32 {
        colour(self.colours.sizes[class.min(SIZES - 1)])
    }

    /// What is in use and none of the program's allocations.
    pub fn foreign(&self, what: Foreign) -> Color32 {
        colour(self.colours.foreign(what))
    }

    /// What failed.
    pub fn error(&self) -> Color32 {
        colour(self.colours.error)
    }

    /// What deserves a look.
    pub fn warning(&self) -> Color32 {
        colour(self.colours.warning)
    }

    /// What is well.
    pub fn good(&self) -> Color32 {
        colour(self.colours.good)
    }

    /// Titles and the cursor.
    pub fn accent(&self) -> Color32 {
        colour(self.colours.accent)
    }

    /// Units, rules, labels.
    pub fn faint(&self) -> Color32 {
        colour(self.colours.faint)
    }

    /// Under what is selected.
    pub fn selected(&self) -> Color32 {
        colour(self.colours.selected)
    }

    /// Text.
    pub fn text(&self) -> Color32 {
        if self.dark { Color32::from_gray(222) } else { Color32::from_gray(24) }
    }

    /// Behind charts.
    pub fn ground(&self) -> Color32 {
        ground(self.dark)
    }

    /// A colour of what the selection is not about.
    pub fn dimmed(&self, colour: Color32) -> Color32 {
        colour.lerp_to_gamma(self.ground(), 0.75)
    }

    /// Lines of a grid.
    pub fn grid(&self) -> Color32 {
        if self.dark { Color32::from_gray(48) } else { Color32::from_gray(218) }
    }

    /// Text on a colour: black or white, whichever is read better.
    pub fn on(&self, colour: Color32) -> Color32 {
        let [red, green, blue, _] = colour.to_array().map(u32::from);
        if red * 299 + green * 587 + blue * 114 > 130_000 { Color32::from_gray(12) } else { Color32::WHITE }
    }
}

/// A colour of core's.
pub const fn colour([red, green, blue]: Rgb) -> Color32 {
    Color32::from_rgb(red, green, blue)
}

const fn ground(dark: bool) -> Color32 {
    if dark { Color32::from_rgb(0x14, 0x17, 0x1c) } else { Color32::from_rgb(0xfa, 0xfa, 0xfa) }
}

fn visuals(of: Ground, colours: &Colours) -> Visuals {
    let dark = of == Ground::Dark;
    let mut visuals = if dark { Visuals::dark() } else { Visuals::light() };
    visuals.panel_fill = if dark { Color32::from_rgb(0x1b, 0x1f, 0x26) } else { Color32::from_rgb(0xf2, 0xf3, 0xf5) };
    visuals.window_fill = visuals.panel_fill;
    visuals.extreme_bg_color = ground(dark);
    visuals.hyperlink_color = colour(colours.accent);
    visuals.error_fg_color = colour(colours.error);
    visuals.warn_fg_color = colour(colours.warning);
    visuals.selection.bg_fill = colour(colours.selected);
    visuals.selection.stroke.color = if dark { Color32::WHITE } else { Color32::BLACK };
    let text = if dark { Color32::from_gray(222) } else { Color32::from_gray(24) };
    visuals.widgets.noninteractive.fg_stroke.color = text;
    visuals.widgets.inactive.fg_stroke.color = text;
    visuals.weak_text_color = Some(colour(colours.faint));
    visuals
}
