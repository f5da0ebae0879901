//! The GPT sample as a program of its own, without memscope: `cargo run -p memscope-samples --example gpt -- --help`.

use clap::Parser;
use memscope_samples::gpt::{self, GptArguments};
use std::process::ExitCode;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    gpt: GptArguments,
}

fn main() -> ExitCode {
    match gpt::run(&Arguments::parse().gpt) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpt: {error}");
            ExitCode::FAILURE
        }
    }
}
