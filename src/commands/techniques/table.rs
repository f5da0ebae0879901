//! The techniques that can be compared, as data.
//!
//! Owns: of each its name, the flags that make it, one sentence, its formula in bytes, and what was claimed for it. Refuses: to
//! run anything. A new technique is a row of [`TECHNIQUES`]; flags that a sample does not have make a row that says so.
//!
//! In formulas: P parameters; b, s, h, a, L, V batch, sequence, width, heads, layers, vocabulary; n = b·s; α bytes that a layer
//! keeps for backward, c those at its boundary. Sizes are in bytes. Claims marked S1, S2 and S3 are of three widely read
//! articles on memory in PyTorch: twelve techniques; mixed precision and checkpointing; causes and remedies.

use super::comparison::Claim;
use super::comparison::Quantity::{self, Activations, Optimizer, Peak};
use super::comparison::Verdict::{self, Depends, Holds, InPart, Recalled, Wrong};

/// A technique.
pub struct Technique {
    /// As in `--list`.
    pub name: &'static str,
    /// Flags of the sample, separated by blanks.
    pub flags: &'static str,
    /// What it does.
    pub sentence: &'static str,
    /// What becomes of the bytes.
    pub formula: &'static str,
    /// What was claimed; nothing where nobody gave a figure.
    pub claim: Option<Claimed>,
    /// False for one whose peak says nothing beside the others': it is only run when it is named.
    pub compared: bool,
    /// Devices that it takes.
    pub devices: u32,
}

/// A claim of a figure or in words.
pub struct Claimed {
    /// In words, with its source.
    text: &'static str,
    verdict: Verdict,
    /// Percent that shall be left, and of what.
    left: Option<(f64, Quantity)>,
}

impl Claimed {
    /// As data.
    pub fn claim(&self) -> Claim {
        Claim {
            text: self.text.to_owned(),
            verdict: self.verdict,
            percent: self.left.map(|(percent, _)| percent),
            of: self.left.map(|(_, of)| of),
            measured_percent: None,
        }
    }
}

const fn technique(
    name: &'static str,
    flags: &'static str,
    sentence: &'static str,
    formula: &'static str,
    claim: Option<Claimed>,
) -> Technique {
    Technique { name, flags, sentence, formula, claim, compared: true, devices: 1 }
}

/// One of several processes with a device each, which share a batch.
const fn of_ranks(
    name: &'static str,
    flags: &'static str,
    sentence: &'static str,
    formula: &'static str,
    claim: Option<Claimed>,
) -> Technique {
    Technique { devices: RANKS, ..technique(name, flags, sentence, formula, claim) }
}

/// A technique that shows in reserved memory or in the capacity, and not in live bytes.
const fn apart(technique: Technique) -> Technique {
    Technique { compared: false, ..technique }
}

const fn says(verdict: Verdict, text: &'static str) -> Option<Claimed> {
    Some(Claimed { text, verdict, left: None })
}

const fn leaves(percent: f64, of: Quantity, verdict: Verdict, text: &'static str) -> Option<Claimed> {
    Some(Claimed { text, verdict, left: Some((percent, of)) })
}

/// Devices, and processes, of the techniques that share a batch; as in their flags.
const RANKS: u32 = 4;

/// The name of training without any technique.
pub const BASELINE: &str = "baseline";

/// All of them, in the order in which they are run.
pub const TECHNIQUES: &[Technique] = &[
    technique(
        BASELINE,
        "",
        "Training without a technique, in fp32 with AdamW unless flags of yours say otherwise; forward keeps all that backward reads.",
        "in fp32 weights 4·P, gradients 4·P, AdamW 8·P; activations of a GPT L·(4·n·h·(16 + a·s/h) + 16·n) + 4·n·(2·h + 2 + V)",
        None,
    ),
    technique("sgd", "--optimizer sgd", "Plain gradient descent keeps no state.", "optimizer 8·P → 0", None),
    technique("momentum", "--optimizer momentum", "One velocity a weight.", "optimizer 8·P → 4·P", None),
    technique(
        "adamw8bit",
        "--optimizer adamw8bit",
        "AdamW whose two moments have 8 bits each, in blocks of 256 with one scale.",
        "optimizer 8·P → Σ 2·(N + 4·⌈N/256⌉) over tensors of N ≥ 4096 elements + Σ 8·N over the others",
        leaves(
            25.0,
            Optimizer,
            Holds,
            "S1: −75 % of the optimizer's state. With embeddings kept in 32 bits, as the common library does, it is −51 %",
        ),
    ),
    technique(
        "adafactor",
        "--optimizer adafactor",
        "The second moment of a matrix is the product of its row means and column means; there is no first moment.",
        "optimizer 8·P → Σ 4·(rows + columns) over matrices + Σ 4·N over vectors",
        says(Holds, "Shazeer and Stern 2018: sublinear; 1.29 MB for GPT-2"),
    ),
    technique(
        "foreach",
        "--foreach",
        "AdamW in steps over all parameters at once, as PyTorch's default, with temporaries for all of them.",
        "workspace in the step + 4·P",
        None,
    ),
    technique(
        "optimizer-in-backward",
        "--optimizer-in-backward",
        "A weight is updated as soon as its gradient is complete, and the gradient is freed.",
        "gradients 4·P → 4·V·h, the largest one; with a tied head 4·V·h + 16·h²",
        None,
    ),
    technique(
        "accumulate",
        "--accumulate 4",
        "The batch in four parts, whose gradients are summed before the one update.",
        "activations and workspace ÷ 4; gradients 4·P alive in forward too",
        says(InPart, "S1: +10 % time; S3: the memory of the small batch, to which the gradients alive in forward come"),
    ),
    technique(
        "zero-grad",
        "--zero-grad zero",
        "Gradients are filled with zeros instead of freed.",
        "gradients 4·P alive in forward and loss too",
        None,
    ),
    technique(
        "checkpoint",
        "--checkpoint every=1",
        "Only each block's input is kept; backward computes the block again.",
        "activations L·α → ⌈L/k⌉·c + k·α with k = 1; the device's peak can lie elsewhere",
        leaves(
            40.0,
            Peak,
            Depends,
            "S3: −60 % at +20–30 % time; S1: BERT-base 12 → 4.5 GB at +20 %; Chen et al. 2016: 48 → 7 GB at +30 %",
        ),
    ),
    technique(
        "checkpoint-sqrt",
        "--checkpoint sqrt",
        "The input of every √L-th block is kept.",
        "activations L·α → ⌈L/k⌉·c + k·α with k = √L; where c is far below α, k = 1 keeps less",
        says(
            InPart,
            "S2: 100 layers → 19 units, which holds; that finer segments are slower does not: any k costs one more forward",
        ),
    ),
    technique(
        "checkpoint-selective",
        "--checkpoint selective",
        "Of a block only the attention matrices are computed again.",
        "activations − 4·a·s²·b·L",
        leaves(
            30.0,
            Activations,
            Recalled,
            "Korthikanti et al. 2022: −70 % of GPT-3's activations at +2.7 % arithmetic",
        ),
    ),
    technique(
        "checkpoint-auto",
        "--checkpoint auto",
        "k is solved from α and c as measured.",
        "k* = √(L·c/α), at least 1",
        None,
    ),
    technique(
        "amp-fp16",
        "--precision amp-fp16",
        "fp16 where it is safe, fp32 weights and states, scaled loss.",
        "activations about ÷ 2; weights 4·P + 2·P of casts; gradients and optimizer as before",
        leaves(
            60.0,
            Peak,
            Depends,
            "S1 and S3: −40 %. True where activations are most: in PyTorch ResNet-50 at batch 32 −42 %, at batch 4 −20 %, GPT-2 −23 %",
        ),
    ),
    technique(
        "amp-bf16",
        "--precision amp-bf16",
        "As amp-fp16 in bf16, whose range needs no scaled loss.",
        "as amp-fp16",
        leaves(60.0, Peak, Depends, "S1 and S3: −40 %, as for fp16"),
    ),
    technique(
        "bf16",
        "--precision bf16",
        "Everything in bf16, weights too, with stochastic rounding.",
        "weights 2·P, gradients 2·P, optimizer 4·P; activations ÷ 2",
        None,
    ),
    technique(
        "flash",
        "--attention flash",
        "Attention tile by tile; the matrix of scores is never stored.",
        "activations − 4·a·s²·b·L + 4·a·s·b·L",
        leaves(72.6, Peak, Depends, "PyTorch's fused attention on GPT-2, measured: 8414 → 6111 MiB"),
    ),
    technique(
        "chunked-loss",
        "--chunked-loss 8",
        "Head and loss for an eighth of the rows at a time.",
        "activations − 4·n·V; workspace of the loss 2·4·n·V → 3·4·⌈n/8⌉·V + 4·n·h",
        leaves(77.4, Peak, Depends, "PyTorch on GPT-2, measured: 8414 → 6510 MiB"),
    ),
    technique(
        "compress-int8",
        "--compress-activations int8",
        "Kept activations in 8 bits with a scale a group.",
        "activations ÷ 4 + scales; workspace rises where they are unpacked",
        leaves(
            70.0,
            Peak,
            Wrong,
            "S1: −30 % of a ViT; its code saves the unpacked fp32 tensor again, so nothing is saved. ActNN (2021): ~12× of activations",
        ),
    ),
    technique(
        "untied",
        "--untied",
        "The head has a weight of its own: the opposite of tying.",
        "weights, gradients, optimizer + 16·V·h",
        says(Holds, "tying saves V·h parameters: 38.6 million of GPT-2's"),
    ),
    technique(
        "share-layers",
        "--share-layers 2",
        "Every two blocks share their weights.",
        "weights, gradients, optimizer of the blocks ÷ 2; activations as before",
        says(Wrong, "S3: 110 → 18 million compares two models; ALBERT base has 12 million"),
    ),
    technique(
        "share-qk",
        "--share-qk",
        "One projection for queries and keys.",
        "weights, gradients, optimizer − 16·h² a layer",
        says(Wrong, "S1's code halves queries and keys instead of sharing them"),
    ),
    technique(
        "lora",
        "--lora 8",
        "Weights are frozen; a product of rank 8 beside each is trained.",
        "gradients and optimizer of a matrix m × n: 12·m·n → 12·8·(m + n)",
        says(Recalled, "Hu et al. 2021: GPT-3 1.2 TB → 350 GB"),
    ),
    technique(
        "offload",
        "--offload optimizer",
        "The optimizer's state and its update are on the host.",
        "optimizer 8·P → 0 on the device; on the host 12·P + 4 · the largest gradient, pinned",
        says(Recalled, "ZeRO-Offload 2021: 13 billion parameters on one V100"),
    ),
    of_ranks(
        "ddp",
        "--ranks 4 --parallel ddp",
        "Four devices with a quarter of the batch each; gradients are summed over them.",
        "activations and workspace ÷ 4; weights, gradients, optimizer whole on each device",
        says(Depends, "S1: 3.2 times as fast on 8 V100, −15 % of memory: of the smaller batch, not of the method"),
    ),
    of_ranks(
        "zero1",
        "--ranks 4 --parallel zero1",
        "As ddp; each device has the optimizer's state of a quarter of the parameters.",
        "optimizer ÷ N",
        says(Holds, "Rajbhandari et al. 2020: 7.5 billion parameters on 64 devices 120 → 31.4 GB a device"),
    ),
    of_ranks(
        "zero2",
        "--ranks 4 --parallel zero2",
        "As zero1, gradients too.",
        "gradients and optimizer ÷ N",
        says(Holds, "the same: 120 → 16.6 GB"),
    ),
    of_ranks(
        "zero3",
        "--ranks 4 --parallel zero3",
        "As zero2, weights too: they are gathered where they are needed.",
        "weights, gradients and optimizer ÷ N, and the layer that is gathered",
        says(Holds, "the same: 120 → 1.9 GB"),
    ),
    apart(technique(
        "caching",
        "--allocator caching",
        "A small caching allocator, whose blocks are declared.",
        "live bytes as before; reserved = live + cached",
        None,
    )),
    apart(technique(
        "varying",
        "--allocator caching --workload varying",
        "Sequences of a quarter of the length to all of it, drawn for each step, which leave holes in the cache.",
        "reserved − live grows; live bytes are those of the lengths",
        None,
    )),
    apart(technique(
        "empty-cache",
        "--allocator caching --workload varying --empty-cache",
        "The cache is given back after each step.",
        "reserved falls to the segments in which something is live; live bytes as before",
        says(Wrong, "S1's allocator option against fragmentation does not exist"),
    )),
    apart(technique(
        "memory-fraction",
        "--memory-fraction 0.9",
        "The trainer takes no more than this part of the device.",
        "a smaller capacity",
        says(Depends, "S1: 0.8 as a guard; nothing becomes smaller by it"),
    )),
    apart(technique(
        "batch-auto",
        "--batch auto",
        "Looks for the largest batch by whole steps.",
        "activations up to the capacity",
        says(Wrong, "S1's search probes forward without gradients and ignores its target"),
    )),
];

/// A row of the published comparison: its name, the techniques that make it with a GPT and with a ResNet, and the percent of the
/// baseline's peak that S1 claims.
pub struct Published {
    /// In the table.
    pub name: &'static str,
    /// Its techniques, joined by `+`.
    pub techniques: &'static str,
    /// What S1 claims.
    pub percent: Option<f64>,
}

/// S1's comparison, and the same with a chunked loss, which S1 does not have: a GPT's logits, which neither mixed precision
/// nor checkpoints take away. Checkpointing in fp32 is there because what it leaves of the activations explains the others.
pub const PUBLISHED: [Published; 8] = [
    row(BASELINE, BASELINE, Some(100.0)),
    row("checkpoint", "checkpoint", None),
    row("checkpoint+chunked-loss", "checkpoint+chunked-loss", None),
    row("amp+checkpoint", "amp-fp16+checkpoint", Some(35.0)),
    row("amp+checkpoint+chunked-loss", "amp-fp16+checkpoint+chunked-loss", Some(35.0)),
    row("amp+8bit", "amp-fp16+adamw8bit", Some(28.0)),
    row("all", "amp-fp16+checkpoint+adamw8bit", Some(18.0)),
    row("all+chunked-loss", "amp-fp16+checkpoint+chunked-loss+adamw8bit", Some(18.0)),
];

/// A row of the comparison.
const fn row(name: &'static str, techniques: &'static str, percent: Option<f64>) -> Published {
    Published { name, techniques, percent }
}

/// The technique of this name.
pub fn find(name: &str) -> Option<&'static Technique> {
    TECHNIQUES.iter().find(|technique| technique.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_published_rows_are_made_of_them() {
        for (position, technique) in TECHNIQUES.iter().enumerate() {
            let first = TECHNIQUES.iter().position(|other| other.name == technique.name);
            assert_eq!(first, Some(position), "{}", technique.name);
            assert!(!technique.name.contains(['+', ',', ' ']), "{}", technique.name);
        }
        for part in PUBLISHED.iter().flat_map(|row| row.techniques.split('+')) {
            assert!(find(part).is_some(), "{part}");
        }
    }
}
