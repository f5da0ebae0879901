//! The forward pass against an independent one: plain loops in f64, written from the papers, with no tile and no kernel.
//!
//! fp32 rounds each operation by 2⁻²⁴; through some tens of operations in a row, on values of order 1, the loss of about 3
//! keeps 5 digits. The check allows 1e-4.

use crate::device;
use memscope_samples::Device;
use memscope_samples::gpt::{Configuration, Family, Plan, Trainer, batch};
use memscope_samples::techniques::Techniques;
use std::collections::BTreeMap;

type Weights = BTreeMap<String, Vec<f64>>;
/// A row for each token.
type Rows = Vec<Vec<f64>>;

struct Model<'a> {
    plan: &'a Plan,
    weights: &'a Weights,
}

impl Model<'_> {
    fn weight(&self, name: &str) -> &[f64] {
        self.weights.get(name).unwrap_or_else(|| panic!("no parameter is called {name}"))
    }

    fn linear(&self, name: &str, rows: &Rows) -> Rows {
        let (weight, bias) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        rows.iter().map(|x| weight.chunks(x.len()).zip(bias).map(|(w, b)| dot(w, x) + b).collect()).collect()
    }

    fn norm(&self, name: &str, rows: &Rows) -> Rows {
        let (weight, bias) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        let one = |x: &Vec<f64>| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
            let normal = x.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt());
            normal.zip(weight).zip(bias).map(|((x, w), b)| x * w + b).collect()
        };
        rows.iter().map(one).collect()
    }

    /// One sequence after another, one head after another.
    fn attention(&self, name: &str, rows: &Rows) -> Rows {
        let Configuration { family, width, heads, .. } = self.plan.configuration;
        let (width, d, sequence) = (width as usize, (width / heads) as usize, self.plan.sequence as usize);
        let qkv = self.linear(&format!("{name}.qkv"), rows);
        let mut merged = vec![vec![0.0; width]; rows.len()];
        for (row, output) in merged.iter_mut().enumerate() {
            let first = row / sequence * sequence;
            let end = if family == Family::Gpt2 { row + 1 } else { first + sequence };
            for head in (0..width).step_by(d) {
                let q = &qkv[row][head..head + d];
                let scores: Vec<f64> =
                    qkv[first..end].iter().map(|key| dot(q, &key[width + head..][..d]) / (d as f64).sqrt()).collect();
                let total: f64 = scores.iter().map(|score| score.exp()).sum();
                for (score, value) in scores.iter().zip(&qkv[first..end]) {
                    for i in 0..d {
                        output[head + i] += score.exp() / total * value[2 * width + head + i];
                    }
                }
            }
        }
        self.linear(&format!("{name}.proj"), &merged)
    }

    fn mlp(&self, name: &str, rows: &Rows) -> Rows {
        self.linear(&format!("{name}.proj"), &map(&self.linear(&format!("{name}.fc"), rows), gelu))
    }

    fn logits(&self, tokens: &[i64]) -> Rows {
        let Configuration { family, layers, width, .. } = self.plan.configuration;
        let width = width as usize;
        let entry = |table: &str, index: usize| self.weight(table)[index * width..(index + 1) * width].to_vec();
        let (embeddings, blocks) = match family {
            Family::Gpt2 => ("transformer", "transformer.h"),
            Family::Bert => ("bert.embeddings", "bert.encoder.layer"),
        };
        let embed = |(row, &token): (usize, &i64)| {
            let word = entry(&format!("{embeddings}.wte.weight"), token as usize);
            add(&word, &entry(&format!("{embeddings}.wpe.weight"), row % self.plan.sequence as usize))
        };
        let mut x: Rows = tokens.iter().enumerate().map(embed).collect();
        if family == Family::Bert {
            let first = entry("bert.embeddings.token_types.weight", 0);
            x = self.norm("bert.embeddings.norm", &x.iter().map(|x| add(x, &first)).collect());
        }
        for layer in 0..layers {
            let name = |part: &str| format!("{blocks}.{layer}.{part}");
            let add_rows = |a: &Rows, b: &Rows| a.iter().zip(b).map(|(a, b)| add(a, b)).collect::<Rows>();
            x = match family {
                Family::Gpt2 => {
                    let x = add_rows(&x, &self.attention(&name("attn"), &self.norm(&name("ln_1"), &x)));
                    add_rows(&x, &self.mlp(&name("mlp"), &self.norm(&name("ln_2"), &x)))
                }
                Family::Bert => {
                    let x = self.norm(&name("ln_1"), &add_rows(&x, &self.attention(&name("attn"), &x)));
                    self.norm(&name("ln_2"), &add_rows(&x, &self.mlp(&name("mlp"), &x)))
                }
            };
        }
        let (head, x, bias) = match family {
            Family::Gpt2 => ("lm_head", self.norm("transformer.ln_f", &x), None),
            Family::Bert => {
                let transformed = map(&self.linear("cls.predictions.transform", &x), gelu);
                let bias = self.weight("cls.predictions.decoder.bias");
                ("cls.predictions.decoder", self.norm("cls.predictions.norm", &transformed), Some(bias))
            }
        };
        let decoder = match self.plan.configuration.tied {
            true => self.weight(&format!("{embeddings}.wte.weight")),
            false => self.weight(&format!("{head}.weight")),
        };
        let bias = |word: usize| bias.map_or(0.0, |bias| bias[word]);
        let one = |x: &Vec<f64>| decoder.chunks(width).enumerate().map(|(word, w)| dot(w, x) + bias(word)).collect();
        x.iter().map(one).collect()
    }

    fn loss(&self, tokens: &[i64], targets: &[i64]) -> f64 {
        let logits = self.logits(tokens);
        let losses: Vec<f64> = logits
            .iter()
            .zip(targets)
            .filter(|(_, target)| **target >= 0)
            .map(|(logits, &target)| logits.iter().map(|x| x.exp()).sum::<f64>().ln() - logits[target as usize])
            .collect();
        losses.iter().sum::<f64>() / losses.len() as f64
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn map(rows: &Rows, function: fn(f64) -> f64) -> Rows {
    rows.iter().map(|row| row.iter().copied().map(function).collect()).collect()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

fn check(family: Family, tied: bool) {
    let configuration = Configuration { family, layers: 2, width: 24, heads: 4, vocabulary: 101, positions: 19, tied };
    let techniques = Techniques::default();
    let plan = Plan { configuration, batch: 3, sequence: 17, steps: 1, learning_rate: 0.01, seed: 5, techniques };
    let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
    // The first weights, and those after training has moved every one of them, norms and biases too.
    for step in 0..8 {
        let mut weights = Weights::new();
        for parameter in trainer.parameters_mut() {
            let values = parameter.weight().to_host().unwrap();
            weights.insert(parameter.name().to_owned(), values.into_iter().map(f64::from).collect());
        }
        let batch = batch(&plan.configuration, plan.batch, plan.sequence, plan.seed, 100 + step);
        let expected = Model { plan: &plan, weights: &weights }.loss(&batch.tokens, &batch.targets);
        let computed = trainer.loss(&batch).unwrap().expect("this device computes");
        assert!((f64::from(computed) - expected).abs() < 1e-4, "step {step}: {computed} against {expected}");
        trainer.step().unwrap();
    }
}

#[test]
fn gpt2_with_a_tied_head() {
    device::run("reference::gpt2_with_a_tied_head", device::COMPUTING, || check(Family::Gpt2, true));
}

#[test]
fn gpt2_with_a_head_of_its_own() {
    device::run("reference::gpt2_with_a_head_of_its_own", device::COMPUTING, || check(Family::Gpt2, false));
}

#[test]
fn bert_with_a_tied_decoder() {
    device::run("reference::bert_with_a_tied_decoder", device::COMPUTING, || check(Family::Bert, true));
}

#[test]
fn bert_with_a_decoder_of_its_own() {
    device::run("reference::bert_with_a_decoder_of_its_own", device::COMPUTING, || check(Family::Bert, false));
}
