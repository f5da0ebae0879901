//! A view as a picture.
//!
//! Owns: drawing a view into a window that nobody sees, and what comes of it as SVG or PNG. Refuses: to touch the real window: a
//! picture has the size that was asked for, and nothing of pointer or focus in it.

mod raster;
mod svg;

use std::io::Cursor;

use eframe::egui::text::{LayoutJob, TextWrapping};
use eframe::egui::{self, Color32, ColorImage, FontId, Frame, Panel, Rect, Vec2, vec2};
use image::{ExtendedColorType, ImageEncoder};

use crate::panels::{self, moment};
use crate::theme::{Look, Theme};
use crate::view::{View, ViewContext};

pub use raster::Raster;

/// A view that was drawn.
pub struct Picture {
    context: egui::Context,
    output: egui::FullOutput,
    raster: Raster,
    size: Vec2,
    title: String,
    ground: Color32,
}

/// Height of the line above the view that says what it is of.
const TITLE: f32 = 24.0;

/// Frames until everything has its place: egui learns sizes in the first.
const FRAMES: usize = 3;

impl Picture {
    /// Draws a view at a size in points; `scale` is pixels a point.
    pub fn of(view: &mut dyn View, mut context: ViewContext<'_>, look: Look, size: Vec2, scale: f32) -> Picture {
        let hidden = egui::Context::default();
        let ground = if context.theme.dark { egui::Theme::Dark } else { egui::Theme::Light };
        let title = title(view.title(), &context);
        let mut raster = Raster::default();
        let mut output = None;
        for frame in 0..FRAMES {
            let mut input = egui::RawInput {
                screen_rect: Some(Rect::from_min_size(egui::Pos2::ZERO, size)),
                time: Some(frame as f64),
                system_theme: Some(ground),
                ..Default::default()
            };
            if let Some(viewport) = input.viewports.get_mut(&egui::ViewportId::ROOT) {
                viewport.native_pixels_per_point = Some(scale);
            }
            look.apply(&hidden);
            context.theme = Theme::of(&hidden, look.palette());
            let mut drawn = hidden.run_ui(input, |ui| {
                let line = Panel::top("title").exact_size(TITLE).frame(Frame::NONE.fill(context.theme.ground()));
                line.show(ui, |ui| {
                    let ink = context.theme.text();
                    let mut job = LayoutJob::simple_singleline(title.clone(), FontId::proportional(13.0), ink);
                    job.wrap = TextWrapping::truncate_at_width(ui.available_width() - 16.0);
                    let (painter, at) = (ui.painter(), ui.max_rect().left_top() + vec2(8.0, 4.0));
                    painter.galley(at, painter.layout_job(job), ink);
                });
                egui::CentralPanel::no_frame().show(ui, |ui| view.ui(ui, &mut context));
            });
            raster.update(&mut drawn.textures_delta);
            output = Some(drawn);
        }
        Picture {
            output: output.unwrap_or_default(),
            context: hidden,
            raster,
            size,
            title,
            ground: context.theme.ground(),
        }
    }

    /// As SVG.
    pub fn svg(&self) -> String {
        svg::write(self.size, self.ground, &format!("memscope: {}", self.title), &self.output.shapes)
    }

    /// As pixels.
    pub fn pixels(&self) -> ColorImage {
        let scale = self.output.pixels_per_point;
        let primitives = self.context.tessellate(self.output.shapes.clone(), scale);
        let size = [self.size.x, self.size.y].map(|points| (points * scale).round() as usize);
        self.raster.paint(size, scale, &primitives, self.ground)
    }

    /// As PNG.
    ///
    /// # Errors
    /// When the picture has no pixels.
    pub fn png(&self) -> image::ImageResult<Vec<u8>> {
        let pixels = self.pixels();
        let mut png = Cursor::new(Vec::new());
        let [width, height] = pixels.size.map(|size| size as u32);
        let bytes: Vec<u8> = pixels.pixels.iter().flat_map(|pixel| pixel.to_srgba_unmultiplied()).collect();
        image::codecs::png::PngEncoder::new(&mut png).write_image(&bytes, width, height, ExtendedColorType::Rgba8)?;
        Ok(png.into_inner())
    }
}

/// What a picture is of: the profile, the view, the moment, and the span that is seen.
fn title(view: &str, context: &ViewContext<'_>) -> String {
    let (answer, seen) = (context.answer, context.seen());
    let part = moment::part(answer);
    let span = format!("from {} to {}", panels::time(seen.begin), panels::time(seen.end));
    format!("{} · {view} · {} ({part}) · {span}", context.name, moment::place(answer))
}
