//! One moment for people: where it is, its categories, its ledger.
//!
//! Owns: their layout. Refuses: to fill in what telemetry did not tell.

use crate::report::units::{bytes, count, exact, grouped, share, signed_bytes, time};
use crate::report::{DeviceLedger, DeviceReport, HOST, Ledger, Report, Snapshot};

use super::{Page, Style, WIDTH, fit};

const BAR: usize = 40;

/// What the driver made without telling its bytes, most at one time, over all processes.
fn objects(report: &Report) -> String {
    let kinds = [
        ("context", "contexts"),
        ("module", "modules"),
        ("library", "libraries"),
        ("pool", "pools"),
        ("graph", "graphs"),
        ("external", "imports of other interfaces"),
        ("multicast", "multicast objects"),
    ];
    let most = |kind: &str| -> u64 {
        let objects = report.processes.iter().flat_map(|process| &process.objects);
        objects.filter(|count| count.object == kind).map(|count| count.most).sum()
    };
    let named = kinds.into_iter().map(|(one, many)| (most(one), one, many)).filter(|(most, ..)| *most > 0);
    named.map(|(most, one, many)| count(most, one, many)).collect::<Vec<_>>().join(", ")
}

impl Page {
    pub(super) fn snapshot(&mut self, report: &Report, at: &Snapshot, title: &str) {
        self.title(&format!("{title}: {} live", exact(at.bytes)));
        let mut place = vec![format!("at {}", time(at.time_s))];
        place.push(at.step.map_or("before the first step".to_owned(), |step| format!("step {step}")));
        place.extend(at.phase.as_ref().map(|phase| format!("phase {}", fit(phase, 20))));
        place.extend(
            at.scope.as_ref().filter(|scope| !scope.is_empty()).map(|scope| format!("scope {}", fit(scope, 40))),
        );
        self.line(format!("  {}", fit(&place.join(", "), WIDTH - 2)));
        let device = report.devices.iter().find(|device| device.uuid == at.device);
        let host = at.device == HOST;
        if !host {
            let name = device.and_then(|device| device.name.as_ref()).map_or(String::new(), |name| format!("{name}, "));
            self.line(format!("  on {}", fit(&format!("{name}{}", at.device), WIDTH - 5)));
        }
        if at.bytes == 0 && at.ledger.rows.reserved == 0 {
            self.line("  Nothing is allocated at that moment.");
        }
        self.line("");
        for (name, value) in at.by_category.named() {
            if value > 0 {
                let bar = self.bar(value, at.bytes);
                self.line(format!("  {name:<12} {bar} {:>11} {:>5.1} %", bytes(value), share(value, at.bytes)));
            }
        }
        let rows = &at.ledger.rows;
        // Of host memory that is all there is to say, and mostly nothing that is not said yet.
        if !host || rows.rounding > 0 || rows.cached > 0 {
            self.ledger(report, &at.ledger, device, host);
        }
        self.tops(at);
    }

    fn bar(&self, part: u64, whole: u64) -> String {
        let filled = ((share(part, whole) / 100.0 * BAR as f64).round() as usize).clamp(1, BAR);
        let mark = if self.style == Style::Ansi { "█" } else { "#" };
        let bar = self.paint("36", &mark.repeat(filled));
        format!("{bar}{}", " ".repeat(BAR - filled))
    }

    fn ledger(&mut self, report: &Report, ledger: &Ledger, device: Option<&DeviceReport>, host: bool) {
        self.title("Ledger at that moment");
        let rows = &ledger.rows;
        self.line(plain(" ", "live", rows.live));
        self.line(plain("+", "rounding", rows.rounding));
        self.line(plain("+", "cached", rows.cached));
        if rows.pools > 0 {
            self.line(plain(" ", "  pools' reserve", rows.pools));
        }
        self.line(plain("=", "reserved", rows.reserved));
        if host {
            return;
        }
        if ledger.managed.reserved > 0 {
            self.line(plain(" ", "managed, apart", ledger.managed.reserved));
        }
        match &ledger.device {
            Some(rows) => {
                let objects = objects(report);
                self.device_rows(rows, &objects, rows.reserved == ledger.rows.reserved, device);
            }
            None => {
                let samples = device.and_then(|device| device.telemetry).map_or(0, |telemetry| telemetry.samples);
                let why = match samples {
                    0 => "not known: no telemetry sample was taken".to_owned(),
                    1 => "not known exactly: the only telemetry sample has driver events around it".to_owned(),
                    _ => format!(
                        "not known exactly: all {} telemetry samples have driver events around them",
                        grouped(samples)
                    ),
                };
                self.wrap("  ", &format!("The device as a whole is {why}."));
            }
        }
        self.largest_use(ledger, device);
    }

    fn device_rows(&mut self, rows: &DeviceLedger, objects: &str, met: bool, device: Option<&DeviceReport>) {
        let signed = |sign: &str, name: &str, value: Option<i64>| {
            row(sign, name, value.map_or("not told".to_owned(), signed_bytes), String::new())
        };
        let told = |sign: &str, name: &str, value: Option<u64>| match value {
            Some(value) => plain(sign, name, value),
            None => row(sign, name, "not told".to_owned(), String::new()),
        };
        if !met && rows.device_used == 0 {
            self.line(
                "  The device as a whole is not known: every exact telemetry sample came while it was not in use.",
            );
            return;
        }
        let when = time(rows.sample_time_s);
        self.line(match met {
            true => format!("  The device as a whole, at the sample of {when}:"),
            false => format!("  No exact sample met this much reserved memory. The device at the nearest, of {when}:"),
        });
        self.line(plain(" ", "reserved", rows.reserved));
        self.line(signed("+", "unexplained (contexts, libraries)", rows.unexplained));
        if !objects.is_empty() {
            self.wrap("      ", &format!("the driver tells no bytes of {objects}"));
        }
        self.line(told("=", "this program's processes", rows.this_process));
        self.line(told("+", "other processes", rows.other_processes));
        self.line(told("+", "firmware and driver", rows.firmware_reserved));
        self.line(signed("+", "unowned", rows.unowned));
        self.line(plain("=", "device used", rows.device_used));
        if let Some(capacity) = device.and_then(|device| device.capacity) {
            self.line(plain(" ", "of capacity", capacity));
        }
    }

    /// The largest use that telemetry saw, unless the rows above tell as much.
    fn largest_use(&mut self, ledger: &Ledger, device: Option<&DeviceReport>) {
        let Some((used, device)) = device.and_then(|device| Some((device.peak.device_used?, device))) else { return };
        if used.bytes == 0 || ledger.device.is_some_and(|rows| rows.device_used >= used.bytes) {
            return;
        }
        let changing = if device.peak.device_used_exact == Some(false) { ", while memory was changing" } else { "" };
        let (used, when) = (bytes(used.bytes), time(used.time_s));
        self.line(format!("  The largest use of the device that a sample saw{changing}: {used} at {when}."));
    }
}

/// A row of a ledger.
fn row(sign: &str, name: &str, value: String, exact: String) -> String {
    format!("  {sign} {name:<34} {value:>12}  {exact:>22}")
}

fn plain(sign: &str, name: &str, value: u64) -> String {
    row(sign, name, bytes(value), format!("{} B", grouped(value)))
}
