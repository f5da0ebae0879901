//! Ranks together with the other techniques: the losses of ranks that share out nothing, those of one rank, and what each keeps.

use crate::device;
use crate::ranks::{ALL, Rank, SHAPES, STEPS, TWO, allowed, charged, train, with};
use crate::resnet_training::tiny;
use memscope_samples::gpt::{GptArguments, Model};
use memscope_samples::resnet::{self, ResnetArguments, ResnetTechniques};
use memscope_samples::techniques::{Allocator, Kind, Offload, Parallel, RankArguments, ZeroGrad};
use memscope_samples::{Device, Group};

pub const ZERO: [Parallel; 3] = [Parallel::Zero1, Parallel::Zero2, Parallel::Zero3];

/// Parameters of the small GPT, its token table and its position table, its largest other tensor, and that of LoRA's adapters,
/// 16·R·h a layer.
pub const P: u64 = sum(&SHAPES);
pub const TOKENS: u64 = SHAPES[0];
pub const POSITIONS: u64 = SHAPES[1];
const LARGEST: u64 = 128 * 32;
const R: u64 = 2;
const ADAPTERS: u64 = 16 * R * 32;

const fn sum(sizes: &[u64]) -> u64 {
    let (mut index, mut sum) = (0, 0);
    while index < sizes.len() {
        sum += sizes[index];
        index += 1;
    }
    sum
}

/// What a technique does to the arguments, and to the most bytes of weights, gradients and optimizer of one rank of two.
struct Case {
    name: &'static str,
    flags: fn(&mut GptArguments),
    rate: f32,
    most: fn(Parallel) -> [u64; 3],
}

/// Between steps zero3 has half of the weights; the embedding reads both tables, and no block is as large as they are.
fn weights(parallel: Parallel, all: u64) -> u64 {
    if parallel == Parallel::Zero3 { 4 * (all / 2 + TOKENS + POSITIONS) } else { 4 * all }
}

/// In zero2 and zero3 the position table's gradient is the last, and whole beside the parts of all gradients; it and the token
/// table's are as large, whose is whole until all parts but that of the positions are there.
fn gradients(parallel: Parallel) -> u64 {
    match parallel {
        Parallel::Ddp => 4 * 2 * P,
        Parallel::Zero1 => 4 * P,
        _ => 4 * (P / 2 + POSITIONS),
    }
}

/// As above, where the parts of a micro-batch or step before are there: in backward the token table's is whole, and the largest
/// of the others comes beside it.
fn gradients_onto_parts(parallel: Parallel) -> u64 {
    match parallel {
        Parallel::Ddp | Parallel::Zero1 => gradients(parallel),
        _ => 4 * (P / 2 + TOKENS + LARGEST),
    }
}

pub fn optimizer(parallel: Parallel, of_all: u64) -> u64 {
    if parallel == Parallel::Ddp { of_all } else { of_all / 2 }
}

/// Two moments of 8 bits with a scale for each block of 256, where a tensor has 4,096 elements; else in fp32. Of the quantised
/// ones, halves are whole blocks.
fn eight_bit() -> u64 {
    SHAPES.iter().map(|&n| if n < 4096 { 8 * n } else { 2 * (n + 4 * n / 256) }).sum()
}

const ADAMW: f32 = 2e-3;

/// Rows and columns of the matrices; the rest is vectors.
const MATRICES: [(u64, u64); 6] = [(256, 32), (256, 32), (96, 32), (32, 32), (128, 32), (32, 128)];

const CASES: [Case; 12] = [
    Case {
        name: "adamw",
        flags: |_| (),
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients(parallel), optimizer(parallel, 8 * P)],
    },
    Case {
        name: "sgd",
        flags: |arguments| arguments.techniques.optimizer.kind = Kind::Sgd,
        rate: 0.1,
        most: |parallel| [weights(parallel, P), gradients(parallel), 0],
    },
    Case {
        name: "momentum",
        flags: |arguments| arguments.techniques.optimizer.kind = Kind::Momentum,
        // A velocity sums at most as many gradients as there are steps.
        rate: 0.02 * STEPS as f32,
        most: |parallel| [weights(parallel, P), gradients(parallel), optimizer(parallel, 4 * P)],
    },
    Case {
        name: "adamw8bit",
        // A state that is moved a little is rounded to another code as often as it is moved by a share of a code's step, and then
        // by all of it: summed over all weights, that is as far as it would move in fp32.
        flags: |arguments| arguments.techniques.optimizer.kind = Kind::AdamW8bit,
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients(parallel), optimizer(parallel, eight_bit())],
    },
    Case {
        name: "adafactor",
        // As AdamW's, of which each weight's own size is a factor, here less than 1.
        flags: |arguments| arguments.techniques.optimizer.kind = Kind::Adafactor,
        rate: 1e-2,
        most: |parallel| {
            // Matrices are cut between rows, whose means each rank keeps with those of all columns; vectors are whole.
            let matrices: u64 = MATRICES.iter().map(|(rows, columns)| rows * columns).sum();
            let vectors = P - matrices;
            let n = if parallel == Parallel::Ddp { 1 } else { 2 };
            let state = MATRICES.iter().map(|(rows, columns)| 4 * (rows / n + columns)).sum::<u64>() + 4 * vectors;
            let part = matrices / 2 + vectors;
            let weights = if parallel == Parallel::Zero3 { part + TOKENS + POSITIONS } else { P };
            let gradients = match parallel {
                Parallel::Ddp => 2 * P,
                Parallel::Zero1 => P,
                _ => part + POSITIONS,
            };
            [4 * weights, 4 * gradients, state]
        },
    },
    Case {
        name: "foreach",
        flags: |arguments| arguments.techniques.optimizer.foreach = true,
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients(parallel), optimizer(parallel, 8 * P)],
    },
    Case {
        name: "offload",
        flags: |arguments| arguments.techniques.offload = Some(Offload::Optimizer),
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients(parallel), 0],
    },
    Case {
        name: "zero-grad",
        flags: |arguments| arguments.techniques.gradients.zero_grad = ZeroGrad::Zero,
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients_onto_parts(parallel), optimizer(parallel, 8 * P)],
    },
    Case {
        name: "accumulate",
        flags: |arguments| arguments.techniques.gradients.accumulate = Some(2),
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients_onto_parts(parallel), optimizer(parallel, 8 * P)],
    },
    Case {
        name: "chunked-loss",
        flags: |arguments| arguments.techniques.activations.chunked_loss = Some(3),
        rate: ADAMW,
        most: |parallel| [weights(parallel, P), gradients(parallel), optimizer(parallel, 8 * P)],
    },
    Case {
        name: "optimizer-in-backward",
        flags: |arguments| arguments.techniques.gradients.optimizer_in_backward = true,
        rate: ADAMW,
        most: |parallel| {
            // Without buckets: the token table's, which waits for the end, the largest other one, and in zero2 and zero3 its part.
            let part = if ZERO[1..].contains(&parallel) { LARGEST / 2 } else { 0 };
            [weights(parallel, P), 4 * (TOKENS + LARGEST + part), optimizer(parallel, 8 * P)]
        },
    },
    Case {
        name: "lora",
        flags: |arguments| arguments.techniques.sharing.lora = Some(R),
        rate: ADAMW,
        most: |parallel| {
            // In zero2 and zero3 at most when q, k and v's `up` (96, R), the seventh of eight, is whole beside its part and the
            // parts of the three matrices' adapters before it.
            let before = R * (32 + 128) + R * (128 + 32) + R * (32 + 32);
            let gradients = match parallel {
                Parallel::Ddp => 2 * ADAPTERS,
                Parallel::Zero1 => ADAPTERS,
                _ => before / 2 + 96 * R + 48 * R,
            };
            [weights(parallel, P + ADAPTERS), 4 * gradients, optimizer(parallel, 8 * ADAPTERS)]
        },
    },
];

/// Sums are taken in the order of ranks whatever is shared out, and an update sees whole blocks: so all ZeRO's losses are those of
/// ddp bit for bit.
#[test]
fn losses_are_those_of_ddp_and_of_one_rank() {
    device::run("ranks_with::losses_are_those_of_ddp_and_of_one_rank", TWO, || {
        let mut all = Vec::new();
        for Case { name, flags, rate, most } in CASES {
            let of = |ranks| {
                let mut arguments = with(ranks);
                arguments.learning_rate = Some(if name == "momentum" { 0.02 } else { rate });
                flags(&mut arguments);
                train(&arguments)
            };
            let one = of(None).remove(0);
            let mut ddp = Vec::new();
            for parallel in ALL {
                for Rank { losses, most: held, .. } in of(Some((2, parallel))) {
                    for (step, (loss, one)) in losses.iter().zip(&one.losses).enumerate() {
                        let bound = allowed((P + ADAPTERS) as f64, rate.into(), step as f64);
                        assert!(
                            f64::from((loss - one).abs()) <= bound,
                            "{name}, {parallel:?}, step {step}: {loss}, not {one} within {bound}"
                        );
                    }
                    assert_eq!(held, most(parallel), "{name}, {parallel:?}: bytes of weights, gradients, optimizer");
                    if parallel == Parallel::Ddp {
                        ddp.clone_from(&losses);
                    }
                    // Not where micro-batches are summed after the ranks and not before, or means over all ranks' rows rank by rank.
                    let other = (name == "accumulate" && parallel != Parallel::Zero1) || name == "adafactor";
                    match other {
                        true => assert!(parallel == Parallel::Ddp || losses[0] == ddp[0], "{name}, {parallel:?}"),
                        false => assert_eq!(losses, ddp, "{name}, {parallel:?}"),
                    }
                }
            }
            all.push((name, ddp));
        }
        // The checks can fail: of two optimizers, neither losses nor bytes are alike.
        let of = |name| all.iter().find(|(other, _)| *other == name).map(|(_, losses)| losses);
        assert_ne!(of("adamw"), of("adamw8bit"));
        assert_ne!(of("adamw"), of("lora"));
        assert_eq!(of("adamw"), of("foreach"));
        assert_eq!(of("adamw"), of("optimizer-in-backward"));
    });
}

/// Three ranks, whose parts of quantised tensors are cut between blocks of 256, and of a table of 250 rows; BERT has every kind of
/// parameter.
#[test]
fn unequal_parts_keep_whole_blocks() {
    const THREE: device::Simulated = device::Simulated { device: "t4-16gb*3", computes: true };
    device::run("ranks_with::unequal_parts_keep_whole_blocks", THREE, || {
        for model in [Model::Tiny, Model::BertBase] {
            let of = |parallel| {
                let mut arguments = with(Some((3, parallel)));
                arguments.model = model;
                arguments.vocabulary = Some(256);
                arguments.positions = Some(250);
                arguments.batch = Some(6.into());
                arguments.techniques.optimizer.kind = Kind::AdamW8bit;
                arguments.techniques.activations.chunked_loss = Some(2);
                train(&arguments)
            };
            let ddp = of(Parallel::Ddp);
            for parallel in ZERO {
                let ranks = of(parallel);
                assert!(ranks.iter().all(|rank| rank.losses == ddp[0].losses), "{model:?}, {parallel:?}");
                if model == Model::Tiny {
                    // The position table has 31 blocks and a quarter, of which the ranks have 10, 11, and 10 and a quarter. The
                    // token table has 32, and the MLP's matrices 16.
                    let small: u64 = SHAPES.iter().filter(|&&n| n < 4096).sum();
                    let optimizers = [10 + 10 + 5 + 5, 11 + 11 + 5 + 5, 11 + 10 + 6 + 6];
                    let quantised = optimizers.map(|blocks| 2 * (256 * blocks + 4 * blocks));
                    // The last rank's last block of positions is a quarter.
                    let quantised = [quantised[0], quantised[1], quantised[2] + 2 * (64 + 4)];
                    let held: u64 = ranks.iter().map(|rank| rank.most[2]).sum();
                    assert_eq!(held, quantised.iter().sum::<u64>() + 8 * small);
                }
            }
        }
    });
}

/// Three ranks with parts of 85 and 86 rows, and BERT's two token types, which stay whole.
///
/// The bound is that of ranks.rs, of which a weight's move is a share as large as weights of its tensor are: those of tables and
/// matrices, nearly all, begin at 0.1 or less and grow by 3 % a step at most, to less than an eighth.
#[test]
fn adafactor_reads_the_means_of_all_ranks() {
    const THREE: device::Simulated = device::Simulated { device: "t4-16gb*3", computes: true };
    device::run("ranks_with::adafactor_reads_the_means_of_all_ranks", THREE, || {
        let of = |ranks| {
            let mut arguments = with(ranks);
            arguments.model = Model::BertBase;
            arguments.vocabulary = Some(256);
            arguments.batch = Some(6.into());
            // The text has few of the 256 tokens, and most of them in the second rank's rows: without a head that reads the table
            // too, the others' rows have no gradients, and sizes of updates differ from rank to rank.
            arguments.untied = true;
            arguments.learning_rate = Some(3e-2);
            arguments.techniques.optimizer.kind = Kind::Adafactor;
            train(&arguments)
        };
        let one = of(None).remove(0).losses;
        for parallel in ALL {
            for rank in of(Some((3, parallel))) {
                for (step, (loss, one)) in rank.losses.iter().zip(&one).enumerate() {
                    let bound = allowed(4e4 / 8.0, 3e-2, step as f64);
                    assert!(
                        f64::from((loss - one).abs()) <= bound,
                        "{parallel:?}, step {step}: {loss}, not {one} within {bound}"
                    );
                }
            }
        }
    });
}

/// The cache measures nothing else: each rank's tensors are the formula's to the byte, and what the driver has given is the pool's.
#[test]
fn a_caching_allocator_of_each_rank() {
    device::run("ranks_with::a_caching_allocator_of_each_rank", TWO, || {
        for parallel in ALL {
            let plain = train(&with(Some((2, parallel))));
            let mut arguments = with(Some((2, parallel)));
            arguments.techniques.workload.allocator = Allocator::Caching;
            for (cached, plain) in train(&arguments).iter().zip(&plain) {
                assert_eq!((&cached.losses, cached.most), (&plain.losses, plain.most), "{parallel:?}");
                assert_eq!(cached.reserved, cached.used.last().copied());
                assert!(cached.reserved > plain.used.last().copied(), "a cache keeps what is not in use");
            }
        }
        let half: u64 = SHAPES.iter().map(|size| charged(2 * size)).sum();
        assert_eq!(train(&with(Some((2, Parallel::Zero3))))[0].used[STEPS - 1], 4 * half);
    });
}

/// Filters, of four dimensions, are cut between outputs. Gradients are ddp's bit for bit; means are of fewer than 1,000 numbers in
/// another order, which moves an update by 1,000 · 2⁻²⁴ of itself at most. An update moves the loss by at most its norm, √P · rate ·
/// the weights' size, here less than a half, times the gradient's, less than 2; and as much again for what is not of first order.
#[test]
fn adafactor_of_resnets_trains_as_ddp_does() {
    device::run("ranks_with::adafactor_of_resnets_trains_as_ddp_does", TWO, || {
        let of = |parallel| {
            let ranks = RankArguments { ranks: Some(2), parallel: Some(parallel) };
            let techniques = ResnetTechniques { optimizer: Kind::Adafactor, ranks, ..ResnetTechniques::default() };
            let plan = resnet::Plan::new(&ResnetArguments { techniques, ..tiny() }).unwrap();
            let group = Group::create(2).unwrap();
            let losses: Vec<Vec<f32>> = std::thread::scope(|scope| {
                let start = |rank: usize| {
                    let (member, plan) = (group.member(rank), &plan);
                    scope.spawn(move || {
                        let device = Device::open_at(rank).unwrap();
                        let mut trainer = resnet::Trainer::in_group(plan, device, Some(member)).unwrap();
                        (0..3).map(|_| trainer.step().unwrap().expect("this device computes")).collect()
                    })
                };
                [start(0), start(1)].map(|thread| thread.join().unwrap()).into()
            });
            assert_eq!(losses[0], losses[1], "ranks tell the same loss");
            losses[0].clone()
        };
        let parameters = resnet::Plan::new(&tiny()).unwrap().configuration.parameter_count();
        let ddp = of(Parallel::Ddp);
        for parallel in ZERO {
            for (step, (loss, ddp)) in of(parallel).iter().zip(&ddp).enumerate() {
                let bound = step as f64 * 2.0 * 1000.0 / 16_777_216.0 * (parameters as f64).sqrt() * 1e-2 * 0.5 * 2.0;
                assert!(
                    f64::from((loss - ddp).abs()) <= bound,
                    "{parallel:?}, step {step}: {loss}, not {ddp} within {bound}"
                );
            }
        }
    });
}
