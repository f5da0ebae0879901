//! `memscope doctor`: what this machine has, what is missing, and what to do about it.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use memscope_core::session::orphaned_logs;
use memscope_core::telemetry::Poller;

use crate::arguments::DoctorArguments;
use crate::launch::{glibc, launchers, preflight};
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
    advice: Option<&'static str>,
}

/// Prints one line a check, with what to do below it. Status 1 when recording cannot work.
pub fn doctor(arguments: DoctorArguments) -> Result<i32> {
    let mut checks =
        vec![driver_check(), nvml_check(), permissions(), shared_memory(), cache(), c_library(), discovery()];
    checks.extend((!arguments.command.is_empty()).then(|| program(&arguments.command)));
    let mut text = String::new();
    for check in &checks {
        let mark = match check.health {
            Health::Good => "ok     ",
            Health::Limited => "limited",
            Health::Bad => "problem",
        };
        text += &format!("{mark}  {:<14} {}\n", check.subject, check.finding);
        if let Some(advice) = check.advice {
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
            advice: Some("install NVIDIA's driver, or use a simulated device: memscope run --device h100-80gb -- CMD"),
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
                 other processes",
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
                "on a GPU machine: load the kernel module (nvidia-smi does), or pass the GPU into the container",
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
        advice: Some("add your user to the group that owns the device files (often `video`), then log in again"),
    }
}

fn shared_memory() -> Check {
    let subject = "shared memory";
    let folder = Path::new("/dev/shm");
    let advice = Some("logs go to the session folder instead, which is slower; in a container use --shm-size=1g");
    if !may_use(folder) {
        return Check { subject, health: Health::Limited, finding: "/dev/shm is not writable".into(), advice };
    }
    let orphans: Vec<_> = orphaned_logs().iter().map(|path| path.display().to_string()).collect();
    match free_bytes(folder) {
        Some(free) if free >= SHARED_MEMORY_WANTED && !orphans.is_empty() => Check {
            subject,
            health: Health::Limited,
            finding: format!("logs of sessions that are gone: {}", orphans.join(" ")),
            advice: Some("remove these folders, unless their programs still run"),
        },
        Some(free) if free >= SHARED_MEMORY_WANTED => Check {
            subject,
            health: Health::Good,
            finding: format!("/dev/shm has {} MiB free", free >> 20),
            advice: None,
        },
        free => Check {
            subject,
            health: Health::Limited,
            finding: format!("/dev/shm has {} MiB free", free.unwrap_or(0) >> 20),
            advice: Some(
                "events may be dropped (every report would say so); make room, or use --shm-size=1g in a container",
            ),
        },
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
            advice: Some("memscope writes its interposer there; set XDG_CACHE_HOME to a folder of yours"),
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
        advice: Some("build memscope on this system: cargo install --path ."),
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
            advice: Some("nothing is lost: sessions are named by their folders, FILE.session"),
        },
    }
}

/// The program of a command, and those that it only executes.
fn program(command: &[OsString]) -> Check {
    let subject = "program";
    let bad = |(finding, advice)| Check { subject, health: Health::Bad, finding, advice: Some(advice) };
    let chain = launchers::chain(command);
    let mut shown = Vec::new();
    for command in &chain {
        match startable(&command[0]) {
            Ok(path) => shown.push(path.display().to_string()),
            Err(trouble) => return bad(trouble),
        }
    }
    if let Some(obstacle) = preflight::obstacle(command) {
        return bad((obstacle, "what it starts may still be followed: `memscope run` records every process"));
    }
    let finding = match shown.split_last() {
        Some((last, launchers)) if !launchers.is_empty() => {
            format!("{last}, which {} executes, can be followed", launchers.join(", "))
        }
        _ => format!("{} can be followed", shown.concat()),
    };
    Check { subject, health: Health::Good, finding, advice: None }
}

/// Where a program is; what is wrong with it and what to do, if it cannot be started.
fn startable(program: &OsStr) -> Result<PathBuf, (String, &'static str)> {
    let Some(path) = preflight::find(program) else {
        if Path::new(program).exists() {
            return Err((format!("{} is not a program file", program.display()), "name the file that you would start"));
        }
        return Err((
            format!("{} was not found", program.display()),
            "name it by its path, or put its folder into PATH",
        ));
    };
    if fs::metadata(&path).is_ok_and(|data| data.permissions().mode() & 0o111 == 0) {
        return Err((format!("{} is not executable", path.display()), "set its permission: chmod +x"));
    }
    Ok(path)
}

/// True when this user may read and write `path`.
fn may_use(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a terminated path.
    unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) == 0 }
}

/// Free bytes of the file system that holds `folder`, for an ordinary user.
fn free_bytes(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    fs::metadata(folder).ok()?;
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    let mut answer = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a terminated path and room for the answer, which is filled when the call returns 0.
    let answer = unsafe {
        if libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) != 0 {
            return None;
        }
        answer.assume_init()
    };
    Some(answer.f_bavail * answer.f_frsize)
}
