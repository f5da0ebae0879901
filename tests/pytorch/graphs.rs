//! Evaluations that keep what a backward pass would need: told with their module and line, and as the reason why memory ran out.
//!
//! That no other program of `programs/` is told so is held by `torch.rs`, for each run.

use serde_json::Value;

use crate::memscope::number;
use crate::oom::line;
use crate::torch::{Run, python, run};

fn of_kind<'a>(run: &'a Run, kind: &str) -> Option<&'a Value> {
    run.report["findings"].as_array().expect("findings").iter().find(|finding| finding["kind"] == kind)
}

#[test]
fn an_evaluation_without_no_grad_is_told_with_its_module_and_line() {
    let Some(python) = python("an_evaluation_without_no_grad_is_told_with_its_module_and_line") else { return };
    for (options, device) in [("-q --stacks python", "cpu"), ("-q --stacks python --device 2GiB", "cuda")] {
        let told = run(&python, options, &format!("evaluates {device} grad 5 1"));
        let found = of_kind(&told, "unused_graphs").unwrap_or_else(|| panic!("{device}: {}", told.report["findings"]));
        // The last one's result is let go when the function ends.
        assert_eq!(number(found, "/passes"), 5, "{device}");
        assert_eq!(number(found, "/bytes"), number(&told.said, "/kept"), "{device}");
        assert_eq!(found["scope"], "Net", "{device}");
        let place = found["line"].as_str().expect("a line");
        assert!(place.ends_with(&(line("evaluates", "evaluate") + " in evaluate")), "{device}: {place}");
        let quiet = run(&python, options, &format!("evaluates {device} no_grad 5 1"));
        assert!(of_kind(&quiet, "unused_graphs").is_none(), "{device}: {}", quiet.report["findings"]);
    }
}

/// In 256 MiB there is room for four batches' graphs and not for ten: a smaller batch is not what helps.
#[test]
fn where_an_evaluation_runs_out_of_memory_its_graphs_are_the_advice() {
    let Some(python) = python("where_an_evaluation_runs_out_of_memory_its_graphs_are_the_advice") else { return };
    let ran_out = run(&python, "-q --device 256MiB", "evaluates cuda grad 10 8");
    assert!(ran_out.said["error"].is_string(), "{}", ran_out.said);
    let oom = of_kind(&ran_out, "oom").expect("memory ran out");
    let advice = oom["advice"].as_str().expect("advice");
    assert!(advice.contains("torch.no_grad()") && advice.ends_with("never more than 1"), "{advice}");
    let fits = run(&python, "-q --device 256MiB", "evaluates cuda no_grad 10 8");
    assert!(fits.said["error"].is_null(), "{}", fits.said);
}
