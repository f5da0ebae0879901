//! Batches of the sample text, as bytes.
//!
//! Owns: which tokens and targets a step sees; the same for the same seed. Refuses: the device.

use super::model::{Configuration, Family};
use super::random::Random;

/// Original prose, written for this repository.
const TEXT: &str = include_str!("../../data/lighthouse.txt");

/// A batch on the host, (batch, sequence) each.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// What the model reads.
    pub tokens: Vec<i64>,
    /// What it should say; negative where it is not asked.
    pub targets: Vec<i64>,
    /// Targets that count, at least 1.
    pub counted: u64,
}

/// Share of positions that masked-word training asks for, in percent (BERT's).
const MASKED_PERCENT: u64 = 15;

/// The batch of a step, counted from 1: `batch` passages that begin at random places. A passage that is longer than the
/// text goes on from its beginning. Tokens are byte values, modulo the vocabulary.
pub fn batch(configuration: &Configuration, batch: u64, sequence: u64, seed: u64, step: u64) -> Batch {
    let mut random = Random::new(seed, &[step]);
    let text = TEXT.as_bytes();
    let token = |index: u64| i64::from(text[(index % text.len() as u64) as usize]) % configuration.vocabulary as i64;
    let rows = (batch * sequence) as usize;
    let (mut tokens, mut targets) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for _ in 0..batch {
        let start = random.below(text.len() as u64);
        tokens.extend((start..start + sequence).map(token));
        targets.extend((start + 1..=start + sequence).map(token));
    }
    if configuration.family == Family::Bert {
        targets.copy_from_slice(&tokens);
        mask(&mut tokens, &mut targets, configuration.vocabulary, &mut random);
    }
    let counted = targets.iter().filter(|&&target| target >= 0).count() as u64;
    Batch { tokens, targets, counted }
}

/// Chooses the positions to be asked and hides most of them: of these, 80 % become the mask token (the vocabulary's last),
/// 10 % a random token, and 10 % stay. Targets elsewhere become -1.
fn mask(tokens: &mut [i64], targets: &mut [i64], vocabulary: u64, random: &mut Random) {
    // A small batch might have no position by chance, and then there would be no loss.
    let at_least = random.below(tokens.len() as u64) as usize;
    for (position, (token, target)) in tokens.iter_mut().zip(targets).enumerate() {
        if random.below(100) >= MASKED_PERCENT && position != at_least {
            *target = -1;
            continue;
        }
        match random.below(10) {
            0 => {}
            1 => *token = random.below(vocabulary) as i64,
            _ => *token = vocabulary as i64 - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::*;

    #[test]
    fn a_target_is_the_token_after() {
        let one = batch(&Model::Tiny.configuration(), 2, 9, 5, 1);
        assert_eq!((one.tokens.len(), one.targets.len(), one.counted), (18, 18, 18));
        for sequence in 0..2 {
            assert_eq!(one.tokens[sequence * 9 + 1..(sequence + 1) * 9], one.targets[sequence * 9..sequence * 9 + 8]);
        }
        assert_eq!(one, batch(&Model::Tiny.configuration(), 2, 9, 5, 1));
        assert_ne!(one, batch(&Model::Tiny.configuration(), 2, 9, 5, 2));
    }

    #[test]
    fn tokens_are_in_the_vocabulary() {
        for vocabulary in [2, 17, 256, 50_257] {
            for model in [Model::Tiny, Model::BertBase] {
                let configuration = Configuration { vocabulary, ..model.configuration() };
                let batch = batch(&configuration, 3, 5000, 1, 1);
                assert!(batch.tokens.iter().all(|&token| (0..vocabulary as i64).contains(&token)));
                assert!(batch.targets.iter().all(|&target| (-1..vocabulary as i64).contains(&target)));
            }
        }
    }

    #[test]
    fn bert_is_asked_for_about_fifteen_percent() {
        let configuration = Model::BertBase.configuration();
        let large = batch(&configuration, 20, 5000, 1, 1);
        // 100,000 positions at 15 %: the deviation is 113.
        assert!((14_500..15_500).contains(&large.counted), "{}", large.counted);
        let hidden = large.tokens.iter().filter(|&&token| token == 30_521).count();
        assert!((11_500..12_500).contains(&hidden), "{hidden}");
        assert_eq!(large.counted, large.targets.iter().filter(|&&target| target >= 0).count() as u64);
        // One token, and so one target.
        assert_eq!(batch(&configuration, 1, 1, 1, 1).counted, 1);
    }
}
