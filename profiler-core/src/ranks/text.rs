//! The ranks of a job for people.
//!
//! Owns: wording and layout, at most 100 columns. Refuses: figures that are not in [`Ranks`].

use crate::report::units::{bytes, count, share, time};
use crate::report::{called, fit};

use super::{Difference, RankReport, Ranks};

const WIDTH: usize = 100;
/// Rows of ranks that are shown: of more, the first and those that hold most and least.
const MOST: usize = 64;
/// A difference below this share of the larger figure, in percent, is not worth a line.
const WORTH: f64 = 1.0;

/// As text.
pub fn text(ranks: &Ranks) -> String {
    let mut lines = vec![format!("memscope: {}", fit(&ranks.command.join(" "), WIDTH - 10)), summary(ranks)];
    lines.extend(ranks.notices.iter().map(|notice| fit(&format!("NOTICE {notice}."), 2 * WIDTH)));
    if !ranks.missing.is_empty() {
        lines.push(fit(&format!("Not in these files: {}.", missing(&ranks.missing)), WIDTH));
    }
    for (position, oom) in ranks.out_of_memory.iter().enumerate() {
        let Some(rank) = ranks.ranks.get(oom.position) else { continue };
        let step = oom.step.map_or("before the first step".to_owned(), |step| format!("in step {step}"));
        let inside: Vec<&str> = [&oom.phase, &oom.scope].into_iter().flatten().map(String::as_str).collect();
        let inside = if inside.is_empty() { String::new() } else { format!(" ({})", inside.join(", ")) };
        let first = match (position, ranks.out_of_memory.len()) {
            (_, 1) => "ran out of memory",
            (0, _) => "was the first to run out of memory",
            _ => "ran out of memory too",
        };
        let asked = format!("{} asked for beside {} live", bytes(oom.requested), bytes(oom.live));
        lines.push(fit(&format!("ERROR {} {first}: {asked}", named(rank)), WIDTH));
        lines.push(fit(&format!("  {} into its session, {step}{inside}", time(oom.time_s)), WIDTH));
        lines.push(format!("  more: memscope report {}", rank.file));
    }
    lines.push(String::new());
    lines.extend(table(&ranks.ranks));
    lines.extend(differences(ranks));
    lines.push(String::new());
    lines.push("Times are of each machine's own clock.".to_owned());
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn summary(ranks: &Ranks) -> String {
    let known = ranks.ranks.iter().filter_map(|rank| rank.rank).collect::<std::collections::BTreeSet<_>>().len() as u64;
    let of = ranks.world_size.map_or_else(String::new, |size| format!(" of {size}"));
    let nodes = match ranks.nodes.len() {
        0 => String::new(),
        1..=4 => format!(" on {}", ranks.nodes.join(", ")),
        nodes => format!(" on {nodes} machines, {} to {}", ranks.nodes[0], ranks.nodes[nodes - 1]),
    };
    let others = ranks.ranks.iter().filter(|rank| rank.rank.is_none()).count() as u64;
    let others = match others {
        0 => String::new(),
        others => format!(", {} without a rank", count(others, "process", "processes")),
    };
    format!("{}{of}{nodes}{others}", count(known, "rank", "ranks"))
}

/// `1, 3 to 7, 9`.
fn missing(ranks: &[u32]) -> String {
    let runs: Vec<String> = ranks
        .chunk_by(|first, second| *second == *first + 1)
        .map(|run| match run {
            [one] => one.to_string(),
            [one, two] => format!("{one}, {two}"),
            run => format!("{} to {}", run[0], run[run.len() - 1]),
        })
        .collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, runs.join(", "))
}

/// What a rank is called in a sentence.
fn named(rank: &RankReport) -> String {
    let called = called(rank.rank, None, rank.node.as_deref(), rank.name.as_deref());
    called.unwrap_or_else(|| format!("process {} of {}", rank.pid, rank.file))
}

fn table(ranks: &[RankReport]) -> Vec<String> {
    let room = ranks.iter().map(|rank| title(rank).chars().count()).max().unwrap_or(0).clamp(14, 36);
    let mut lines =
        vec![format!("{:<room$} {:>8}  {:>11}  {:>11}  {:<17} status", "", "pid", "peak live", "reserved", "mostly")];
    for rank in ranks.iter().take(MOST) {
        let figure = |value: Option<u64>| value.map_or("-".to_owned(), bytes);
        let most = rank.by_category.and_then(|by| by.named().into_iter().max_by_key(|(_, bytes)| *bytes));
        let most = most.filter(|(_, value)| *value > 0).map_or_else(String::new, |(name, value)| {
            format!("{name} {:.0} %", share(value, rank.peak_live.unwrap_or(0)))
        });
        let status = rank.exit_status.map_or("-".to_owned(), |status| status.to_string());
        let (live, reserved) = (figure(rank.peak_live), figure(rank.peak_reserved));
        let title = fit(&title(rank), room);
        lines.push(format!("{title:<room$} {:>8}  {live:>11}  {reserved:>11}  {most:<17} {status}", rank.pid));
    }
    if ranks.len() > MOST {
        lines.push(format!(
            "and {} more: --format json has them all",
            count((ranks.len() - MOST) as u64, "process", "processes")
        ));
    }
    lines
}

fn title(rank: &RankReport) -> String {
    called(rank.rank, None, rank.node.as_deref(), rank.name.as_deref()).unwrap_or_else(|| rank.file.clone())
}

fn differences(ranks: &Ranks) -> Vec<String> {
    if ranks.ranks.iter().filter_map(|rank| rank.rank).collect::<std::collections::BTreeSet<_>>().len() < 2 {
        return Vec::new();
    }
    let worth = |difference: &&Difference| share(difference.bytes(), difference.most) >= WORTH;
    let lines: Vec<String> = ranks.differences.iter().filter(worth).map(line).collect();
    let title = vec![String::new(), "Differences between ranks".to_owned()];
    match lines.is_empty() {
        true => [title, vec!["  none that is worth a line: all ranks hold the same, within 1 %".to_owned()]].concat(),
        false => [title, lines].concat(),
    }
}

fn line(difference: &Difference) -> String {
    let of = match difference.of.as_str() {
        "peak_live" => "peak live",
        "peak_reserved" => "reserved",
        category => category,
    };
    format!(
        "  {of:<12} {:>11} more: {} in rank {}, {} in rank {}",
        bytes(difference.bytes()),
        bytes(difference.most),
        difference.most_rank,
        bytes(difference.least),
        difference.least_rank
    )
}
