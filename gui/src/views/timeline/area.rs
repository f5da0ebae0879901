//! The stacked area: categories, and above them what is reserved and not live.
//!
//! Owns: which bucket a column of pixels shows: the one with most live bytes, so that no peak is lost. Refuses: to smooth.

use eframe::egui::{Color32, Mesh, Painter, Pos2, Rect, Shape, pos2};
use memscope_core::explorer::{Answer, STACKED};
use memscope_core::timeline::Bucket;

use super::{Chart, Scale};
use crate::shared::Span;
use crate::view::ViewContext;

/// The bucket that speaks for a part of time: the one with most live bytes, with the largest reserved bytes of all.
pub fn bucket(answer: &Answer, span: Span) -> Option<Bucket> {
    let series = &answer.series;
    let width = series.width_ns.max(1);
    let last = series.buckets.len().checked_sub(1)?;
    let first = (span.begin / width) as usize;
    let until = ((span.end - 1) / width) as usize;
    let live = |bucket: &Bucket| bucket.live.iter().sum::<u64>();
    let within = series.buckets.get(first..=until.min(last))?;
    let most = within.iter().max_by_key(|bucket| live(bucket))?;
    let reserved = within.iter().map(|bucket| bucket.reserved).max()?;
    Some(Bucket { reserved, ..*most })
}

/// Largest reserved bytes within a span; of all time where nothing is known of it.
pub fn most(answer: &Answer, span: Span) -> u64 {
    let most = |bucket: Bucket| bucket.reserved.max(bucket.live.iter().sum());
    bucket(answer, span).map_or(0, most)
}

/// Draws it.
pub fn draw(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, scale: &Scale) {
    let pixels = painter.ctx().pixels_per_point();
    let columns = (chart.rect.width() * pixels).ceil().clamp(1.0, 8192.0) as usize;
    let colours: Vec<Color32> = STACKED
        .iter()
        .map(|category| {
            let colour = context.theme.category(*category);
            if context.shared.dims(*category) { colour.lerp_to_gamma(context.theme.ground(), 0.75) } else { colour }
        })
        .collect();
    let mut mesh = Mesh::default();
    let mut run: Option<(f32, Bucket)> = None;
    let left = |column: usize| chart.rect.left() + chart.rect.width() * column as f32 / columns as f32;
    for column in 0..columns {
        let share = |column: usize| chart.seen.at(column as f64 / columns as f64);
        let here = bucket(context.answer, Span::between(share(column), share(column + 1)));
        // Columns that are alike are one rectangle.
        if run.as_ref().map(|(_, bucket)| *bucket) != here {
            if let Some((begin, bucket)) = run {
                stack(&mut mesh, chart, scale, (begin, left(column)), &bucket, &colours, context.theme.cached());
            }
            run = here.map(|bucket| (left(column), bucket));
        }
    }
    if let Some((begin, bucket)) = run {
        stack(&mut mesh, chart, scale, (begin, chart.rect.right()), &bucket, &colours, context.theme.cached());
    }
    painter.with_clip_rect(chart.rect).add(Shape::mesh(mesh));
}

fn stack(
    mesh: &mut Mesh,
    chart: &Chart,
    scale: &Scale,
    (left, right): (f32, f32),
    bucket: &Bucket,
    colours: &[Color32],
    idle: Color32,
) {
    let mut below = 0u64;
    let mut bottom = chart.rect.bottom();
    let mut layer = |bytes: u64, colour: Color32| {
        if bytes > 0 {
            below = below.saturating_add(bytes);
            let top = scale.y(chart, below as f64);
            quad(mesh, pos2(left, top), pos2(right, bottom), colour);
            bottom = top;
        }
    };
    for (category, colour) in STACKED.iter().zip(colours) {
        layer(bucket.live[*category as usize], *colour);
    }
    let live: u64 = bucket.live.iter().sum();
    layer(bucket.reserved.saturating_sub(live), idle);
}

fn quad(mesh: &mut Mesh, min: Pos2, max: Pos2, colour: Color32) {
    mesh.add_colored_rect(Rect::from_min_max(min, max), colour);
}
