//! The same program under a Wayland compositor without a screen.
//!
//! Owns: that a window comes up there, with what it shows, at 1x and at 2x. Refuses: keys: Weston without a screen has no seat.
//! Where Weston (with its screenshooter) is missing, does not come up, or ends by itself, it says so and proves nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use image::RgbImage;

use super::{ACTIVATIONS, Running, count, profile, until};

const SOCKET: &str = "wayland-test";

/// Weston, its output `scale` times as fine, and its folder of sockets.
fn compositor(folder: &Path, scale: u32) -> Option<Running> {
    if Command::new("weston-screenshooter").env_clear().output().is_err() {
        eprintln!("SKIPPED the window under Wayland: weston is missing (Debian: weston)");
        return None;
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).expect("a folder of one's own");
    let (width, height) = (1300 * scale, 840 * scale);
    let mut command = Command::new("weston");
    command.args(["--backend=headless-backend.so", "--use-pixman", "--debug", "--no-config", "--idle-time=0"]);
    command.args([format!("--socket={SOCKET}"), format!("--width={width}"), format!("--height={height}")]);
    command.arg(format!("--scale={scale}")).env("XDG_RUNTIME_DIR", folder).env_remove("DISPLAY").current_dir(folder);
    let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut server: Child = server.map_err(|error| eprintln!("SKIPPED the window under Wayland: {error}")).ok()?;
    let begin = Instant::now();
    while !folder.join(SOCKET).exists() {
        if server.try_wait().is_ok_and(|ended| ended.is_some()) || begin.elapsed() > Duration::from_secs(20) {
            eprintln!("SKIPPED the window under Wayland: weston does not come up without a screen here");
            drop(Running(server));
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(Running(server))
}

fn on(folder: &Path, mut command: Command) -> Command {
    command.env("XDG_RUNTIME_DIR", folder).env("WAYLAND_DISPLAY", SOCKET).env_remove("DISPLAY");
    command.env_remove("WAYLAND_SOCKET").env_remove("XDG_PICTURES_DIR").current_dir(folder);
    command
}

/// What is on the screen, once it can be taken.
fn look(folder: &Path) -> Option<RgbImage> {
    let shots = tempfile::tempdir().expect("a folder");
    let mut taken = on(folder, Command::new("weston-screenshooter"));
    taken.current_dir(shots.path()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    let file = std::fs::read_dir(shots.path()).ok()?.next()?.ok()?;
    Some(image::open(file.path()).ok()?.to_rgb8())
}

fn opens(scale: u32, least: usize) {
    for _ in 0..3 {
        if is_painted(scale, least) {
            return;
        }
        eprintln!("Weston has ended by itself, and the window with it: once more");
    }
    eprintln!("SKIPPED the window under Wayland, {scale}x: Weston without a screen ended by itself, three times");
}

/// Opens a window and waits until it is painted; false when the compositor has ended.
fn is_painted(scale: u32, least: usize) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(mut server) = compositor(folder.path(), scale) else { return true };
    let path = folder.path().join("train.mscope");
    profile(&path);
    let mut command = on(folder.path(), Command::new(env!("CARGO_BIN_EXE_memscope-gui")));
    command.arg(&path).env("LIBGL_ALWAYS_SOFTWARE", "1").env("XDG_DATA_HOME", folder.path().join("data"));
    let mut window = Running(command.spawn().expect("memscope-gui starts"));
    let mut is_there = true;
    until("the chart is painted", || {
        if window.0.try_wait().expect("a status").is_some() {
            std::thread::sleep(Duration::from_millis(500));
            is_there = server.0.try_wait().expect("a status").is_none();
            assert!(!is_there, "the window has ended, and Weston has not");
            return true;
        }
        look(folder.path()).is_some_and(|picture| count(&picture, ACTIVATIONS) > least)
    });
    is_there
}

#[test]
fn a_window_opens_under_wayland() {
    opens(1, 5_000);
}

#[test]
fn a_fine_screen_gets_as_many_pixels() {
    opens(2, 20_000);
}
