//! memscope-gui: opens profiles and running sessions in a window.
//!
//! Owns: the command line and the window's beginning. Refuses: everything else; it is in the library, where tests reach it.

use std::path::PathBuf;
use std::process::ExitCode;

use eframe::egui::{IconData, ViewportBuilder};
use memscope_gui::app::App;

const USAGE: &str = "usage: memscope-gui [FILE|SESSION]...
       memscope-gui --diff BEFORE AFTER

Opens profiles (.mscope), session folders, or sessions by id or process id, each as a tab. --diff shows what the second holds less
what the first holds. The tabs of the last time stay.
`memscope gui` starts this program.";

fn main() -> ExitCode {
    let mut arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let compares = arguments.first().is_some_and(|argument| argument.as_os_str() == "--diff");
    if compares {
        arguments.remove(0);
        if arguments.len() != 2 {
            eprintln!("memscope-gui: --diff needs two files\n\n{USAGE}");
            return ExitCode::from(2);
        }
    }
    match arguments.first().and_then(|argument| argument.to_str()) {
        Some("-h" | "--help") => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some("-V" | "--version") => {
            println!("memscope-gui {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(option) if option.starts_with("--") => {
            eprintln!("memscope-gui: there is no option {option}\n\n{USAGE}");
            return ExitCode::from(2);
        }
        _ => {}
    }
    let viewport = ViewportBuilder::default()
        .with_title("memscope")
        .with_app_id("memscope-gui")
        .with_inner_size([1280.0, 820.0])
        .with_min_inner_size([480.0, 320.0])
        .with_drag_and_drop(true)
        .with_icon(IconData::default());
    let options = eframe::NativeOptions { viewport, ..Default::default() };
    let create = move |creation: &eframe::CreationContext<'_>| {
        let mut app = App::restore(creation);
        app.begin(&arguments, compares, &creation.egui_ctx);
        if compares {
            app.show_view("Diff");
        }
        Ok(Box::new(app) as Box<dyn eframe::App>)
    };
    match eframe::run_native("memscope-gui", options, Box::new(create)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "memscope-gui: no window can be opened: {error}\n\
                 A window needs a display (DISPLAY or WAYLAND_DISPLAY) and OpenGL 2 or later, also in software (Mesa). \
                 Without one, `memscope view` shows the same in a terminal."
            );
            ExitCode::FAILURE
        }
    }
}
