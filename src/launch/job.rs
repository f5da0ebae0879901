//! The distributed job that memscope itself is started in, one for each rank or for each node: `srun memscope run …`, `mpirun …`.
//!
//! Owns: placeholders in the names of outputs, so that ranks on a disk that they share do not meet in one file. Refuses: to know a
//! rank that no launcher has named.

use std::path::{Path, PathBuf};

use anyhow::Result;
use memscope_core::clock;
use memscope_wire::env;

use crate::output::Failure;

type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces `{rank}`, `{local_rank}`, `{node}` and `{pid}` in an output's name.
///
/// # Errors
/// When a rank is asked for that no launcher has named, or what nobody knows.
pub fn named(path: &Path) -> Result<PathBuf> {
    replace(path, &|name| std::env::var(name).ok())
}

/// The rank of this memscope, where its launcher has started one for each.
pub fn rank() -> Option<u64> {
    number(&env::RANKS.map(|name| name.to_str().unwrap_or_default()), &|name| std::env::var(name).ok())
}

/// The name of this machine among those of the job, where its launcher has one.
pub fn node() -> Option<String> {
    node_in(&|name| std::env::var(name).ok())
}

fn node_in(variable: Variable) -> Option<String> {
    variable("SLURMD_NODENAME").filter(|name| !name.is_empty())
}

fn replace(path: &Path, variable: Variable) -> Result<PathBuf> {
    // A name that is no text has no placeholders.
    let Some(mut text) = path.to_str().map(str::to_owned) else { return Ok(path.to_path_buf()) };
    let ranks = env::RANKS.map(|name| name.to_str().unwrap_or_default());
    let local_ranks = env::LOCAL_RANKS.map(|name| name.to_str().unwrap_or_default());
    for (placeholder, names) in [("{rank}", &ranks[..]), ("{local_rank}", &local_ranks[..])] {
        if text.contains(placeholder) {
            let number = number(names, variable).ok_or_else(|| {
                Failure::usage(format!(
                    "{}: no launcher has named a rank here (none of {} is set): start memscope with srun, mpirun or the like, or leave \
                     {placeholder} away; ranks that the program starts itself are all in one session",
                    path.display(),
                    names.join(", ")
                ))
            })?;
            text = text.replace(placeholder, &number.to_string());
        }
    }
    let node = node_in(variable).or_else(clock::host);
    let node = node.map_or("unknown".to_owned(), |name| name.replace('/', "-"));
    let text = text.replace("{node}", &node).replace("{pid}", &std::process::id().to_string());
    if let Some(unknown) = unknown_placeholder(&text) {
        return Err(Failure::usage(format!(
            "{}: {unknown} is not known, and ranks would meet in one file: {{rank}}, {{local_rank}}, {{node}} and {{pid}} are",
            path.display()
        ))
        .into());
    }
    Ok(text.into())
}

/// A word in braces that nothing stands for.
fn unknown_placeholder(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(begin, _)| {
        let word = &text[begin..=begin + text[begin..].find('}')?];
        let name = &word[1..word.len() - 1];
        let is_name = !name.is_empty() && name.chars().all(|char| char.is_ascii_alphabetic() || char == '_');
        is_name.then_some(word)
    })
}

fn number(names: &[&str], variable: Variable) -> Option<u64> {
    names.iter().find_map(|name| variable(name)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_what_the_launcher_says() {
        let slurm = |name: &str| match name {
            "SLURM_PROCID" => Some("12".to_owned()),
            "SLURM_LOCALID" => Some("4".to_owned()),
            "SLURMD_NODENAME" => Some("node07".to_owned()),
            _ => None,
        };
        let name = |text: &str| replace(Path::new(text), &slurm).map(|path| path.display().to_string());
        assert_eq!(name("{node}/r{rank}-{local_rank}.mscope").expect("all known"), "node07/r12-4.mscope");
        assert_eq!(name("{1}-{}-{a b}.mscope").expect("no placeholders"), "{1}-{}-{a b}.mscope");
        for (text, word) in [("{Rank}.mscope", "{Rank}"), ("a{/{rank}-{step}", "{step}")] {
            let error = name(text).expect_err("unknown").to_string();
            assert!(error.contains(word) && error.contains("{local_rank}"), "{error}");
        }
        assert_eq!(name("{pid}").expect("known"), std::process::id().to_string());
        // The first that is a number counts, as in the program.
        let torchrun = |name: &str| match name {
            "RANK" => Some("3".to_owned()),
            "PMI_RANK" => Some("x".to_owned()),
            other => slurm(other),
        };
        assert_eq!(replace(Path::new("{rank}"), &torchrun).expect("known"), Path::new("3"));
        let error = replace(Path::new("r{rank}.mscope"), &|_| None).expect_err("no rank").to_string();
        assert!(error.contains("r{rank}.mscope") && error.contains("SLURM_PROCID"), "{error}");
        assert!(replace(Path::new("{node}"), &|_| None).is_ok_and(|path| path != Path::new("{node}")));
    }
}
