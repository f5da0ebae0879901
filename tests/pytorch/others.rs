//! Training loops of packages, unmodified: they end well, and the profile has their models' weights.

use std::io::Write;

use crate::memscope::number;
use crate::torch::{python, run};

/// Weights are the parameters, with at most a twentieth of rounding and of the batch normalisation's running averages.
fn weights_are_the_parameters(case: &str, package: &str) {
    let Some(python) = python(&format!("a training loop of {package}")) else { return };
    for (device, options, rows) in
        [("cpu", "", "/host/at_peak"), ("cuda", "--device h100-80gb", "/devices/0/ledger_at_peak")]
    {
        let run = run(&python, options, &format!("others {case} {device}"));
        if let Some(missing) = run.said["missing"].as_str() {
            let _ = writeln!(std::io::stderr(), "SKIPPED a training loop of {package}: {missing} is not installed");
            return;
        }
        let parameters = number(&run.said, "/parameters");
        let weights = number(&run.report, &format!("{rows}/by_category/weights"));
        let most = parameters + parameters / 20 + (1 << 16);
        assert!((parameters..=most).contains(&weights), "{case} on {device}: {weights} B of {parameters}");
    }
}

#[test]
fn of_transformers() {
    weights_are_the_parameters("trainer", "transformers");
}

#[test]
fn of_timm() {
    weights_are_the_parameters("timm", "timm");
}

#[test]
fn of_lightning() {
    weights_are_the_parameters("lightning", "lightning");
}
