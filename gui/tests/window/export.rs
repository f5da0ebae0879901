//! Views as SVG, PNG and text.

use eframe::egui::{self, Event, Key, Modifiers, OutputCommand, vec2};
use memscope_core::Category;
use memscope_core::colours::{Background, Palette};
use memscope_core::explorer::{Answer, Query, TracksQuery, WindowQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_gui::export::Picture;
use memscope_gui::shared::Shared;
use memscope_gui::theme::{Look, Theme, Wish};
use memscope_gui::view::ViewContext;
use memscope_gui::views::timeline::Timeline;

use crate::sessions::{out_of_memory, training};
use crate::window;

fn answer() -> Answer {
    let range = Nanoseconds(0)..Nanoseconds(3_500_000_000);
    let window = Some(WindowQuery { range: range.clone(), buckets: 700 });
    let tracks = Some(TracksQuery { range, parts: 700 });
    out_of_memory().explorer().answer(&Query { window, tracks, ..Query::default() })
}

fn picture(look: Look, scale: f32) -> Picture {
    let (answer, mut shared) = (answer(), Shared::default());
    let context = egui::Context::default();
    look.apply(&context);
    let theme = Theme::of(&context, look.palette());
    let view = ViewContext { name: "train.mscope", answer: &answer, shared: &mut shared, theme, others: &[] };
    Picture::of(&mut Timeline::default(), view, look, vec2(700.0, 400.0), scale)
}

#[test]
fn the_picture_is_well_formed_and_has_an_area_for_each_category() {
    let svg = picture(Look { ground: Wish::Light, colour_blind: true }, 1.0).svg();
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let fills: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("path"))
        .filter_map(|node| node.attribute("fill"))
        .collect();
    let colours = Palette::ColourBlind.on(Background::Light);
    for category in [Category::Weights, Category::Optimizer, Category::Gradients, Category::Activations] {
        let [red, green, blue] = colours.category(category);
        let colour = format!("#{red:02x}{green:02x}{blue:02x}");
        let areas = fills.iter().filter(|fill| **fill == colour).count();
        assert_eq!(areas, 1, "{category:?} is one path of {fills:?}");
    }
    let words: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    for word in ["Out of memory: 6.00 GiB asked for", "capacity 80.00 GiB", "forward", "step 2"] {
        assert!(words.contains(&word), "{word} is not among {words:?}");
    }
}

/// A picture is sent on without its window: it says itself what it is of.
#[test]
fn a_picture_says_of_which_profile_moment_and_span_it_is() {
    let svg = picture(Look { ground: Wish::Dark, colour_blind: false }, 1.0).svg();
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let title =
        "train.mscope · Timeline · End, at 3.300000 s, step 4, forward (whole session) · from 0.000000 s to 3.500000 s";
    let texts = |name: &str| -> Vec<String> {
        let named = document.descendants().filter(|node| node.has_tag_name(name));
        named.filter_map(|node| node.text().map(str::to_owned)).collect()
    };
    assert!(texts("text").iter().any(|text| text == title), "{:?}", texts("text"));
    assert_eq!(texts("title"), [format!("memscope: {title}")]);
}

#[test]
fn a_png_has_as_many_pixels_as_were_asked_for_and_is_painted() {
    let png = picture(Look { ground: Wish::Dark, colour_blind: false }, 2.0).png().expect("a PNG");
    let pixels = image::load_from_memory(&png).expect("it is one").to_rgb8();
    assert_eq!(pixels.dimensions(), (1400, 800));
    let weights = Palette::Default.on(Background::Dark).category(Category::Weights);
    assert!(pixels.pixels().filter(|pixel| pixel.0 == weights).count() > 10_000);
}

#[test]
fn what_is_shown_is_copied_as_text() {
    let mut window = window::of(&out_of_memory());
    let modifiers = Modifiers::COMMAND | Modifiers::SHIFT;
    let key = Event::Key { key: Key::C, physical_key: None, pressed: true, repeat: false, modifiers };
    // One frame alone: what it asks of the system is in its output.
    window.input_mut().events.push(key);
    window.step();
    let commands = window.output().platform_output.commands.clone();
    let copied = commands.into_iter().find_map(|command| match command {
        OutputCommand::CopyText(text) => Some(text),
        _ => None,
    });
    let text = copied.expect("something is copied");
    for part in [
        "python train.py --batch 64; ended with status 1",
        "Out of memory: 6.00 GiB (6,442,450,944 B) refused",
        "Asked for by: model/h.0",
        "h.0.attn.out: 29.30 GiB, 46 % of live, activations, in model/h.0, saved for backward (tagged)",
        "An allocation was refused, at 3.300000 s, step 4, forward (whole session)",
        "Its holder: saved for backward (tagged)",
        "3.300000 s: Out of memory: 6.00 GiB asked for",
        "from_s\tweights\toptimizer",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // Exactly 14 GiB and 30,000 MiB, less 100 bytes of each.
    let activations = 14 * (1u64 << 30) + 30_000 * (1 << 20) - 200;
    let digits: String = text
        .lines()
        .find(|line| line.starts_with("activations "))
        .map(|line| line.chars().filter(char::is_ascii_digit).collect())
        .expect("a row");
    assert_eq!(digits, activations.to_string());
}

#[test]
fn a_picture_is_saved_and_nothing_is_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    std::fs::write(folder.path().join("train.timeline.svg"), "mine").expect("written");
    let mut app = memscope_gui::app::App::default();
    app.add(memscope_gui::document::Document::of_explorer(path.to_str().expect("UTF-8"), training().explorer()));
    let mut window = window::with(app, [960.0, 640.0], 1.0);
    let there = |name: &str| std::fs::read(folder.path().join(name)).unwrap_or_default();
    let said = |window: &window::Window, text: &str| {
        let heard = window::heard(window);
        assert!(heard.iter().any(|heard| heard.contains(text)), "{heard:#?}");
    };
    window.key_press_modifiers(Modifiers::COMMAND | Modifiers::SHIFT, Key::E);
    window.run();
    window::click(&mut window, "Save");
    said(&window, "Saved");
    assert!(there("train.timeline.png").starts_with(b"\x89PNG"));
    // Another name is proposed; and again, when in the meantime a file is there.
    window.key_press_modifiers(Modifiers::COMMAND, Key::E);
    window.run();
    std::fs::write(folder.path().join("train.timeline-2.svg"), "mine too").expect("written");
    window::click(&mut window, "Save");
    said(&window, "train.timeline-2.svg is there already and was not replaced");
    said(&window, "Save the view as SVG");
    window::click(&mut window, "Save");
    said(&window, "Saved");
    assert_eq!((there("train.timeline.svg"), there("train.timeline-2.svg")), (b"mine".to_vec(), b"mine too".to_vec()));
    assert!(there("train.timeline-3.svg").starts_with(b"<"));
}
