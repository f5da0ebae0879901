//! Ranks of one machine on the simulated device, started by torchrun: what they hold, what they exchange, and that they wait for
//! each other.

use std::path::{Path, PathBuf};

use memscope_core::allocation::Allocation;
use memscope_wire::{Category, Origin};
use serde_json::{Value, json};

use crate::memscope::{Place, number, stderr, stdout};
use crate::torch::{python, ranks, run, run_in};

const MIB: u64 = 1 << 20;

#[test]
fn two_ranks_hold_half_of_a_sharded_model_each() {
    let Some(python) = python("two_ranks_hold_half_of_a_sharded_model_each") else { return };
    let run = ranks(&python, "--device h100-80gb --devices 2", 2, "sharded");
    let parameters = 8 * (2048 * 2048 + 2048) * 4;
    assert_eq!(number(&run.said, "/whole"), parameters);
    // Half of weights and of both states; steps of 4 bytes take 512 each, beside what FSDP keeps between steps.
    let (kept, shards) = (number(&run.said, "/kept"), 3 * parameters / 2);
    assert!((shards..shards + MIB).contains(&kept), "{kept} B kept, {shards} B are shards");
    // A layer as a whole is gathered before each of its passes, and its gradients as a whole are reduced after the backward pass;
    // what they are reduced to is half of it, and is where the gradients of shards are.
    let layer = parameters / 8;
    for (name, bytes, category, count) in [
        ("fsdp.all_gather", layer, Category::Workspace, 2 * 2 * 2 * 8),
        ("fsdp.reduce_scatter", layer, Category::Workspace, 2 * 2 * 8),
        ("", layer / 2, Category::Gradients, 2 * 2 * 8),
    ] {
        let is_it = |one: &&Allocation| {
            let named = run.model.names().text(one.name);
            one.is_leaf() && one.requested == bytes && (named == name || name.is_empty())
        };
        let found: Vec<_> =
            run.model.allocations().iter().filter(is_it).map(|one| (one.category, one.origin)).collect();
        assert_eq!(found, vec![(category, Origin::Hooked); count], "{name}, {bytes} B");
    }
    let whole = run.model.allocations().iter().filter(|one| one.is_leaf() && one.requested == layer).count();
    assert_eq!(whole, 2 * 2 * 3 * 8, "nothing else is as large as a layer");
    let devices = run.report["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), 2);
    for device in devices {
        assert_eq!(number(device, "/ledger_at_end/reserved"), number(&run.said, "/reserved_here"));
    }
}

#[test]
fn ranks_exchange_what_they_put_on_the_device_themselves() {
    let Some(python) = python("ranks_exchange_what_they_put_on_the_device_themselves") else { return };
    for world in [2, 1_u64] {
        let run = match world {
            1 => run(&python, "--device h100-80gb", "exchange"),
            _ => ranks(&python, "--device h100-80gb --devices 2", 2, "exchange"),
        };
        let rank = number(&run.said, "/rank");
        let two = world == 2;
        for (what, expected) in [
            ("sum", if two { json!([5.0, -1.0]) } else { json!([2.0, 0.0]) }),
            ("greatest", if two { json!([3.0, 0.0]) } else { json!([2.0, 0.0]) }),
            ("average", if two { json!([2.5, -0.5]) } else { json!([2.0, 0.0]) }),
            ("gathered", if two { json!([[0, 7], [1, 7]]) } else { json!([[0, 7]]) }),
            ("sent", json!(if two { 101 - rank } else { 100 })),
            ("scattered", json!(world * (10 + rank))),
        ] {
            assert_eq!(run.said[what], expected, "{what} of {world}");
        }
        let every: Vec<_> = (0..world).map(|rank| json!({"rank": rank})).collect();
        assert_eq!(run.said["objects"], json!([every, [{"rate": 0.1, "from": 0}, "x"]]));
        // Two layers and a normalisation, whose means, variances and count are buffers; DDP's buckets hold a gradient each.
        let parameters = 512 * 512 + 512 + 2 * 512 + 512 * 256 + 256;
        assert_eq!(number(&run.said, "/parameters"), parameters);
        assert_eq!(number(&run.said, "/gradients"), parameters);
        assert_eq!(number(&run.said, "/kept"), 4 * parameters + 2 * 512 * 4 + 8);
        assert_eq!(number(&run.said, "/buckets"), 4 * parameters);
        assert!(!stderr(&run.output).contains("goes on without"), "{}", stderr(&run.output));
    }
}

#[test]
fn ranks_wait_for_each_other_as_on_a_gpu() {
    let Some(python) = python("ranks_wait_for_each_other_as_on_a_gpu") else { return };
    for world in [2, 4] {
        let run = ranks(&python, &format!("--device h100-80gb --devices {world}"), world, "barrier FILE");
        let printed = stdout(&run.output);
        let lines = printed.lines().filter(|line| line.starts_with('{'));
        let every: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        assert_eq!(every.len(), world as usize, "{printed}");
        for one in &every {
            let saw = one["saw"].as_object().expect("what it saw");
            let late = number(one, "/rank") == u64::from(world) - 1;
            assert_eq!(saw.len(), 12, "{one}");
            for (case, saw) in saw {
                // The one thing that is not there yet: others ask for a collective before the last has come to it.
                assert_eq!(
                    *saw,
                    json!(case != "asked_for, before"),
                    "{case}, of the late one: {late}, of {world}: {one}"
                );
            }
        }
        assert!(!stderr(&run.output).contains("goes on without"), "{}", stderr(&run.output));
    }
}

/// What sessions of this place have left in shared memory.
fn left_in_shared_memory(place: &Place) -> Vec<PathBuf> {
    let place = place.path("").canonicalize().expect("a folder");
    let entries = std::fs::read_dir("/dev/shm").expect("shared memory").flatten().map(|entry| entry.path());
    let ours =
        |path: &PathBuf| std::fs::read_link(path.join("session")).is_ok_and(|session| session.starts_with(&place));
    entries.filter(ours).collect()
}

#[test]
fn ranks_that_never_come_are_named_and_leave_nothing() {
    let Some(python) = python("ranks_that_never_come_are_named_and_leave_nothing") else { return };
    let place = Place::new();
    let limit = [("MEMSCOPE_SIMULATOR_RANK_WAIT_S", Path::new("2"))];
    let run = run_in(&place, &limit, &python, "--device h100-80gb --devices 3", "lost FILE");
    assert_eq!(run.said["together"], 6.0, "they were there");
    let waited: Vec<f64> = run.said["waited"].as_array().expect("seconds").iter().filter_map(Value::as_f64).collect();
    assert!(waited[0] < 2.0, "nobody waits for the killed one: {waited:?}");
    assert!(waited[1] >= 2.0, "the other may still come: {waited:?}");
    let told = stderr(&run.output);
    // As ranks of the two groups of two.
    assert_eq!(
        told.matches("rank 1 of 2 ended before it came to a collective of NCCL; rank 0 goes on without").count(),
        1,
        "{told}"
    );
    let waited = "rank 0 waited 2 s for rank 1 of 2 in a collective of NCCL, and goes on without";
    assert_eq!(told.matches(waited).count(), 1, "{told}");
    assert!(told.contains("MEMSCOPE_SIMULATOR_RANK_WAIT_S is how long"), "{told}");
    assert_eq!(left_in_shared_memory(&place), Vec::<PathBuf>::new());
}

#[test]
fn torchrun_ends_with_a_rank_that_is_killed_and_nothing_is_left() {
    let Some(python) = python("torchrun_ends_with_a_rank_that_is_killed_and_nothing_is_left") else { return };
    let place = Place::new();
    let mut command = place.memscope();
    command.args(["run", "-o", "p.mscope", "--device", "h100-80gb", "--devices", "2", "--"]).arg(&python);
    command.args(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs/lost.py");
    let ended = command.arg(program).arg(place.path("lines")).output().expect("memscope starts");
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("Signal 9 (SIGKILL)"), "{}", stderr(&ended));
    assert!(place.path("p.mscope").is_file(), "the profile is there");
    assert_eq!(left_in_shared_memory(&place), Vec::<PathBuf>::new());
}
