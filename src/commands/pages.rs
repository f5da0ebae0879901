//! `memscope completions` and `memscope man`: made from the definition of the command line, never by hand.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::output::{print, say};

/// Prints the completion script of a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<i32> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "memscope", &mut script);
    print(&String::from_utf8(script).context("the completion script is not UTF-8")?)?;
    Ok(0)
}

/// Prints the main manual page, or writes all of them into `directory`.
pub fn man(directory: Option<PathBuf>) -> Result<i32> {
    let command = Arguments::command();
    match directory {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            print(&String::from_utf8(page).context("the manual page is not UTF-8")?)?;
        }
        Some(directory) => {
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot create the folder {}", directory.display()))?;
            clap_mangen::generate_to(command, &directory)
                .with_context(|| format!("cannot write manual pages into {}", directory.display()))?;
            say(&format!("manual pages written to {}", directory.display()));
        }
    }
    Ok(0)
}
