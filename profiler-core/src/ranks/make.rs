//! Puts the ranks of several sessions together.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::{Detail, Oom};
use crate::report::ProcessReport;

use super::{Difference, RankOutOfMemory, RankReport, Ranks, SCHEMA_VERSION, Source};

/// Missing ranks that are named.
const MOST_MISSING: usize = 4096;

impl Ranks {
    /// Of these sessions, in whatever order.
    pub fn of(sources: &[Source]) -> Ranks {
        let mut found: Vec<(RankReport, Option<RankOutOfMemory>)> = sources.iter().flat_map(ranks_of).collect();
        found.sort_by(|(first, _), (second, _)| key(first).cmp(&key(second)));
        let mut out_of_memory = Vec::new();
        for (position, (_, oom)) in found.iter_mut().enumerate() {
            out_of_memory.extend(oom.take().map(|oom| RankOutOfMemory { position, ..oom }));
        }
        out_of_memory.sort_by_key(|oom| (oom.realtime_ns, oom.position));
        let ranks: Vec<RankReport> = found.into_iter().map(|(rank, _)| rank).collect();
        let sizes: BTreeSet<u32> = sources.iter().flat_map(sizes_of).collect();
        // Of files of several jobs no rank can be said to be missing.
        let world_size = sizes.first().copied().filter(|_| sizes.len() == 1);
        let known: BTreeSet<u32> = ranks.iter().filter_map(|rank| rank.rank).collect();
        let missing = (0..world_size.unwrap_or(0)).filter(|rank| !known.contains(rank)).take(MOST_MISSING).collect();
        Ranks {
            schema_version: SCHEMA_VERSION,
            command: sources.first().map(|source| source.report.command.clone()).unwrap_or_default(),
            world_size,
            nodes: sources
                .iter()
                .filter_map(|source| source.report.node.clone())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            missing,
            differences: differences(&ranks),
            out_of_memory,
            notices: notices(sources, &ranks, &sizes),
            ranks,
        }
    }
}

fn key(rank: &RankReport) -> (u32, &str, u32) {
    (rank.rank.unwrap_or(u32::MAX), &rank.file, rank.pid)
}

/// The processes of a session that took memory, and how each ran out of it.
fn ranks_of(source: &Source) -> impl Iterator<Item = (RankReport, Option<RankOutOfMemory>)> {
    let report = &source.report;
    let rank = |process: &ProcessReport| RankReport {
        file: source.file.clone(),
        node: report.node.clone(),
        rank: process.rank,
        local_rank: process.local_rank,
        name: process.name.clone(),
        pid: process.pid,
        devices: process.devices.clone(),
        peak_live: process.peak_live,
        by_category: process.peak_by_category,
        peak_reserved: process.peak_reserved,
        exit_status: report.exit_status,
        dropped_events: process.dropped_events,
    };
    let oom = |process: &ProcessReport| {
        let of_it = report.findings.iter().filter_map(|finding| match &finding.detail {
            Detail::Oom(oom) if oom.pid == process.pid => Some(&**oom),
            _ => None,
        });
        of_it.min_by(|first, second| first.time_s.total_cmp(&second.time_s)).map(|oom| refused(source, oom))
    };
    report.processes.iter().filter(|process| process.allocations > 0).map(move |process| (rank(process), oom(process)))
}

fn refused(source: &Source, oom: &Oom) -> RankOutOfMemory {
    RankOutOfMemory {
        position: 0,
        realtime_ns: source.session.start_realtime_ns.saturating_add((oom.time_s * 1e9) as u64),
        time_s: oom.time_s,
        step: oom.step,
        phase: oom.phase.clone(),
        scope: oom.scope.clone(),
        requested: oom.requested,
        live: oom.live,
    }
}

fn sizes_of(source: &Source) -> impl Iterator<Item = u32> {
    source.report.processes.iter().filter_map(|process| process.world_size)
}

/// Of each figure the rank with most and the one with least, where they differ. Of a rank with several processes the one counts
/// that holds most.
fn differences(ranks: &[RankReport]) -> Vec<Difference> {
    let category = |name: &'static str| {
        move |rank: &RankReport| {
            let named = rank.by_category?.named();
            named.into_iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes)
        }
    };
    let mut found: Vec<Difference> = Vec::new();
    found.extend(difference("peak_live", ranks, |rank| rank.peak_live));
    found.extend(difference("peak_reserved", ranks, |rank| rank.peak_reserved));
    for (name, _) in crate::report::ByCategory::default().named() {
        found.extend(difference(name, ranks, category(name)));
    }
    found.sort_by_key(|difference| std::cmp::Reverse(difference.bytes()));
    found
}

fn difference(of: &str, ranks: &[RankReport], figure: impl Fn(&RankReport) -> Option<u64>) -> Option<Difference> {
    let mut by_rank: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for rank in ranks {
        let (Some(number), Some(bytes)) = (rank.rank, figure(rank)) else { continue };
        // A category is compared between the processes that are compared by their peaks.
        let weight = rank.peak_live.unwrap_or(0);
        let most = by_rank.entry(number).or_insert((weight, bytes));
        if weight > most.0 {
            *most = (weight, bytes);
        }
    }
    let (least_rank, (_, least)) = by_rank.iter().min_by_key(|(rank, (_, bytes))| (*bytes, **rank))?;
    let (most_rank, (_, most)) = by_rank.iter().min_by_key(|(rank, (_, bytes))| (std::cmp::Reverse(*bytes), **rank))?;
    (most > least).then(|| Difference {
        of: of.to_owned(),
        most_rank: *most_rank,
        most: *most,
        least_rank: *least_rank,
        least: *least,
    })
}

/// What does not fit together.
fn notices(sources: &[Source], ranks: &[RankReport], sizes: &BTreeSet<u32>) -> Vec<String> {
    let mut notices = Vec::new();
    if sizes.len() > 1 {
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        notices.push(format!("these files are of jobs with different numbers of ranks: {}", sizes.join(", ")));
    }
    let other = sources.iter().find(|source| source.report.command != sources[0].report.command);
    if let Some(other) = other {
        notices.push(format!("{} and {} are of different commands", sources[0].file, other.file));
    }
    let mut files: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for rank in ranks {
        files.entry(rank.rank.unwrap_or(u32::MAX)).or_default().insert(&rank.file);
    }
    for (rank, files) in files.iter().filter(|(rank, files)| **rank != u32::MAX && files.len() > 1) {
        let files: Vec<&str> = files.iter().copied().collect();
        notices.push(format!("rank {rank} is in several files: {}", files.join(", ")));
    }
    for source in sources.iter().filter(|source| source.report.processes.iter().all(|process| process.allocations == 0))
    {
        notices.push(format!("nothing was allocated in {}: `memscope report {}` says why", source.file, source.file));
    }
    if ranks.iter().any(|rank| rank.dropped_events > 0) {
        let dropped: u64 = ranks.iter().map(|rank| rank.dropped_events).sum();
        notices.push(format!("{dropped} events could not be recorded: figures are too low"));
    }
    notices
}
