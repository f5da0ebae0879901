//! The tiny GPT of the GPT sample, trained a few steps at a time on demand: the half of benches/step that is ours.
//!
//! `steps FOLDER COUNT` writes the first weights and the batches of the first COUNT steps into FOLDER, for another program
//! to train the same, and then takes one number of steps a line from its standard input. For each line it prints the
//! nanoseconds that these steps took, and the loss of the last.

use memscope_samples::Device;
use memscope_samples::gpt::{Configuration, GptArguments, Plan, Trainer, batch};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

#[derive(clap::Parser)]
struct Arguments {
    /// Where weights and batches are written
    folder: std::path::PathBuf,
    /// Steps whose batches are written
    count: u64,
    #[command(flatten)]
    gpt: GptArguments,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { folder, count, gpt } = clap::Parser::parse();
    let plan = Plan::new(&gpt)?;
    let mut trainer = Trainer::new(&plan, Device::open()?)?;
    write_model(&folder, &plan, &mut trainer)?;
    write_batches(&folder, &plan, count)?;
    println!("ready");
    for line in io::stdin().lines() {
        let steps: u64 = line?.trim().parse()?;
        let begun = Instant::now();
        let mut loss = None;
        for _ in 0..steps {
            loss = trainer.step()?;
        }
        println!("{} {}", begun.elapsed().as_nanos(), loss.ok_or("the device does not compute")?);
    }
    Ok(())
}

/// `sizes`: batch, sequence, layers, width, heads, vocabulary, positions and the learning rate. `parameters`: a name and a
/// shape a line. `weights`: their values one after another, f32 in little-endian order.
fn write_model(folder: &Path, plan: &Plan, trainer: &mut Trainer) -> Result<(), Box<dyn Error>> {
    let Plan { configuration, batch, sequence, learning_rate, .. } = plan;
    let Configuration { layers, width, heads, vocabulary, positions, .. } = configuration;
    let sizes = format!("{batch} {sequence} {layers} {width} {heads} {vocabulary} {positions} {learning_rate}\n");
    std::fs::write(folder.join("sizes"), sizes)?;
    let (mut names, mut weights) = (String::new(), Vec::new());
    let shapes = configuration.parameters();
    for (parameter, description) in trainer.parameters_mut().into_iter().zip(shapes) {
        let shape: Vec<String> = description.shape.iter().map(u64::to_string).collect();
        writeln!(names, "{} {}", parameter.name(), shape.join(" "))?;
        weights.extend(parameter.weight().to_host()?.into_iter().flat_map(f32::to_le_bytes));
    }
    std::fs::write(folder.join("parameters"), names)?;
    std::fs::write(folder.join("weights"), weights)?;
    Ok(())
}

/// `batches`: for each step tokens, then targets, (batch, sequence) each, i64 in little-endian order.
fn write_batches(folder: &Path, plan: &Plan, count: u64) -> Result<(), Box<dyn Error>> {
    let mut file = io::BufWriter::new(std::fs::File::create(folder.join("batches"))?);
    for step in 1..=count {
        let batch = batch(&plan.configuration, plan.batch, plan.sequence, plan.seed, step);
        for value in batch.tokens.iter().chain(&batch.targets) {
            file.write_all(&value.to_le_bytes())?;
        }
    }
    Ok(file.flush()?)
}
