//! From the list that was asked for to the rows to run.
//!
//! Owns: names, joined names and the two lists; what every run has in common. Refuses: an unknown name, with those that there
//! are. Flags that the trainer refuses make a row that says so.

use anyhow::Result;

use crate::arguments::{TechniquesArguments, TechniquesSample};
use crate::output::Failure;

use super::comparison::{Claim, Outcome, Quantity, Row, Verdict};
use super::table::{self, BASELINE, PUBLISHED, TECHNIQUES, Technique};
use super::trial::{self, Ended};
use super::why::CHUNKED;

/// What is to be compared.
pub struct Plan {
    /// The trainer.
    pub sample: &'static str,
    /// The model's size, as the trainer names it.
    pub size: String,
    /// Arguments of every run.
    pub shared: Vec<String>,
    /// True for the published comparison.
    pub published: bool,
    items: Vec<Item>,
}

/// A row to be.
struct Item {
    name: String,
    techniques: Vec<&'static Technique>,
    claim: Option<Claim>,
}

/// A row to be run, or refused already.
pub struct Planned {
    /// The row without its figures.
    pub row: Row,
    /// Why it cannot be run.
    pub refused: Option<Ended>,
    /// Devices that it needs.
    pub devices: u32,
}

impl Plan {
    /// Checks list and size.
    pub fn new(arguments: &TechniquesArguments) -> Result<Plan> {
        let sample = arguments.sample.trainer();
        let size = size(arguments)?;
        let mut shared = vec!["--model".to_owned(), size.clone()];
        shared.extend(arguments.arguments.iter().cloned());
        let items = match arguments.list.as_str() {
            "published" => {
                // A ResNet's logits are next to nothing: it has no loss in chunks.
                let whole = arguments.sample == TechniquesSample::Resnet;
                let rows = PUBLISHED.iter().filter(|row| !whole || !row.name.ends_with(CHUNKED));
                rows.map(published).collect::<Result<_>>()?
            }
            "all" => TECHNIQUES.iter().filter(|technique| technique.compared).map(single).collect(),
            names => named(names)?,
        };
        Ok(Plan { sample, size, shared, published: arguments.list == "published", items })
    }

    /// True for models that a CPU trains in seconds.
    pub fn is_tiny(&self) -> bool {
        self.size == "tiny"
    }

    /// Names of the rows.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.name.as_str())
    }

    /// The rows. What every run shares must be right.
    pub fn rows(&self, steps: u64) -> Result<Vec<Planned>> {
        if let Err(refused) = trial::check(self.sample, &self.arguments(&[], steps)) {
            return Err(trial::as_usage(*refused));
        }
        Ok(self.items.iter().map(|item| self.row(item, steps)).collect())
    }

    fn row(&self, item: &Item, steps: u64) -> Planned {
        let joined = |of: fn(&Technique) -> &'static str, between: &str| {
            let parts: Vec<_> = item.techniques.iter().map(|technique| of(technique)).collect();
            parts.join(between)
        };
        let arguments = self.arguments(&item.techniques, steps);
        let refused = trial::check(self.sample, &arguments).err().map(|refused| *refused);
        let devices = item.techniques.iter().map(|technique| technique.devices).max().unwrap_or(1);
        let row = Row {
            name: item.name.clone(),
            techniques: item.techniques.iter().map(|technique| technique.name.to_owned()).collect(),
            command: std::iter::once(self.sample.to_owned()).chain(arguments).collect(),
            sentence: joined(|technique| technique.sentence, " "),
            formula: joined(|technique| technique.formula, "; "),
            claim: item.claim.clone(),
            outcome: Outcome::Failed,
            message: None,
            figures: None,
            why: None,
        };
        Planned { row, refused, devices }
    }

    /// Arguments of the trainer.
    fn arguments(&self, techniques: &[&Technique], steps: u64) -> Vec<String> {
        let mut arguments = self.shared.clone();
        arguments.extend(["--steps".to_owned(), steps.to_string()]);
        let flags: Vec<&str> = techniques.iter().flat_map(|technique| technique.flags.split_whitespace()).collect();
        if self.sample == "resnet"
            && !flags.contains(&"--optimizer")
            && !self.shared.iter().any(|word| word == "--optimizer")
        {
            // Its own default is momentum; what is published is measured with AdamW.
            arguments.extend(["--optimizer".to_owned(), "adamw".to_owned()]);
        }
        arguments.extend(flags.into_iter().map(str::to_owned));
        arguments
    }
}

/// The model's size, as the trainer names it.
fn size(arguments: &TechniquesArguments) -> Result<String> {
    let size = arguments.size.as_deref();
    let known: &[&str] = match arguments.sample {
        TechniquesSample::Gpt => &["tiny", "gpt2-124m", "gpt2-medium", "gpt2-large", "gpt2-xl"],
        TechniquesSample::Resnet => &["tiny", "18", "50", "152"],
        TechniquesSample::BertBase => &["bert-base"],
    };
    let Some(size) = size else { return Ok(known[0].to_owned()) };
    let found = known.iter().find(|name| **name == size || name.strip_prefix("gpt2-") == Some(size));
    Ok(found
        .ok_or_else(|| Failure::usage(format!("--size {size} is none of this sample's: {}", known.join(", "))))?
        .to_string())
}

fn single(technique: &'static Technique) -> Item {
    let claim = technique.claim.as_ref().map(table::Claimed::claim);
    Item { name: technique.name.to_owned(), techniques: vec![technique], claim }
}

fn published(row: &table::Published) -> Result<Item> {
    let beyond = if row.name.ends_with(CHUNKED) { ", without a chunked loss" } else { "" };
    let claim = row.percent.filter(|_| row.name != BASELINE).map(|percent| Claim {
        text: format!("S1: {percent:.0} % of the baseline is left{beyond}"),
        verdict: if row.name == "amp+8bit" { Verdict::Wrong } else { Verdict::Depends },
        percent: Some(percent),
        of: Some(Quantity::Peak),
        measured_percent: None,
    });
    Ok(Item { name: row.name.to_owned(), techniques: parts(row.techniques)?, claim })
}

/// The techniques of a list of names; the baseline comes first, asked for or not.
fn named(names: &str) -> Result<Vec<Item>> {
    let mut items = vec![single(table::find(BASELINE).ok_or_else(|| unknown(BASELINE))?)];
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if items.iter().any(|item| item.name == name) {
            continue;
        }
        items.push(match parts(name)?.as_slice() {
            [technique] => single(technique),
            techniques => Item { name: name.to_owned(), techniques: techniques.to_vec(), claim: None },
        });
    }
    Ok(items)
}

/// The techniques whose names are joined by `+`.
fn parts(names: &str) -> Result<Vec<&'static Technique>> {
    names.split('+').map(|name| table::find(name).ok_or_else(|| unknown(name))).collect()
}

fn unknown(name: &str) -> anyhow::Error {
    let names: Vec<_> = TECHNIQUES.iter().map(|technique| technique.name).collect();
    let advice =
        format!("published, all, or of these, joined by commas and, to combine them, by +: {}", names.join(", "));
    Failure::usage(format!("--list: there is no technique `{name}`. Write {advice}")).into()
}
