//! The optimizers: losses that fall, and updates against their definitions in f64.
//!
//! An update in fp32 rounds a few times, and a root mean square over a tensor once for each element at worst; the checks
//! allow 1e-6 of the weight and 1e-4 of the update.

use crate::device::{self, COMPUTING};
use crate::training::{assert_learns, losses, small};
use memscope_samples::Device;
use memscope_samples::gpt::{GptArguments, Plan, Trainer};
use memscope_samples::techniques::{Kind, OptimizerArguments, Techniques};

/// The small GPT with this optimizer.
fn with(kind: Kind) -> GptArguments {
    let optimizer = OptimizerArguments { kind, ..OptimizerArguments::default() };
    GptArguments { techniques: Techniques { optimizer, ..Techniques::default() }, ..small() }
}

#[test]
fn every_optimizer_learns_at_its_own_rate() {
    device::run("optimizers::every_optimizer_learns_at_its_own_rate", COMPUTING, || {
        for kind in [Kind::Sgd, Kind::Momentum, Kind::Adafactor] {
            assert_learns(&losses(&GptArguments { steps: Some(60), learning_rate: None, ..with(kind) }));
        }
        assert_learns(&losses(&with(Kind::AdamW8bit)));
    });
}

/// The paper's claim, on a small scale: 8 bits cost no quality. That they are not fp32's own losses shows that they are used.
#[test]
fn eight_bits_follow_32() {
    device::run("optimizers::eight_bits_follow_32", COMPUTING, || {
        let (exact, coarse) = (losses(&small()), losses(&with(Kind::AdamW8bit)));
        assert_eq!(exact[..2], coarse[..2], "the first update has exact moments");
        assert_ne!(exact[2..], coarse[2..]);
        for (exact, coarse) in exact.iter().zip(&coarse) {
            assert!((exact - coarse).abs() < 0.05, "{exact} in fp32, {coarse} in 8 bits");
        }
    });
}

#[test]
fn foreach_is_fused_bit_for_bit() {
    device::run("optimizers::foreach_is_fused_bit_for_bit", COMPUTING, || {
        let optimizer = OptimizerArguments { foreach: true, ..OptimizerArguments::default() };
        let techniques = Techniques { optimizer, ..Techniques::default() };
        assert_eq!(losses(&GptArguments { techniques, ..small() }), losses(&small()));
    });
}

/// Values of every parameter in f64.
type Values = Vec<Vec<f64>>;

fn wide(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

/// What a definition is given: the step's number, the weights before it, the gradients, the shape (rows and columns, or 1 and
/// the size of a vector), and what it has kept of the parameter since the step before, at first nothing.
type Definition<'a> = &'a dyn Fn(i32, &[f64], &[f64], [usize; 2], &mut Vec<f64>) -> Vec<f64>;

/// The learning rate of [`check`], as the kernels get it.
const RATE: f64 = 0.02_f32 as f64;

/// Trains three steps and holds the weights after each against the definition.
fn check(kind: Kind, definition: Definition<'_>) {
    let plan = Plan::new(&GptArguments { learning_rate: Some(RATE as f32), ..with(kind) }).unwrap();
    let shapes: Vec<Vec<u64>> = plan.configuration.parameters().into_iter().map(|parameter| parameter.shape).collect();
    let mut states: Values = vec![Vec::new(); shapes.len()];
    let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
    let weights = |trainer: &mut Trainer| -> Values {
        trainer.parameters_mut().iter().map(|parameter| wide(parameter.weight().to_host().unwrap())).collect()
    };
    for step in 1..=3 {
        let before = weights(&mut trainer);
        trainer.step().unwrap();
        let after = weights(&mut trainer);
        for (index, parameter) in trainer.parameters_mut().iter().enumerate() {
            let gradient = wide(parameter.gradient().expect("it stays until the next step").to_host().unwrap());
            let columns = shapes[index][shapes[index].len() - 1] as usize;
            let shape = [gradient.len() / columns, columns];
            let expected = definition(step, &before[index], &gradient, shape, &mut states[index]);
            for ((after, expected), before) in after[index].iter().zip(expected).zip(&before[index]) {
                let allowed = 1e-6 * before.abs() + 1e-4 * (expected - before).abs() + 1e-9;
                let name = parameter.name();
                assert!((after - expected).abs() <= allowed, "step {step}, {name}: {after}, not {expected}");
            }
        }
    }
}

#[test]
fn sgd_is_its_definition() {
    device::run("optimizers::sgd_is_its_definition", COMPUTING, || {
        check(Kind::Sgd, &|_, weight, gradient, _, _| weight.iter().zip(gradient).map(|(w, g)| w - RATE * g).collect());
    });
}

#[test]
fn momentum_is_its_definition() {
    device::run("optimizers::momentum_is_its_definition", COMPUTING, || {
        check(Kind::Momentum, &|_, weight, gradient, _, velocity| {
            velocity.resize(gradient.len(), 0.0);
            velocity.iter_mut().zip(gradient).for_each(|(b, g)| *b = 0.9 * *b + g);
            weight.iter().zip(velocity).map(|(w, b)| w - RATE * *b).collect()
        });
    });
}

/// Shazeer and Stern 2018, algorithms 4 and 5, with the numbers that PyTorch takes by default.
#[test]
fn adafactor_is_its_definition() {
    fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
        let count = values.len() as f64;
        values.sum::<f64>() / count
    }
    fn second_moment(keep: f64, gradient: &[f64], [rows, columns]: [usize; 2], state: &mut Vec<f64>) -> Vec<f64> {
        let square = |i: usize| gradient[i] * gradient[i];
        let blend = |old: &mut f64, new: f64| *old = keep * *old + (1.0 - keep) * new;
        if rows == 1 {
            state.resize(columns, 0.0);
            state.iter_mut().enumerate().for_each(|(i, v)| blend(v, square(i)));
            return state.clone();
        }
        state.resize(rows + columns, 0.0);
        let (of_rows, of_columns) = state.split_at_mut(rows);
        for (row, r) in of_rows.iter_mut().enumerate() {
            blend(r, mean((0..columns).map(|column| square(row * columns + column))));
        }
        for (column, c) in of_columns.iter_mut().enumerate() {
            blend(c, mean((0..rows).map(|row| square(row * columns + column))));
        }
        let tiny = f64::from(f32::EPSILON);
        let divisor = mean(of_rows.iter().copied()).max(tiny);
        (0..rows * columns).map(|i| of_rows[i / columns] * of_columns[i % columns] / divisor).collect()
    }
    device::run("optimizers::adafactor_is_its_definition", COMPUTING, || {
        check(Kind::Adafactor, &|step, weight, gradient, shape, state| {
            let tiny = f64::from(f32::EPSILON);
            let keep = 1.0 - f64::from(step).powf(-0.8);
            let second = second_moment(keep, gradient, shape, state);
            let update: Vec<f64> = gradient.iter().zip(second).map(|(g, v)| g / v.max(tiny * tiny).sqrt()).collect();
            let size = |values: &[f64]| mean(values.iter().map(|x| x * x)).sqrt();
            let relative = RATE.min(1.0 / f64::from(step).sqrt()) * size(weight).max(1e-3);
            let clipped = size(&update).max(1.0);
            weight.iter().zip(&update).map(|(w, u)| w - relative / clipped * u).collect()
        });
    });
}
