//! The fixed sessions. Nothing in them is random.

use memscope_core::journal::entry::{Counters, DeviceSample, ProcessSample};
use memscope_wire::{Category, Event};

use crate::trace::{Trace, uuid_text};

pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

/// What NVML says of a device: `ours` is what the program's process 4242 uses.
fn sample(ordinal: u8, total: u64, ours: u64, others: u64) -> DeviceSample {
    let process = |pid, used| ProcessSample { pid, used: Some(used) };
    DeviceSample {
        uuid: uuid_text(ordinal),
        name: Some("NVIDIA H100 80GB HBM3".into()),
        total: Some(total),
        used: Some(ours + others + 20 * MIB),
        reserved: Some(600 * MIB),
        utilization: Some(93),
        temperature: Some(61),
        power: Some(512_400),
        clock: Some(1755),
        memory_clock: Some(2619),
        power_limit: Some(700_000),
        fan: None,
        pcie_generation: Some(5),
        pcie_width: Some(16),
        pcie_receive: Some(1_288_490_188),
        pcie_send: Some(322_122_547),
        processes: Some(vec![process(4242, ours), process(99, others)]),
    }
}

const LAYERS: u64 = 6;
/// Where the container begins that serves activations.
const POOL: u64 = 0x40_0000_0000;

/// Weights, optimizer state and a container, as every trainer here has them.
fn model(trace: &mut Trace, scale: u64) {
    trace.push("model");
    for layer in 0..LAYERS {
        trace.push(&format!("h.{layer}"));
        for (part, (name, size)) in [("attn", 96), ("mlp", 192)].into_iter().enumerate() {
            let address = 0x10_0000_0000 + layer * 0x1_0000_0000 + part as u64 * 0x4000_0000;
            trace.push(name);
            trace.tagged(address, size * MIB * scale, Category::Weights, &format!("h.{layer}.{name}.weight"));
            trace.pop();
        }
        trace.pop();
    }
    trace.pop();
    trace.push("optimizer");
    for layer in 0..LAYERS {
        let address = 0x20_0000_0000 + layer * 0x1_0000_0000;
        trace.tagged(address, 576 * MIB * scale, Category::Optimizer, &format!("h.{layer}.exp_avg"));
    }
    trace.pop();
    trace.allocate(POOL, 8 * GIB * scale);
    trace.allocate(POOL + 0x10_0000_0000, 2 * GIB * scale);
}

/// Two steps on the CPU, without a device.
pub fn on_the_cpu() -> Trace {
    let mut trace = Trace::new(Trace::session(&["python", "train.py"], None));
    trace.add_process(4242, None);
    trace.push("Net");
    trace.tensor(0x10_0000_0000, 64 * MIB, Category::Weights, "layer.weight");
    for number in 1..=2 {
        trace.now += SECOND;
        trace.step(number);
        trace.phase("forward");
        trace.push("layer");
        trace.tensor(0x20_0000_0000, number * 100 * MIB, Category::Activations, "layer.out");
        trace.pop();
        trace.phase("backward");
        trace.now += SECOND;
        trace.free(0x20_0000_0000);
    }
    trace
}

/// Forward and backward pass of one step; `leak` bytes of it stay.
fn step(trace: &mut Trace, number: u64, scale: u64, leak: u64) {
    trace.step(number);
    trace.phase("forward");
    trace.block(POOL + 0x10_0000_0000, 48 * MIB * scale, Category::Inputs, "batch");
    trace.push("model");
    for layer in 0..LAYERS {
        trace.now += SECOND / 20;
        trace.push(&format!("h.{layer}"));
        for (part, (name, size)) in [("attn", 320), ("mlp", 640)].into_iter().enumerate() {
            trace.push(name);
            let address = POOL + (layer * 1200 + part as u64 * 400) * MIB * scale;
            trace.block(address, size * MIB * scale, Category::Activations, &format!("h.{layer}.{name}.out"));
            trace.pop();
        }
        trace.pop();
    }
    trace.push("loss");
    trace.block(POOL + 0x10_4000_0000, 700 * MIB * scale, Category::Workspace, "softmax");
    trace.now += SECOND / 20;
    trace.free_block(POOL + 0x10_4000_0000);
    trace.pop();
    trace.pop();
    trace.phase("backward");
    for layer in (0..LAYERS).rev() {
        trace.now += SECOND / 20;
        let address = 0x30_0000_0000 + layer * 0x1_0000_0000;
        trace.tagged(address, 288 * MIB * scale, Category::Gradients, &format!("h.{layer}.grad"));
        for part in 0..2 {
            trace.free_block(POOL + (layer * 1200 + part * 400) * MIB * scale);
        }
    }
    if leak > 0 {
        trace.push("metrics");
        trace.tagged(0x80_0000_0000 + number * 0x1000_0000, leak, Category::Unknown, "history");
        trace.pop();
    }
    trace.phase("optimizer");
    trace.now += SECOND / 10;
    let reserved = (LAYERS * (288 + 576 + 288) * MIB + 10 * GIB) * scale + leak * number;
    trace.sample(sample(0, 80 * GIB, reserved + 480 * MIB, 1536 * MIB));
    trace.now += SECOND / 10;
    for layer in 0..LAYERS {
        trace.free(0x30_0000_0000 + layer * 0x1_0000_0000);
    }
    trace.free_block(POOL + 0x10_0000_0000);
    trace.now += SECOND / 20;
}

fn begin(command: &[&str], simulated: Option<&str>) -> Trace {
    let mut trace = Trace::new(Trace::session(command, simulated));
    trace.add_process(4242, None);
    trace.add_device(0, 80 * GIB);
    trace.pin(0x90_0000_0000, 256 * MIB);
    trace.now = SECOND / 2;
    trace
}

/// Sixteen steps of a small GPT on a simulated H100; it is in the seventeenth.
pub fn training() -> Trace {
    let mut trace = begin(&["./train", "--model", "gpt-small", "--batch", "8"], Some("h100-80gb"));
    model(&mut trace, 1);
    for number in 1..=16 {
        step(&mut trace, number, 1, 0);
    }
    trace.step(17);
    trace.phase("forward");
    trace.push("model");
    for layer in 0..4 {
        trace.push(&format!("h.{layer}"));
        trace.push("attn");
        trace.block(POOL + layer * 1200 * MIB, 320 * MIB, Category::Activations, &format!("h.{layer}.attn.out"));
        trace.pop();
        trace.pop();
    }
    trace
}

/// The same on a real device, finished, with a history that grows by 24 MiB a step.
pub fn leaking() -> Trace {
    let mut trace = begin(&["python", "train.py"], None);
    model(&mut trace, 1);
    for number in 1..=40 {
        step(&mut trace, number, 1, 24 * MIB);
    }
    trace.end(0);
    trace
}

/// Three steps that fill the device, and a fourth whose forward pass does not fit.
pub fn out_of_memory() -> Trace {
    let mut trace = begin(&["python", "train.py", "--batch", "64"], None);
    model(&mut trace, 4);
    for number in 1..=3 {
        step(&mut trace, number, 4, 0);
    }
    trace.step(4);
    trace.phase("forward");
    trace.push("model");
    trace.push("h.0");
    trace.now += SECOND / 10;
    trace.allocate(0xa0_0000_0000, 15 * GIB);
    trace.block(0xa0_0000_0000, 14 * GIB, Category::Activations, "h.0.attn.scores");
    trace.block(POOL, 30_000 * MIB, Category::Activations, "h.0.attn.out");
    trace.refuse(6 * GIB, 2 * GIB + 123, 80 * GIB);
    trace.now += SECOND / 10;
    trace.sample(sample(0, 80 * GIB, 75 * GIB + 256 * MIB + 480 * MIB, 1536 * MIB));
    trace.now += SECOND / 10;
    trace.end(1);
    trace
}

/// One allocation that nobody tagged.
pub fn one_allocation() -> Trace {
    let mut trace = Trace::new(Trace::session(&["./one"], None));
    trace.add_process(77, None);
    trace.add_device(0, 24 * GIB);
    trace.now = SECOND;
    trace.allocate(0x7f00_0000_0000, 1000);
    trace.now = 2 * SECOND;
    trace
}

/// A program that has not called the driver yet.
pub fn nothing_yet() -> Trace {
    Trace::new(Trace::session(&["./train", "--epochs", "3"], None))
}

/// A program that could not be looked into.
pub fn nothing_captured() -> Trace {
    let mut session = Trace::session(&["./static-train"], None);
    session.obstacle = Some("./static-train is linked statically, so that no library can be loaded into it".into());
    let mut trace = Trace::new(session);
    trace.now = SECOND;
    trace.end(0);
    trace
}

/// Two ranks on eight GPUs, of which NVML tells less and less.
pub fn eight_gpus() -> Trace {
    let mut trace = Trace::new(Trace::session(&["torchrun", "--nproc-per-node", "2", "train.py"], None));
    for (rank, pid) in [4242, 4243].into_iter().enumerate() {
        trace.add_process(pid, Some(rank as u32));
        for device in (0..8u32).filter(|device| *device as usize % 2 == rank) {
            trace.device = device;
            trace.add_device(device, 80 * GIB);
            let address = 0x10_0000_0000 * u64::from(device + 1);
            trace.tagged(address, (1 + u64::from(device)) * GIB, Category::Weights, "shard");
        }
    }
    trace.now = SECOND;
    for device in 0..8u8 {
        let mut told = sample(device, 80 * GIB, (1 + u64::from(device)) * GIB + 400 * MIB, 0);
        if device >= 2 {
            (told.fan, told.power_limit, told.pcie_receive, told.pcie_send) = (Some(35), None, None, None);
        }
        if device >= 4 {
            (told.temperature, told.clock, told.memory_clock, told.pcie_generation) = (None, None, None, None);
        }
        if device >= 6 {
            (told.utilization, told.power, told.pcie_width, told.processes) = (None, None, None, None);
        }
        if device == 7 {
            (told.used, told.reserved, told.name) = (None, None, None);
        }
        trace.sample(told);
    }
    trace.now = 2 * SECOND;
    trace
}

/// The training of which three events were lost.
pub fn dropped() -> Trace {
    let mut trace = training();
    trace.counters(Counters { dropped: 3, ..Counters::default() });
    trace
}

/// A PyTorch program on simulated libraries, which missed a function and read what was not computed.
pub fn simulated_libraries() -> Trace {
    let mut trace = Trace::new(Trace::session(&["python", "train.py"], Some("h100-80gb")));
    trace.add_process(4242, None);
    trace.add_device(0, 80 * GIB);
    trace.event(Event::NotComputed);
    trace.tagged(0x10_0000_0000, GIB, Category::Weights, "weight");
    let function = trace.name("cufftCreate");
    trace.event(Event::NotSimulated { function });
    for (line, times) in [("/home/a/train.py:31", 5), ("/home/a/loss.py:7", 2)] {
        let line = trace.name(line);
        for _ in 0..times {
            trace.event(Event::DeviceRead { line, bytes: 4, known: false });
        }
    }
    trace
}
