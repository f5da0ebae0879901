//! A comparison as one HTML file that needs nothing else: the table, and of each technique the picture of its profile.
//!
//! Owns: the page. Refuses: scripts, fonts and anything from elsewhere. It is XML too, so that other programs can read it.

use std::fmt::Write;

use memscope_core::report::ByCategory;
use memscope_core::report::units::{bytes, exact};

use super::comparison::{Comparison, Row};
use super::curve::Curve;
use super::picture::escape;
use super::text::{batch, claim_words, claimed_peak, heading, loss, percent, ratio, words};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:84rem;margin:2rem auto;padding:0 1rem;color:#1f2328;\
background:#fff}table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.15rem .5rem;font-size:14px;text-align:right;\
border-bottom:1px solid #d0d7de;white-space:nowrap}th:first-child,td:first-child{text-align:left}td.words{text-align:left;\
white-space:normal}p,dl,figure{max-width:60rem}figure{margin:1rem 0}svg{width:100%;height:auto}code{background:#f6f8fa;padding:0 .2rem}\
.scroll{overflow-x:auto}";

/// The page; a curve for each row that has one.
pub fn page(comparison: &Comparison, curves: &[Option<Curve>]) -> String {
    let title = format!("Memory techniques: {} {}", comparison.sample, comparison.size);
    let mut html = format!(
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{0}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n<p>{1}</p>\n",
        escape(&title),
        escape(&heading(comparison))
    );
    table(comparison, &mut html);
    let top = top_of(curves);
    for (row, curve) in comparison.rows.iter().zip(curves) {
        section(comparison, row, curve.as_ref(), top, &mut html);
    }
    html + "</body>\n</html>\n"
}

/// The scale that all pictures share.
pub fn top_of(curves: &[Option<Curve>]) -> u64 {
    curves.iter().flatten().map(Curve::most).max().unwrap_or(0)
}

fn table(comparison: &Comparison, html: &mut String) {
    let (batches, reserves, compute) = (comparison.batches_differ(), comparison.reserves(), comparison.compute);
    let claims = comparison.rows.iter().any(|row| claimed_peak(row).is_some());
    let mut columns = vec!["technique"];
    columns.extend(batches.then_some("batch"));
    columns.extend(["peak", "of baseline"]);
    columns.extend(claims.then_some("claimed"));
    columns.push("peak in");
    columns.extend(reserves.then_some("reserved"));
    columns.extend(if compute { &["step time", "loss"][..] } else { &[] });
    let unknown = comparison.rows.iter().filter_map(|row| row.figures.as_ref()).any(|of| of.by_category.unknown > 0);
    let shown = |name: &str| unknown || name != "unknown";
    columns.extend(ByCategory::default().named().map(|(name, _)| name).into_iter().filter(|name| shown(name)));
    *html += "<div class=\"scroll\"><table>\n<thead><tr>";
    for name in &columns {
        let _ = write!(html, "<th>{name}</th>");
    }
    *html += "</tr></thead>\n<tbody>\n";
    for row in &comparison.rows {
        let name = escape(&row.name);
        let _ = write!(html, "<tr><td><a href=\"#{name}\">{name}</a></td>");
        let claimed = claimed_peak(row).map_or(String::new(), |percent| format!("{percent:.0} %"));
        match &row.figures {
            Some(figures) => {
                let mut cells = Vec::with_capacity(columns.len());
                cells.extend(batches.then(|| batch(figures)));
                cells.extend([bytes(figures.peak_bytes), percent(figures.percent_of_baseline)]);
                cells.extend(claims.then_some(claimed));
                cells.push(figures.phase.clone().unwrap_or_default());
                cells.extend(reserves.then(|| bytes(figures.reserved_bytes)));
                if compute {
                    cells.extend([ratio(figures), loss(figures)]);
                }
                let at_peak = figures.by_category.named().into_iter().filter(|(name, _)| shown(name));
                cells.extend(at_peak.map(|(_, value)| bytes(value)));
                for cell in cells {
                    let _ = write!(html, "<td>{}</td>", escape(&cell));
                }
            }
            None => {
                let message = row.message.as_deref().unwrap_or_default();
                let text = format!("{}: {message}", words(row.outcome));
                let before = "<td></td>".repeat(if batches { 3 } else { 2 });
                let claimed = if claims { format!("<td>{claimed}</td>") } else { String::new() };
                let rest = columns.len() - 3 - usize::from(batches) - usize::from(claims);
                let _ = write!(html, "{before}{claimed}<td class=\"words\" colspan=\"{rest}\">{}</td>", escape(&text));
            }
        }
        *html += "</tr>\n";
    }
    *html += "</tbody>\n</table></div>\n<p>The columns at the right are the categories at the peak.</p>\n";
}

fn section(comparison: &Comparison, row: &Row, curve: Option<&Curve>, top: u64, html: &mut String) {
    let name = escape(&row.name);
    let _ = writeln!(html, "<section id=\"{name}\">\n<h2>{name}</h2>\n<p>{}</p>", escape(&row.sentence));
    let _ = writeln!(html, "<p><code>memscope sample {}</code></p>", escape(&row.command.join(" ")));
    if let Some(curve) = curve {
        let baseline = comparison.baseline().map(|figures| figures.peak_bytes);
        let _ = writeln!(html, "<figure>{}</figure>", curve.svg(&row.name, &caption(comparison, row), top, baseline));
    }
    let _ = writeln!(html, "<dl>\n<dt>Formula</dt><dd>{}</dd>", escape(&row.formula));
    if let Some(claim) = &row.claim {
        let _ = writeln!(html, "<dt>Claim</dt><dd>{}</dd>", escape(&claim_words(claim)));
    }
    let measured = match &row.figures {
        Some(figures) => format!(
            "peak {} in {}, {} of the baseline; reserved {}; optimizer {}, activations {} at their own peaks",
            exact(figures.peak_bytes),
            figures.phase.as_deref().unwrap_or("no phase"),
            percent(figures.percent_of_baseline),
            bytes(figures.reserved_bytes),
            bytes(figures.category_peaks.optimizer),
            bytes(figures.category_peaks.activations)
        ),
        None => format!("{}: {}", words(row.outcome), row.message.as_deref().unwrap_or_default()),
    };
    let _ = writeln!(html, "<dt>Measured</dt><dd>{}</dd>", escape(&measured));
    if let Some(why) = &row.why {
        let _ = writeln!(html, "<dt>Why they differ</dt><dd>{}</dd>", escape(why));
    }
    *html += "</dl>\n</section>\n";
}

/// What a picture shows.
pub fn caption(comparison: &Comparison, row: &Row) -> String {
    format!("{}: live bytes by category over the last steps, {} {}", row.name, comparison.sample, comparison.size)
}
