//! What can be asked for on the command line.
//!
//! Owns: names, defaults and help of every flag. Refuses: to act on them (`commands/`).

mod alerts;
mod keep;
mod size;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use memscope_core::report::Instant;
use memscope_wire::device::{self, Device};

pub use alerts::Alerts;
pub use keep::Keeping;
use size::parse_device;

/// Shows where every byte of GPU memory goes while a model trains.
#[derive(Parser, Debug)]
#[command(name = "memscope", version, about, propagate_version = true, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "Examples:
  memscope demo                              train a small GPT under the profiler
  memscope run -- ./train --epochs 1         profile a program, unchanged
  memscope run --device h100-80gb -- ./train the same on a simulated device
  memscope report memscope-train-4242.mscope --at step:3")]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Subcommand, Debug)]
pub enum Command {
    Run(RunArguments),
    Demo(DemoArguments),
    Sample(SampleArguments),
    Techniques(TechniquesArguments),
    Attach(AttachArguments),
    View(ViewArguments),
    Gui(GuiArguments),
    Top(TopArguments),
    Report(ReportArguments),
    Diff(DiffArguments),
    Export(ExportArguments),
    Recover(RecoverArguments),
    Sessions(SessionsArguments),
    Devices(DevicesArguments),
    Doctor(DoctorArguments),
    Config(ConfigArguments),
    /// Prints a completion script for a shell.
    #[command(
        after_help = "Example:\n  memscope completions bash > ~/.local/share/bash-completion/completions/memscope"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page, or writes one a command into a folder.
    #[command(after_help = "Examples:\n  memscope man | man -l -\n  memscope man ~/.local/share/man/man1")]
    Man {
        /// Folder for memscope.1, memscope-run.1, …; the main page goes to stdout without it.
        #[arg(value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

/// Where a run happens and what it leaves behind.
#[derive(Args, Debug, Clone, Default)]
pub struct RecordArguments {
    /// Profile to write [default: memscope-PROGRAM-PID.mscope in the current folder, PID being memscope's]. {rank},
    /// {local_rank}, {node} and {pid} stand for what the launcher of a distributed job has named.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Also write the report as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Run on a simulated device: a name of `memscope devices`, or a size such as 24GiB. Without it the program sees the
    /// GPUs of this machine, or none.
    #[arg(long, value_name = "NAME|SIZE", value_parser = parse_device)]
    pub device: Option<Device>,

    /// How many of the simulated device.
    #[arg(long, value_name = "N", requires = "device", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=device::MAX_DEVICES as i64))]
    pub devices: u32,

    /// Skip kernels, copies and fills on the simulated device: a memory-only run, whose results mean nothing.
    #[arg(long, requires = "device")]
    pub no_compute: bool,

    /// What is recorded of where in the program an allocation was made [default: module].
    #[arg(long, value_enum, value_name = "HOW")]
    pub stacks: Option<Stacks>,

    /// Time between two looks at NVML, in milliseconds [default: 200].
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub interval: Option<u64>,

    /// Say at once when more of a device is used than this: a share of its memory (90%) or a size (20GiB). Several, joined by
    /// commas; off for none, whatever the configuration says.
    #[arg(long, value_name = "SHARE|SIZE", allow_hyphen_values = true)]
    pub alert: Option<Alerts>,

    /// Keep only a part of a long run allocation by allocation, and sums of the whole: its end (last:10m, last:500000
    /// allocations), steps (steps:100..200, either end may be left away), or the last step and those of the largest use (peaks).
    /// Disk and memory then stay bounded. all keeps all, whatever the configuration says.
    #[arg(long, value_name = "WHAT", allow_hyphen_values = true)]
    pub keep: Option<Keeping>,

    /// Say nothing but errors: no progress, no summary.
    #[arg(short, long)]
    pub quiet: bool,

    /// Replace existing output files.
    #[arg(short, long)]
    pub force: bool,

    /// Show the live dashboard; the program gets a terminal of its own inside it.
    #[arg(long, overrides_with = "no_tui")]
    pub tui: bool,

    /// No dashboard, whatever the configuration says.
    #[arg(long, overrides_with = "tui")]
    pub no_tui: bool,

    #[command(flatten)]
    pub screen: ScreenArguments,
}

/// How the terminal views look.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Look of the dashboard")]
pub struct ScreenArguments {
    /// Colours of the categories [default: default, mono when NO_COLOR is set].
    #[arg(long, value_enum, value_name = "NAME")]
    pub palette: Option<Palette>,

    /// How many colours the terminal has [default: as COLORTERM and TERM say].
    #[arg(long, value_enum, value_name = "DEPTH")]
    pub colors: Option<Colors>,

    /// Draw with ASCII characters only [default: when the locale is not UTF-8].
    #[arg(long)]
    pub ascii: bool,

    /// Leave the mouse to the terminal.
    #[arg(long)]
    pub no_mouse: bool,
}

/// What is recorded of where in the program an allocation was made.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stacks {
    /// Nothing but the program's own scopes.
    Off,
    /// The module of a PyTorch program.
    Module,
    /// The module, and the lines of the Python program that led there.
    Python,
    /// The module, and the functions of machine code (C, C++, Rust, …) that led there.
    Native,
}

impl Stacks {
    /// What the program's environment says.
    pub const fn word(self) -> &'static str {
        match self {
            Stacks::Off => "off",
            Stacks::Module => "module",
            Stacks::Python => "python",
            Stacks::Native => "native",
        }
    }
}

/// Colours of the categories.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Palette {
    /// Bright, on dark or light.
    Default,
    /// Told apart with every kind of colour blindness.
    ColorBlind,
    /// No colours: patterns and bold.
    Mono,
}

/// Colours that a terminal has.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colors {
    /// As COLORTERM and TERM say.
    Auto,
    /// The 16 of the terminal's own palette.
    #[value(name = "16")]
    #[serde(rename = "16")]
    Ansi,
    /// The fixed 256.
    #[value(name = "256")]
    #[serde(rename = "256")]
    Indexed,
    /// 24 bits.
    Truecolor,
}

/// Runs a program, unchanged, and records every byte of GPU memory that it takes.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit status: the program's; 128+N when signal N ended it; 127 when it was not found, 126 when it
could not be started, 2 for wrong usage.

Examples:
  memscope run -- python train.py
  memscope run -o before.mscope --json before.json -- ./train --batch 8
  memscope run --stacks python -- python train.py
  memscope run --stacks native -- ./train --batch 8
  srun memscope run -o 'run-{node}-{rank}.mscope' -- python train.py
  memscope run --keep last:10m -- python train_for_days.py
  memscope run --device rtx3090-24gb --no-compute -- ./train"
)]
pub struct RunArguments {
    #[command(flatten)]
    pub record: RecordArguments,

    /// The program and its arguments, after `--`.
    #[arg(required = true, last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Trains the bundled GPT sample under the profiler and shows the summary; on the GPU if there is one, else simulated.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  memscope demo\n  memscope demo --device 2GiB -o demo.mscope -- --steps 100")]
pub struct DemoArguments {
    #[command(flatten)]
    pub record: RecordArguments,

    /// Arguments for the sample, as of `memscope sample gpt`.
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<OsString>,
}

/// Runs a bundled sample trainer (not recorded by itself: put `memscope run --` in front).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  memscope run -- memscope sample gpt --model tiny --steps 30
  memscope run --device h100-80gb --no-compute -- memscope sample gpt --model gpt2-124m --batch 4 --seq 1024 --steps 2
  memscope run --device h100-80gb --no-compute -- memscope sample resnet --model 50 --batch 64")]
pub struct SampleArguments {
    #[command(subcommand)]
    pub sample: Sample,
}

/// The bundled trainers.
#[derive(Subcommand, Debug)]
pub enum Sample {
    /// A GPT (or BERT) trained with a hand-written backward pass, by default in fp32 with AdamW.
    Gpt(Box<memscope_samples::gpt::GptArguments>),
    /// A ResNet trained on made-up images, with a hand-written backward pass.
    Resnet(memscope_samples::resnet::ResnetArguments),
}

/// Measures what each memory technique does: trains with one after another under the profiler and compares.
#[derive(Args, Debug)]
#[command(after_help = "Without a GPU it runs on a simulated device, where models that are not tiny are not computed.
Techniques can be combined: `--list adamw8bit,amp-fp16+checkpoint`. Only named ones: caching, varying and
empty-cache, which show in reserved memory; memory-fraction; batch-auto, which looks for the largest batch
and is not computed on a simulated device. Exit status: 1 when a run failed for another reason than flags
that do not combine or a device that is too small.

Examples:
  memscope techniques
  memscope techniques gpt --size 124m --device 24GiB --list batch-auto,checkpoint+batch-auto
  memscope techniques gpt --size gpt2-124m --list published --html techniques.html
  memscope techniques resnet --size 50 --json resnet.json -- --batch 32")]
pub struct TechniquesArguments {
    /// The model to train.
    #[arg(value_enum, default_value_t = TechniquesSample::Gpt)]
    pub sample: TechniquesSample,

    /// Its size: tiny, gpt2-124m, gpt2-medium, gpt2-large, gpt2-xl; tiny, 18, 50, 152 [default: tiny].
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,

    /// What to compare with the baseline: all, published (with the figures claimed for them), or names joined by commas.
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub list: String,

    /// Training steps of each run [default: 10, or 3 where nothing is computed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub steps: Option<u64>,

    /// Run on a simulated device: a name of `memscope devices`, or a size such as 24GiB [default: the GPU, else h100-80gb].
    #[arg(long, value_name = "NAME|SIZE", value_parser = parse_device)]
    pub device: Option<Device>,

    /// Compute on the simulated device, whatever the size.
    #[arg(long, conflicts_with = "no_compute")]
    pub compute: bool,

    /// Compute nothing on the simulated device: memory alone.
    #[arg(long)]
    pub no_compute: bool,

    /// Write the comparison as JSON (docs/techniques.schema.json).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the comparison as one HTML page, with a picture of each profile.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Write the pictures as SVG files into this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub pictures: Option<PathBuf>,

    /// Keep the profiles in this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,

    /// Say nothing but errors: no progress, no table.
    #[arg(short, long)]
    pub quiet: bool,

    /// Replace existing output files.
    #[arg(short, long)]
    pub force: bool,

    /// More arguments for every run, as of `memscope sample`.
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// The models that techniques are compared on.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum TechniquesSample {
    /// A GPT.
    Gpt,
    /// A ResNet.
    Resnet,
    /// BERT base.
    BertBase,
}

/// Shows the dashboard of a session that runs, from another terminal. It only looks: the program is not touched.
#[derive(Args, Debug)]
#[command(after_help = "Without SESSION: the one that runs, if there is only one.

Examples:
  memscope attach
  memscope attach memscope-train-4242.mscope.session
  memscope attach 4242")]
pub struct AttachArguments {
    /// A session folder, the profile that it will become, or the process id of its memscope.
    #[arg(value_name = "SESSION", value_hint = ValueHint::AnyPath)]
    pub session: Option<PathBuf>,

    #[command(flatten)]
    pub screen: ScreenArguments,
}

/// Shows the dashboard of a finished profile.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  memscope view memscope-train-4242.mscope")]
pub struct ViewArguments {
    /// A .mscope file or a session folder.
    #[arg(value_name = "FILE|SESSION", value_hint = ValueHint::AnyPath)]
    pub source: PathBuf,

    #[command(flatten)]
    pub screen: ScreenArguments,
}

/// Opens profiles and running sessions in a window.
#[derive(Args, Debug)]
#[command(after_help = "The window is a program of its own, memscope-gui, so that a server needs no window toolkit.

Examples:
  memscope gui memscope-train-4242.mscope
  memscope gui memscope-train-4242.mscope.session
  memscope gui before.mscope after.mscope
  memscope gui --diff before.mscope after.mscope")]
pub struct GuiArguments {
    /// Show what the second of two files holds less what the first holds.
    #[arg(long, requires = "sources")]
    pub diff: bool,

    /// Each becomes a tab: a .mscope file, a session folder, or the id of a session or of a process of it.
    #[arg(value_name = "FILE|SESSION", value_hint = ValueHint::AnyPath)]
    pub sources: Vec<PathBuf>,
}

/// Shows every GPU of this machine and every process on it; what runs under memscope with what its memory is for.
#[derive(Args, Debug)]
#[command(after_help = "Without a terminal it prints once. Exit status: 1 when there is no NVML.

Examples:
  memscope top
  memscope top --once
  memscope top --once --json | jq '.processes[] | {pid, memory_used}'
  memscope top --json --interval 5000 >> machine.jsonl")]
pub struct TopArguments {
    /// Print once and leave, after the two looks that rates need.
    #[arg(short = '1', long)]
    pub once: bool,

    /// Print JSON (docs/top.schema.json): one document with --once, else a line for each look.
    #[arg(long)]
    pub json: bool,

    /// Time between two looks, in milliseconds [default: 1000].
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub interval: Option<u64>,

    #[command(flatten)]
    pub screen: ScreenArguments,
}

/// Makes, shows or finds the configuration file.
#[derive(Args, Debug)]
#[command(after_help = "A flag wins over an environment variable, that over the file, and the file over the default.

Examples:
  memscope config init
  memscope config print")]
pub struct ConfigArguments {
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// What to do with the configuration.
#[derive(Subcommand, Debug, Clone, Copy)]
pub enum ConfigAction {
    /// Writes a configuration file with every setting, its meaning and its default.
    Init {
        /// Replace an existing file.
        #[arg(short, long)]
        force: bool,
    },
    /// Prints every setting with its value and where that comes from.
    Print,
    /// Prints the path of the file.
    Path,
}

/// Prints the report of a profile, or of a session that runs or was broken off; of several, the ranks of a job beside each other.
#[derive(Args, Debug)]
#[command(
    after_help = "Of several files: what each rank held at most, what differs between ranks, which ran out of memory first.

Examples:
  memscope report train.mscope
  memscope report train.mscope --format json --at step:12
  memscope report run/*.mscope
  memscope report train.mscope.session"
)]
pub struct ReportArguments {
    /// A .mscope file or a session folder; several are of the ranks or nodes of one job.
    #[arg(value_name = "FILE|SESSION", required = true, value_hint = ValueHint::AnyPath)]
    pub sources: Vec<PathBuf>,

    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// The instant to look at: peak, end, step:N (the peak within step N), time:S (seconds since the start). Only of one file.
    #[arg(long, value_name = "INSTANT", default_value = "peak")]
    pub at: Instant,
}

/// Forms of a report.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: docs/report.schema.json, of several files docs/ranks.schema.json.
    Json,
}

/// Says what one profile holds less what another holds: by category, scope and line of the program, and step by step.
#[derive(Args, Debug)]
#[command(
    after_help = "Each is looked at where its own live bytes were largest, or at the instant that is given. Of several
devices the figures are sums. Lines of the program are compared where they were recorded (memscope run --stacks python, native).
Exit status: 1 when one of them has no such step.

Examples:
  memscope diff before.mscope after.mscope
  memscope diff before.mscope after.mscope --step 12 --json difference.json"
)]
pub struct DiffArguments {
    /// The .mscope file that is subtracted.
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,

    /// The .mscope file from which it is subtracted.
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,

    /// The peak within this step of each; as --at step:N.
    #[arg(long, value_name = "N", conflicts_with = "at")]
    pub step: Option<u64>,

    /// The instant of each: peak, end, step:N (the peak within step N), time:S (seconds since the start) [default: where memory of
    /// it ran out, else its peak].
    #[arg(long, value_name = "INSTANT")]
    pub at: Option<Instant>,

    /// Write it as JSON, too (docs/diff.schema.json).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Replace that file when it exists.
    #[arg(short, long)]
    pub force: bool,
}

/// Writes a profile in an open form.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  memscope export train.mscope --parquet tables/\n  memscope export train.mscope --json > report.json"
)]
pub struct ExportArguments {
    /// A .mscope file.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub source: PathBuf,

    /// Write the profile's Parquet tables into this folder.
    #[arg(long, value_name = "DIR", required_unless_present = "json", value_hint = ValueHint::DirPath)]
    pub parquet: Option<PathBuf>,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,

    /// Replace existing files.
    #[arg(short, long)]
    pub force: bool,
}

/// Makes a profile of a session that was broken off (memscope or the machine stopped before it could).
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  memscope recover memscope-train-4242.mscope.session")]
pub struct RecoverArguments {
    /// The session folder.
    #[arg(value_name = "SESSION", value_hint = ValueHint::DirPath)]
    pub session: PathBuf,

    /// Profile to write [default: the session's own].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace an existing profile.
    #[arg(short, long)]
    pub force: bool,
}

/// Lists sessions: running, ended (their profile is being made), and abandoned by a memscope that died.
#[derive(Args, Debug)]
#[command(
    after_help = "Without FOLDER: all of this user that can be found on this machine, and those in the current folder.
A session of another machine, on a shared disk, is listed as `elsewhere` and never removed; neither is one whose program
still runs.

Examples:
  memscope sessions
  memscope sessions --clean
  memscope sessions --clean --yes /scratch/runs"
)]
pub struct SessionsArguments {
    /// Remove the abandoned ones, with what they recorded, and logs in shared memory that nobody uses and whose session is gone.
    #[arg(long)]
    pub clean: bool,

    /// Do not ask before.
    #[arg(short, long, requires = "clean")]
    pub yes: bool,

    /// Only the sessions in these folders, or these sessions.
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub folders: Vec<PathBuf>,
}

/// Checks this machine (driver, NVML, GPUs, permissions, shared memory, glibc) and says what to do about each.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  memscope doctor\n  memscope doctor -- ./train --epochs 3\n  memscope doctor -- env A=1 ./train"
)]
pub struct DoctorArguments {
    /// Also check whether this program can be followed, and what it only executes (env, nice, sh -c and the like); nothing is
    /// started, and what was not looked at is said. Its arguments may stand behind it.
    #[arg(last = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Lists the devices that can be simulated.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  memscope devices --json")]
pub struct DevicesArguments {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }
}
