//! What utilisation and memory of each device were, round by round.
//!
//! Owns: the last rounds of each device, for its curve. Refuses: to draw.

use std::collections::VecDeque;

use memscope_core::monitor::MonitorView;

/// Rounds that are kept: more than any terminal has columns.
const KEPT: usize = 512;

/// One round of one device, in percent; `None` where the driver did not tell.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    /// Time with a kernel running.
    pub utilization: Option<u8>,
    /// Memory in use.
    pub memory: Option<u8>,
}

/// The rounds of all devices, by position in the view.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    devices: Vec<VecDeque<Point>>,
}

impl History {
    /// Adds a round.
    pub fn add(&mut self, view: &MonitorView) {
        self.devices.resize_with(view.devices.len(), VecDeque::new);
        for (device, points) in view.devices.iter().zip(&mut self.devices) {
            let whole = device.memory_total.filter(|total| *total > 0);
            let percent = |(used, total): (u64, u64)| (u128::from(used.min(total)) * 100 / u128::from(total)) as u8;
            if points.len() == KEPT {
                points.pop_front();
            }
            points.push_back(Point {
                utilization: device.utilization_percent.map(|percent| percent.min(100) as u8),
                memory: device.memory_used.zip(whole).map(percent),
            });
        }
    }

    /// The last rounds of a device, newest first.
    pub fn newest(&self, device: usize) -> impl Iterator<Item = Point> + '_ {
        self.devices.get(device).into_iter().flat_map(|points| points.iter().rev().copied())
    }
}

#[cfg(test)]
mod tests {
    use memscope_core::monitor::MonitorDevice;

    use super::*;

    #[test]
    fn the_newest_rounds_are_kept() {
        let mut history = History::default();
        for round in 0..600_u32 {
            let device = MonitorDevice {
                utilization_percent: (round % 2 == 0).then_some(round % 100),
                memory_used: Some(3),
                memory_total: Some(if round == 599 { 0 } else { 4 }),
                ..MonitorDevice::default()
            };
            history.add(&MonitorView { devices: vec![device], ..MonitorView::default() });
        }
        let points: Vec<Point> = history.newest(0).collect();
        assert_eq!(points.len(), KEPT);
        assert_eq!(points[0], Point { utilization: None, memory: None }, "a share of nothing is not known");
        assert_eq!(points[1], Point { utilization: Some(98), memory: Some(75) });
        assert_eq!(history.newest(1).count(), 0);
    }
}
