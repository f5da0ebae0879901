//! The report for people: what an engineer with an out-of-memory needs within a minute.
//!
//! Owns: wording and layout, at most 100 columns. Refuses: figures that are not in the report, and colour unless asked.
//! Names come from the program: control characters in them are not passed on to the terminal.

mod findings;
mod moment;
mod processes;
mod tops;

pub use findings::circumstances;

use crate::findings::{Detail, Finding};
use crate::journal::entry::named;

use super::units::{bytes, count, exact, share, time};
use super::{ByCategory, DeviceReport, Instant, Report, Snapshot, StepReport};

/// How the text is dressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// Text only.
    #[default]
    Plain,
    /// With colours and block characters of a terminal.
    Ansi,
}

const WIDTH: usize = 100;
/// Steps shown before and after the gap, when there are many.
const STEPS: (usize, usize) = (4, 8);

/// The report as text, lines of at most 100 columns.
pub fn text(report: &Report, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.header(report);
    // That the devices were simulated is said first and last in any case; of simulated libraries there is more to say.
    let short = |finding: &&Finding| matches!(finding.detail, Detail::Simulated { libraries: false, .. });
    let findings = report.findings.iter().filter(|finding| !short(finding));
    let (why, others): (Vec<_>, Vec<_>) = findings.partition(|finding| finding.tells_why());
    page.findings(&why);
    if report.is_of_host() {
        if !why.is_empty() {
            page.line("");
        }
        page.host_alone(report);
    } else if let Some(at) = &report.at {
        page.snapshot(report, at, &moment_title(report.asked.as_deref()));
        page.peak_line(&report.peak);
    } else if let Some(peak) = &report.peak {
        page.snapshot(report, peak, "Peak");
        let steps: Vec<&StepReport> = report.steps.iter().filter(|step| step.device == peak.device).collect();
        page.steps(&steps);
        page.devices(report);
        page.processes(report);
        page.host(report);
    }
    page.findings(&others);
    page.simulated(report);
    page.text
}

/// One finding as [`text`] shows it.
pub fn finding(finding: &Finding, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.finding(finding);
    page.text
}

/// A text without control characters.
fn clean(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// At most `width` characters; the middle of a longer text is left out, since both ends of a path tell most.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let chars: Vec<char> = clean(text).chars().collect();
    if chars.len() <= width {
        return chars.into_iter().collect();
    }
    let head = width.saturating_sub(2) / 2;
    let tail = width.saturating_sub(2) - head;
    let mut fitted: String = chars[..head].iter().collect();
    fitted.push_str("..");
    fitted.extend(&chars[chars.len() - tail..]);
    fitted
}

struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref().trim_end());
        self.text.push('\n');
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.style {
            Style::Plain => text.to_owned(),
            Style::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    fn title(&mut self, title: &str) {
        let title = self.paint("1", title);
        self.line("");
        self.line(title);
    }

    /// A paragraph, broken between words.
    fn wrap(&mut self, indent: &str, text: &str) {
        let mut line = indent.to_owned();
        for word in clean(text).split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH && line.trim() != "" {
                self.line(&line);
                line = indent.to_owned();
            }
            if line.chars().count() > indent.chars().count() {
                line.push(' ');
            }
            line.push_str(&fit(word, WIDTH - indent.chars().count()));
        }
        self.line(line);
    }

    fn simulated(&mut self, report: &Report) {
        let Some(device) = &report.simulated_device else { return };
        let compute = if report.compute { "" } else { "; kernels and copies were skipped" };
        let warning = format!(
            "SIMULATED DEVICE ({}){compute}: do not use this run's checkpoints or losses.",
            fit(&super::units::simulated(device), 24)
        );
        let warning = self.paint("1;33", &warning);
        self.line(warning);
    }

    fn header(&mut self, report: &Report) {
        let command = if report.command.is_empty() { "(no command)".to_owned() } else { report.command.join(" ") };
        self.simulated(report);
        let line = self.paint("1", &format!("memscope: {}", fit(&command, WIDTH - 10)));
        self.line(line);
        let status = match report.exit_status {
            None => "no exit status".to_owned(),
            Some(status) => format!("exit status {status}"),
        };
        let node = report.node.as_ref().map_or_else(String::new, |node| format!(" on {}", fit(node, 40)));
        self.line(format!(
            "{status}, {}{node}, {}, {}, {}, {}",
            time(report.duration_s),
            count(report.processes.len() as u64, "process", "processes"),
            count(report.totals.allocations, "allocation", "allocations"),
            count(report.totals.blocks, "block", "blocks"),
            count(report.totals.frees + report.totals.block_frees, "free", "frees"),
        ));
        if !report.outlived.is_empty() {
            let processes = count(report.outlived.len() as u64, "process", "processes");
            let named = named(&report.outlived);
            self.line(format!("still running when the recording ended, and not recorded since: {processes}, {named}"));
        }
        for device in &report.devices {
            self.line(device_line(device));
        }
        if let Some(kept) = &report.kept {
            self.wrap("", &kept.sentence());
        }
        if report.dropped_events > 0 {
            let dropped = count(report.dropped_events, "EVENT WAS", "EVENTS WERE");
            let gone = report.findings.iter().find_map(|finding| match finding.detail {
                Detail::DroppedEvents { gone_s, .. } => gone_s,
                _ => None,
            });
            let line = match gone {
                None => format!("{dropped} DROPPED: figures may be wrong."),
                Some(gone) => {
                    format!("MEMSCOPE WAS GONE, AND {dropped} DROPPED: figures after {} are wrong.", time(gone))
                }
            };
            let line = self.paint("1;31", &line);
            self.line(line);
        }
    }

    fn steps(&mut self, steps: &[&StepReport]) {
        if steps.is_empty() {
            return;
        }
        self.title("Steps");
        // Numbers that come again take more room.
        let wide = steps.iter().map(|step| step.name().len()).max().unwrap_or(0).max(10);
        self.line(format!("  {:>wide$}        begin    peak live  mostly                 live at its end", "step"));
        let (first, last) = STEPS;
        for (position, step) in steps.iter().enumerate() {
            if steps.len() > first + last + 1 && position >= first && position < steps.len() - last {
                if position == first {
                    self.line(format!("  {:>wide$}   ({} more steps)", "...", steps.len() - first - last));
                }
                continue;
            }
            let most = step.by_category.named().into_iter().max_by_key(|(_, bytes)| *bytes);
            let most = most.filter(|(_, value)| *value > 0);
            let most =
                most.map_or(String::new(), |(name, value)| format!("{name} {:.0} %", share(value, step.peak.bytes)));
            self.line(format!(
                "  {:>wide$} {:>12} {:>12}  {most:<18} {:>19}",
                step.name(),
                time(step.begin_s),
                bytes(step.peak.bytes),
                step.live_at_end.map_or("(did not end)".to_owned(), bytes)
            ));
        }
    }

    fn devices(&mut self, report: &Report) {
        if report.devices.len() < 2 {
            return;
        }
        self.title("Devices");
        for device in &report.devices {
            self.line(format!(
                "  {:<42} peak live {:>11}, reserved {:>11}",
                fit(&device.uuid, 42),
                bytes(device.peak.live.bytes),
                bytes(device.peak.reserved.bytes)
            ));
        }
    }

    fn host(&mut self, report: &Report) {
        if report.host.peak.bytes > 0 {
            let peak = &report.host.peak;
            self.line("");
            self.line(format!("Host memory: at most {}, at {}.", exact(peak.bytes), time(peak.time_s)));
        }
    }

    /// Of a program without device memory: its tensors on the CPU, and what it has pinned.
    fn host_alone(&mut self, report: &Report) {
        let host = &report.host;
        self.line("No device memory: all figures are of host memory (CPU tensors, pinned memory).");
        if let Some(at) = &host.at {
            self.snapshot(report, at, &moment_title(report.asked.as_deref()));
            self.peak_line(&host.moment);
        } else if let Some(peak) = &host.moment {
            self.snapshot(report, peak, "Peak of host memory");
            self.steps(&host.steps.iter().collect::<Vec<_>>());
        }
    }

    /// Each category that holds something, and its share of `whole`.
    fn categories(&mut self, indent: &str, by_category: &ByCategory, whole: u64) {
        for (name, value) in by_category.named().into_iter().filter(|(_, value)| *value > 0) {
            self.line(format!("{indent}{name:<12} {:>11} {:>5.1} %", bytes(value), share(value, whole)));
        }
    }

    fn peak_line(&mut self, peak: &Option<Snapshot>) {
        if let Some(peak) = peak {
            self.line("");
            let step = peak.step.map_or(String::new(), |step| format!(", step {step}"));
            self.line(format!(
                "The peak of the whole session: {} live, at {}{step}.",
                exact(peak.bytes),
                time(peak.time_s)
            ));
        }
    }
}

/// What a moment that was asked for is called.
fn moment_title(asked: Option<&str>) -> String {
    match asked.map(str::parse) {
        Some(Ok(Instant::Peak)) => "Peak".to_owned(),
        Some(Ok(Instant::End)) => "At the end".to_owned(),
        Some(Ok(Instant::Step(number))) => format!("At step {number}'s peak"),
        Some(Ok(Instant::Time(at))) => format!("At {}", time(super::seconds(at))),
        None | Some(Err(_)) => "At the moment asked for".to_owned(),
    }
}

fn device_line(device: &DeviceReport) -> String {
    let name = device.name.as_deref().unwrap_or("device");
    let capacity =
        device.capacity.map_or("capacity not told".to_owned(), |capacity| format!("capacity {}", bytes(capacity)));
    fit(&format!("{name}, {}, {capacity}", device.uuid), WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_called_by_what_was_asked_for() {
        for (asked, title) in [
            (Some("end"), "At the end"),
            (Some("step:12"), "At step 12's peak"),
            (Some("time:0.5"), "At 0.500 s"),
            (None, "At the moment asked for"),
        ] {
            assert_eq!(moment_title(asked), title);
        }
    }

    #[test]
    fn long_names_keep_both_ends_and_control_characters_do_not_pass() {
        assert_eq!(fit("abcdefghij", 10), "abcdefghij");
        assert_eq!(fit("abcdefghijk", 10), "abcd..hijk");
        assert_eq!(clean("a\x1b[2Jb\n"), "a?[2Jb?");
    }
}
