//! Several ranks, each on a thread and a device of its own: their losses are those of one, and each keeps its part.

use crate::device::{self, Simulated};
use crate::training::small;
use cudarc::driver::result::mem_get_info;
use memscope_client::Category;
use memscope_samples::gpt::{GptArguments, Model, Plan, Trainer};
use memscope_samples::techniques::{Checkpoint, Kind, Parallel, RankArguments, Scaled, Techniques};
use memscope_samples::{Device, Group};

pub const TWO: Simulated = Simulated { device: "t4-16gb*2", computes: true };
pub const STEPS: usize = 6;
pub const ALL: [Parallel; 4] = [Parallel::Ddp, Parallel::Zero1, Parallel::Zero2, Parallel::Zero3];

pub fn with(ranks: Option<(u64, Parallel)>) -> GptArguments {
    let ranks = RankArguments { ranks: ranks.map(|(count, _)| count), parallel: ranks.map(|(_, parallel)| parallel) };
    GptArguments { techniques: Techniques { ranks, ..Techniques::default() }, ..small() }
}

/// What one rank came to.
pub struct Rank {
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// What the driver has given, in bytes, after each step.
    pub used: Vec<u64>,
    /// The most bytes of weights, gradients and optimizer in the last step.
    pub most: [u64; 3],
    /// What became of the loss scale in each step.
    pub scaled: Vec<Option<Scaled>>,
    /// Bytes that its caching pool has reserved in the end.
    pub reserved: Option<u64>,
}

/// Trains; each rank, or the one process where there are none.
pub fn train(arguments: &GptArguments) -> Vec<Rank> {
    let plan = Plan::new(arguments).unwrap();
    let world = plan.techniques.ranks.count() as usize;
    let group = Group::create(world).unwrap();
    std::thread::scope(|scope| {
        let rank = |rank: usize| {
            let (member, plan) = (group.member(rank), &plan);
            scope.spawn(move || {
                let used = || {
                    let (free, total) = mem_get_info().expect("a context is current");
                    (total - free) as u64
                };
                let open = Device::open_at(rank).unwrap();
                let before = used();
                let group = (plan.techniques.ranks.ranks.is_some()).then_some(member);
                let mut trainer = Trainer::in_group(plan, Device::open_at(rank).unwrap(), group).unwrap();
                let (mut losses, mut bytes, mut scaled) = (Vec::new(), Vec::new(), Vec::new());
                for _ in 0..STEPS {
                    trainer.device().forget_peaks();
                    losses.push(trainer.step().unwrap().expect("this device computes"));
                    bytes.push(used() - before);
                    scaled.push(trainer.scaled());
                }
                let most = [Category::Weights, Category::Gradients, Category::Optimizer];
                let most = most.map(|category| trainer.device().peak_bytes(category));
                let reserved = trainer.pool().map(|pool| pool.reserved);
                drop(open);
                Rank { losses, used: bytes, most, scaled, reserved }
            })
        };
        let threads: Vec<_> = (0..world).map(rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Gradients of ranks are sums in another order, which moves an element by at most ε = 64 · 2⁻²⁴ of the largest (see
/// lifetimes.rs), here less than 1. AdamW moves a weight by at most rate · ε / |g| otherwise, which to first order is
/// rate · ε in the loss, whatever g is; that for each of P weights and after k steps k times, and as much again for what is
/// not of first order. SGD moves it by rate · ε, times |g| < 1 in the loss. The loss itself is a mean of 128 numbers.
pub fn allowed(parameters: f64, rate: f64, steps: f64) -> f64 {
    let e = 64.0 / 16_777_216.0;
    2.0 * steps * parameters * rate * e + 128.0 / 16_777_216.0
}

/// Shapes of the small tied GPT: one layer of width 32, vocabulary 256, 256 positions.
pub const SHAPES: [u64; 16] =
    [256 * 32, 256 * 32, 32, 32, 96 * 32, 96, 32 * 32, 32, 32, 32, 128 * 32, 128, 32 * 128, 32, 32, 32];

#[test]
fn losses_are_those_of_one_rank() {
    device::run("ranks::losses_are_those_of_one_rank", TWO, || {
        let parameters = SHAPES.iter().sum::<u64>() as f64;
        for kind in [Kind::AdamW, Kind::Sgd] {
            let of = |mut arguments: GptArguments| {
                arguments.techniques.optimizer.kind = kind;
                arguments.learning_rate = Some(if kind == Kind::Sgd { 0.1 } else { 2e-3 });
                train(&arguments)
            };
            let rate = if kind == Kind::Sgd { 0.1 } else { 2e-3 };
            let one = of(with(None)).remove(0).losses;
            assert!(one[STEPS - 1] < one[0] - 0.1, "{one:?}");
            for parallel in ALL {
                let ranks = of(with(Some((2, parallel))));
                for (step, one) in one.iter().enumerate() {
                    let (first, second) = (ranks[0].losses[step], ranks[1].losses[step]);
                    assert_eq!(first.to_bits(), second.to_bits(), "ranks tell the same loss");
                    let bound = allowed(parameters, rate, step as f64);
                    assert!(
                        f64::from((first - one).abs()) <= bound,
                        "{parallel:?} {kind:?}, step {step}: {first}, not {one} within {bound}"
                    );
                }
            }
            // The check can fail: half of the batch alone has other losses.
            let half = of(GptArguments { batch: Some(2.into()), ..with(None) });
            let apart = |step: usize| f64::from((half[0].losses[step] - one[step]).abs());
            assert!((0..STEPS).any(|step| apart(step) > allowed(parameters, rate, step as f64)));
        }
    });
}

/// What the driver charges for an allocation.
pub fn charged(bytes: u64) -> u64 {
    bytes.next_multiple_of(512)
}

/// Every size of [`SHAPES`] is even, so that half of it is a rank's part.
#[test]
fn a_rank_keeps_what_the_formula_says() {
    device::run("ranks::a_rank_keeps_what_the_formula_says", TWO, || {
        let whole: u64 = SHAPES.iter().map(|size| charged(4 * size)).sum();
        let half: u64 = SHAPES.iter().map(|size| charged(4 * size / 2)).sum();
        // Everything fits into one bucket of 25 MiB.
        let bucket = charged(4 * SHAPES.iter().sum::<u64>());
        for (parallel, expected) in [
            (Parallel::Ddp, whole + whole + 2 * whole + bucket),
            (Parallel::Zero1, whole + whole + 2 * half),
            (Parallel::Zero2, whole + half + 2 * half),
            (Parallel::Zero3, half + half + 2 * half),
        ] {
            for rank in train(&with(Some((2, parallel)))) {
                for (step, bytes) in rank.used.into_iter().enumerate() {
                    assert_eq!(bytes, expected, "{parallel:?}, step {step}");
                }
            }
        }
        // All of it on one rank, without a bucket.
        assert_eq!(train(&with(None))[0].used[0], 4 * whole);
    });
}

#[test]
fn bert_and_parts_of_unequal_size_train_alike() {
    const THREE: Simulated = Simulated { device: "t4-16gb*3", computes: true };
    device::run("ranks::bert_and_parts_of_unequal_size_train_alike", THREE, || {
        let of = |ranks| {
            // 32 and 256 · 32 are no multiples of three.
            let mut arguments = with(ranks);
            arguments.model = Model::BertBase;
            arguments.vocabulary = Some(256);
            arguments.batch = Some(6.into());
            arguments.untied = true;
            arguments.techniques.optimizer.kind = Kind::Momentum;
            arguments.learning_rate = Some(0.02);
            train(&arguments)
        };
        let one = of(None).remove(0);
        for parallel in ALL {
            for rank in of(Some((3, parallel))) {
                for (step, (loss, one)) in rank.losses.iter().zip(&one.losses).enumerate() {
                    // As SGD, whose velocity sums at most all steps' gradients.
                    let bound = allowed(4e4, 0.02 * STEPS as f64, step as f64);
                    assert!(f64::from((loss - one).abs()) <= bound, "{parallel:?}, step {step}: {loss}, not {one}");
                }
            }
        }
    });
}

#[test]
fn layers_that_share_weights_and_are_computed_again_train_alike() {
    device::run("ranks::layers_that_share_weights_and_are_computed_again_train_alike", TWO, || {
        let of = |ranks| {
            let mut arguments = with(ranks);
            arguments.layers = Some(4);
            arguments.techniques.sharing.share_layers = Some(2);
            arguments.techniques.sharing.share_qk = true;
            arguments.techniques.activations.checkpoint = Checkpoint::Every(2);
            arguments.techniques.optimizer.kind = Kind::Sgd;
            arguments.learning_rate = Some(0.1);
            train(&arguments)
        };
        let one = of(None).remove(0);
        for parallel in ALL {
            for (step, (loss, one)) in of(Some((2, parallel)))[0].losses.iter().zip(&one.losses).enumerate() {
                let bound = allowed(5e4, 0.1, step as f64);
                assert!(f64::from((loss - one).abs()) <= bound, "{parallel:?}, step {step}: {loss}, not {one}");
            }
        }
    });
}
