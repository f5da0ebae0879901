//! Ranks in 16 bits: the losses of ranks that share out nothing, those of one rank, what each keeps, and that all skip a step.

use crate::device;
use crate::ranks::{ALL, STEPS, TWO, allowed, train, with};
use crate::ranks_with::{P, POSITIONS, TOKENS, ZERO, optimizer};
use memscope_samples::gpt::GptArguments;
use memscope_samples::techniques::{Checkpoint, Kind, Parallel, Precision};

const LOW: [Precision; 3] = [Precision::AmpFp16, Precision::AmpBf16, Precision::Bf16];
const RATE: f32 = 2e-3;

fn low(precision: Precision, ranks: Option<(u64, Parallel)>) -> GptArguments {
    let mut arguments = with(ranks);
    arguments.learning_rate = Some(RATE);
    arguments.techniques.types.precision = precision;
    arguments
}

/// The block's parameters; those that products read of them, matrices and biases; of which a product's weights are the decoder's too.
const BLOCK: u64 = 12 * 32 * 32 + 13 * 32;
const CAST_OF_BLOCK: u64 = 12 * 32 * 32 + 9 * 32;

/// The most bytes of weights, gradients and optimizer of one rank of two.
fn most(precision: Precision, parallel: Parallel) -> [u64; 3] {
    let zero3 = parallel == Parallel::Zero3;
    let gradients = match parallel {
        Parallel::Ddp => 2 * P,
        Parallel::Zero1 => P,
        _ => P / 2 + POSITIONS,
    };
    if precision == Precision::Bf16 {
        let weights = if zero3 { P / 2 + TOKENS + POSITIONS } else { P };
        return [2 * weights, 2 * gradients, optimizer(parallel, 4 * P)];
    }
    // Casts wait from forward to backward; in zero3 they are there while the block is, which with them is larger than both tables.
    const { assert!(4 * BLOCK + 2 * CAST_OF_BLOCK > 4 * (TOKENS + POSITIONS)) };
    let weights = match zero3 {
        true => 4 * (P / 2 + BLOCK) + 2 * CAST_OF_BLOCK,
        false => 4 * P + 2 * (CAST_OF_BLOCK + TOKENS),
    };
    let found = if precision == Precision::AmpFp16 { 4 } else { 0 };
    [weights, 4 * gradients, optimizer(parallel, 8 * P) + found]
}

/// The first loss is computed from the same weights, sequence by sequence, and is a mean of 128 numbers. Later ones: each rank has
/// rounded its share of a gradient to 16 bits, and where all is bf16 their sum once more, three roundings by a unit u (2⁻¹¹ of
/// fp16, 2⁻⁸ of bf16) at most of numbers of the gradient's size, each of which moves a weight by rate · u otherwise, summed over the
/// weights with their gradients' sizes at most rate · 3·u · √P · |g|, and |g| < 2. Weights that differ at all may be rounded
/// otherwise, each time, and all that is computed from them: 4·u of a loss (as in precision.rs), of either.
fn bound(precision: Precision, loss: f32, step: usize) -> f64 {
    let u = if precision == Precision::AmpFp16 { 2_f64.powi(-11) } else { 2_f64.powi(-8) };
    if step == 0 {
        return 128.0 / 16_777_216.0;
    }
    step as f64 * f64::from(RATE) * 3.0 * u * (P as f64).sqrt() * 2.0 + 2.0 * 4.0 * u * f64::from(loss)
}

#[test]
fn losses_are_those_of_ddp_and_of_one_rank() {
    device::run("ranks_precision::losses_are_those_of_ddp_and_of_one_rank", TWO, || {
        for precision in LOW {
            let one = train(&low(precision, None)).remove(0).losses;
            let mut ddp = Vec::new();
            for parallel in ALL {
                for rank in train(&low(precision, Some((2, parallel)))) {
                    for (step, (loss, one)) in rank.losses.iter().zip(&one).enumerate() {
                        let (apart, bound) = (f64::from((loss - one).abs()), bound(precision, *one, step));
                        assert!(
                            apart <= bound,
                            "{precision:?}, {parallel:?}, step {step}: {loss}, not {one} within {bound}"
                        );
                    }
                    assert_eq!(rank.most, most(precision, parallel), "{precision:?}, {parallel:?}");
                    if parallel == Parallel::Ddp {
                        ddp.clone_from(&rank.losses);
                    }
                    // The same sums, and the same roundings: of bf16's updates too, wherever a part begins.
                    assert_eq!(rank.losses, ddp, "{precision:?}, {parallel:?}");
                }
            }
            // The check can fail: half of the batch alone has other losses.
            let half = train(&GptArguments { batch: Some(2.into()), ..low(precision, None) }).remove(0).losses;
            let apart = |other: &[f32]| {
                (0..STEPS).any(|step| f64::from((other[step] - one[step]).abs()) > bound(precision, one[step], step))
            };
            assert!(apart(&half));
        }
    });
}

/// In mixed precision one rank that adds up two micro-batches casts and adds the same gradients as two ranks do, but for the order
/// of sums in the tables and norms, which are in fp32: so its losses are as near as in fp32 (ranks.rs). What is moved a little is
/// rounded to another number as often as that is a share of the step, and then by all of it: in the mean as far as in fp32.
#[test]
fn mixed_precision_sums_as_accumulation_does() {
    device::run("ranks_precision::mixed_precision_sums_as_accumulation_does", TWO, || {
        for precision in [Precision::AmpFp16, Precision::AmpBf16] {
            let mut accumulated = low(precision, None);
            accumulated.techniques.gradients.accumulate = Some(2);
            let one = train(&accumulated).remove(0).losses;
            let ddp = train(&low(precision, Some((2, Parallel::Ddp)))).remove(0).losses;
            for (step, (loss, one)) in ddp.iter().zip(&one).enumerate() {
                let bound = allowed(P as f64, RATE.into(), step as f64);
                assert!(
                    f64::from((loss - one).abs()) <= bound,
                    "{precision:?}, step {step}: {loss}, not {one} within {bound}"
                );
            }
            // One rank with the whole batch rounds its gradients once, and is farther away.
            let whole = train(&low(precision, None)).remove(0).losses;
            println!("{precision:?}: {ddp:?}, accumulated {one:?}, whole {whole:?}");
        }
    });
}

/// Rank 0 alone has the infinity; with ZeRO it is in a part that no other has.
#[test]
fn one_rank_has_an_infinity_and_all_skip_the_step() {
    device::run("ranks_precision::one_rank_has_an_infinity_and_all_skip_the_step", TWO, || {
        let mut ddp = Vec::new();
        for parallel in ALL {
            let mut arguments = low(Precision::AmpFp16, Some((2, parallel)));
            arguments.techniques.types.inject_inf = Some(3);
            for rank in train(&arguments) {
                for (step, scaled) in rank.scaled.iter().enumerate() {
                    let scaled = scaled.expect("fp16 has a scale");
                    let scale = if step > 2 { 32_768.0 } else { 65_536.0 };
                    assert_eq!((scaled.scale, scaled.skipped), (scale, step == 2), "{parallel:?}, step {step}");
                }
                if parallel == Parallel::Ddp {
                    ddp.clone_from(&rank.losses);
                }
                assert!(rank.losses == ddp && rank.losses.iter().all(|loss| loss.is_finite()), "{parallel:?}");
            }
        }
        assert_ne!(ddp[3..], train(&low(Precision::AmpFp16, Some((2, Parallel::Ddp))))[0].losses[3..]);
    });
}

/// Beside the other techniques: ZeRO's losses are ddp's bit for bit.
#[test]
fn precision_combines_with_ranks_and_others() {
    device::run("ranks_precision::precision_combines_with_ranks_and_others", TWO, || {
        for precision in LOW {
            let of = |parallel| {
                let mut arguments = low(precision, Some((2, parallel)));
                arguments.techniques.activations.chunked_loss = Some(3);
                arguments.techniques.gradients.optimizer_in_backward = precision != Precision::AmpFp16;
                arguments.layers = Some(3);
                arguments.techniques.activations.checkpoint = Checkpoint::Every(2);
                train(&arguments).remove(0).losses
            };
            let ddp = of(Parallel::Ddp);
            assert!(ddp[STEPS - 1] < ddp[0] - 0.1, "{precision:?}: {ddp:?}");
            for parallel in ZERO {
                assert_eq!(of(parallel), ddp, "{precision:?}, {parallel:?}");
            }
        }
        // Updates in fp32 whose weights are rounded: every rank rounds its part as one rank would.
        for kind in [Kind::Momentum, Kind::AdamW8bit] {
            let of = |parallel| {
                let mut arguments = low(Precision::Bf16, Some((2, parallel)));
                arguments.techniques.optimizer.kind = kind;
                train(&arguments).remove(0).losses
            };
            assert_eq!(of(Parallel::Zero3), of(Parallel::Ddp), "{kind:?}");
        }
    });
}
