//! Snapshots of fixed states: gui/tests/snapshots/. `UPDATE_SNAPSHOTS=1 cargo test -p memscope-gui` writes them anew; then look at
//! each of them.

use eframe::egui::Key;

use crate::sessions::{eight_gpus, leaking, out_of_memory};
use crate::window::{self, press};

#[test]
fn out_of_memory_as_it_opens() {
    window::of(&out_of_memory()).snapshot("out_of_memory");
}

#[test]
fn a_training_in_light() {
    let mut window = window::of(&leaking());
    press(&mut window, Key::T);
    window.snapshot("training_light");
}

#[test]
fn eight_devices_small_and_sharp() {
    let trace = eight_gpus();
    let mut window = window::sized(&[("ranks.mscope", &trace)], [720.0, 480.0], 1.5);
    press(&mut window, Key::C);
    window.snapshot("eight_gpus_colour_blind");
}
