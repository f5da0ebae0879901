//! Triangles to pixels on the CPU: the same picture on every machine, without a GPU or a display.
//!
//! Owns: what egui's painters do, in plain arithmetic: colours are premultiplied and blended as they are, in gamma space; a pixel
//! belongs to the triangle that holds its centre, one on an edge to the one at the edge's right or below. Refuses: speed; it draws
//! pictures for files and tests, and no window.

use std::collections::HashMap;

use eframe::egui::epaint::{ClippedPrimitive, ImageData, Mesh, Primitive, Vertex};
use eframe::egui::{Color32, ColorImage, TextureId, TexturesDelta};

/// Draws with the textures that it was told of.
#[derive(Default)]
pub struct Raster {
    textures: HashMap<TextureId, ColorImage>,
}

/// Where may be drawn, in pixels: left, top, right, bottom.
#[derive(Clone, Copy)]
struct Clip([i32; 4]);

impl Raster {
    /// Takes in what changed of the textures (the font's glyphs).
    pub fn update(&mut self, delta: &mut TexturesDelta) {
        for (id, changes) in delta.set.drain() {
            for change in changes {
                let ImageData::Color(image) = &change.image;
                match (change.pos, self.textures.get_mut(&id)) {
                    (Some([left, top]), Some(texture)) => {
                        for row in 0..image.size[1] {
                            let from = &image.pixels[row * image.size[0]..][..image.size[0]];
                            let at = (top + row) * texture.size[0] + left;
                            texture.pixels[at..at + from.len()].copy_from_slice(from);
                        }
                    }
                    _ => drop(self.textures.insert(id, ColorImage::clone(image))),
                }
            }
        }
        for id in delta.free.drain() {
            self.textures.remove(&id);
        }
    }

    /// Paints a picture of so many pixels.
    pub fn paint(
        &self,
        size: [usize; 2],
        pixels_per_point: f32,
        primitives: &[ClippedPrimitive],
        background: Color32,
    ) -> ColorImage {
        let mut picture = ColorImage::filled(size, background);
        for ClippedPrimitive { clip_rect, primitive } in primitives {
            let Primitive::Mesh(mesh) = primitive else { continue };
            let edge = |points: f32, most: usize| ((points * pixels_per_point).round() as i32).clamp(0, most as i32);
            let clip = Clip([
                edge(clip_rect.min.x, size[0]),
                edge(clip_rect.min.y, size[1]),
                edge(clip_rect.max.x, size[0]),
                edge(clip_rect.max.y, size[1]),
            ]);
            self.mesh(&mut picture, clip, pixels_per_point, mesh);
        }
        picture
    }

    fn mesh(&self, picture: &mut ColorImage, clip: Clip, scale: f32, mesh: &Mesh) {
        let texture = self.textures.get(&mesh.texture_id);
        for corners in mesh.indices.chunks_exact(3) {
            let [a, b, c] = [0, 1, 2].map(|corner| mesh.vertices[corners[corner] as usize]);
            triangle(picture, clip, scale, [a, b, c], texture);
        }
    }
}

/// Twice the area of a triangle, positive where its corners go clockwise on the screen. Of the edge from a to b and of that from b
/// to a the results differ in their sign alone, so that neighbours agree on what is on which side.
fn area(a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> f64 {
    if a > b {
        return -area(b, a, c);
    }
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

fn triangle(picture: &mut ColorImage, clip: Clip, scale: f32, corners: [Vertex; 3], texture: Option<&ColorImage>) {
    let at = |vertex: &Vertex| [vertex.pos.x * scale, vertex.pos.y * scale].map(f64::from);
    let [a, mut b, mut c] = corners;
    let mut whole = area(at(&a), at(&b), at(&c));
    if whole < 0.0 {
        (b, c, whole) = (c, b, -whole);
    }
    if whole == 0.0 || !whole.is_finite() {
        return;
    }
    let [pa, pb, pc] = [at(&a), at(&b), at(&c)];
    // An edge goes from its first corner to its second, clockwise; left edges go up, top edges go right.
    let owns = |from: [f64; 2], to: [f64; 2]| to[1] < from[1] || (to[1] == from[1] && to[0] > from[0]);
    let own = [owns(pb, pc), owns(pc, pa), owns(pa, pb)];
    let extent = |axis: usize| {
        let values = [pa[axis], pb[axis], pc[axis]];
        (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(f64::MIN, f64::max))
    };
    let ((left, right), (top, bottom)) = (extent(0), extent(1));
    let Clip([clip_left, clip_top, clip_right, clip_bottom]) = clip;
    let columns = (left.floor() as i32).max(clip_left)..(right.ceil() as i32).min(clip_right);
    let rows = (top.floor() as i32).max(clip_top)..(bottom.ceil() as i32).min(clip_bottom);
    let flat = a.color == b.color && b.color == c.color && a.uv == b.uv && b.uv == c.uv;
    let flat = flat.then(|| shade(&[a, b, c], [1.0, 0.0, 0.0], texture));
    let width = picture.size[0];
    for row in rows {
        for column in columns.clone() {
            let here = [f64::from(column) + 0.5, f64::from(row) + 0.5];
            let shares = [area(pb, pc, here), area(pc, pa, here), area(pa, pb, here)];
            let inside = |(share, own): (f64, bool)| share > 0.0 || (share == 0.0 && own);
            if !shares.into_iter().zip(own).all(inside) {
                continue;
            }
            let colour = flat.unwrap_or_else(|| shade(&[a, b, c], shares.map(|share| (share / whole) as f32), texture));
            let pixel = &mut picture.pixels[row as usize * width + column as usize];
            *pixel = over(colour, *pixel);
        }
    }
}

/// Vertex colour times texture, both premultiplied; each part from 0 to 255.
fn shade(corners: &[Vertex; 3], shares: [f32; 3], texture: Option<&ColorImage>) -> [f32; 4] {
    let mix = |value: fn(&Vertex) -> f32| -> f32 {
        corners.iter().zip(shares).map(|(vertex, share)| value(vertex) * share).sum()
    };
    let colour = [
        mix(|vertex| f32::from(vertex.color.r())),
        mix(|vertex| f32::from(vertex.color.g())),
        mix(|vertex| f32::from(vertex.color.b())),
        mix(|vertex| f32::from(vertex.color.a())),
    ];
    let Some(texture) = texture else { return colour };
    let texel = sample(texture, mix(|vertex| vertex.uv.x), mix(|vertex| vertex.uv.y));
    [0, 1, 2, 3].map(|part| colour[part] * texel[part] / 255.0)
}

/// Between the four texels around it.
fn sample(texture: &ColorImage, u: f32, v: f32) -> [f32; 4] {
    let [width, height] = texture.size;
    let (x, y) = (u * width as f32 - 0.5, v * height as f32 - 0.5);
    let (left, top) = (x.floor(), y.floor());
    let (right_share, bottom_share) = (x - left, y - top);
    let texel = |x: f32, y: f32| {
        let (x, y) = ((x.max(0.0) as usize).min(width - 1), (y.max(0.0) as usize).min(height - 1));
        texture.pixels[y * width + x].to_array().map(f32::from)
    };
    let (a, b) = (texel(left, top), texel(left + 1.0, top));
    let (c, d) = (texel(left, top + 1.0), texel(left + 1.0, top + 1.0));
    [0, 1, 2, 3].map(|part| {
        let above = a[part] + (b[part] - a[part]) * right_share;
        let below = c[part] + (d[part] - c[part]) * right_share;
        above + (below - above) * bottom_share
    })
}

fn over(colour: [f32; 4], below: Color32) -> Color32 {
    let through = 1.0 - colour[3] / 255.0;
    let below = below.to_array();
    let [red, green, blue, alpha] =
        [0, 1, 2, 3].map(|part| (colour[part] + f32::from(below[part]) * through).round().clamp(0.0, 255.0) as u8);
    Color32::from_rgba_premultiplied(red, green, blue, alpha)
}

#[cfg(test)]
mod tests {
    use eframe::egui::{Rect, pos2};

    use super::*;

    fn painted(mesh: Mesh) -> ColorImage {
        let clip_rect = Rect::from_min_max(pos2(0.0, 0.0), pos2(8.0, 8.0));
        let primitives = [ClippedPrimitive { clip_rect, primitive: Primitive::Mesh(mesh) }];
        Raster::default().paint([8, 8], 1.0, &primitives, Color32::BLACK)
    }

    #[test]
    fn neighbours_share_no_pixel_and_leave_none_out() {
        let half = Color32::from_white_alpha(128);
        let mut mesh = Mesh::default();
        // Edges at odd places, and diagonals through the middle of pixels.
        let edges = [-3.0, 0.1, 0.7, 2.5, 2.5001, 3.3, 4.75, 5.0, 6.66, 11.0];
        for sides in edges.windows(2) {
            for ends in edges.windows(2) {
                mesh.add_colored_rect(Rect::from_min_max(pos2(sides[0], ends[0]), pos2(sides[1], ends[1])), half);
            }
        }
        let picture = painted(mesh);
        // White at 128 of 255 over black is 128, wherever edges and diagonals are.
        assert!(picture.pixels.iter().all(|pixel| *pixel == Color32::from_gray(128)));
    }

    #[test]
    fn nothing_is_drawn_outside_of_the_clip() {
        let mut mesh = Mesh::default();
        mesh.add_colored_rect(Rect::from_min_max(pos2(-50.0, -50.0), pos2(50.0, 50.0)), Color32::WHITE);
        let clip_rect = Rect::from_min_max(pos2(2.0, 3.0), pos2(5.0, 4.0));
        let primitives = [ClippedPrimitive { clip_rect, primitive: Primitive::Mesh(mesh) }];
        let picture = Raster::default().paint([8, 8], 1.0, &primitives, Color32::BLACK);
        let white = picture.pixels.iter().filter(|pixel| **pixel == Color32::WHITE).count();
        assert_eq!(white, 3);
    }
}
