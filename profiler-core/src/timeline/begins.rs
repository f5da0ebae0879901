//! Where the steps of each process begin, and how many of them an allocation has outlived.
//!
//! Owns: the positions of their beginnings in the order of changes. Refuses: their numbers and figures (`device`).

use serde::{Deserialize, Serialize};

use super::Lifetime;

/// By process: where its steps begin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepBegins(Vec<OfProcess>);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct OfProcess {
    /// Positions in the order of changes, rising.
    orders: Vec<u32>,
    /// The number of the step that began last.
    last: Option<u64>,
}

impl StepBegins {
    /// A process says that it is in a step: of one that it is in already that is nothing new.
    pub fn note(&mut self, process: usize, order: u32, number: u64) {
        if self.0.len() <= process {
            self.0.resize_with(process + 1, OfProcess::default);
        }
        let of = &mut self.0[process];
        if of.last.replace(number) != Some(number) {
            of.orders.push(order);
        }
    }

    /// How many steps of its process have begun and ended while it lived, until right after a change.
    pub fn outlived(&self, process: u32, lifetime: Lifetime, order: u32) -> u64 {
        let Some(OfProcess { orders, .. }) = self.0.get(process as usize) else { return 0 };
        let until = order.min(lifetime.death);
        let begun = |order: u32| orders.partition_point(|begin| *begin <= order);
        // The last one that began has not ended.
        begun(until).saturating_sub(begun(lifetime.birth)).saturating_sub(1) as u64
    }

    /// Beginnings before this position are gone, but for the last of them.
    pub fn forget_before(&mut self, order: u32) {
        for of in &mut self.0 {
            let gone = of.orders.partition_point(|begin| *begin < order).saturating_sub(1);
            of.orders.drain(..gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::timeline::ALIVE;

    fn begins(orders: &[u32]) -> StepBegins {
        let mut begins = StepBegins::default();
        (1..).zip(orders).for_each(|(number, order)| begins.note(0, *order, number));
        begins
    }

    #[test]
    fn a_step_is_outlived_when_it_began_and_ended_meanwhile() {
        // Made in the step that began at 10.
        let made = Lifetime { birth: 15, death: ALIVE };
        let begins = begins(&[10, 20, 30, 40]);
        for (order, outlived) in [(15, 0), (19, 0), (20, 0), (29, 0), (30, 1), (39, 1), (40, 2), (9999, 2)] {
            assert_eq!(begins.outlived(0, made, order), outlived, "at {order}");
        }
        assert_eq!(
            begins.outlived(0, Lifetime { birth: 15, death: 35 }, 9999),
            1,
            "it ended in the step after the next"
        );
        assert_eq!(begins.outlived(1, made, 9999), 0, "another process has no steps");
    }

    #[test]
    fn a_step_that_is_said_again_has_not_begun_again() {
        let mut begins = StepBegins::default();
        for (order, number) in [(10, 1), (11, 1), (20, 2), (21, 2), (22, 2)] {
            begins.note(0, order, number);
        }
        assert_eq!(begins.outlived(0, Lifetime { birth: 15, death: ALIVE }, 9999), 0);
    }

    proptest! {
        /// Against a walk through the whole life, change by change.
        #[test]
        fn whole_steps_are_counted(orders in proptest::collection::btree_set(1u32..60, 0..12), birth in 1u32..60, death in 1u32..80, at in 1u32..80) {
            let orders: Vec<u32> = orders.into_iter().collect();
            let (mut whole, mut began_within) = (0, false);
            for order in birth + 1..=at.min(death) {
                if orders.contains(&order) {
                    whole += u64::from(began_within);
                    began_within = true;
                }
            }
            prop_assert_eq!(begins(&orders).outlived(0, Lifetime { birth, death }, at), whole);
        }

        #[test]
        fn what_is_forgotten_changes_nothing_of_what_was_made_since(orders in proptest::collection::btree_set(1u32..60, 0..12), before in 1u32..60, age in 0u32..20, later in 0u32..40) {
            let orders: Vec<u32> = orders.into_iter().collect();
            let whole = begins(&orders);
            let mut short = whole.clone();
            short.forget_before(before);
            let lifetime = Lifetime { birth: before + age, death: ALIVE };
            let at = lifetime.birth + later;
            prop_assert_eq!(short.outlived(0, lifetime, at), whole.outlived(0, lifetime, at));
        }
    }
}
