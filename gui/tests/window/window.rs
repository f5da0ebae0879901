//! A window with an explorer behind it that answers at once: nothing depends on a clock or on threads.
//!
//! Owns: making it, and finding things in it. Pictures are painted by memscope's own rasteriser, on the CPU: the same pixels on
//! every machine, without a GPU, Vulkan or a display.

use std::collections::BTreeSet;

use eframe::egui::epaint::textures::TexturesDelta;
use eframe::egui::{self, Color32, Key, Modifiers, Rect, Shape};
use egui_kittest::kittest::{NodeT, Queryable};
use egui_kittest::{Harness, TestRenderer};
use memscope_gui::app::App;
use memscope_gui::document::Document;
use memscope_gui::export::Raster;

use crate::trace::Trace;

/// A window.
pub type Window = Harness<'static, App>;

/// One that shows a session, dark, 960 by 640 points.
pub fn of(trace: &Trace) -> Window {
    sized(&[("train.mscope", trace)], [960.0, 640.0], 1.0)
}

/// One with several documents.
pub fn sized(documents: &[(&str, &Trace)], size: [f32; 2], pixels_per_point: f32) -> Window {
    let mut app = App::default();
    for (name, trace) in documents {
        app.add(Document::of_explorer(name, trace.explorer()));
    }
    with(app, size, pixels_per_point)
}

/// One with an app that was made elsewhere.
pub fn with(app: App, size: [f32; 2], pixels_per_point: f32) -> Window {
    let builder = Harness::builder()
        .with_size(size)
        .with_pixels_per_point(pixels_per_point)
        .with_theme(egui::Theme::Dark)
        .renderer(Painter::default());
    let mut window = builder.build_ui_state(|ui, app: &mut App| app.frame(ui), app);
    window.run();
    window
}

/// One that shows what goes on at present, and may not stand still.
pub fn with_steps(app: App) -> Window {
    let mut window =
        Harness::builder().with_size([960.0, 640.0]).build_ui_state(|ui, app: &mut App| app.frame(ui), app);
    window.step();
    window
}

/// Everything that can be heard: labels and values of all nodes.
pub fn heard(window: &Window) -> BTreeSet<String> {
    let nodes = window.root().children_recursive();
    let texts = nodes.flat_map(|node| {
        let node = node.accesskit_node();
        [node.label(), node.value()]
    });
    texts.flatten().filter(|text| !text.is_empty()).collect()
}

/// Everything that is drawn, with its part of the window: what is outside that is not seen.
fn drawn(window: &Window) -> Vec<(Shape, Rect)> {
    fn flat(shape: &Shape, clip: Rect, all: &mut Vec<(Shape, Rect)>) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| flat(shape, clip, all)),
            shape => all.push((shape.clone(), clip)),
        }
    }
    let mut all = Vec::new();
    window.output().shapes.iter().for_each(|shape| flat(&shape.shape, shape.clip_rect, &mut all));
    all
}

/// Texts that are drawn, and where.
pub fn texts(window: &Window) -> Vec<(String, Rect)> {
    let text = |(shape, clip): (Shape, Rect)| match shape {
        Shape::Text(text) => Some((text.galley.text().to_owned(), text.visual_bounding_rect().intersect(clip))),
        _ => None,
    };
    drawn(window).into_iter().filter_map(text).filter(|(_, rect)| rect.is_positive()).collect()
}

/// Rectangles that are filled with a colour.
pub fn filled(window: &Window, colour: Color32) -> Vec<Rect> {
    let rect = |(shape, clip): (Shape, Rect)| match shape {
        Shape::Rect(rect) if rect.fill == colour => Some(rect.rect.intersect(clip)),
        _ => None,
    };
    drawn(window).into_iter().filter_map(rect).filter(Rect::is_positive).collect()
}

/// Presses a key alone, and waits until the window stands still.
pub fn press(window: &mut Window, key: Key) {
    window.key_press(key);
    window.run();
}

/// Presses a key with modifiers.
pub fn press_with(window: &mut Window, modifiers: Modifiers, key: Key) {
    window.key_press_modifiers(modifiers, key);
    window.run();
}

/// Clicks what has this label.
pub fn click(window: &mut Window, label: &str) {
    window.get_by_label(label).click();
    window.run();
}

/// memscope's rasteriser as a renderer of tests.
#[derive(Default)]
pub struct Painter(Raster);

impl TestRenderer for Painter {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        self.0.update(delta);
    }

    fn render(&mut self, context: &egui::Context, output: &egui::FullOutput) -> Result<image::RgbaImage, String> {
        let scale = output.pixels_per_point;
        let size = context.content_rect().size() * scale;
        let size = [size.x, size.y].map(|pixels| pixels.round() as usize);
        let primitives = context.tessellate(output.shapes.clone(), scale);
        let picture = self.0.paint(size, scale, &primitives, Color32::BLACK);
        let bytes = picture.pixels.iter().flat_map(|pixel| pixel.to_array()).collect();
        image::RgbaImage::from_raw(size[0] as u32, size[1] as u32, bytes).ok_or_else(|| "no picture".to_owned())
    }
}
