//! `memscope view`: the dashboard of a finished profile.

use anyhow::{Result, bail};

use crate::arguments::ViewArguments;

/// Shows the profile until the user leaves.
pub fn view(_arguments: ViewArguments) -> Result<i32> {
    bail!("not built yet")
}
