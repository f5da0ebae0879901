//! What a layer keeps, in 8 bits (techniques/compress_activations.rs).
//!
//! Owns: the kept copies. Refuses: to know when a layer's backward comes.

use super::pass::{Pass, SavedAttention, SavedBlock, SavedMatrix, SavedMlp, SavedNorm};
use crate::tensor::Element;
use crate::{Error, Tensor, operations};
use memscope_client::{self as memscope, Category};
use std::rc::Rc;

/// Elements with one scale.
const COMPRESSED_BLOCK: u64 = 256;

/// A tensor in 8 bits.
struct Compressed {
    /// Of the tensor, and what its elements were.
    name: String,
    element: Element,
    codes: Tensor,
    absmaxes: Tensor,
}

impl Compressed {
    fn new(pass: &Pass<'_>, tensor: &Tensor) -> Result<Compressed, Error> {
        let (name, elements, element) = (tensor.name().to_owned(), tensor.elements(), tensor.element());
        let codes = Tensor::bytes(pass.device, Category::Activations, &format!("{name}.int8"), elements)?;
        let blocks = [elements.div_ceil(COMPRESSED_BLOCK)];
        let absmaxes = Tensor::floats(pass.device, Category::Activations, &format!("{name}.absmax"), &blocks)?;
        operations::compress([&codes, &absmaxes], tensor)?;
        Ok(Compressed { name, element, codes, absmaxes })
    }

    fn restored(self, pass: &Pass<'_>) -> Result<Tensor, Error> {
        let Compressed { name, element, codes, absmaxes } = self;
        let (name, shape) = (format!("{name}.decompressed"), [codes.elements()]);
        let tensor = Tensor::of(pass.device, Category::Workspace, &name, element, &shape)?;
        operations::decompress(&tensor, [&codes, &absmaxes])?;
        Ok(tensor)
    }
}

/// What a layer keeps.
pub(super) struct CompressedBlock {
    /// Inputs of the norms, with mean and rstd.
    norms: [(Compressed, [Tensor; 2]); 2],
    /// Of attention.
    input: Compressed,
    q: Compressed,
    k: Option<Compressed>,
    v: Compressed,
    matrix: CompressedMatrix,
    merged: Compressed,
    /// Of the MLP: input, before and after GELU.
    mlp: [Compressed; 3],
}

enum CompressedMatrix {
    Probabilities(Compressed),
    LogSums(Tensor),
    Again,
}

/// Compresses what a layer keeps; each tensor is freed when its copy is made, if nothing else reads it.
pub(super) fn compress(pass: &Pass<'_>, saved: SavedBlock) -> Result<CompressedBlock, Error> {
    let _scope = memscope::scope("compress");
    let SavedBlock { norm_1, attention, norm_2, mlp } = saved;
    let SavedAttention { input, q, k, v, matrix, merged } = attention;
    let shared = |tensor: Rc<Tensor>| Compressed::new(pass, &tensor);
    let owned = |tensor: Tensor| Compressed::new(pass, &tensor);
    let norm = |SavedNorm { input, mean, rstd }: SavedNorm| Ok::<_, Error>((shared(input)?, [mean, rstd]));
    Ok(CompressedBlock {
        norms: [norm(norm_1)?, norm(norm_2)?],
        input: shared(input)?,
        q: owned(q)?,
        k: k.map(owned).transpose()?,
        v: owned(v)?,
        matrix: match matrix {
            SavedMatrix::Probabilities(tensor) => CompressedMatrix::Probabilities(owned(tensor)?),
            SavedMatrix::LogSums(tensor) => CompressedMatrix::LogSums(tensor),
            SavedMatrix::Again => CompressedMatrix::Again,
        },
        merged: owned(merged)?,
        mlp: [shared(mlp.input)?, owned(mlp.expanded)?, owned(mlp.activated)?],
    })
}

/// What the layer kept, as temporaries of the types that it had; each copy in 8 bits is freed on the way.
pub(super) fn restore(pass: &Pass<'_>, block: CompressedBlock) -> Result<SavedBlock, Error> {
    let _scope = memscope::scope("decompress");
    let CompressedBlock { norms, input, q, k, v, matrix, merged, mlp } = block;
    let owned = |tensor: Compressed| tensor.restored(pass);
    let shared = |tensor: Compressed| Ok::<_, Error>(Rc::new(tensor.restored(pass)?));
    let norm = |(input, [mean, rstd]): (Compressed, [Tensor; 2])| {
        Ok::<_, Error>(SavedNorm { input: shared(input)?, mean, rstd })
    };
    let ([norm_1, norm_2], [mlp_input, expanded, activated]) = (norms, mlp);
    Ok(SavedBlock {
        norm_1: norm(norm_1)?,
        attention: SavedAttention {
            input: shared(input)?,
            q: owned(q)?,
            k: k.map(owned).transpose()?,
            v: owned(v)?,
            matrix: match matrix {
                CompressedMatrix::Probabilities(tensor) => SavedMatrix::Probabilities(owned(tensor)?),
                CompressedMatrix::LogSums(tensor) => SavedMatrix::LogSums(tensor),
                CompressedMatrix::Again => SavedMatrix::Again,
            },
            merged: owned(merged)?,
        },
        norm_2: norm(norm_2)?,
        mlp: SavedMlp { input: shared(mlp_input)?, expanded: owned(expanded)?, activated: owned(activated)? },
    })
}
