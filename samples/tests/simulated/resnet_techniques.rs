//! The other techniques on ResNets: what changes no number, what batch normalisation sees of a batch that is cut, ranks.

use crate::device::{self, COMPUTING};
use crate::ranks::TWO;
use crate::resnet_training::{losses, tiny};
use memscope_samples::resnet::{self, Plan, Progress, ResnetArguments, ResnetTechniques, Trainer};
use memscope_samples::techniques::{
    Allocator, BatchSize, GradientArguments, Kind, Offload, Parallel, RankArguments, Workload, WorkloadArguments,
    ZeroGrad,
};
use memscope_samples::{Device, Group};

fn with(techniques: ResnetTechniques) -> ResnetArguments {
    ResnetArguments { steps: Some(4), techniques, ..tiny() }
}

fn adamw() -> ResnetTechniques {
    ResnetTechniques { optimizer: Kind::AdamW, ..ResnetTechniques::default() }
}

#[test]
fn what_is_only_elsewhere_or_otherwise_freed_changes_no_bit() {
    device::run("resnet_techniques::what_is_only_elsewhere_or_otherwise_freed_changes_no_bit", COMPUTING, || {
        let plain = losses(&with(adamw()));
        let gradients = GradientArguments::default();
        let caching =
            WorkloadArguments { allocator: Allocator::Caching, empty_cache: true, ..WorkloadArguments::default() };
        for techniques in [
            ResnetTechniques { foreach: true, ..adamw() },
            ResnetTechniques { offload: Some(Offload::Optimizer), ..adamw() },
            ResnetTechniques { workload: caching, ..adamw() },
            ResnetTechniques { gradients: GradientArguments { optimizer_in_backward: true, ..gradients }, ..adamw() },
        ] {
            assert_eq!(losses(&with(techniques.clone())), plain, "{techniques:?}");
        }
        // Added to zeros, which turns -0 into 0 and no other number.
        let gradients = GradientArguments { zero_grad: ZeroGrad::Zero, ..gradients };
        assert_eq!(losses(&with(ResnetTechniques { gradients, ..adamw() })), plain);
    });
}

/// Normalised by its own mean and variance, a micro-batch is not the part of a batch: already the first loss differs.
#[test]
fn normalisation_sees_micro_batches() {
    device::run("resnet_techniques::normalisation_sees_micro_batches", COMPUTING, || {
        let gradients = GradientArguments { accumulate: Some(2), ..GradientArguments::default() };
        let techniques = ResnetTechniques { gradients, ..ResnetTechniques::default() };
        let cut = losses(&ResnetArguments { techniques, ..tiny() });
        assert!((cut[0] - losses(&with(ResnetTechniques::default()))[0]).abs() > 1e-4);
        let end = cut[cut.len() - 5..].iter().sum::<f32>() / 5.0;
        assert!(end < 6_f32.ln() / 2.0, "{cut:?}");
    });
}

#[test]
fn images_of_varying_size_are_learnt_too() {
    device::run("resnet_techniques::images_of_varying_size_are_learnt_too", COMPUTING, || {
        let workload = WorkloadArguments { workload: Workload::Varying, ..WorkloadArguments::default() };
        let techniques = ResnetTechniques { workload, ..ResnetTechniques::default() };
        let varying = losses(&ResnetArguments { steps: Some(60), techniques, ..tiny() });
        let end = varying[50..].iter().sum::<f32>() / 10.0;
        assert!(end < varying[..10].iter().sum::<f32>() / 10.0 - 0.2, "{varying:?}");
        assert_ne!(varying[..4], losses(&with(ResnetTechniques::default())));
    });
}

#[test]
fn the_largest_batch_is_found_within_a_fraction() {
    device::run("resnet_techniques::the_largest_batch_is_found_within_a_fraction", COMPUTING, || {
        let techniques = ResnetTechniques { memory_fraction: Some(0.002), ..ResnetTechniques::default() };
        let arguments = ResnetArguments { batch: Some(BatchSize::Auto), steps: Some(1), ..with(techniques.clone()) };
        let (mut found, mut refused) = (0, 0);
        resnet::train(&arguments, &mut |progress| {
            match progress {
                Progress::Started(started) => found = started.plan.batch,
                Progress::Trial { refused: Some(reason), .. } => {
                    assert!(reason.contains("--memory-fraction 0.002"), "{reason}");
                    refused += 1;
                }
                _ => {}
            }
            Ok(())
        })
        .unwrap();
        assert!(found > 2 && refused > 0);
        let steps = |batch: u64| {
            let arguments = ResnetArguments { batch: Some(batch.into()), steps: Some(2), ..with(techniques.clone()) };
            resnet::train(&arguments, &mut |_| Ok(()))
        };
        steps(found).unwrap();
        assert!(steps(found + 1).is_err());
    });
}

/// What a rank came to: its losses, and the gradients after the first step.
struct Rank {
    losses: Vec<f32>,
    gradients: Vec<Vec<f32>>,
}

fn ranks(parallel: Option<Parallel>, accumulate: Option<u64>) -> Vec<Rank> {
    let count = parallel.map(|_| 2);
    let techniques = ResnetTechniques {
        ranks: RankArguments { ranks: count, parallel },
        gradients: GradientArguments { accumulate, ..GradientArguments::default() },
        ..adamw()
    };
    let plan = Plan::new(&with(techniques)).unwrap();
    let group = Group::create(count.unwrap_or(1) as usize).unwrap();
    std::thread::scope(|scope| {
        let rank = |rank: usize| {
            let (member, plan) = (group.member(rank), &plan);
            scope.spawn(move || {
                let device = Device::open_at(rank).unwrap();
                let mut trainer = Trainer::in_group(plan, device, parallel.map(|_| member)).unwrap();
                let mut losses = vec![trainer.step().unwrap().expect("this device computes")];
                let host = |gradient: &memscope_samples::Tensor| gradient.to_host().unwrap();
                let parameters = trainer.parameters_mut();
                let gradients = parameters.iter().filter_map(|parameter| parameter.gradient().map(host)).collect();
                losses.extend((1..4).map(|_| trainer.step().unwrap().expect("this device computes")));
                Rank { losses, gradients }
            })
        };
        let threads: Vec<_> = (0..group.world()).map(rank).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Each rank normalises its share of the batch by itself, as one process does with as many micro-batches: that is what ranks are
/// held against, and not a process with the whole batch. A gradient is a sum in another order: off by 64 roundings of its
/// parameter's largest at most, as in lifetimes.rs.
#[test]
fn ranks_are_one_process_with_as_many_micro_batches() {
    device::run("resnet_techniques::ranks_are_one_process_with_as_many_micro_batches", TWO, || {
        let one = &ranks(None, Some(2))[0];
        let ddp = ranks(Some(Parallel::Ddp), None);
        assert_ne!(one.losses[0], ranks(None, None)[0].losses[0]);
        for rank in &ddp {
            assert_eq!(rank.losses[0], one.losses[0], "the first loss is of the same weights");
            assert_eq!(rank.gradients.len(), one.gradients.len());
            for (of_rank, of_one) in rank.gradients.iter().zip(&one.gradients) {
                let largest = of_one.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
                for (rank, one) in of_rank.iter().zip(of_one) {
                    assert!((rank - one).abs() <= 64.0 / 16_777_216.0 * largest, "{rank} {one} of {largest}");
                }
            }
        }
        // What is shared out beside the batch changes no bit.
        for parallel in [Parallel::Zero1, Parallel::Zero2, Parallel::Zero3] {
            for rank in ranks(Some(parallel), None) {
                assert_eq!(rank.losses, ddp[0].losses, "{parallel:?}");
            }
        }
    });
}
