//! Adafactor (Shazeer and Stern 2018) in the form of PyTorch's: no first moment, and of a matrix's second moment v only the
//! means of its rows and of its columns: v̂ = row · column / mean(row). A vector keeps all of v.
//!
//! The decay of v is 1 - step^-0.8, the step is relative to the weight's own size (at least 1e-3) with a rate of
//! min(lr, 1/√step), and an update whose root mean square is above 1 is scaled down to it.
//!
//! Optimizer bytes: Σ 4·(rows + columns) over matrices, Σ 4·N over vectors. By arithmetic. In the step, 4·(2·rows + 2) bytes
//! of workspace for one matrix at a time: sums that a kernel hands to the next.

use super::optimizer::{State, Update};
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
    let Update { name, weight, gradient, state, .. } = parameter;
    match state {
        Some(State::SecondMoment(second)) => operations::adafactor_vector(weight, second, gradient, &by),
        Some(State::Factored(factors)) => {
            let floats = |what: &str, size: u64| {
                Tensor::floats(weight.device(), Category::Workspace, &format!("{name}.{what}"), &[size])
            };
            let (partials, scalars) = (floats("partials", 2 * factors.rows.elements())?, floats("scalars", 2)?);
            operations::adafactor_matrix(weight, factors, gradient, [&partials, &scalars], &by)
        }
        _ => unreachable!("made above"),
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
