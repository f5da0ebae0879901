//! A real window: the program itself under Xvfb, with Mesa's software renderer; opened, acted on, looked at.
//!
//! Owns: what no test of the library can see: that a window comes up and is painted, that keys reach it, that files are written and
//! state is kept. Refuses: details of what is drawn; `tests/window` has them. Where Xvfb, xdotool or ImageMagick's `import` is
//! missing it says so and does nothing.

#[path = "../../../tui/tests/dashboard/sessions.rs"]
#[allow(dead_code, reason = "the dashboard's tests use all of them")]
mod sessions;
#[path = "../../../tui/tests/dashboard/trace.rs"]
#[allow(dead_code, reason = "as above")]
mod trace;
mod wayland;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use image::RgbImage;

/// Longest wait for anything; the machine may be busy.
const LONG: Duration = Duration::from_secs(60);
/// core's colours of activations and of the light ground.
const ACTIVATIONS: [u8; 3] = [0x57, 0xc2, 0x6d];
const LIGHT: [u8; 3] = [0xfa; 3];

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An X server without a screen, and its display.
fn server() -> Option<(Running, String)> {
    for (tool, version) in [("Xvfb", "-help"), ("xdotool", "version"), ("import", "-version")] {
        if Command::new(tool).arg(version).output().is_err() {
            eprintln!("SKIPPED the real window: {tool} is missing (Debian: xvfb xdotool imagemagick libgl1-mesa-dri)");
            return None;
        }
    }
    let mut server = Command::new("Xvfb")
        // Without -noreset it begins anew when the last window is closed, and a window that opens just then finds no display.
        .args(["-displayfd", "1", "-screen", "0", "1300x840x24", "-nolisten", "tcp", "-noreset"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("Xvfb starts");
    let mut display = String::new();
    BufReader::new(server.stdout.take().expect("its output")).read_line(&mut display).expect("a display");
    Some((Running(server), format!(":{}", display.trim())))
}

fn gui(folder: &Path, display: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memscope-gui"));
    command.env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET");
    command.env("DISPLAY", display).env("LIBGL_ALWAYS_SOFTWARE", "1").env("XDG_DATA_HOME", folder.join("data"));
    command
}

fn tell(display: &str, arguments: &[&str]) -> String {
    let output = Command::new("xdotool").args(arguments).env("DISPLAY", display).output().expect("xdotool");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What is on the screen.
fn look(display: &str) -> RgbImage {
    let output = Command::new("import").args(["-window", "root", "png:-"]).env("DISPLAY", display).output();
    let output = output.expect("import");
    image::load_from_memory(&output.stdout).expect("a picture").to_rgb8()
}

/// How many pixels have just this colour.
fn count(picture: &RgbImage, colour: [u8; 3]) -> usize {
    picture.pixels().filter(|pixel| pixel.0 == colour).count()
}

/// Looks until it is as wanted.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn profile(path: &Path) {
    let mut model = memscope_core::allocation::Model::new();
    for entry in &sessions::out_of_memory().entries {
        model.apply(entry);
    }
    memscope_core::profile::write(&model, path, false).expect("written");
}

#[test]
fn a_window_opens_is_acted_on_and_keeps_its_state() {
    let Some((_server, display)) = server() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    profile(&path);
    let mut window = Running(gui(folder.path(), &display).arg(&path).spawn().expect("memscope-gui starts"));
    until("the chart is painted", || count(&look(&display), ACTIVATIONS) > 5_000);
    let id = tell(&display, &["search", "--name", "train.mscope"]);
    tell(&display, &["windowfocus", "--sync", id.lines().next().expect("a window")]);

    // The system has no wish, which is dark; then light, dark.
    // A key again only when the one before is lost, else a slow machine gets both.
    until("the window is light", || {
        tell(&display, &["key", "t"]);
        let begin = Instant::now();
        let is_light = || count(&look(&display), LIGHT) > 100_000;
        std::iter::repeat_with(is_light).any(|light| light || begin.elapsed() > Duration::from_secs(5))
            && count(&look(&display), LIGHT) > 100_000
    });

    // A picture of the view lies beside the profile.
    tell(&display, &["key", "ctrl+e"]);
    std::thread::sleep(Duration::from_millis(700));
    let svg = folder.path().join("train.timeline.svg");
    until("the picture is written", || {
        tell(&display, &["key", "Return"]);
        svg.exists()
    });
    let svg = std::fs::read_to_string(svg).expect("it is there");
    assert!(svg.starts_with("<svg") && svg.contains("Out of memory: 6.00 GiB asked for"), "{svg}");

    tell(&display, &["windowsize", "--sync", id.lines().next().expect("a window"), "1000", "700"]);
    end(&display, &mut window);
    let kept = std::fs::read_to_string(folder.path().join("data/memscope-gui/app.ron")).expect("its state");
    assert!(kept.contains("train.mscope") && kept.contains("Light"), "{kept}");

    // Without a name: the same tab, colours and size.
    let mut window = Running(gui(folder.path(), &display).spawn().expect("memscope-gui starts again"));
    let mut id = String::new();
    until("the tab is back", || {
        id = tell(&display, &["search", "--name", "train.mscope"]);
        !id.is_empty() && count(&look(&display), LIGHT) > 100_000
    });
    let id = id.lines().next().expect("a window");
    assert!(tell(&display, &["getwindowgeometry", id]).contains("1000x700"));
    tell(&display, &["windowfocus", "--sync", id]);
    end(&display, &mut window);
}

/// Closes a window by its key, and waits for it.
fn end(display: &str, window: &mut Running) {
    tell(display, &["key", "ctrl+q"]);
    let begin = Instant::now();
    let status = loop {
        match window.0.try_wait().expect("a status") {
            Some(status) => break status,
            None => assert!(begin.elapsed() < LONG, "it does not end"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success(), "{status}");
}

#[test]
fn without_a_display_it_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = gui(folder.path(), "").env_remove("DISPLAY").output().expect("memscope-gui starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no window can be opened") && said.contains("memscope view"), "{said}");
}

#[test]
fn help_version_and_wrong_options() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |option: &str| gui(folder.path(), "").arg(option).output().expect("memscope-gui starts");
    assert_eq!(run("--version").stdout, format!("memscope-gui {}\n", env!("CARGO_PKG_VERSION")).into_bytes());
    assert!(String::from_utf8_lossy(&run("--help").stdout).starts_with("usage: memscope-gui"));
    let wrong = run("--fullscreen");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("there is no option --fullscreen"));
}
