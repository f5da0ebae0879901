//! egui's shapes as SVG: areas, lines and text stay what they are, so that a picture can be scaled and searched.
//!
//! Owns: one element for each kind of shape. Refuses: textures (no view draws any) and blur.

use std::fmt::Write as _;

use eframe::egui::epaint::{ClippedShape, ColorMode, Mesh, PathShape, PathStroke, TextShape};
use eframe::egui::{Color32, Pos2, Rect, Shape, Stroke, TextureId, Vec2};

/// A picture of this size.
pub fn write(size: Vec2, background: Color32, title: &str, shapes: &[ClippedShape]) -> String {
    let mut svg = Svg::default();
    let (width, height) = (number(size.x), number(size.y));
    let _ = writeln!(
        svg.text,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">"#
    );
    let _ = writeln!(svg.text, "<title>{}</title>", escaped(title));
    let _ = writeln!(svg.text, r#"<rect width="{width}" height="{height}"{}/>"#, fill(background));
    let whole = Rect::from_min_size(Pos2::ZERO, size);
    for ClippedShape { clip_rect, shape, .. } in shapes {
        svg.clip(clip_rect.intersect(whole), whole);
        svg.shape(shape);
    }
    svg.clip(whole, whole);
    svg.text.push_str("</svg>\n");
    svg.text
}

#[derive(Default)]
struct Svg {
    text: String,
    /// The part that may be drawn into, and that a group is open for it.
    clip: Option<Rect>,
    clips: usize,
}

impl Svg {
    /// What follows is drawn into this part alone.
    fn clip(&mut self, clip: Rect, whole: Rect) {
        let wanted = (clip != whole).then_some(clip);
        if wanted == self.clip {
            return;
        }
        if self.clip.take().is_some() {
            self.text.push_str("</g>\n");
        }
        if let Some(Rect { min, max }) = wanted {
            self.clips += 1;
            let (id, width, height) = (self.clips, number((max.x - min.x).max(0.0)), number((max.y - min.y).max(0.0)));
            let (x, y) = (number(min.x), number(min.y));
            let _ = writeln!(
                self.text,
                r#"<clipPath id="c{id}"><rect x="{x}" y="{y}" width="{width}" height="{height}"/></clipPath><g clip-path="url(#c{id})">"#
            );
        }
        self.clip = wanted;
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Noop | Shape::Callback(_) => {}
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| self.shape(shape)),
            Shape::Circle(circle) => {
                let (x, y, radius) = (number(circle.center.x), number(circle.center.y), number(circle.radius));
                let style = fill(circle.fill) + &stroke(circle.stroke);
                let _ = writeln!(self.text, r#"<circle cx="{x}" cy="{y}" r="{radius}"{style}/>"#);
            }
            Shape::Ellipse(ellipse) => {
                let (x, y) = (number(ellipse.center.x), number(ellipse.center.y));
                let (wide, high) = (number(ellipse.radius.x), number(ellipse.radius.y));
                let style = fill(ellipse.fill) + &stroke(ellipse.stroke);
                let _ = writeln!(self.text, r#"<ellipse cx="{x}" cy="{y}" rx="{wide}" ry="{high}"{style}/>"#);
            }
            Shape::LineSegment { points, stroke: line } => {
                self.path(&[Step::Line(points)], false, Color32::TRANSPARENT, &stroke(*line));
            }
            Shape::Path(path) => self.line(path),
            Shape::Band(band) => {
                let upper = band.points.iter().map(|point| Pos2::new(point.x, point.y.min));
                let lower = band.points.iter().rev().map(|point| Pos2::new(point.x, point.y.max));
                let points: Vec<Pos2> = upper.chain(lower).collect();
                self.path(&[Step::Line(&points)], true, band.fill, "");
            }
            Shape::Rect(rect) if rect.brush.is_none() => {
                let Rect { min, max } = rect.rect;
                if max.x <= min.x || max.y <= min.y {
                    return;
                }
                let (x, y, width, height) =
                    (number(min.x), number(min.y), number(max.x - min.x), number(max.y - min.y));
                let round = match rect.corner_radius.nw {
                    0 => String::new(),
                    radius => format!(r#" rx="{radius}""#),
                };
                let style = fill(rect.fill) + &stroke(rect.stroke);
                let _ =
                    writeln!(self.text, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}"{round}{style}/>"#);
            }
            Shape::Rect(_) => {}
            Shape::Text(text) => self.words(text),
            Shape::Mesh(mesh) => self.mesh(mesh),
            Shape::QuadraticBezier(curve) => {
                let line = path_stroke(&curve.stroke);
                self.path(&[Step::Curve('Q', &curve.points)], curve.closed, curve.fill, &line);
            }
            Shape::CubicBezier(curve) => {
                let line = path_stroke(&curve.stroke);
                self.path(&[Step::Curve('C', &curve.points)], curve.closed, curve.fill, &line);
            }
        }
    }

    fn line(&mut self, path: &PathShape) {
        let line = path_stroke(&path.stroke);
        self.path(&[Step::Line(&path.points)], path.closed, path.fill, &line);
    }

    fn path(&mut self, steps: &[Step<'_>], closed: bool, colour: Color32, line: &str) {
        let mut data = String::new();
        for step in steps {
            step.write(&mut data);
        }
        if closed {
            data.push('Z');
        }
        let _ = writeln!(self.text, r#"<path d="{data}"{}{line}/>"#, fill(colour));
    }

    /// Triangles of one colour in a row become one path; two that make an upright rectangle are written as one.
    fn mesh(&mut self, mesh: &Mesh) {
        if mesh.texture_id != TextureId::default() {
            return;
        }
        let mut data = String::new();
        let mut colour = None;
        let flush = |text: &mut String, data: &mut String, colour: Option<Color32>| {
            if let Some(colour) = colour.filter(|_| !data.is_empty()) {
                let _ = writeln!(text, r#"<path d="{data}" shape-rendering="crispEdges"{}/>"#, fill(colour));
            }
            data.clear();
        };
        let mut rest = &mesh.indices[..];
        while let [a, b, c, more @ ..] = rest {
            let [a, b, c] = [a, b, c].map(|corner| mesh.vertices[*corner as usize]);
            if colour != Some(a.color) {
                flush(&mut self.text, &mut data, colour);
                colour = Some(a.color);
            }
            rest = more;
            let fourth = match more {
                [d, e, f, ..] => [d, e, f].map(|corner| mesh.vertices[*corner as usize]),
                _ => [a, a, a],
            };
            let corners = [a.pos, b.pos, c.pos, fourth[0].pos, fourth[1].pos, fourth[2].pos];
            let bounds = Rect::from_points(&corners);
            let on = |pos: Pos2| {
                (pos.x == bounds.min.x || pos.x == bounds.max.x) && (pos.y == bounds.min.y || pos.y == bounds.max.y)
            };
            let shared = fourth.iter().filter(|vertex| [a.pos, b.pos, c.pos].contains(&vertex.pos)).count();
            if fourth[0].color == a.color && shared == 2 && corners.into_iter().all(on) {
                let (x, y) = (number(bounds.min.x), number(bounds.min.y));
                let (width, height) = (number(bounds.width()), number(bounds.height()));
                let _ = write!(data, "M{x} {y}h{width}v{height}h-{width}z");
                rest = &more[3..];
            } else {
                Step::Line(&[a.pos, b.pos, c.pos]).write(&mut data);
                data.push('z');
            }
        }
        flush(&mut self.text, &mut data, colour);
    }

    fn words(&mut self, shape: &TextShape) {
        let galley = &shape.galley;
        let mut byte = 0;
        for row in &galley.rows {
            let mut runs: Vec<(usize, f32, f32, f32, String)> = Vec::new();
            for glyph in &row.glyphs {
                let section = galley.job.sections.iter().position(|section| byte < section.byte_range.end.0);
                let section = section.unwrap_or(galley.job.sections.len().saturating_sub(1));
                byte += glyph.chr.len_utf8();
                let (x, y) = (row.pos.x + glyph.pos.x, row.pos.y + glyph.pos.y);
                match runs.last_mut().filter(|run| run.0 == section) {
                    Some((_, from, width, _, text)) => {
                        *width = x + glyph.advance_width - *from;
                        text.push(glyph.chr);
                    }
                    None => runs.push((section, x, glyph.advance_width, y, glyph.chr.to_string())),
                }
            }
            byte += usize::from(row.ends_with_newline);
            for (section, x, width, y, text) in runs.into_iter().filter(|run| !run.4.trim().is_empty()) {
                let Some(section) = galley.job.sections.get(section) else { continue };
                let own = section.format.color;
                let own = if own == Color32::PLACEHOLDER { shape.fallback_color } else { own };
                let colour = shape.override_text_color.unwrap_or(own).gamma_multiply(shape.opacity_factor);
                let font = &section.format.font_id;
                let family = match font.family {
                    eframe::egui::FontFamily::Monospace => "Hack, monospace",
                    _ => "Ubuntu, sans-serif",
                };
                let turn = match shape.angle {
                    0.0 => String::new(),
                    angle => {
                        let (x, y) = (number(shape.pos.x), number(shape.pos.y));
                        format!(r#" transform="rotate({} {x} {y})""#, number(angle.to_degrees()))
                    }
                };
                let (x, y, width) = (number(shape.pos.x + x), number(shape.pos.y + y), number(width));
                let _ = writeln!(
                    self.text,
                    r#"<text x="{x}" y="{y}" font-family="{family}" font-size="{}" textLength="{width}" xml:space="preserve"{}{turn}>{}</text>"#,
                    number(font.size),
                    fill(colour),
                    escaped(&text)
                );
            }
        }
    }
}

enum Step<'a> {
    Line(&'a [Pos2]),
    Curve(char, &'a [Pos2]),
}

impl Step<'_> {
    fn write(&self, data: &mut String) {
        let (letter, points) = match self {
            Step::Line(points) => ('L', *points),
            Step::Curve(letter, points) => (*letter, *points),
        };
        for (position, point) in points.iter().enumerate() {
            let letter = match (position, letter) {
                (0, _) => "M".to_owned(),
                (_, 'L') | (1, _) => letter.to_string(),
                _ => " ".to_owned(),
            };
            let _ = write!(data, "{letter}{} {}", number(point.x), number(point.y));
        }
    }
}

/// Hundredths are finer than any screen.
fn number(value: f32) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A colour and its opacity as two attributes.
fn paint(attribute: &str, colour: Color32) -> String {
    let [red, green, blue, alpha] = colour.to_srgba_unmultiplied();
    let opacity = match alpha {
        255 => String::new(),
        alpha => format!(r#" {attribute}-opacity="{}""#, number(f32::from(alpha) / 255.0)),
    };
    format!(r##" {attribute}="#{red:02x}{green:02x}{blue:02x}"{opacity}"##)
}

fn fill(colour: Color32) -> String {
    if colour.a() == 0 { r#" fill="none""#.to_owned() } else { paint("fill", colour) }
}

fn stroke(line: Stroke) -> String {
    if line.width <= 0.0 || line.color.a() == 0 {
        return String::new();
    }
    format!(r#"{} stroke-width="{}""#, paint("stroke", line.color), number(line.width))
}

fn path_stroke(line: &PathStroke) -> String {
    match line.color {
        ColorMode::Solid(color) => stroke(Stroke { width: line.width, color }),
        ColorMode::UV(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use eframe::egui::{epaint, pos2, vec2};

    use super::*;

    fn clipped(clip_rect: Rect, shape: Shape) -> ClippedShape {
        ClippedShape { clip_rect, shape, transform_after_tessellation: Default::default() }
    }

    fn written(shape: Shape) -> String {
        let clip_rect = Rect::from_min_size(Pos2::ZERO, vec2(10.0, 10.0));
        write(vec2(10.0, 10.0), Color32::BLACK, "a < b", &[clipped(clip_rect, shape)])
    }

    #[test]
    fn a_rectangle_of_two_triangles_is_one_path() {
        let mut mesh = Mesh::default();
        mesh.add_colored_rect(Rect::from_min_max(pos2(1.0, 2.0), pos2(4.0, 8.5)), Color32::RED);
        mesh.add_colored_rect(Rect::from_min_max(pos2(4.0, 3.0), pos2(5.0, 8.5)), Color32::RED);
        let text = written(Shape::mesh(mesh));
        assert!(
            text.contains(r##"<path d="M1 2h3v6.5h-3zM4 3h1v5.5h-1z" shape-rendering="crispEdges" fill="#ff0000"/>"##)
        );
        assert!(text.contains("<title>a &lt; b</title>"), "{text}");
    }

    #[test]
    fn a_part_that_is_clipped_has_a_group_of_its_own() {
        let line = Shape::hline(0.0..=10.0, 5.0, Stroke::new(1.5, Color32::WHITE));
        let clip_rect = Rect::from_min_size(pos2(2.0, 2.0), vec2(3.0, 4.0));
        let shapes = [clipped(clip_rect, line)];
        let text = write(vec2(10.0, 10.0), Color32::TRANSPARENT, "", &shapes);
        assert!(text.contains(r#"<clipPath id="c1"><rect x="2" y="2" width="3" height="4"/></clipPath>"#), "{text}");
        assert!(text.contains(r##"<path d="M0 5L10 5" fill="none" stroke="#ffffff" stroke-width="1.5"/>"##), "{text}");
        assert!(text.trim_end().ends_with("</g>\n</svg>"), "{text}");
    }

    #[test]
    fn transparency_is_an_opacity() {
        let circle = epaint::CircleShape::filled(pos2(5.0, 5.0), 2.0, Color32::from_white_alpha(128));
        let text = written(Shape::Circle(circle));
        assert!(text.contains(r##"<circle cx="5" cy="5" r="2" fill="#ffffff" fill-opacity="0.5"/>"##), "{text}");
    }
}
