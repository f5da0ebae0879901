//! The caching allocator and steps of varying length: the same losses, and the pool's own count against the driver's.

use crate::device::{self, COMPUTING, Simulated};
use crate::training::{losses, small};
use cudarc::driver::result::mem_get_info;
use memscope_samples::Device;
use memscope_samples::gpt::{GptArguments, Model, Plan, Trainer};
use memscope_samples::techniques::{Allocator, PoolCount, Techniques, Workload, WorkloadArguments};

const MIB: u64 = 1 << 20;

fn with(allocator: Allocator, workload: Workload, empty_cache: bool) -> GptArguments {
    let workload = WorkloadArguments { allocator, workload, empty_cache };
    GptArguments { techniques: Techniques { workload, ..Techniques::default() }, steps: Some(8), ..small() }
}

#[test]
fn a_cache_changes_no_loss() {
    device::run("workload::a_cache_changes_no_loss", COMPUTING, || {
        for workload in [Workload::Fixed, Workload::Varying] {
            let plain = losses(&with(Allocator::Driver, workload, false));
            assert!(plain[7] < plain[0], "{plain:?}");
            for empty_cache in [false, true] {
                assert_eq!(losses(&with(Allocator::Caching, workload, empty_cache)), plain);
            }
        }
        let [fixed, varying] =
            [Workload::Fixed, Workload::Varying].map(|workload| losses(&with(Allocator::Driver, workload, false)));
        assert_ne!(fixed, varying);
    });
}

/// A GPT of a few large tensors, for runs without compute.
fn wide(workload: Workload, empty_cache: bool) -> GptArguments {
    GptArguments {
        model: Model::Gpt2Small,
        layers: Some(2),
        width: Some(768),
        heads: Some(12),
        batch: Some(4.into()),
        sequence: Some(1024),
        ..with(Allocator::Caching, workload, empty_cache)
    }
}

/// Parameters of a tied GPT-2 of two layers of 768: tables, layers, the last normalisation.
const PARAMETERS: u64 = (50_257 + 1024) * 768 + 2 * (12 * 768 * 768 + 13 * 768) + 2 * 768;

/// The pool's count after each of eight steps, each held against what the driver says is gone from the device.
fn counts(arguments: &GptArguments) -> Vec<PoolCount> {
    let plan = Plan::new(arguments).unwrap();
    let used = || {
        let (free, total) = mem_get_info().expect("a context is current");
        (total - free) as u64
    };
    // Kept open throughout, so that the context stays and only segments differ.
    let open = Device::open().unwrap();
    let before = used();
    let mut trainer = Trainer::new(&plan, Device::open().unwrap()).unwrap();
    let counts = (0..8)
        .map(|_| {
            trainer.step().unwrap();
            let count = trainer.pool().expect("there is a pool");
            assert_eq!(used() - before, count.reserved, "the driver knows of other segments");
            // Between steps weights, gradients and two moments are alive, each 4 bytes a parameter.
            assert_eq!(count.requested, 16 * PARAMETERS);
            assert!(count.requested <= count.granted && count.granted <= count.reserved);
            count
        })
        .collect();
    drop(trainer);
    assert_eq!(used(), before, "a segment was not given back");
    drop(open);
    counts
}

#[test]
fn varying_lengths_fragment_the_cache_and_emptying_it_gives_it_back() {
    let test = "workload::varying_lengths_fragment_the_cache_and_emptying_it_gives_it_back";
    device::run(test, Simulated { device: "h100-80gb", computes: false }, || {
        let cost = |counts: &[PoolCount]| counts[7].most_reserved - counts[7].most_requested;
        let fixed = counts(&wide(Workload::Fixed, false));
        assert_eq!(fixed[1].reserved, fixed[7].reserved, "steps that are alike need nothing new after the second");
        let varying = counts(&wide(Workload::Varying, false));
        assert!(varying[7].most_requested <= fixed[7].most_requested, "a shorter sequence needs more");
        assert!(
            cost(&varying) > cost(&fixed) + 256 * MIB,
            "{} MiB, not far above {} MiB",
            cost(&varying) / MIB,
            cost(&fixed) / MIB
        );
        println!("cache at most: fixed {} MiB, varying {} MiB", cost(&fixed) / MIB, cost(&varying) / MIB);
        assert!(varying.windows(2).all(|pair| pair[0].reserved <= pair[1].reserved), "nothing gives segments back");

        // Only segments that weights, gradients and moments hold are left: those of the step's activations have gone, but for
        // the few that a moment of the first optimizer step took a part of.
        for (workload, kept) in [(Workload::Fixed, fixed), (Workload::Varying, varying)] {
            let emptied = counts(&wide(workload, true));
            for (emptied, kept) in emptied.iter().zip(&kept) {
                println!("{workload:?}: {} MiB, not {} MiB", emptied.reserved / MIB, kept.reserved / MIB);
                assert!(emptied.reserved + 512 * MIB < kept.reserved && emptied.segments < kept.segments);
            }
        }
    });
}
