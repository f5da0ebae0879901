//! What the driver does not tell, and memscope therefore computes or leaves out.
//!
//! Owns: these findings. Refuses: to put a number on what nobody knows.

use crate::allocation::Model;
use crate::report::units::grouped;

use super::detect::finding;
use super::{Detail, Finding, Severity};

/// Arrays whose size the driver does not tell.
pub(super) fn untold(model: &Model) -> Vec<Finding> {
    let (computed, unknown) = (model.doubts.computed_sizes, model.doubts.unknown_sizes);
    if computed == 0 && unknown == 0 {
        return Vec::new();
    }
    let tail = match unknown {
        0 => String::new(),
        unknown => format!("; of unknown formats, counted with 0 bytes: {}", grouped(unknown)),
    };
    vec![finding(
        Severity::Note,
        format!("arrays whose bytes are computed from their descriptions: {}{tail}", grouped(computed)),
        "look in `unexplained` for what the driver adds to an array: it does not tell",
        Detail::UntoldSizes { computed, unknown },
    )]
}
