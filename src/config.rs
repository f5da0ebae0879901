//! The configuration file, and what wins over it: flag > environment > file > default.
//!
//! Owns: `$XDG_CONFIG_HOME/memscope/config.toml` (else `~/.config`), its settings, and the variables that stand above it.
//! Refuses: settings that it does not know, so that a misspelt one is not passed over in silence.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use memscope_wire::env as names;
use serde::Deserialize;

use crate::arguments::{Alerts, Colors, Keeping, Palette, RecordArguments, Stacks};

/// A configuration file with every setting, its meaning and its default.
pub const TEMPLATE: &str = include_str!("config.toml");

/// What the file may say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    tui: Option<bool>,
    interval: Option<u64>,
    stacks: Option<Stacks>,
    alert: Option<String>,
    keep: Option<String>,
    palette: Option<Palette>,
    colors: Option<Colors>,
    ascii: Option<bool>,
    mouse: Option<bool>,
    top: TopFile,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TopFile {
    interval: Option<u64>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The file.
    File,
    /// This environment variable.
    Environment(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => formatter.write_str("default"),
            Source::File => formatter.write_str("file"),
            Source::Environment(name) => formatter.write_str(name),
        }
    }
}

/// A value and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Who said so.
    pub source: Source,
}

/// Every setting. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether `run` and `demo` show the dashboard.
    pub tui: Setting<bool>,
    /// Time between two looks at NVML while a program runs.
    pub interval: Setting<u64>,
    /// What is recorded of where in the program an allocation was made.
    pub stacks: Setting<Stacks>,
    /// Of how much use of a device is told at once.
    pub alert: Setting<Alerts>,
    /// How much of a session is kept allocation by allocation.
    pub keep: Setting<Keeping>,
    /// Colours of the categories.
    pub palette: Setting<Palette>,
    /// Colours that the terminal has.
    pub colors: Setting<Colors>,
    /// Only ASCII characters; `None`: as the locale says.
    pub ascii: Setting<Option<bool>>,
    /// Whether the views take the mouse.
    pub mouse: Setting<bool>,
    /// Time between two refreshes of `top`.
    pub top_interval: Setting<u64>,
}

/// Default of [`Config::interval`].
pub const INTERVAL: u64 = 200;

/// Milliseconds that an interval may have: as the flags of `run` and `top`.
const INTERVALS: std::ops::RangeInclusive<u64> = 10..=60_000;

impl Config {
    /// The settings of this machine and environment.
    ///
    /// # Errors
    /// When the file cannot be read or says what it may not, or a variable has an impossible value.
    pub fn load() -> Result<Config> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let text = match path() {
            None => String::new(),
            Some(path) => match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            },
        };
        Config::read(&text, &variable).with_context(|| {
            path().map_or_else(String::new, |path| format!("the configuration in {} is wrong", path.display()))
        })
    }

    fn read(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Config> {
        let file: File = toml::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end()))?;
        for (name, interval) in [("interval", file.interval), ("top.interval", file.top.interval)] {
            if let Some(interval) = interval.filter(|interval| !INTERVALS.contains(interval)) {
                bail!(
                    "{name} = {interval}: it is a time in milliseconds, between {} and {}",
                    INTERVALS.start(),
                    INTERVALS.end()
                );
            }
        }
        let alert = parsed("alert", file.alert)?;
        let keep = parsed("keep", file.keep)?;
        let flag = |name: &'static str| match variable(name).as_deref() {
            None => Ok(None),
            Some("1" | "true" | "yes") => Ok(Some((true, name))),
            Some("0" | "false" | "no") => Ok(Some((false, name))),
            Some(other) => bail!("{name}={other}: write 1 or 0"),
        };
        let stacks = named(variable, names::STACKS, "off, module, python or native")?;
        let palette = named(variable, names::PALETTE, "default, color-blind or mono")?
            .or_else(|| variable("NO_COLOR").map(|_| (Palette::Mono, "NO_COLOR")));
        let ascii = flag(names::ASCII)?.map(|(value, name)| (Some(value), name));
        Ok(Config {
            tui: setting(flag(names::TUI)?, file.tui, false),
            interval: setting(None, file.interval, INTERVAL),
            stacks: setting(stacks, file.stacks, Stacks::Module),
            alert: setting(None, alert, Alerts::default()),
            keep: setting(None, keep, Keeping::default()),
            palette: setting(palette, file.palette, Palette::Default),
            colors: setting(None, file.colors, Colors::Auto),
            ascii: setting(ascii, file.ascii.map(Some), None),
            mouse: setting(None, file.mouse, true),
            top_interval: setting(None, file.top.interval, 1000),
        })
    }

    /// What a run is asked for: flags first, then the settings. A dashboard that only the settings ask for is left away where
    /// it would be in the way: `interactive` says whether input and output are a terminal.
    pub fn complete(&self, record: &mut RecordArguments, interactive: bool) {
        record.tui = (record.tui || (self.tui.value && interactive && !record.quiet)) && !record.no_tui;
        record.interval = record.interval.or(Some(self.interval.value));
        record.stacks = record.stacks.or(Some(self.stacks.value));
        record.alert.get_or_insert_with(|| self.alert.value.clone());
        record.keep = record.keep.or(Some(self.keep.value));
    }

    /// Every setting as a line of the file, with its source behind it.
    pub fn lines(&self) -> Vec<String> {
        fn line<T: Clone>(name: &str, setting: &Setting<T>, text: impl Fn(T) -> String) -> String {
            format!("{:<26} # {}", format!("{name} = {}", text(setting.value.clone())), setting.source)
        }
        vec![
            line("tui", &self.tui, |value| value.to_string()),
            line("interval", &self.interval, |value| value.to_string()),
            line("stacks", &self.stacks, word),
            line("alert", &self.alert, |value| format!("\"{value}\"")),
            line("keep", &self.keep, |value| format!("\"{value}\"")),
            line("palette", &self.palette, word),
            line("colors", &self.colors, word),
            match self.ascii.value {
                Some(_) => line("ascii", &self.ascii, |value| value.unwrap_or_default().to_string()),
                None => format!("{:<26} # {}: as the locale says", "#ascii =", self.ascii.source),
            },
            line("mouse", &self.mouse, |value| value.to_string()),
            line("top.interval", &self.top_interval, |value| value.to_string()),
        ]
    }
}

/// The path of the file, whether it exists or not; `None` without a home.
pub fn path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(base.join("memscope/config.toml"))
}

/// The variable's value, else the file's, else the default.
fn setting<T>(variable: Option<(T, &'static str)>, file: Option<T>, default: T) -> Setting<T> {
    match (variable, file) {
        (Some((value, name)), _) => Setting { value, source: Source::Environment(name) },
        (None, Some(value)) => Setting { value, source: Source::File },
        (None, None) => Setting { value: default, source: Source::Default },
    }
}

/// What the file says in the words of a flag.
fn parsed<T: FromStr<Err = String>>(name: &str, text: Option<String>) -> Result<Option<T>> {
    text.map(|text| text.parse().map_err(|why| anyhow::anyhow!("{name} = \"{text}\": {why}"))).transpose()
}

/// What a variable names of a few values; with its own name, as the source.
fn named<T: ValueEnum>(
    variable: &dyn Fn(&str) -> Option<String>,
    name: &'static str,
    choice: &str,
) -> Result<Option<(T, &'static str)>> {
    let Some(text) = variable(name) else { return Ok(None) };
    let value = T::from_str(&text, true).map_err(|_| anyhow::anyhow!("{name}={text}: write {choice}"))?;
    Ok(Some((value, name)))
}

/// A value as the file spells it.
fn word<T: ValueEnum>(value: T) -> String {
    value.to_possible_value().map_or_else(String::new, |value| format!("\"{}\"", value.get_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config> {
        let variable = |name: &str| variables.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned());
        Config::read(text, &variable)
    }

    #[test]
    fn an_environment_variable_wins_over_the_file_and_the_file_over_the_default() {
        let text = "tui = true\npalette = \"color-blind\"\ncolors = \"256\"\n[top]\ninterval = 500\n";
        let config = read(text, &[(names::TUI, "0"), ("NO_COLOR", "1")]).expect("a good file");
        assert_eq!(config.tui, Setting { value: false, source: Source::Environment(names::TUI) });
        assert_eq!(config.palette, Setting { value: Palette::Mono, source: Source::Environment("NO_COLOR") });
        assert_eq!(config.colors, Setting { value: Colors::Indexed, source: Source::File });
        assert_eq!(config.top_interval, Setting { value: 500, source: Source::File });
        assert_eq!(config.interval, Setting { value: 200, source: Source::Default });
    }

    #[test]
    fn a_flag_wins_over_everything() {
        let config = read("tui = true\npalette = \"mono\"\n", &[]).expect("a good file");
        let mut record = RecordArguments { no_tui: true, interval: Some(50), ..RecordArguments::default() };
        config.complete(&mut record, true);
        assert_eq!((record.tui, record.interval), (false, Some(50)));
        let config = read("alert = \"90%,20GiB\"\n", &[]).expect("a good file");
        for (flag, alerts) in [(None, "90%,21474836480"), (Some("80%"), "80%"), (Some("off"), "off")] {
            let alert = flag.map(|flag| flag.parse().expect("a good flag"));
            let mut record = RecordArguments { alert, ..RecordArguments::default() };
            config.complete(&mut record, true);
            assert_eq!(record.alert.map(|alerts| alerts.to_string()).as_deref(), Some(alerts), "{flag:?}");
        }
        let config = read("keep = \"last:10m\"\n", &[]).expect("a good file");
        for (flag, kept) in [(None, "last:10m"), (Some("peaks"), "peaks"), (Some("all"), "all")] {
            let keep = flag.map(|flag| flag.parse().expect("a good flag"));
            let mut record = RecordArguments { keep, ..RecordArguments::default() };
            config.complete(&mut record, true);
            assert_eq!(record.keep.map(|keep| keep.to_string()).as_deref(), Some(kept), "{flag:?}");
        }
    }

    #[test]
    fn a_setting_shows_no_dashboard_where_there_is_no_terminal() {
        let config = read("tui = true\n", &[]).expect("a good file");
        for (interactive, shown) in [(true, true), (false, false)] {
            let mut record = RecordArguments::default();
            config.complete(&mut record, interactive);
            assert_eq!((record.tui, record.interval), (shown, Some(200)));
        }
    }

    #[test]
    fn the_template_says_the_defaults() {
        let nothing = read("", &[]).expect("no file is a good file");
        assert_eq!(read(TEMPLATE, &[]).expect("the template is a good file"), nothing);
        let uncommented: String = TEMPLATE
            .lines()
            .map(|line| {
                let setting = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line);
                format!("{setting}\n")
            })
            .collect();
        let spelled = read(&uncommented, &[]).expect("with every setting it is a good file");
        // The one without a default: it follows the locale.
        assert_eq!(spelled.ascii, Setting { value: Some(true), source: Source::File });
        for (line, default) in spelled.lines().iter().zip(nothing.lines()) {
            let value = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
            assert!(value(line) == value(&default) || line.starts_with("ascii"), "{line} is not {default}");
            assert!(line.ends_with("# file"), "the template lacks a setting: {line}");
        }
    }

    #[test]
    fn what_is_printed_can_be_a_file() {
        let text =
            "alert = \"92.5%\"\nkeep = \"steps:5..\"\npalette = \"color-blind\"\nmouse = false\n[top]\ninterval = 99\n";
        let config = read(text, &[]).expect("a good file");
        let again = read(&config.lines().join("\n"), &[]).expect("what was printed is a good file");
        let values = |config: &Config| {
            let Config { alert, keep, palette, mouse, top_interval, .. } = config;
            (alert.clone(), *keep, palette.value, mouse.value, top_interval.value)
        };
        assert_eq!(values(&again), values(&config));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, variables, part) in [
            ("tui = maybe", vec![], "line 1"),
            ("\ncolour = \"blue\"", vec![], "colour"),
            ("palette = \"pink\"", vec![], "color-blind"),
            ("interval = 1", vec![], "interval = 1"),
            ("alert = \"90%,full\"", vec![], "`full` is neither a share"),
            ("keep = \"last\"", vec![], "keep = \"last\": `last` says nothing"),
            ("[top]\ninterval = 100000", vec![], "top.interval"),
            ("", vec![(names::TUI, "perhaps")], "MEMSCOPE_TUI=perhaps"),
            ("", vec![(names::PALETTE, "pink")], "MEMSCOPE_PALETTE=pink"),
        ] {
            let error = read(text, &variables).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
