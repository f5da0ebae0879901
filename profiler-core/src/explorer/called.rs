//! What devices are called.
//!
//! Owns: their numbers, in all views alike. Refuses: product names, which several devices may share.

use super::answer::Answer;

/// The number of each device: its CUDA ordinal, as the program says it, where no two have the same; else its position. Processes
/// that see one device each (`CUDA_VISIBLE_DEVICES`) all call it 0.
pub(super) fn numbers(ordinals: &[u32]) -> Vec<u32> {
    let differ = (1..ordinals.len()).all(|at| !ordinals[..at].contains(&ordinals[at]));
    match differ {
        true => ordinals.to_vec(),
        false => (0..ordinals.len() as u32).collect(),
    }
}

impl Answer {
    /// The number by which a device is called, given its position among [`Answer::devices`]: `GPU 1`, and `gpu:1` in a filter.
    pub fn gpu(&self, position: usize) -> u32 {
        let ordinals: Vec<u32> = self.devices.iter().map(|device| device.ordinal).collect();
        numbers(&ordinals).get(position).copied().unwrap_or(position as u32)
    }

    /// A finding's words, in which devices are called by their numbers.
    pub fn sentence(&self, text: &str) -> String {
        let mut named: Vec<(&str, u32)> = (self.devices.iter().enumerate())
            .map(|(position, device)| (device.uuid.as_str(), self.gpu(position)))
            .filter(|(uuid, _)| !uuid.is_empty() && text.contains(uuid))
            .collect();
        // `unknown-1` is the beginning of `unknown-10`.
        named.sort_by_key(|(uuid, _)| std::cmp::Reverse(uuid.len()));
        named.into_iter().fold(text.to_owned(), |text, (uuid, number)| text.replace(uuid, &format!("GPU {number}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explorer::DeviceView;

    #[test]
    fn a_device_has_the_programs_number_where_that_is_one_alone() {
        assert_eq!(numbers(&[0, 2, 4, 1]), [0, 2, 4, 1]);
        assert_eq!(numbers(&[0, 0, 0]), [0, 1, 2], "each process sees one");
        assert_eq!(numbers(&[3]), [3]);
    }

    #[test]
    fn sentences_call_devices_by_their_numbers() {
        let device = |uuid: &str, ordinal| DeviceView { uuid: uuid.into(), ordinal, ..DeviceView::default() };
        let devices = vec![device("unknown-1", 1), device("GPU-aa", 0), device("unknown-10", 10)];
        let answer = Answer { devices, ..Answer::default() };
        let said = answer.sentence("out of memory on unknown-10, beside unknown-1 and GPU-aa");
        assert_eq!(said, "out of memory on GPU 10, beside GPU 1 and GPU 0");
    }
}
