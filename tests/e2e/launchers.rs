//! Launchers of distributed jobs, around memscope and inside it: Open MPI's mpirun and MPICH's hydra. Slurm's srun: tests/slurm/run.

use std::process::{Command, Output};

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

const MIB: u64 = 1 << 20;
const RANKS: u64 = 4;

/// A launcher of four ranks on this machine, and what it needs where tests run (as root, with few cores).
struct Launcher {
    program: &'static str,
    flags: &'static [&'static str],
}

const LAUNCHERS: [Launcher; 2] = [
    Launcher { program: "mpirun.openmpi", flags: &["--allow-run-as-root", "--oversubscribe", "-n", "4"] },
    Launcher { program: "mpiexec.hydra", flags: &["-launcher", "fork", "-n", "4"] },
];

/// Those that are installed.
fn installed() -> Vec<&'static Launcher> {
    let is_there = |launcher: &&Launcher| {
        let there =
            Command::new(launcher.program).arg("--version").output().is_ok_and(|output| output.status.success());
        if !there {
            use std::io::Write;
            let _ =
                writeln!(std::io::stderr(), "SKIPPED {}: it is not installed (openmpi-bin, mpich)", launcher.program);
        }
        there
    };
    LAUNCHERS.iter().filter(is_there).collect()
}

/// A command in whose environment no launcher has named a rank.
fn unnamed(place: &Place, program: &str) -> Command {
    let mut command = place.command(program);
    for names in [&memscope_wire::env::RANKS[..], &memscope_wire::env::WORLD_SIZES, &memscope_wire::env::LOCAL_RANKS] {
        for name in names {
            command.env_remove(name.to_str().expect("ASCII"));
        }
    }
    command
}

fn said_by_all_ranks(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let text = stdout(output);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort();
    assert_eq!(lines, ["rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"]);
}

/// The processes of a report that took memory, by rank.
fn ranks(report: &Value) -> Vec<&Value> {
    let processes = report["processes"].as_array().expect("processes");
    let mut ranks: Vec<&Value> = processes.iter().filter(|process| number(process, "/allocations") > 0).collect();
    ranks.sort_by_key(|process| process["rank"].as_u64());
    ranks
}

fn json(place: &Place, name: &str) -> Value {
    let text = std::fs::read(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_slice(&text).expect("JSON")
}

#[track_caller]
fn assert_rank(process: &Value, rank: u64) {
    assert_eq!(process["rank"], rank, "{process:#}");
    assert_eq!((number(process, "/world_size"), number(process, "/local_rank")), (RANKS, rank));
    assert_eq!(number(process, "/peak_live"), (rank + 1) * 16 * MIB);
    assert_eq!(number(process, "/peak_reserved"), (rank + 1) * 16 * MIB);
    assert_eq!(number(process, "/dropped_events"), 0);
}

#[test]
fn around_a_launcher_one_session_has_all_ranks() {
    for launcher in installed() {
        let place = Place::new();
        let program = place.compile_linked("job");
        let mut command = unnamed(&place, env!("CARGO_BIN_EXE_memscope"));
        command.args(["run", "-o", "p.mscope", "--json", "r.json", "--device", "1GiB", "--", launcher.program]);
        let output = command.args(launcher.flags).arg(&program).output().expect("memscope starts");
        said_by_all_ranks(&output);
        let report = json(&place, "r.json");
        let found = ranks(&report);
        assert_eq!(found.len() as u64, RANKS, "{}: {:#}", launcher.program, report["processes"]);
        (0..RANKS).zip(found).for_each(|(rank, process)| assert_rank(process, rank));
        // The launcher itself has no rank and takes no memory.
        let text = stderr(&output);
        let node = report["node"].as_str().expect("a name");
        assert!(text.contains(&format!("Processes on {node}")), "{text}");
        for rank in 0..RANKS {
            let line = text.lines().find(|line| line.contains(&format!("  rank {rank} of 4, pid "))).expect("its line");
            assert!(line.contains(&format!("peak live {:>4}.00 MiB", (rank + 1) * 16)), "{line}");
        }
    }
}

#[test]
fn inside_a_launcher_each_rank_has_a_session_of_its_own() {
    for launcher in installed() {
        let place = Place::new();
        let program = place.compile_linked("job");
        let mut command = unnamed(&place, launcher.program);
        command.args(launcher.flags).arg(env!("CARGO_BIN_EXE_memscope"));
        command.args(["run", "-q", "-o", "p.{rank}.mscope", "--json", "r.{local_rank}.json", "--device", "1GiB", "--"]);
        let output = command.arg(&program).output().expect("the launcher starts");
        said_by_all_ranks(&output);
        for rank in 0..RANKS {
            let report = json(&place, &format!("r.{rank}.json"));
            let found = ranks(&report);
            assert_eq!(found.len(), 1, "{}", launcher.program);
            assert_rank(found[0], rank);
            assert_eq!(number(&report, "/peak/bytes"), (rank + 1) * 16 * MIB);
            assert!(place.path(&format!("p.{rank}.mscope")).is_file());
        }
        // Together, whatever the order.
        let names = "p.3.mscope p.0.mscope p.2.mscope p.1.mscope";
        let report = place.run(&format!("report {names} --format json"));
        assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
        let job: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        assert_eq!((number(&job, "/world_size"), job["missing"].to_string()), (RANKS, "[]".to_owned()));
        for rank in 0..RANKS {
            assert_eq!(number(&job, &format!("/ranks/{rank}/rank")), rank);
            assert_eq!(number(&job, &format!("/ranks/{rank}/peak_live")), (rank + 1) * 16 * MIB);
        }
        let first = &job["differences"][0];
        let differs = [
            number(first, "/most_rank"),
            number(first, "/most"),
            number(first, "/least_rank"),
            number(first, "/least"),
        ];
        assert_eq!(differs, [3, 64 * MIB, 0, 16 * MIB]);
        let text = stdout(&place.run(&format!("report {names}")));
        assert!(text.contains("4 ranks of 4 on ") && text.contains("48.00 MiB more: 64.00 MiB in rank 3"), "{text}");
        // Of one that is no profile the others do not suffer, and it is not passed over.
        std::fs::write(place.path("torn.mscope"), "PK").expect("a file");
        let report = place.run("report torn.mscope p.1.mscope p.2.mscope");
        assert_eq!(report.status.code(), Some(1));
        assert!(stderr(&report).contains("torn.mscope is left out: "), "{}", stderr(&report));
        let text = stdout(&report);
        assert!(text.contains("Not in these files: ranks 0, 3.") && text.contains("rank 2 on "), "{text}");
        assert_eq!(place.run("report p.1.mscope p.2.mscope --at end").status.code(), Some(2));
    }
}
