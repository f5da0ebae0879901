//! Adafactor (Shazeer and Stern 2018) in the form of PyTorch's: no first moment, and of a matrix's second moment v only the
//! means of its rows and of its columns: v̂ = row · column / mean(row). A vector keeps all of v.
//!
//! The decay of v is 1 - step^-0.8, the step is relative to the weight's own size (at least 1e-3) with a rate of
//! min(lr, 1/√step), and an update whose root mean square is above 1 is scaled down to it.
//!
//! Optimizer bytes: Σ 4·(rows + columns) over matrices, Σ 4·N over vectors. By arithmetic. In the step, 4·(2·rows + 2) bytes
//! of workspace for one matrix at a time: sums that a kernel hands to the next.
//!
//! Of several ranks that share a matrix out, each has whole rows with their means. The means of columns, the mean of rows and the
//! sizes of update and weight are of all rows: each rank computes them of its own, and they are weighted and summed through the
//! host, columns + 3 numbers. So every rank keeps all columns. Vectors, and matrices of fewer rows than ranks, are not shared out.

use super::optimizer::{State, Update};
use crate::ranks::Group;
use crate::{Error, Tensor, operations};
use memscope_client::Category;

/// Learning rate where none is given, which is PyTorch's.
pub(super) const RATE: f32 = 1e-2;
/// The decay of v is 1 - step^DECAY.
const DECAY: f64 = -0.8;
/// Least size of a weight to which a step is relative.
const FLOOR: f32 = 1e-3;

/// The factors of a matrix's second moment.
pub(crate) struct Factors {
    /// (rows)
    pub rows: Tensor,
    /// (columns)
    pub columns: Tensor,
}

/// Updates a parameter.
pub(super) fn update(parameter: &mut Update<'_>, rate: f32, step: i32) -> Result<(), Error> {
    let by = operations::Adafactor {
        blend: f64::from(step).powf(DECAY) as f32,
        rate: rate.min((1.0 / f64::from(step).sqrt()) as f32),
        floor: FLOOR,
    };
    reach_state(parameter)?;
    let Update { name, weight, gradient, state, whole, group, .. } = parameter;
    match state {
        Some(State::SecondMoment(second)) => operations::adafactor_vector(weight, second, gradient, &by),
        Some(State::Factored(factors)) => {
            let floats = |what: &str, size: u64| {
                Tensor::floats(weight.device(), Category::Workspace, &format!("{name}.{what}"), &[size])
            };
            let mut rows = factors.rows.elements();
            let (partials, scalars) = (floats("partials", 2 * rows)?, floats("scalars", 2)?);
            // A device that does not compute has nothing to be summed.
            let group = group.filter(|_| weight.device().computes());
            operations::adafactor_factors(factors, gradient, &by)?;
            match group {
                None => operations::adafactor_mean(&scalars, factors)?,
                Some(group) => means_of_all(group, factors, *whole, &scalars)?,
            }
            operations::adafactor_partials(&partials, weight, factors, gradient, &scalars)?;
            if let Some(group) = group {
                partials.set_first(&sums_of_all(group, &partials)?)?;
                rows = 1;
            }
            operations::adafactor_step(&scalars, &partials, rows, *whole, &by)?;
            operations::adafactor_apply(weight, factors, gradient, &scalars)
        }
        _ => unreachable!("made above"),
    }
}

/// The column means become those of all ranks' rows, and the first scalar the mean of all row means. The matrix has `elements`.
fn means_of_all(group: &Group, factors: &Factors, elements: u64, scalars: &Tensor) -> Result<(), Error> {
    let Factors { rows, columns } = factors;
    let all_rows = (elements / columns.elements()) as f32;
    let mut means = columns.to_host()?;
    let share = rows.elements() as f32 / all_rows;
    means.iter_mut().for_each(|mean| *mean *= share);
    means.push(rows.to_host()?.iter().sum::<f32>() / all_rows);
    group.all_reduce(&mut means)?;
    let of_rows = means.pop().expect("pushed above");
    columns.write(&means)?;
    // As the kernel has it.
    scalars.set_first(&[of_rows.max(f32::EPSILON)])
}

/// The two sums over all rows of all ranks, from two of each row.
fn sums_of_all(group: &Group, partials: &Tensor) -> Result<[f32; 2], Error> {
    let mut sums = [0.0; 2];
    for row in partials.to_host()?.chunks(2) {
        sums.iter_mut().zip(row).for_each(|(sum, of_row)| *sum += of_row);
    }
    group.all_reduce(&mut sums)?;
    Ok(sums)
}

/// Elements of a row, between which ranks cut a tensor of this shape; none where they do not share it out.
pub(super) fn unit(shape: &[u64], world: u64) -> Option<u64> {
    match shape {
        [_] => None,
        [rows, rest @ ..] => (*rows >= world).then(|| rest.iter().product()),
        [] => None,
    }
}

/// Makes the factors or the second moment, zeros, at the first call.
fn reach_state(parameter: &mut Update<'_>) -> Result<(), Error> {
    if parameter.state.is_some() {
        return Ok(());
    }
    let make = |what: &str, size: u64| {
        let name = format!("{}.{what}", parameter.name);
        let tensor = Tensor::floats(parameter.weight.device(), Category::Optimizer, &name, &[size])?;
        operations::fill(&tensor, 0.0)?;
        Ok::<Tensor, Error>(tensor)
    };
    *parameter.state = Some(match *parameter.shape {
        [rows, columns] => {
            State::Factored(Factors { rows: make("row_var", rows)?, columns: make("col_var", columns)? })
        }
        // A filter's inputs and window together are its columns: factoring the last two of four dimensions saves little.
        [rows, _, _, _] => {
            let columns = parameter.weight.elements() / rows;
            State::Factored(Factors { rows: make("row_var", rows)?, columns: make("col_var", columns)? })
        }
        _ => State::SecondMoment(make("variance", parameter.weight.elements())?),
    });
    Ok(())
}
