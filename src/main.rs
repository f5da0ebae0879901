//! memscope: shows where every byte of GPU memory goes while a model trains.
//!
//! This binary is the command line. How a run flows through it:
//!
//! 1. [`arguments`] says what can be asked for.
//! 2. [`embedded`] writes the interposer and the simulator, which the binary carries, to the cache folder.
//! 3. [`launch`] checks the program, starts it with the interposer in front, passes signals on and waits.
//! 4. While it runs, memscope-core's recorder drains the logs into the session's journal; [`progress`] shows a line, and
//!    [`alert`] says at once when memory is out, or a device is filled to a threshold.
//! 5. [`commands`] turns the session into a profile and prints the report. One file a verb.
//!
//! Owns: the command line and the process that is started. Refuses: analysis (profiler-core/), capture (interposer/).

mod alert;
mod arguments;
mod commands;
mod config;
mod driver;
mod embedded;
mod launch;
mod look;
mod output;
mod process;
mod progress;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Run(run) => commands::run::run(run),
        Command::Demo(demo) => commands::demo::demo(demo),
        Command::Sample(sample) => commands::sample::sample(sample),
        Command::Techniques(techniques) => commands::techniques::techniques(techniques),
        Command::Attach(attach) => commands::attach::attach(attach),
        Command::View(view) => commands::view::view(view),
        Command::Gui(gui) => commands::gui::gui(gui),
        Command::Top(top) => commands::top::top(top),
        Command::Report(report) => commands::report::report(report),
        Command::Diff(diff) => commands::diff::diff(diff),
        Command::Export(export) => commands::export::export(export),
        Command::Recover(recover) => commands::recover::recover(recover),
        Command::Sessions(sessions) => commands::sessions::sessions(sessions),
        Command::Devices(devices) => commands::devices::devices(devices),
        Command::Doctor(doctor) => commands::doctor::doctor(doctor),
        Command::Config(config) => commands::config::config(config.action),
        Command::Completions { shell } => commands::pages::completions(shell),
        Command::Man { directory } => commands::pages::man(directory),
    };
    match result {
        Ok(status) => std::process::exit(status),
        Err(error) => {
            output::complain(&output::describe_error(&error));
            std::process::exit(output::status_of(&error));
        }
    }
}
