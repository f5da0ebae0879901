//! The second pass: walks the settled changes of a whole session in the order of time.
//!
//! Owns: the one result from which all figures of a report come. Refuses: to keep what can be made from it.

use crate::allocation::Model;
use crate::profile::Reading;

use super::walk::Walk;
use super::{DeviceFigures, Settled};

impl Settled {
    /// Walks a session. The model may still be live: what it does not know yet is not in the figures.
    pub fn of(model: &Model) -> Settled {
        Settled::of_counted(model, &Reading::default())
    }

    /// The same; `counted` counts the changes that are walked.
    pub fn of_counted(model: &Model, counted: &Reading) -> Settled {
        let (walk, last_time) = Walk::whole(model, false, counted);
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
