//! The second pass: walks the settled changes of a whole session in the order of time.
//!
//! Owns: the one result from which all figures of a report come. Refuses: to keep what can be made from it.

use crate::allocation::Model;

use super::walk::Walk;
use super::{DeviceFigures, Settled};

impl Settled {
    /// Walks a session. The model may still be live: what it does not know yet is not in the figures.
    pub fn of(model: &Model) -> Settled {
        let (walk, last_time) = Walk::whole(model, false);
        let devices: Vec<DeviceFigures> = walk.devices.into_iter().map(|track| track.figures).collect();
        Settled {
            lifetimes: walk.lifetimes,
            changes: walk.walked.order,
            devices,
            host: walk.host.figures,
            markers: walk.markers,
            begins: walk.begins,
            exits: walk.exits,
            stands_since: walk.stands_since,
            last_time,
        }
    }
}
