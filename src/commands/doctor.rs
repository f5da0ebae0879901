//! `memscope doctor`: what this machine has, what is missing, and what to do about it.

mod followed;

use std::path::{Path, PathBuf};

use anyhow::Result;
use memscope_core::report::units;
use memscope_core::session::{allocated_bytes, orphaned_logs};
use memscope_core::telemetry::Poller;

use crate::arguments::DoctorArguments;
use crate::launch::{glibc, program};
use crate::output::print;
use crate::{driver, embedded};

/// Free shared memory below which logs may not fit, in bytes.
const SHARED_MEMORY_WANTED: u64 = 256 << 20;

/// How a check ended.
enum Health {
    Good,
    /// memscope works, with less.
    Limited,
    /// `memscope run` cannot record.
    Bad,
}

struct Check {
    subject: &'static str,
    health: Health,
    finding: String,
    advice: Option<String>,
}

/// Prints one line a check, with what to do below it. Status 1 when recording cannot work.
pub fn doctor(arguments: DoctorArguments) -> Result<i32> {
    let mut checks =
        vec![driver_check(), nvml_check(), permissions(), shared_memory(), cache(), c_library(), discovery()];
    if !arguments.command.is_empty() {
        checks.extend(followed::checks(&arguments.command));
    }
    let mut text = String::new();
    for check in &checks {
        let mark = match check.health {
            Health::Good => "ok     ",
            Health::Limited => "limited",
            Health::Bad => "problem",
        };
        text += &format!("{mark}  {:<14} {}\n", check.subject, check.finding);
        if let Some(advice) = &check.advice {
            text += &format!("{:24} → {advice}\n", "");
        }
    }
    print(&text)?;
    Ok(i32::from(checks.iter().any(|check| matches!(check.health, Health::Bad))))
}

fn driver_check() -> Check {
    let subject = "CUDA driver";
    match driver::find() {
        Ok(driver) => Check {
            subject,
            health: Health::Good,
            finding: format!(
                "CUDA {}.{}; {} device(s): {}",
                driver.version / 1000,
                driver.version % 1000 / 10,
                driver.devices.len(),
                driver.devices.join(", ")
            ),
            advice: None,
        },
        Err(reason) => Check {
            subject,
            health: Health::Limited,
            finding: reason,
            advice: Some(
                "install NVIDIA's driver, or use a simulated device: memscope run --device h100-80gb -- CMD".into(),
            ),
        },
    }
}

fn nvml_check() -> Check {
    let subject = "NVML";
    match Poller::probe(None) {
        Ok(sample) => Check {
            subject,
            health: Health::Good,
            finding: format!("answers for {} device(s)", sample.devices.len()),
            advice: None,
        },
        Err(reason) => Check {
            subject,
            health: Health::Limited,
            finding: reason,
            advice: Some(
                "comes with NVIDIA's driver (libnvidia-ml.so.1); without it the report has no device use and no \
                 other processes"
                    .into(),
            ),
        },
    }
}

fn permissions() -> Check {
    let subject = "permissions";
    let nodes: Vec<PathBuf> = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"].map(PathBuf::from).into();
    let present: Vec<_> = nodes.iter().filter(|node| node.exists()).collect();
    let closed: Vec<_> = present.iter().filter(|node| !may_use(node)).map(|node| node.display().to_string()).collect();
    if present.is_empty() {
        return Check {
            subject,
            health: Health::Limited,
            finding: "no NVIDIA device files (/dev/nvidia*)".to_string(),
            advice: Some(
                "on a GPU machine: load the kernel module (nvidia-smi does), or pass the GPU into the container".into(),
            ),
        };
    }
    if closed.is_empty() {
        return Check {
            subject,
            health: Health::Good,
            finding: "NVIDIA device files are open to you".into(),
            advice: None,
        };
    }
    Check {
        subject,
        health: Health::Limited,
        finding: format!("you may not use {}", closed.join(", ")),
        advice: Some("add your user to the group that owns the device files (often `video`), then log in again".into()),
    }
}

fn shared_memory() -> Check {
    let subject = "shared memory";
    let folder = Path::new("/dev/shm");
    let check = |health, finding, advice| Check { subject, health, finding, advice };
    if !may_use(folder) {
        let advice = "logs go to the session folder instead, which is slower; in a container use --shm-size=1g";
        return check(Health::Limited, "/dev/shm is not writable".into(), Some(advice.into()));
    }
    let free = free_bytes(folder).unwrap_or(0);
    let mut finding = format!("/dev/shm has {} MiB free", free >> 20);
    let mut advice = Vec::new();
    let left = orphaned_logs();
    if !left.is_empty() {
        let count = units::count(left.len() as u64, "folder of logs", "folders of logs");
        let bytes = units::bytes(left.iter().map(|path| allocated_bytes(path)).sum());
        finding += &format!("; {count} of sessions that are gone, {bytes}");
        advice.push("`memscope sessions` lists them; `memscope sessions --clean` removes those that nobody uses");
    }
    if free < SHARED_MEMORY_WANTED {
        advice
            .push("events may be dropped (every report would say so); make room, or use --shm-size=1g in a container");
    }
    match advice.is_empty() {
        true => check(Health::Good, finding, None),
        false => check(Health::Limited, finding, Some(advice.join("; "))),
    }
}

fn cache() -> Check {
    let subject = "cache";
    match embedded::install() {
        Ok(libraries) => {
            Check { subject, health: Health::Good, finding: libraries.interposer.display().to_string(), advice: None }
        }
        Err(error) => Check {
            subject,
            health: Health::Bad,
            finding: format!("{error:#}"),
            advice: Some("memscope writes its interposer there; set XDG_CACHE_HOME to a folder of yours".into()),
        },
    }
}

fn c_library() -> Check {
    let subject = "glibc";
    let shown =
        |version: Option<(u32, u32)>| version.map_or("?".to_string(), |(major, minor)| format!("{major}.{minor}"));
    let (floor, present) = (glibc::floor(), glibc::present());
    let finding = format!("{} here, the interposer needs {}", shown(present), shown(floor));
    if present.is_some() && present >= floor {
        return Check { subject, health: Health::Good, finding, advice: None };
    }
    Check {
        subject,
        health: Health::Bad,
        finding,
        advice: Some("build memscope on this system: cargo install --path .".into()),
    }
}

fn discovery() -> Check {
    let subject = "sessions";
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| may_use(folder)) {
        Some(folder) => Check {
            subject,
            health: Health::Good,
            finding: format!("running sessions are listed in {}", folder.join("memscope").display()),
            advice: None,
        },
        None => Check {
            subject,
            health: Health::Limited,
            finding: "XDG_RUNTIME_DIR is not set to a writable folder".to_string(),
            advice: Some("nothing is lost: sessions are named by their folders, FILE.session".into()),
        },
    }
}

/// True when this user may read and write `path`.
fn may_use(path: &Path) -> bool {
    program::may(path, libc::R_OK | libc::W_OK)
}

/// Free bytes of the file system that holds `folder`, for an ordinary user.
fn free_bytes(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}
