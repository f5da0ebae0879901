//! Copies and saves what is shown.
//!
//! Owns: where it goes. Refuses: to write over a file that is there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use eframe::egui;

use super::App;
use super::dialog::Dialog;
use crate::export::Picture;
use crate::panels::{header, moment, refusal, selected};
use crate::theme::Theme;
use crate::view::ViewContext;

/// Size of pictures in points.
const SIZE: egui::Vec2 = egui::vec2(1200.0, 600.0);
/// Pixels a point in PNG.
const SCALE: f32 = 2.0;

impl App {
    /// What is shown as text: the session, the moment, and the view.
    pub fn text(&mut self, context: &egui::Context) -> Option<String> {
        let theme = Theme::of(context, self.settings.look.palette());
        let others = self.others();
        let tab = self.tabs.get_mut(self.shown)?;
        let answer = Arc::clone(tab.document.answer());
        let mut shared = tab.document.shared.clone();
        let mut text = format!("{}\n\n", header::text(&answer));
        text.push_str(&refusal::text(&answer));
        text.push_str(&format!("{}\n", moment::text(&answer, &shared, &theme)));
        text.push_str(&selected::text(&answer, &shared));
        let name = &tab.document.name.clone();
        let context = ViewContext { name, answer: &answer, shared: &mut shared, theme, others: &others };
        text.push_str(&tab.current().text(&context));
        Some(text)
    }

    pub(super) fn copy(&mut self, context: &egui::Context) {
        if let Some(text) = self.text(context) {
            context.copy_text(text);
            self.say("Copied as text", context);
        }
    }

    pub(super) fn save(&mut self, kind: &'static str) {
        let Some(tab) = self.tabs.get_mut(self.shown) else { return };
        let view = tab.current().title().to_lowercase().replace(' ', "-");
        let place = tab.document.path.with_extension(format!("{view}.{kind}"));
        self.ask_for_a_place(&place, kind);
    }

    /// Asks where to write to, and proposes a place where nothing is.
    fn ask_for_a_place(&mut self, place: &Path, kind: &'static str) {
        self.dialog = Some(Dialog::Save(free(place).display().to_string(), kind));
    }

    pub(super) fn write(&mut self, path: &Path, kind: &'static str, context: &egui::Context) {
        match self.write_picture(path, kind, context) {
            Ok(()) => self.say(format!("Saved {}", path.display()), context),
            Err(error) if is_there(&error) => {
                self.say(format!("{} is there already and was not replaced", path.display()), context);
                self.ask_for_a_place(path, kind);
            }
            Err(error) => self.say(format!("{error:#}"), context),
        }
    }

    fn write_picture(&mut self, path: &Path, kind: &str, context: &egui::Context) -> anyhow::Result<()> {
        let look = self.settings.look;
        let theme = Theme::of(context, look.palette());
        let others = self.others();
        let tab = self.tabs.get_mut(self.shown).context("nothing is open")?;
        let answer = Arc::clone(tab.document.answer());
        let mut shared = tab.document.shared.clone();
        let name = &tab.document.name.clone();
        let view = ViewContext { name, answer: &answer, shared: &mut shared, theme, others: &others };
        let picture = Picture::of(tab.current(), view, look, SIZE, SCALE);
        let bytes = if kind == "svg" { picture.svg().into_bytes() } else { picture.png()? };
        let failed = || format!("cannot write {}", path.display());
        let mut file = File::create_new(path).with_context(failed)?;
        file.write_all(&bytes).with_context(failed)
    }
}

/// True when it failed because a file is there.
fn is_there(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
}

/// This place, or the first one with a number where nothing is.
fn free(place: &Path) -> PathBuf {
    let text = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = (text(place.file_stem()), text(place.extension()));
    // One that has a number gets another.
    let stem =
        stem.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(&*stem, |(stem, _)| stem);
    let numbered = |number: u32| place.with_file_name(format!("{stem}-{number}.{ending}"));
    let mut places = std::iter::once(place.to_owned()).chain((2..100).map(numbered));
    places.find(|place| !place.exists()).unwrap_or_else(|| place.to_owned())
}
