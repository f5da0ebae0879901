//! `memscope techniques`: what each memory technique does, measured one after another and compared.
//!
//! Owns: the order of things: what is asked for is checked, each combination runs under `memscope run`, and the figures of the
//! profiles become a table, JSON, a page and pictures. Refuses: figures that no profile has.
//!
//! | file | what |
//! | --- | --- |
//! | table | the techniques, as data |
//! | plan | from the list that was asked for to the rows to run |
//! | trial | one run, and what it came to |
//! | comparison | the result, as data (docs/techniques.schema.json) |
//! | why | the arithmetic behind the published figures |
//! | curve | what is drawn of a profile |
//! | text, page, picture | the result for people |

mod comparison;
mod curve;
mod page;
mod picture;
mod plan;
mod table;
mod text;
mod trial;
mod why;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memscope_wire::device::Device;

use crate::arguments::{RecordArguments, TechniquesArguments, TechniquesSample};
use crate::commands::conclude::resolve;
use crate::driver;
use crate::launch::{environment, signals};
use crate::output::{Failure, print, say};

use comparison::{Comparison, Outcome, SCHEMA_VERSION};
use curve::Curve;
use plan::{Plan, Planned};
use trial::{Place, Stopped};

/// Device where no GPU is found, as of the demo.
const SIMULATED: &str = "h100-80gb";
/// Steps of a run that computes, and of one that does not: the first makes the optimizer's state.
const STEPS: [u64; 2] = [10, 3];

/// Compares.
pub fn techniques(arguments: TechniquesArguments) -> Result<i32> {
    let plan = Plan::new(&arguments)?;
    let venue = Venue::choose(&arguments, &plan)?;
    let steps = arguments.steps.unwrap_or(if venue.compute { STEPS[0] } else { STEPS[1] });
    let outputs = Outputs::check(&arguments, &plan)?;
    let rows = plan.rows(steps)?;
    let inherited = signals::block();
    let scratch = tempfile::Builder::new()
        .prefix("memscope-techniques-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()
        .context("cannot make a temporary folder")?;
    let place = Place {
        run: venue.run(),
        simulated: venue.device.is_some(),
        compute: venue.compute,
        scratch: scratch.path().to_path_buf(),
        inherited,
    };
    let folder = outputs.keep.clone().unwrap_or_else(|| scratch.path().to_path_buf());
    let draw = outputs.html.is_some() || outputs.pictures.is_some();
    let mut comparison = venue.comparison(&arguments, &plan, steps);
    let ended = all(&place, &folder, rows, draw, arguments.quiet, &mut comparison)
        .and_then(|curves| trial::pending().map_or(Ok(curves), |signal| Err(Stopped(signal).into())));
    drop(scratch);
    signals::release(&inherited);
    let curves = match ended {
        Ok(curves) => curves,
        Err(error) => match error.downcast_ref::<Stopped>() {
            Some(Stopped(signal)) => signals::die_of(*signal),
            None => return Err(error),
        },
    };
    comparison.relate();
    if plan.published {
        explain(&mut comparison);
    }
    outputs.write(&comparison, &curves)?;
    if !arguments.quiet {
        print(&text::text(&comparison))?;
    }
    Ok(i32::from(comparison.rows.iter().any(|row| row.outcome == Outcome::Failed)))
}

/// Runs every row, into profiles in `folder`; the curves of those that are to be drawn.
fn all(
    place: &Place,
    folder: &Path,
    rows: Vec<Planned>,
    draw: bool,
    quiet: bool,
    comparison: &mut Comparison,
) -> Result<Vec<Option<Curve>>> {
    let (mut curves, of) = (Vec::new(), rows.len());
    for (number, Planned { mut row, refused, devices }) in rows.into_iter().enumerate() {
        let profile = folder.join(profile_name(&row.name));
        let ended = match refused {
            Some(refused) => refused,
            None => {
                if !quiet {
                    say(&format!("{} of {of}: {}", number + 1, row.name));
                }
                place.run(devices, &row.command[0], &row.command[1..], &profile)?
            }
        };
        let device = ended.figures.as_ref().map(|figures| figures.device.clone()).filter(|_| draw);
        curves.push(device.map(|device| Curve::of(&profile, &device, comparison.compute)).transpose()?);
        comparison.device = comparison.device.take().or(ended.device);
        (row.outcome, row.message, row.figures) = (ended.outcome, ended.message, ended.figures);
        comparison.rows.push(row);
    }
    Ok(curves)
}

/// Name of a row's profile.
fn profile_name(row: &str) -> String {
    format!("{row}.mscope")
}

/// Adds to each published row why claim and measurement differ.
fn explain(comparison: &mut Comparison) {
    comparison.shares = why::shares(comparison);
    let Some((shares, baseline)) = comparison.shares.zip(comparison.baseline().cloned()) else { return };
    for row in comparison.rows.iter_mut().skip(1) {
        row.why = why::explain(row, shares, &baseline);
    }
}

/// Venue the runs happen.
struct Venue {
    device: Option<Device>,
    compute: bool,
}

impl Venue {
    /// The device that was asked for, else the GPU, else a simulated one; and whether it computes: a simulated one does for
    /// models made for it.
    fn choose(arguments: &TechniquesArguments, plan: &Plan) -> Result<Venue> {
        let device = match arguments.device {
            Some(device) => Some(device),
            None => match driver::find() {
                Ok(_) => None,
                Err(reason) => {
                    let device = memscope_wire::device::find(SIMULATED).context("the catalogue has this device")?;
                    if !arguments.quiet {
                        say(&format!("{reason}: comparing on a simulated {} ({SIMULATED})", device.name));
                    }
                    Some(*device)
                }
            },
        };
        if device.is_none() && arguments.no_compute {
            return Err(Failure::usage("--no-compute is for a simulated device: add --device").into());
        }
        let compute = device.is_none() || arguments.compute || (plan.is_tiny() && !arguments.no_compute);
        Ok(Venue { device, compute })
    }

    fn record(&self) -> RecordArguments {
        RecordArguments { device: self.device, devices: 1, ..RecordArguments::default() }
    }

    /// Arguments of `memscope run`.
    fn run(&self) -> Vec<OsString> {
        let mut run: Vec<OsString> = Vec::new();
        if let Some(device) = environment::simulated(&self.record()) {
            run.extend(["--device".into(), device.into()]);
        }
        if !self.compute {
            run.push("--no-compute".into());
        }
        run
    }

    fn comparison(&self, arguments: &TechniquesArguments, plan: &Plan, steps: u64) -> Comparison {
        Comparison {
            schema_version: SCHEMA_VERSION,
            memscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            list: arguments.list.clone(),
            sample: plan.sample.to_owned(),
            size: plan.size.clone(),
            steps,
            arguments: arguments.arguments.clone(),
            simulated_device: environment::simulated(&self.record()),
            device: None,
            compute: self.compute,
            peak_of: "live".to_owned(),
            shares: None,
            rows: Vec::new(),
        }
    }
}

/// Files and folders that are written, checked before anything runs.
struct Outputs {
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    pictures: Option<PathBuf>,
    keep: Option<PathBuf>,
}

impl Outputs {
    fn check(arguments: &TechniquesArguments, plan: &Plan) -> Result<Outputs> {
        let file = |path: &Option<PathBuf>| path.as_deref().map(|path| resolve(path, arguments.force)).transpose();
        let folder = |path: &Option<PathBuf>, suffix: &str| -> Result<Option<PathBuf>> {
            let Some(path) = path else { return Ok(None) };
            fs::create_dir_all(path).with_context(|| format!("cannot make the folder {}", path.display()))?;
            for name in plan.names() {
                resolve(&path.join(format!("{name}.{suffix}")), arguments.force)?;
            }
            Ok(Some(path.canonicalize()?))
        };
        let (json, html) = (file(&arguments.json)?, file(&arguments.html)?);
        if json.is_some() && json == html {
            return Err(Failure::usage("JSON and HTML need two files").into());
        }
        Ok(Outputs {
            json,
            html,
            pictures: folder(&arguments.pictures, "svg")?,
            keep: folder(&arguments.keep, "mscope")?,
        })
    }

    fn write(&self, comparison: &Comparison, curves: &[Option<Curve>]) -> Result<()> {
        let put = |path: &Path, text: &str| {
            let mut temporary = path.as_os_str().to_owned();
            temporary.push(format!(".{}", std::process::id()));
            fs::write(&temporary, text)
                .and_then(|()| fs::rename(&temporary, path))
                .with_context(|| format!("cannot write {}", path.display()))
        };
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(comparison).context("cannot turn the comparison into JSON")?;
            put(path, &(json + "\n"))?;
        }
        if let Some(path) = &self.html {
            put(path, &page::page(comparison, curves))?;
        }
        if let Some(folder) = &self.pictures {
            let top = page::top_of(curves);
            let baseline = comparison.baseline().map(|figures| figures.peak_bytes);
            for (row, curve) in comparison.rows.iter().zip(curves) {
                if let Some(curve) = curve {
                    let svg = curve.svg(&row.name, &page::caption(comparison, row), top, baseline);
                    put(&folder.join(format!("{}.svg", row.name)), &svg)?;
                }
            }
        }
        Ok(())
    }
}

impl TechniquesSample {
    /// The trainer behind it.
    const fn trainer(self) -> &'static str {
        match self {
            TechniquesSample::Gpt | TechniquesSample::BertBase => "gpt",
            TechniquesSample::Resnet => "resnet",
        }
    }
}
