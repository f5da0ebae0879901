//! The views, one file or folder each.
//!
//! Owns: which there are, and in which order. The timeline is always there; of the others one at a time lies below it.

pub mod allocations;
pub mod bands;
pub mod diff;
pub mod flame;
pub mod segments;
pub mod timeline;

use crate::view::View;

/// The views that lie below the timeline, in the order of their keys.
pub fn below() -> Vec<Box<dyn View>> {
    vec![
        Box::<bands::Bands>::default(),
        Box::<flame::Flame>::default(),
        Box::<segments::Segments>::default(),
        Box::<allocations::Allocations>::default(),
        Box::<diff::Diff>::default(),
    ]
}
