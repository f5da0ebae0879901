//! Recurrent layers: where each matrix and bias lies in the weights, and what a forward pass has to keep.
//!
//! Owns: their descriptors. The shapes are those of the equations in cuDNN's documentation of `cudnnRNNMode_t`; all matrices come
//! before all biases, without gaps, so that the weights are as large as the parameters. Refuses: to know what the real engines take:
//! what is told for the reserve is what those equations need in a backward pass, and the workspace is 0.

use super::descriptor::Shape;
use super::given;
use crate::api::{Out, store};
use crate::status::CudnnStatus;
use std::ffi::{c_int, c_void};

/// Kinds of cells: `cudnnRNNMode_t`.
const LSTM: c_int = 2;
const GRU: c_int = 3;
/// `cudnnRNNBiasMode_t`: none; one on the side of the input; two; one on the recurrent side.
const NO_BIAS: c_int = 0;
const INPUT_BIAS: c_int = 1;
const TWO_BIASES: c_int = 2;
/// `CUDNN_BIDIRECTIONAL`, `CUDNN_SKIP_INPUT`, `CUDNN_FWD_MODE_TRAINING`.
const BOTH_WAYS: c_int = 1;
const NO_INPUT_MATRIX: c_int = 1;
const TRAINING: c_int = 1;

/// A recurrent layer, as cudnnSetRNNDescriptor_v8 describes it.
#[derive(Clone, Copy, Default)]
pub struct Layers {
    cell: c_int,
    bias: c_int,
    input_mode: c_int,
    kind: c_int,
    directions: usize,
    input: usize,
    hidden: usize,
    /// Size of the output, smaller than `hidden` where it is projected.
    output: usize,
    count: usize,
}

/// A batch of sequences: how many steps all of them have together.
#[derive(Clone, Copy, Default)]
pub struct Sequences {
    steps: usize,
}

/// A matrix or bias: where it begins in the weights, and its rows and columns, all counted in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    begin: usize,
    rows: usize,
    columns: usize,
}

impl Layers {
    /// Matrices on one side, input or recurrent.
    fn gates(&self) -> usize {
        match self.cell {
            LSTM => 4,
            GRU => 3,
            _ => 1,
        }
    }

    fn is_projected(&self) -> bool {
        self.cell == LSTM && self.output < self.hidden
    }

    /// Columns of the input's matrices in a pseudo-layer (one direction of a layer).
    fn columns(&self, pseudo: usize) -> usize {
        if pseudo < self.directions { self.input } else { self.output * self.directions }
    }

    fn has_input_matrices(&self, pseudo: usize) -> bool {
        self.input_mode != NO_INPUT_MATRIX || pseudo >= self.directions
    }

    /// Whether the input's side, and the recurrent one, has a bias.
    fn biases(&self) -> [bool; 2] {
        [self.bias == INPUT_BIAS || self.bias == TWO_BIASES, self.bias != NO_BIAS && self.bias != INPUT_BIAS]
    }

    /// The matrix of a linear layer; one without numbers where there is none.
    fn matrix(&self, pseudo: usize, linear: usize) -> Part {
        let gates = self.gates();
        let of_input = |pseudo| if self.has_input_matrices(pseudo) { self.columns(pseudo) } else { 0 };
        let all = |pseudo| {
            let projection = if self.is_projected() { self.output * self.hidden } else { 0 };
            gates * self.hidden * (of_input(pseudo) + self.output) + projection
        };
        let begin: usize = (0..pseudo).map(all).sum();
        let recurrent = begin + gates * self.hidden * of_input(pseudo);
        match linear {
            _ if linear < gates => {
                let columns = of_input(pseudo);
                Part { begin: begin + linear * self.hidden * columns, rows: self.hidden, columns }
            }
            _ if linear < 2 * gates => {
                let begin = recurrent + (linear - gates) * self.hidden * self.output;
                Part { begin, rows: self.hidden, columns: self.output }
            }
            _ if self.is_projected() && linear == 2 * gates => {
                let begin = recurrent + gates * self.hidden * self.output;
                Part { begin, rows: self.output, columns: self.hidden }
            }
            _ => Part { begin, rows: 0, columns: 0 },
        }
    }

    /// The bias of a linear layer; one without numbers where there is none.
    fn bias(&self, pseudo: usize, linear: usize) -> Part {
        let (gates, [input, recurrent]) = (self.gates(), self.biases());
        let sides = usize::from(input) + usize::from(recurrent);
        let matrices = self.matrix(self.count * self.directions, 0).begin;
        let begin = matrices + pseudo * sides * gates * self.hidden;
        let (there, before) = match linear / gates {
            0 => (input, 0),
            1 => (recurrent, usize::from(input)),
            _ => (false, 0),
        };
        let begin = begin + (before * gates + linear % gates) * self.hidden;
        Part { begin, rows: if there { self.hidden } else { 0 }, columns: 1 }
    }

    /// Bytes of all weights.
    fn bytes(&self) -> usize {
        self.bias(self.count * self.directions, 0).begin * bytes_of(self.kind)
    }

    /// Bytes that a backward pass needs of the forward pass, beside its input and output: of each step the gates and the cell's
    /// state (LSTM), the gates and the recurrent half of the new one (GRU), and the outputs of layers inside.
    fn kept(&self, sequences: Sequences) -> usize {
        let of_a_cell = match self.cell {
            LSTM => self.hidden * 5 + if self.is_projected() { self.hidden } else { 0 },
            GRU => self.hidden * 4,
            _ => 0,
        };
        let inside = self.output * self.count.saturating_sub(1);
        sequences.steps * self.directions * (of_a_cell * self.count + inside) * bytes_of(self.kind)
    }
}

/// Bytes of a number: `cudnnDataType_t`.
fn bytes_of(kind: c_int) -> usize {
    const DOUBLE: c_int = 1;
    const HALF: c_int = 2;
    const BFLOAT16: c_int = 9;
    match kind {
        DOUBLE => 8,
        HALF | BFLOAT16 => 2,
        _ => 4,
    }
}

/// Tells of a matrix or bias where it lies and how it is shaped, three dimensions as documented; nothing of one that is not there.
///
/// # Safety
/// The pointers must be null or a descriptor of the program's, and room for an address.
unsafe fn tell(part: Part, layers: &Layers, weights: usize, of: *mut Shape, place: Out<'_, usize>) {
    let is_there = part.rows * part.columns > 0;
    store(place, if is_there { weights + part.begin * bytes_of(layers.kind) } else { 0 });
    // SAFETY: as the caller says.
    if let Ok(of) = unsafe { given(of) } {
        let sizes = if is_there { [1, part.rows as c_int, part.columns as c_int] } else { [0; 3] };
        *of = Shape::tensor(layers.kind, sizes);
    }
}

fn size(number: c_int) -> Result<usize, CudnnStatus> {
    usize::try_from(number).map_err(|_| CudnnStatus::BAD_PARAM)
}

api! {
    simulated fn cudnnSetRNNDescriptor_v8(
        pointer: *mut Layers, _algorithm: c_int, cell: c_int, bias: c_int, direction: c_int, input_mode: c_int,
        kind: c_int, _precision: c_int, _math: c_int, input: c_int, hidden: c_int, projected: c_int, count: c_int,
        _dropout: *const c_void, _flags: u32,
    ) -> CudnnStatus {
        let directions = if direction == BOTH_WAYS { 2 } else { 1 };
        let (input, hidden, projected, count) = (size(input)?, size(hidden)?, size(projected)?, size(count)?);
        let output = if projected == 0 { hidden } else { projected.min(hidden) };
        // SAFETY: the program gives its descriptor.
        let layers = unsafe { given(pointer)? };
        *layers = Layers { cell, bias, input_mode, kind, directions, input, hidden, output, count };
        Ok(())
    }
    simulated fn cudnnSetRNNDataDescriptor(
        pointer: *mut Sequences, _kind: c_int, _layout: c_int, longest: c_int, batch: c_int, _vector: c_int,
        lengths: *const c_int, _fill: *const c_void,
    ) -> CudnnStatus {
        let (longest, batch) = (size(longest)?, size(batch)?);
        let steps = match lengths.is_null() {
            true => longest * batch,
            // SAFETY: the program gives as many lengths as it says.
            false => unsafe { std::slice::from_raw_parts(lengths, batch) }.iter().map(|steps| (*steps).max(0) as usize).sum(),
        };
        // SAFETY: the program gives its descriptor.
        *unsafe { given(pointer)? } = Sequences { steps };
        Ok(())
    }
    size fn cudnnGetRNNWeightSpaceSize(_handle: *mut c_void, pointer: *mut Layers, bytes: Out<'_, usize>) -> CudnnStatus {
        // SAFETY: the program gives its descriptor.
        store(bytes, unsafe { given(pointer)? }.bytes());
        Ok(())
    }
    size fn cudnnGetRNNTempSpaceSizes(
        _handle: *mut c_void, pointer: *mut Layers, mode: c_int, sequences: *mut Sequences, workspace: Out<'_, usize>,
        reserve: Out<'_, usize>,
    ) -> CudnnStatus {
        // SAFETY: the program gives its descriptors.
        let (layers, sequences) = unsafe { (given(pointer)?, given(sequences)?) };
        store(workspace, 0);
        store(reserve, if mode == TRAINING { layers.kept(*sequences) } else { 0 });
        Ok(())
    }
    simulated fn cudnnGetRNNWeightParams(
        _handle: *mut c_void, pointer: *mut Layers, pseudo: c_int, _bytes: usize, weights: usize, linear: c_int,
        matrix_shape: *mut Shape, matrix: Out<'_, usize>, bias_shape: *mut Shape, bias: Out<'_, usize>,
    ) -> CudnnStatus {
        let (pseudo, linear) = (size(pseudo)?, size(linear)?);
        // SAFETY: the program gives its descriptors.
        unsafe {
            let layers = given(pointer)?;
            if pseudo >= layers.count * layers.directions || linear > 2 * layers.gates() {
                return Err(CudnnStatus::BAD_PARAM);
            }
            tell(layers.matrix(pseudo, linear), layers, weights, matrix_shape, matrix);
            tell(layers.bias(pseudo, linear), layers, weights, bias_shape, bias);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All parts lie beside each other and fill the weights.
    fn check(layers: Layers, numbers: usize) {
        let linears = 2 * layers.gates() + 1;
        let pseudo = layers.count * layers.directions;
        let mut parts: Vec<Part> = (0..pseudo)
            .flat_map(|pseudo| (0..linears).map(move |linear| (pseudo, linear)))
            .flat_map(|(pseudo, linear)| [layers.matrix(pseudo, linear), layers.bias(pseudo, linear)])
            .filter(|part| part.rows * part.columns > 0)
            .collect();
        parts.sort_by_key(|part| part.begin);
        let mut end = 0;
        for part in parts {
            assert_eq!(part.begin, end, "{part:?}");
            end += part.rows * part.columns;
        }
        assert_eq!((end, layers.bytes()), (numbers, numbers * bytes_of(layers.kind)));
    }

    #[test]
    fn the_weights_are_the_parameters_without_gaps() {
        let one =
            Layers { input: 7, hidden: 5, output: 5, count: 1, directions: 1, bias: TWO_BIASES, ..Layers::default() };
        check(one, 5 * 7 + 5 * 5 + 2 * 5);
        check(Layers { cell: LSTM, ..one }, 4 * (5 * 7 + 5 * 5 + 2 * 5));
        check(Layers { cell: GRU, bias: NO_BIAS, kind: 2, ..one }, 3 * (5 * 7 + 5 * 5));
        let deep = Layers { cell: LSTM, count: 3, directions: 2, ..one };
        check(deep, 2 * 4 * (5 * 7 + 5 * 5 + 10) + 2 * 2 * 4 * (5 * 10 + 5 * 5 + 10));
        let projected = Layers { output: 2, ..deep };
        check(projected, 2 * (4 * (5 * 7 + 5 * 2 + 10) + 2 * 5) + 2 * 2 * (4 * (5 * 4 + 5 * 2 + 10) + 2 * 5));
        check(Layers { bias: INPUT_BIAS, input_mode: NO_INPUT_MATRIX, input: 5, ..one }, 5 * 5 + 5);
        check(Layers { bias: 3, ..one }, 5 * 7 + 5 * 5 + 5);
    }
}
