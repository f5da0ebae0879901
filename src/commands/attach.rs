//! `memscope attach`: the dashboard of a session that another memscope records.

use anyhow::{Result, bail};

use crate::arguments::AttachArguments;

/// Shows the session until the user leaves.
pub fn attach(_arguments: AttachArguments) -> Result<i32> {
    bail!("not built yet")
}
