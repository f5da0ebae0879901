//! The table of images and kernels. A test holds it against the checked-in PTX.
//!
//! Owns: names, types and order of parameters, as the sources have them. Refuses: anything computed.

use crate::{Image, Kernel, Parameter, ParameterType};

/// The image `name`, from its PTX and the sha256 beside it.
macro_rules! image {
    ($name:literal) => {
        Image {
            name: $name,
            ptx: include_str!(concat!("../ptx/", $name, ".ptx")),
            sha256: digest(include_str!(concat!("../ptx/", $name, ".sha256"))),
        }
    };
}

/// `IMAGE: kernel(parameter: Type, …) in module;`: the host reference has the kernel's name, in that module of host/.
macro_rules! kernels {
    ($($image:ident: $name:ident($($parameter:ident: $kind:ident),* $(,)?) in $module:ident;)*) => {
        /// Every kernel.
        pub static KERNELS: &[Kernel] = &[$(Kernel {
            name: stringify!($name),
            image: &$image,
            parameters: &[$(Parameter { name: stringify!($parameter), kind: ParameterType::$kind }),*],
            #[cfg(feature = "host")]
            host: crate::host::$module::$name,
        }),*];
    };
}

static FILL: Image = image!("fill");
static ELEMENTWISE: Image = image!("elementwise");
static EMBEDDING: Image = image!("embedding");
static LAYERNORM: Image = image!("layernorm");
static MATMUL: Image = image!("matmul");
static ATTENTION: Image = image!("attention");
static LOSS: Image = image!("loss");
static ADAMW: Image = image!("adamw");
static MOMENTUM: Image = image!("momentum");
static CONVOLUTION: Image = image!("convolution");
static BATCHNORM: Image = image!("batchnorm");
static RELU: Image = image!("relu");
static POOLING: Image = image!("pooling");
static SGD: Image = image!("sgd");
static ADAMW_FOREACH: Image = image!("adamw_foreach");
static ADAMW8BIT: Image = image!("adamw8bit");
static ADAFACTOR: Image = image!("adafactor");
static FLASH_ATTENTION: Image = image!("flash_attention");
static COMPRESS: Image = image!("compress");
static HALF_ELEMENTWISE: Image = image!("half_elementwise");
static HALF_MATMUL: Image = image!("half_matmul");
static HALF_ATTENTION: Image = image!("half_attention");
static HALF_LAYERNORM: Image = image!("half_layernorm");
static HALF_EMBEDDING: Image = image!("half_embedding");
static HALF_CONVOLUTION: Image = image!("half_convolution");
static HALF_BATCHNORM: Image = image!("half_batchnorm");
static HALF_RELU: Image = image!("half_relu");
static HALF_POOLING: Image = image!("half_pooling");
static HALF_LOSS: Image = image!("half_loss");
static HALF_FLASH_ATTENTION: Image = image!("half_flash_attention");
static HALF_COMPRESS: Image = image!("half_compress");
static LOSS_SCALE: Image = image!("loss_scale");
static ADAMW_BF16: Image = image!("adamw_bf16");
static ROUND_BF16: Image = image!("round_bf16");

/// Every image.
pub static IMAGES: &[&Image] = &[
    &FILL,
    &ELEMENTWISE,
    &EMBEDDING,
    &LAYERNORM,
    &MATMUL,
    &ATTENTION,
    &LOSS,
    &ADAMW,
    &MOMENTUM,
    &CONVOLUTION,
    &BATCHNORM,
    &RELU,
    &POOLING,
    &SGD,
    &ADAMW_FOREACH,
    &ADAMW8BIT,
    &ADAFACTOR,
    &FLASH_ATTENTION,
    &COMPRESS,
    &HALF_ELEMENTWISE,
    &HALF_MATMUL,
    &HALF_ATTENTION,
    &HALF_LAYERNORM,
    &HALF_EMBEDDING,
    &HALF_CONVOLUTION,
    &HALF_BATCHNORM,
    &HALF_RELU,
    &HALF_POOLING,
    &HALF_LOSS,
    &HALF_FLASH_ATTENTION,
    &HALF_COMPRESS,
    &LOSS_SCALE,
    &ADAMW_BF16,
    &ROUND_BF16,
];

kernels! {
    FILL: fill(output: Pointer, elements: U64, value: F32) in fill;
    FILL: init_normal(output: Pointer, elements: U64, deviation: F32, seed: U64) in fill;

    ELEMENTWISE: add(output: Pointer, a: Pointer, b: Pointer, elements: U64) in elementwise;
    ELEMENTWISE: gelu_forward(output: Pointer, input: Pointer, elements: U64) in elementwise;
    ELEMENTWISE: gelu_backward(
        grad_input: Pointer, grad_output: Pointer, input: Pointer, elements: U64,
    ) in elementwise;

    EMBEDDING: embedding_forward(
        output: Pointer, tokens: Pointer, token_table: Pointer, position_table: Pointer, types: Pointer,
        type_table: Pointer, rows: U32, sequence: U32, width: U32,
    ) in embedding;
    EMBEDDING: embedding_backward_table(
        grad_table: Pointer, grad_output: Pointer, indices: Pointer, rows: U32, width: U32,
    ) in embedding;
    EMBEDDING: embedding_backward_position(
        grad_table: Pointer, grad_output: Pointer, rows: U32, sequence: U32, positions: U32, width: U32,
        accumulate: U32,
    ) in embedding;

    LAYERNORM: layernorm_forward(
        output: Pointer, mean: Pointer, rstd: Pointer, input: Pointer, weight: Pointer, bias: Pointer, width: U32,
        epsilon: F32,
    ) in layernorm;
    LAYERNORM: layernorm_backward_input(
        grad_input: Pointer, grad_output: Pointer, input: Pointer, weight: Pointer, mean: Pointer, rstd: Pointer,
        width: U32,
    ) in layernorm;
    LAYERNORM: layernorm_backward_parameters(
        grad_weight: Pointer, grad_bias: Pointer, grad_output: Pointer, input: Pointer, mean: Pointer, rstd: Pointer,
        rows: U32, width: U32, accumulate: U32,
    ) in layernorm;

    MATMUL: matmul(
        output: Pointer, a: Pointer, b: Pointer, bias: Pointer, m: U32, n: U32, k: U32, batches: U32,
        a_row: U64, a_column: U64, a_batch: U64, b_row: U64, b_column: U64, b_batch: U64,
        output_row: U64, output_batch: U64, alpha: F32, beta: F32,
    ) in matmul;
    MATMUL: bias_backward(
        grad_bias: Pointer, grad_output: Pointer, rows: U32, width: U32, accumulate: U32,
    ) in matmul;

    ATTENTION: split_qkv(
        q: Pointer, k: Pointer, v: Pointer, qkv: Pointer, batch: U32, sequence: U32, heads: U32, head_width: U32,
    ) in attention;
    ATTENTION: split_qkv_backward(
        grad_qkv: Pointer, grad_q: Pointer, grad_k: Pointer, grad_v: Pointer, batch: U32, sequence: U32, heads: U32,
        head_width: U32,
    ) in attention;
    ATTENTION: merge_heads(
        output: Pointer, input: Pointer, batch: U32, sequence: U32, heads: U32, head_width: U32,
    ) in attention;
    ATTENTION: merge_heads_backward(
        grad_input: Pointer, grad_output: Pointer, batch: U32, sequence: U32, heads: U32, head_width: U32,
    ) in attention;
    ATTENTION: softmax_forward(probabilities: Pointer, scores: Pointer, sequence: U32, causal: U32) in attention;
    ATTENTION: softmax_backward(
        grad_scores: Pointer, grad_probabilities: Pointer, probabilities: Pointer, sequence: U32,
    ) in attention;

    FLASH_ATTENTION: flash_forward(
        output: Pointer, log_sums: Pointer, q: Pointer, k: Pointer, v: Pointer, heads: U32, sequence: U32,
        head_width: U32, causal: U32, scale: F32,
    ) in flash_attention;
    FLASH_ATTENTION: flash_inner(
        inner: Pointer, output: Pointer, grad_output: Pointer, batch: U32, heads: U32, sequence: U32, head_width: U32,
    ) in flash_attention;
    FLASH_ATTENTION: flash_backward_queries(
        grad_q: Pointer, grad_output: Pointer, q: Pointer, k: Pointer, v: Pointer, log_sums: Pointer, inner: Pointer,
        heads: U32, sequence: U32, head_width: U32, causal: U32, scale: F32,
    ) in flash_attention;
    FLASH_ATTENTION: flash_backward_keys(
        grad_k: Pointer, grad_v: Pointer, grad_output: Pointer, q: Pointer, k: Pointer, v: Pointer, log_sums: Pointer,
        inner: Pointer, heads: U32, sequence: U32, head_width: U32, causal: U32, scale: F32,
    ) in flash_attention;

    COMPRESS: compress(codes: Pointer, absmaxes: Pointer, input: Pointer, elements: U64) in compress;
    COMPRESS: decompress(output: Pointer, codes: Pointer, absmaxes: Pointer, elements: U64) in compress;

    LOSS: log_softmax_forward(log_probabilities: Pointer, logits: Pointer, vocabulary: U32) in loss;
    LOSS: log_softmax_backward(
        grad_logits: Pointer, grad_log_probabilities: Pointer, log_probabilities: Pointer, vocabulary: U32,
    ) in loss;
    LOSS: nll_forward(
        loss: Pointer, log_probabilities: Pointer, targets: Pointer, rows: U32, vocabulary: U32, scale: F32,
    ) in loss;
    LOSS: nll_backward(
        grad_log_probabilities: Pointer, targets: Pointer, rows: U32, vocabulary: U32, scale: F32,
    ) in loss;

    ADAMW: adamw(
        weight: Pointer, first_moment: Pointer, second_moment: Pointer, gradient: Pointer, elements: U64, rate: F32,
        beta1: F32, beta2: F32, epsilon: F32, decay: F32, correction1: F32, correction2: F32,
    ) in adamw;
    MOMENTUM: sgd_momentum(
        weight: Pointer, velocity: Pointer, gradient: Pointer, elements: U64, rate: F32, momentum: F32, decay: F32,
    ) in momentum;

    CONVOLUTION: convolution_forward(
        output: Pointer, input: Pointer, weight: Pointer, images: U32, channels: U32, height: U32, width: U32,
        filters: U32, side: U32, stride: U32, padding: U32,
    ) in convolution;
    CONVOLUTION: convolution_backward_input(
        grad_input: Pointer, grad_output: Pointer, weight: Pointer, images: U32, channels: U32, height: U32, width: U32,
        filters: U32, side: U32, stride: U32, padding: U32,
    ) in convolution;
    CONVOLUTION: convolution_backward_weight(
        grad_weight: Pointer, grad_output: Pointer, input: Pointer, images: U32, channels: U32, height: U32, width: U32,
        filters: U32, side: U32, stride: U32, padding: U32, accumulate: U32,
    ) in convolution;

    BATCHNORM: batchnorm_forward(
        output: Pointer, mean: Pointer, rstd: Pointer, running_mean: Pointer, running_variance: Pointer, input: Pointer,
        weight: Pointer, bias: Pointer, images: U32, channels: U32, positions: U32, momentum: F32, epsilon: F32,
    ) in batchnorm;
    BATCHNORM: batchnorm_backward(
        grad_input: Pointer, grad_weight: Pointer, grad_bias: Pointer, grad_output: Pointer, input: Pointer,
        weight: Pointer, mean: Pointer, rstd: Pointer, images: U32, channels: U32, positions: U32, accumulate: U32,
    ) in batchnorm;

    RELU: relu_forward(output: Pointer, input: Pointer, elements: U64) in relu;
    RELU: relu_backward(grad_input: Pointer, grad_output: Pointer, output: Pointer, elements: U64) in relu;

    POOLING: maxpool_forward(
        output: Pointer, indices: Pointer, input: Pointer, planes: U32, height: U32, width: U32, side: U32, stride: U32,
        padding: U32,
    ) in pooling;
    POOLING: maxpool_backward(
        grad_input: Pointer, grad_output: Pointer, indices: Pointer, planes: U32, height: U32, width: U32, side: U32,
        stride: U32, padding: U32,
    ) in pooling;
    POOLING: averagepool_forward(output: Pointer, input: Pointer, positions: U32) in pooling;
    POOLING: averagepool_backward(
        grad_input: Pointer, grad_output: Pointer, planes: U32, positions: U32,
    ) in pooling;
    SGD: sgd(weight: Pointer, gradient: Pointer, elements: U64, rate: F32) in sgd;

    ADAMW_FOREACH: adamw_moments(
        first_moment: Pointer, second_moment: Pointer, gradient: Pointer, elements: U64, beta1: F32, beta2: F32,
    ) in adamw_foreach;
    ADAMW_FOREACH: adamw_denominator(
        denominator: Pointer, second_moment: Pointer, elements: U64, epsilon: F32, correction2: F32,
    ) in adamw_foreach;
    ADAMW_FOREACH: adamw_apply(
        weight: Pointer, first_moment: Pointer, denominator: Pointer, elements: U64, rate: F32, decay: F32,
        correction1: F32,
    ) in adamw_foreach;

    ADAMW8BIT: adamw8bit(
        weight: Pointer, first_codes: Pointer, second_codes: Pointer, first_absmax: Pointer, second_absmax: Pointer,
        gradient: Pointer, elements: U64, rate: F32, beta1: F32, beta2: F32, epsilon: F32, decay: F32,
        correction1: F32, correction2: F32,
    ) in adamw8bit;

    ADAFACTOR: adafactor_rows(row_state: Pointer, gradient: Pointer, columns: U32, blend: F32) in adafactor;
    ADAFACTOR: adafactor_columns(
        column_state: Pointer, gradient: Pointer, rows: U32, columns: U32, blend: F32,
    ) in adafactor;
    ADAFACTOR: adafactor_mean(scalars: Pointer, row_state: Pointer, rows: U32) in adafactor;
    ADAFACTOR: adafactor_partials(
        partials: Pointer, weight: Pointer, gradient: Pointer, row_state: Pointer, column_state: Pointer,
        scalars: Pointer, columns: U32,
    ) in adafactor;
    ADAFACTOR: adafactor_step(
        scalars: Pointer, partials: Pointer, rows: U32, elements: U64, rate: F32, floor: F32,
    ) in adafactor;
    ADAFACTOR: adafactor_apply(
        weight: Pointer, gradient: Pointer, row_state: Pointer, column_state: Pointer, scalars: Pointer, rows: U32,
        columns: U32,
    ) in adafactor;
    ADAFACTOR: adafactor_vector(
        weight: Pointer, second_moment: Pointer, gradient: Pointer, elements: U32, blend: F32, rate: F32, floor: F32,
    ) in adafactor;

    HALF_ELEMENTWISE: cast(
        output: Pointer, input: Pointer, elements: U64, output_element: U32, input_element: U32, accumulate: U32,
    ) in half;
    HALF_ELEMENTWISE: half_fill(output: Pointer, elements: U64, value: F32, element: U32) in half;
    HALF_ELEMENTWISE: half_add(
        output: Pointer, a: Pointer, b: Pointer, elements: U64, element: U32, b_element: U32,
    ) in half;
    HALF_ELEMENTWISE: half_gelu_forward(output: Pointer, input: Pointer, elements: U64, element: U32) in half;
    HALF_ELEMENTWISE: half_gelu_backward(
        grad_input: Pointer, grad_output: Pointer, input: Pointer, elements: U64, element: U32,
    ) in half;

    HALF_MATMUL: half_matmul(
        output: Pointer, a: Pointer, b: Pointer, bias: Pointer, m: U32, n: U32, k: U32, batches: U32, a_row: U64,
        a_column: U64, a_batch: U64, b_row: U64, b_column: U64, b_batch: U64, output_row: U64, output_batch: U64,
        alpha: F32, beta: F32, element: U32,
    ) in half;
    HALF_MATMUL: half_bias_backward(
        grad_bias: Pointer, grad_output: Pointer, rows: U32, width: U32, accumulate: U32, element: U32,
    ) in half;

    HALF_ATTENTION: half_split_qkv(
        q: Pointer, k: Pointer, v: Pointer, qkv: Pointer, batch: U32, sequence: U32, heads: U32, head_width: U32,
    ) in half;
    HALF_ATTENTION: half_split_qkv_backward(
        grad_qkv: Pointer, grad_q: Pointer, grad_k: Pointer, grad_v: Pointer, batch: U32, sequence: U32, heads: U32,
        head_width: U32,
    ) in half;
    HALF_ATTENTION: half_merge_heads(
        output: Pointer, input: Pointer, batch: U32, sequence: U32, heads: U32, head_width: U32,
    ) in half;
    HALF_ATTENTION: half_merge_heads_backward(
        grad_input: Pointer, grad_output: Pointer, batch: U32, sequence: U32, heads: U32, head_width: U32,
    ) in half;
    HALF_ATTENTION: half_softmax_forward(
        probabilities: Pointer, scores: Pointer, sequence: U32, causal: U32, probabilities_element: U32,
        scores_element: U32,
    ) in half;
    HALF_ATTENTION: half_softmax_backward(
        grad_scores: Pointer, grad_probabilities: Pointer, probabilities: Pointer, sequence: U32,
        scores_element: U32, probabilities_element: U32,
    ) in half;

    HALF_LAYERNORM: half_layernorm_forward(
        output: Pointer, mean: Pointer, rstd: Pointer, input: Pointer, weight: Pointer, bias: Pointer, width: U32,
        epsilon: F32, element: U32,
    ) in half;
    HALF_LAYERNORM: half_layernorm_backward_input(
        grad_input: Pointer, grad_output: Pointer, input: Pointer, weight: Pointer, mean: Pointer, rstd: Pointer,
        width: U32, element: U32,
    ) in half;
    HALF_LAYERNORM: half_layernorm_backward_parameters(
        grad_weight: Pointer, grad_bias: Pointer, grad_output: Pointer, input: Pointer, mean: Pointer, rstd: Pointer,
        rows: U32, width: U32, accumulate: U32, element: U32,
    ) in half;

    HALF_EMBEDDING: half_embedding_forward(
        output: Pointer, tokens: Pointer, token_table: Pointer, position_table: Pointer, types: Pointer,
        type_table: Pointer, rows: U32, sequence: U32, width: U32, element: U32,
    ) in half;
    HALF_EMBEDDING: half_embedding_backward_table(
        grad_table: Pointer, grad_output: Pointer, indices: Pointer, rows: U32, width: U32, element: U32,
    ) in half;
    HALF_EMBEDDING: half_embedding_backward_position(
        grad_table: Pointer, grad_output: Pointer, rows: U32, sequence: U32, positions: U32, width: U32,
        accumulate: U32, element: U32,
    ) in half;

    HALF_CONVOLUTION: half_convolution_forward(
        output: Pointer, input: Pointer, weight: Pointer, images: U32, channels: U32, height: U32, width: U32,
        filters: U32, side: U32, stride: U32, padding: U32, element: U32,
    ) in half_maps;
    HALF_CONVOLUTION: half_convolution_backward_input(
        grad_input: Pointer, grad_output: Pointer, weight: Pointer, images: U32, channels: U32, height: U32,
        width: U32, filters: U32, side: U32, stride: U32, padding: U32, element: U32,
    ) in half_maps;
    HALF_CONVOLUTION: half_convolution_backward_weight(
        grad_weight: Pointer, grad_output: Pointer, input: Pointer, images: U32, channels: U32, height: U32,
        width: U32, filters: U32, side: U32, stride: U32, padding: U32, accumulate: U32, element: U32,
    ) in half_maps;

    HALF_BATCHNORM: half_batchnorm_forward(
        output: Pointer, mean: Pointer, rstd: Pointer, running_mean: Pointer, running_variance: Pointer,
        input: Pointer, weight: Pointer, bias: Pointer, images: U32, channels: U32, positions: U32, momentum: F32,
        epsilon: F32, element: U32, weight_element: U32,
    ) in half_maps;
    HALF_BATCHNORM: half_batchnorm_backward(
        grad_input: Pointer, grad_weight: Pointer, grad_bias: Pointer, grad_output: Pointer, input: Pointer,
        weight: Pointer, mean: Pointer, rstd: Pointer, images: U32, channels: U32, positions: U32, accumulate: U32,
        element: U32, weight_element: U32,
    ) in half_maps;

    HALF_RELU: half_relu_forward(output: Pointer, input: Pointer, elements: U64, element: U32) in half_maps;
    HALF_RELU: half_relu_backward(
        grad_input: Pointer, grad_output: Pointer, output: Pointer, elements: U64, element: U32,
    ) in half_maps;

    HALF_POOLING: half_maxpool_forward(
        output: Pointer, indices: Pointer, input: Pointer, planes: U32, height: U32, width: U32, side: U32,
        stride: U32, padding: U32, element: U32,
    ) in half_maps;
    HALF_POOLING: half_maxpool_backward(
        grad_input: Pointer, grad_output: Pointer, indices: Pointer, planes: U32, height: U32, width: U32, side: U32,
        stride: U32, padding: U32, element: U32,
    ) in half_maps;
    HALF_POOLING: half_averagepool_forward(
        output: Pointer, input: Pointer, positions: U32, element: U32,
    ) in half_maps;
    HALF_POOLING: half_averagepool_backward(
        grad_input: Pointer, grad_output: Pointer, planes: U32, positions: U32, element: U32,
    ) in half_maps;

    HALF_LOSS: half_log_softmax_forward(
        log_probabilities: Pointer, logits: Pointer, vocabulary: U32, element: U32,
    ) in half;
    HALF_LOSS: half_log_softmax_backward(
        grad_logits: Pointer, grad_log_probabilities: Pointer, log_probabilities: Pointer, vocabulary: U32,
        element: U32,
    ) in half;

    HALF_FLASH_ATTENTION: half_flash_forward(
        output: Pointer, log_sums: Pointer, q: Pointer, k: Pointer, v: Pointer, heads: U32, sequence: U32,
        head_width: U32, causal: U32, scale: F32, element: U32,
    ) in half_flash_attention;
    HALF_FLASH_ATTENTION: half_flash_inner(
        inner: Pointer, output: Pointer, grad_output: Pointer, batch: U32, heads: U32, sequence: U32, head_width: U32,
        element: U32,
    ) in half_flash_attention;
    HALF_FLASH_ATTENTION: half_flash_backward_queries(
        grad_q: Pointer, grad_output: Pointer, q: Pointer, k: Pointer, v: Pointer, log_sums: Pointer, inner: Pointer,
        heads: U32, sequence: U32, head_width: U32, causal: U32, scale: F32, element: U32,
    ) in half_flash_attention;
    HALF_FLASH_ATTENTION: half_flash_backward_keys(
        grad_k: Pointer, grad_v: Pointer, grad_output: Pointer, q: Pointer, k: Pointer, v: Pointer, log_sums: Pointer,
        inner: Pointer, heads: U32, sequence: U32, head_width: U32, causal: U32, scale: F32, element: U32,
    ) in half_flash_attention;

    HALF_COMPRESS: half_compress(
        codes: Pointer, absmaxes: Pointer, input: Pointer, elements: U64, element: U32,
    ) in half;
    HALF_COMPRESS: half_decompress(
        output: Pointer, codes: Pointer, absmaxes: Pointer, elements: U64, element: U32,
    ) in half;

    LOSS_SCALE: unscale(gradient: Pointer, found: Pointer, elements: U64, factor: F32) in loss_scale;

    ADAMW_BF16: adamw_bf16(
        weight: Pointer, first_moment: Pointer, second_moment: Pointer, gradient: Pointer, elements: U64, rate: F32,
        beta1: F32, beta2: F32, epsilon: F32, decay: F32, correction1: F32, correction2: F32, seed: U64,
    ) in adamw_bf16;
    ROUND_BF16: round_bf16(output: Pointer, input: Pointer, elements: U64, seed: U64) in round_bf16;
}

/// The digest at the start of a line that sha256sum wrote.
const fn digest(line: &str) -> [u8; 32] {
    const fn digit(byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => panic!("not a sha256 in lower-case hexadecimal"),
        }
    }
    let text = line.as_bytes();
    let mut bytes = [0; 32];
    let mut index = 0;
    while index < 32 {
        bytes[index] = digit(text[2 * index]) << 4 | digit(text[2 * index + 1]);
        index += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::collections::BTreeMap;

    /// The parameter types of every `.entry` in a PTX text, as PTX spells them.
    fn entries(ptx: &str) -> BTreeMap<&str, Vec<&str>> {
        ptx.split(".visible .entry ")
            .skip(1)
            .map(|entry| {
                let (name, rest) = entry.split_once('(').expect("an entry has a parameter list");
                let (list, _) = rest.split_once(')').expect("the list ends");
                let types = list.split(',').map(|line| line.split_whitespace().nth(1).expect(".param .type name"));
                (name, types.collect())
            })
            .collect()
    }

    #[test]
    fn the_checked_in_digest_is_that_of_the_text() {
        for image in IMAGES {
            assert_eq!(<[u8; 32]>::from(Sha256::digest(image.ptx)), image.sha256, "{}", image.name);
        }
    }

    #[test]
    fn the_table_has_exactly_the_entries_and_parameters_of_the_ptx() {
        for image in IMAGES {
            let table: BTreeMap<&str, Vec<&str>> = KERNELS
                .iter()
                .filter(|kernel| kernel.image.name == image.name)
                .map(|kernel| {
                    let spelled = kernel.parameters.iter().map(|parameter| match parameter.kind {
                        ParameterType::Pointer | ParameterType::U64 => ".u64",
                        ParameterType::U32 => ".u32",
                        ParameterType::F32 => ".f32",
                    });
                    (kernel.name, spelled.collect())
                })
                .collect();
            assert_eq!(table, entries(image.ptx), "{}", image.name);
        }
    }

    /// PTX does not tell a pointer from a 64-bit number, and carries no names: those come from the source.
    #[test]
    fn names_and_pointers_are_those_of_the_source() {
        for kernel in KERNELS {
            let path = format!("{}/cu/{}.cu", env!("CARGO_MANIFEST_DIR"), kernel.image.name);
            let source = std::fs::read_to_string(&path).expect("the source is beside the table");
            let (_, rest) = source.split_once(&format!("{}(", kernel.name)).expect("the source has the kernel");
            let (list, _) = rest.split_once(')').expect("the list ends");
            let in_source: Vec<(&str, bool)> = list
                .split(',')
                .map(|declaration| {
                    let name = declaration.split(|c: char| c.is_whitespace() || c == '*').next_back();
                    (name.expect("a declaration ends in its name"), declaration.contains('*'))
                })
                .collect();
            let in_table: Vec<(&str, bool)> = kernel
                .parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.kind == ParameterType::Pointer))
                .collect();
            assert_eq!(in_table, in_source, "{}", kernel.name);
        }
    }

    #[test]
    fn a_kernel_is_found_by_digest_and_name_only() {
        let kernel = crate::find(&LOSS.sha256, "nll_forward").expect("a kernel of the table");
        assert_eq!((kernel.name, kernel.image.name), ("nll_forward", "loss"));
        assert!(crate::find(&FILL.sha256, "nll_forward").is_none());
        assert!(crate::find(&[0; 32], "nll_forward").is_none());
    }
}
