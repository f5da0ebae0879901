//! Data parallelism: N ranks, each with a share of the batch on a device of its own, and what each of them keeps.
//!
//! Bytes of a rank for P fp32 parameters and AdamW, W = G = 4·P, O = 8·P (ZeRO: Rajbhandari et al. 2020):
//!
//! | | weights | gradients | optimizer |
//! | --- | --- | --- | --- |
//! | ddp | W | G, and buckets that are a copy of G | O |
//! | zero1 | W | G | O/N |
//! | zero2 | W | G/N, and full gradients while backward completes them | O/N |
//! | zero3 | W/N, and the gathered layer | as zero2 | O/N |
//!
//! DDP's buckets are PyTorch's with its default (`gradient_as_bucket_view=False`): up to 25 MiB each, in the reverse order of
//! parameters, made before the first step and kept. Each tensor is cut into N parts that differ by at most one element, so
//! that O/N is exact where N divides its size; with adamw8bit by at most one of its blocks, so that its states are those of one
//! rank. Frozen weights have no gradients to be summed, and are shared out as the others by zero3. An offloaded optimizer has on
//! the host what it would have on the device. For adafactor matrices are cut between rows, and vectors are whole in all ranks.
//!
//! Gradients are summed in the type that they are kept in: fp32 in mixed precision, bf16 where all is. The loss scale's verdict is
//! that of all ranks: with ZeRO each has seen its parts only.
//!
//! A micro-batch's gradient is summed into the part that zero2 and zero3 keep; ddp and zero1 sum micro-batches first.
//!
//! Losses are those of one rank with the same batch, up to the order of sums: each rank's loss and gradients are its share of
//! the whole batch's, and they are summed in the order of ranks. All ranks begin with the same weights, made from the seed.

use super::{Kind, Techniques};
use crate::gpt::Parameter;
use crate::ranks::{Exchange, Group, part};
use crate::{Device, Error, Tensor};
use memscope_client::{self as memscope, Category};
use std::ops::Range;
use std::rc::Rc;

/// What ranks share out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Parallel {
    /// The batch
    Ddp,
    /// The optimizer's state too
    Zero1,
    /// Gradients too
    Zero2,
    /// Weights too
    Zero3,
}

/// The flags of ranks.
#[derive(clap::Args, Clone, Copy, PartialEq, Debug, Default)]
pub struct RankArguments {
    /// Train with N processes, each on the device of its number [default: 1]
    #[arg(long, value_name = "N")]
    pub ranks: Option<u64>,
    /// What ranks share out
    #[arg(long, value_name = "HOW", value_enum)]
    pub parallel: Option<Parallel>,
}

/// More ranks than a machine has devices; and what one barrier of threads can bear.
const MOST_RANKS: u64 = 64;
/// Bytes of a bucket, if its first gradient is not larger.
const BUCKET: u64 = 25 << 20;

impl RankArguments {
    /// How many ranks there are.
    pub fn count(&self) -> u64 {
        self.ranks.unwrap_or(1)
    }

    /// Writes how many more devices there are than the first, and what they share out.
    pub(crate) fn write_others(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parallel.filter(|_| self.count() > 1) {
            None => Ok(()),
            Some(parallel) => write!(f, " and {} more: {}", self.count() - 1, parallel.word()),
        }
    }

    /// Checks that the flags combine.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refused = |text: String| Err(Error::Arguments(text));
        if self.parallel.is_none() {
            return match self.ranks {
                None => Ok(()),
                Some(_) => {
                    refused("--ranks needs --parallel ddp|zero1|zero2|zero3: what the ranks share out".to_owned())
                }
            };
        }
        let Some(ranks) = self.ranks else {
            return refused("--parallel needs --ranks N: how many processes train together".to_owned());
        };
        if !(1..=MOST_RANKS).contains(&ranks) {
            return refused(format!("--ranks {ranks} is out of range: it must be 1 to {MOST_RANKS}"));
        }
        Ok(())
    }
}

impl Parallel {
    /// As `--parallel` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Parallel::Ddp => "ddp",
            Parallel::Zero1 => "zero1",
            Parallel::Zero2 => "zero2",
            Parallel::Zero3 => "zero3",
        }
    }

    /// Optimizer state is a rank's part only.
    pub(crate) fn shards_optimizer(self) -> bool {
        self != Parallel::Ddp
    }

    /// Gradients are a rank's part only, once they are complete.
    pub(crate) fn shards_gradients(self) -> bool {
        matches!(self, Parallel::Zero2 | Parallel::Zero3)
    }

    /// Weights are a rank's part only, but where they are used.
    pub(crate) fn shards_weights(self) -> bool {
        self == Parallel::Zero3
    }
}

/// One rank of several.
pub(crate) struct Rank {
    pub group: Group,
    pub parallel: Parallel,
    pub exchange: Exchange,
    /// Whose state is cut.
    optimizer: Kind,
    /// DDP's.
    buckets: Vec<Tensor>,
}

impl Rank {
    /// Joins the other ranks, if there are any, which do so at the same time.
    pub fn join(group: Option<Group>, techniques: &Techniques, device: &Device) -> Result<Option<Rank>, Error> {
        let Some((group, parallel)) = group.zip(techniques.ranks.parallel) else { return Ok(None) };
        let exchange = Exchange::choose(&group, device.is_simulated())?;
        let optimizer = techniques.optimizer.kind;
        Ok(Some(Rank { group, parallel, exchange, optimizer, buckets: Vec::new() }))
    }

    /// This rank's part of a tensor of so many elements, cut between units.
    pub fn part(&self, elements: u64, unit: u64) -> Range<u64> {
        self.part_of(self.group.rank(), elements, unit)
    }

    fn part_of(&self, rank: usize, elements: u64, unit: u64) -> Range<u64> {
        let part = part(elements as usize, unit as usize, rank, self.group.world());
        part.start as u64..part.end as u64
    }

    fn parts(&self, elements: u64, unit: u64) -> Vec<Range<u64>> {
        (0..self.group.world()).map(|rank| self.part_of(rank, elements, unit)).collect()
    }

    /// Between which units a tensor of this shape is cut; none where it stays whole.
    pub fn unit(&self, shape: &[u64]) -> Option<u64> {
        self.optimizer.unit(shape, self.group.world() as u64)
    }

    /// A parameter has been made: it is shared out at once, so that whole weights are never alive all together.
    pub fn made(&self, parameter: &mut Parameter) -> Result<(), Error> {
        match self.parallel.shards_optimizer() {
            true => parameter.share_out(self),
            false => Ok(()),
        }
    }

    /// Makes DDP's buckets for these parameters, before the first step.
    pub fn prepare(&mut self, device: &Rc<Device>, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        if self.parallel != Parallel::Ddp {
            return Ok(());
        }
        let _scope = memscope::scope("ddp");
        let parameters = trained(parameters);
        for (index, members) in buckets(parameters.iter().map(|parameter| parameter.elements())).iter().enumerate() {
            let name = format!("ddp.bucket.{index}");
            let elements = members.iter().map(|&member| parameters[member].elements()).sum();
            let element = parameters[members[0]].weight().element();
            self.buckets.push(Tensor::of(device, Category::Gradients, &name, element, &[elements])?);
        }
        Ok(())
    }

    /// After backward: gradients become sums over the ranks. With ZeRO, of each gradient only this rank's part does.
    pub fn reduce(&self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        let _scope = memscope::scope("reduce");
        let parameters = trained(parameters);
        if self.parallel != Parallel::Ddp {
            // In ZeRO 2 and 3 backward has done it, but for what stays whole.
            let early = |parameter: &Parameter| self.parallel.shards_gradients() && parameter.is_shared_out();
            let mut parameters = parameters.into_iter().filter(|parameter| !early(parameter));
            return parameters.try_for_each(|parameter| self.reduce_one(parameter));
        }
        let members = buckets(parameters.iter().map(|parameter| parameter.elements()));
        for (bucket, members) in self.buckets.iter().zip(members) {
            let mut start = 0;
            for &member in &members {
                let gradient = parameters[member].gradient().expect("backward has reached every parameter");
                bucket.copy(start, gradient, 0, gradient.elements())?;
                start += gradient.elements();
            }
            self.all_reduce(bucket)?;
            let mut start = 0;
            for &member in &members {
                let gradient = parameters[member].gradient().expect("reached above");
                gradient.copy(0, bucket, start, gradient.elements())?;
                start += gradient.elements();
            }
        }
        Ok(())
    }

    /// The gradient of one parameter becomes its sum over the ranks, or this rank's part does.
    pub fn reduce_one(&self, parameter: &mut Parameter) -> Result<(), Error> {
        match parameter.is_shared_out() {
            true => parameter.reduce_gradient(self),
            false => self.all_reduce(parameter.gradient().expect("backward has reached it")),
        }
    }

    /// After the optimizer: whole weights come together from their parts, where they are kept whole.
    pub fn gather_weights(&self, parameters: Vec<&mut Parameter>) -> Result<(), Error> {
        if !self.parallel.shards_optimizer() || self.parallel.shards_weights() {
            return Ok(());
        }
        let _scope = memscope::scope("gather");
        trained(parameters).into_iter().try_for_each(|parameter| parameter.gather_weight(self))
    }

    /// Where weights are shared out, these come together for use.
    pub fn gather<'p>(&self, parameters: impl IntoIterator<Item = &'p Parameter>) -> Result<(), Error> {
        let mut parameters = parameters.into_iter().filter(|_| self.parallel.shards_weights());
        parameters.try_for_each(|parameter| parameter.gather_weight(self))
    }

    /// Where weights are shared out, these have been used.
    pub fn scatter<'p>(&self, parameters: impl IntoIterator<Item = &'p Parameter>) {
        parameters.into_iter().filter(|_| self.parallel.shards_weights()).for_each(Parameter::scatter_weight);
    }

    /// The sum of a number over the ranks.
    pub fn sum(&self, number: Option<f32>) -> Result<Option<f32>, Error> {
        let mut numbers = [number.unwrap_or_default()];
        self.group.all_reduce(&mut numbers)?;
        Ok(number.map(|_| numbers[0]))
    }

    /// True if it is in any rank.
    pub fn any(&self, here: bool) -> Result<bool, Error> {
        let mut ranks = [if here { 1.0 } else { 0.0 }];
        self.group.all_reduce(&mut ranks)?;
        Ok(ranks[0] > 0.0)
    }

    fn all_reduce(&self, tensor: &Tensor) -> Result<(), Error> {
        if let Some(nccl) = &self.exchange.nccl {
            return nccl.all_reduce(tensor.address(), tensor.elements(), tensor.element());
        }
        if !tensor.device().computes() {
            return self.group.barrier();
        }
        let mut values = tensor.to_host()?;
        self.group.all_reduce(&mut values)?;
        tensor.write(&values)
    }

    /// `part` becomes this rank's part of the sum of `whole` over the ranks. The part may lie in the whole.
    pub fn reduce_scatter(&self, whole: &Tensor, part: &Tensor, unit: u64) -> Result<(), Error> {
        let elements = whole.elements();
        if let Some(nccl) = &self.exchange.nccl {
            return nccl.reduce_scatter(whole.address(), part.address(), &self.parts(elements, unit), whole.element());
        }
        match whole.device().computes() {
            true => part.write(&self.group.reduce_scatter(&whole.to_host()?, unit as usize)?),
            false => self.group.barrier(),
        }
    }

    /// `whole` becomes the ranks' parts.
    pub fn all_gather(&self, part: &Tensor, whole: &Tensor, unit: u64) -> Result<(), Error> {
        let elements = whole.elements();
        if let Some(nccl) = &self.exchange.nccl {
            return nccl.all_gather(part.address(), whole.address(), &self.parts(elements, unit), whole.element());
        }
        if !whole.device().computes() {
            return self.group.barrier();
        }
        whole.write(&self.group.all_gather(&part.to_host()?, elements as usize, unit as usize)?)
    }
}

/// The parameters that have gradients.
fn trained(parameters: Vec<&mut Parameter>) -> Vec<&mut Parameter> {
    parameters.into_iter().filter(|parameter| !parameter.is_frozen()).collect()
}

/// The parameters of each bucket, which have these many elements: the last first, as backward reaches them.
fn buckets(elements: impl DoubleEndedIterator<Item = u64> + ExactSizeIterator) -> Vec<Vec<usize>> {
    let mut buckets: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for (index, elements) in elements.enumerate().rev() {
        let bytes = 4 * elements;
        match buckets.last_mut().filter(|_| bytes <= room) {
            Some(bucket) => bucket.push(index),
            None => {
                buckets.push(vec![index]);
                room = BUCKET.max(bytes);
            }
        }
        room -= bytes;
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_filled_from_the_end() {
        let mib = (1 << 20) / 4;
        assert_eq!(buckets([30, 1, 24, 2, 10].map(|size| size * mib).into_iter()), [vec![4, 3], vec![2, 1], vec![0]]);
    }
}
