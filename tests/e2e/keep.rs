//! `memscope run --keep`: a part of a run is kept allocation by allocation, sums of the whole are exact, and both are said.

use crate::memscope::{Place, number, stderr, stdout};

/// Enough for a few segments of the journal.
const PAIRS: u64 = 1_500_000;

#[test]
fn a_long_run_is_summed_and_its_end_is_kept() {
    let place = Place::new();
    let program = place.compile_linked("soak");
    let (output, report) = place.record(&format!("--keep last:1000 -- {} 1 {PAIRS} 0 7", program.display()));
    assert!(output.status.success(), "{}", stderr(&output));
    let totals = |key: &str| number(&report, &format!("/totals/{key}"));
    assert_eq!((totals("blocks"), totals("block_frees")), (PAIRS + 7, PAIRS));
    assert_eq!(totals("block_bytes"), (PAIRS + 7) * 512);
    assert_eq!((number(&report, "/dropped_events"), report["exit_status"].as_i64()), (0, Some(0)));
    let summed = number(&report, "/kept/summed");
    assert!((PAIRS / 3..PAIRS - 1000).contains(&summed), "{summed} are summed");
    assert_eq!(report["kept"]["asked"], "last:1000");
    assert_eq!(number(&report, "/processes/0/allocations"), PAIRS + 7);
    let begin = report["kept"]["spans"][0]["begin_s"].as_f64().expect("a time");

    let text = stdout(&place.run("report p.mscope"));
    assert!(text.contains("kept: last:1000, from "), "{text}");
    assert!(text.contains("other allocations are summed only"), "{text}");
    let refused = place.run(&format!("report p.mscope --at time:{}", begin / 2.0));
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("is summed only"), "{}", stderr(&refused));
    assert!(place.run(&format!("report p.mscope --at time:{}", begin * 1.001)).status.success());
    let exported = place.run("export p.mscope --parquet tables");
    let told = stderr(&exported);
    assert!(
        told.contains("kept: last:1000, from ") && told.contains("allocations.parquet has rows of what is kept"),
        "{told}"
    );
    let says = |table: &str| {
        let bytes = std::fs::read(place.path("tables").join(table)).expect("a table");
        let find = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        find("memscope.kept") && find(&format!("\"summed\":{summed}"))
    };
    assert_eq!(["allocations.parquet", "steps.parquet"].map(says), [true, false], "one table has not all rows");
    // As it is asked for is how it is written; what all fits into is not shortened, and that is said.
    let (_, report) = place.record(&format!("--keep peaks -- {} 1 100 0", program.display()));
    assert_eq!((number(&report, "/kept/summed"), number(&report, "/totals/blocks")), (0, 100), "{report}");
    let text = stdout(&place.run("report p.mscope"));
    assert!(
        text.contains(
            "kept: everything, allocation by allocation: the run ended before there was anything that peaks drops"
        ),
        "{text}"
    );
}

#[test]
fn what_cannot_be_kept_is_refused_before_the_start() {
    let place = Place::new();
    for (keep, said) in [("last:0", "keeps nothing"), ("steps:5..2", "write steps:2..5"), ("most", "write last:10m")] {
        let output = place.run(&format!("run --keep {keep} -- touch started"));
        assert_eq!(output.status.code(), Some(2), "{keep}");
        assert!(stderr(&output).contains(said), "{keep}: {}", stderr(&output));
    }
    assert!(!place.path("started").exists());
}
