//! The characters that are drawn with: Unicode, or ASCII alone.
//!
//! Owns: both sets, and how a terminal's locale chooses between them. Refuses: colours.

/// A set of characters.
#[derive(PartialEq, Eq, Debug)]
pub struct Glyphs {
    /// True when nothing but ASCII may be drawn; names of the program are then spelled with `?` for all else.
    pub ascii: bool,
    /// Nothing to everything of a cell in eighths, from the bottom.
    pub rising: [&'static str; 9],
    /// Nothing to everything of a cell in eighths, from the left.
    pub growing: [&'static str; 9],
    /// What the categories are filled with where colour cannot tell them apart, by number.
    pub patterns: [&'static str; 7],
    /// What reserved memory that is not live is filled with.
    pub idle: &'static str,
    /// What is filled with memory beside the program's allocations, by the number of [`crate::palette::Foreign`], where colour
    /// cannot tell.
    pub foreign: [&'static str; 4],
    /// A rule.
    pub rule: &'static str,
    /// A vertical line: the time cursor.
    pub upright: &'static str,
    /// A line to which memory can grow.
    pub limit: &'static str,
    /// Below a peak.
    pub peak: &'static str,
    /// The beginning of a step.
    pub step: &'static str,
    /// A refused allocation.
    pub refusal: &'static str,
    /// Below a time whose lists are whole, one of which a part has whole lists, and one that is only summed.
    pub listed: &'static str,
    /// See `listed`.
    pub partly_listed: &'static str,
    /// See `listed`.
    pub summed: &'static str,
    /// In front of what can be unfolded, and of what can be folded.
    pub folded: &'static str,
    /// See `folded`.
    pub unfolded: &'static str,
    /// Left out in the middle of a text.
    pub gap: &'static str,
    /// Sorted with the largest first, and with the smallest first.
    pub descending: &'static str,
    /// See `descending`.
    pub ascending: &'static str,
    /// Where the shown part of a list lies.
    pub thumb: &'static str,
    /// Between two facts of a line.
    pub dot: &'static str,
    /// Degrees.
    pub degree: &'static str,
    /// Received and sent.
    pub received: &'static str,
    /// See `received`.
    pub sent: &'static str,
    /// In front of the selected thing, where there is no colour to say so.
    pub mark: &'static str,
}

/// Block elements, arrows and lines.
pub static UNICODE: Glyphs = Glyphs {
    ascii: false,
    rising: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    growing: [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    patterns: ["·", "█", "▞", "▒", "▓", "▚", "░"],
    idle: "∙",
    foreign: ["≈", "×", "≡", "÷"],
    rule: "─",
    upright: "│",
    limit: "╌",
    peak: "▲",
    step: "╵",
    refusal: "✖",
    listed: "━",
    partly_listed: "╍",
    summed: "┄",
    folded: "▸",
    unfolded: "▾",
    gap: "…",
    descending: "▼",
    ascending: "▲",
    thumb: "▐",
    dot: "·",
    degree: "°C",
    received: "↓",
    sent: "↑",
    mark: "▸",
};

/// What every terminal has.
pub static ASCII: Glyphs = Glyphs {
    ascii: true,
    rising: [" ", " ", " ", " ", "#", "#", "#", "#", "#"],
    growing: [" ", " ", " ", " ", "#", "#", "#", "#", "#"],
    patterns: ["?", "W", "G", "A", "O", "I", "T"],
    idle: ".",
    foreign: ["u", "x", "f", "n"],
    rule: "-",
    upright: "|",
    limit: "-",
    peak: "^",
    step: "'",
    refusal: "X",
    listed: "=",
    partly_listed: "-",
    summed: ".",
    folded: "+",
    unfolded: "-",
    gap: "~",
    descending: "v",
    ascending: "^",
    thumb: "#",
    dot: "-",
    degree: " C",
    received: "rx ",
    sent: "tx ",
    mark: ">",
};

impl Glyphs {
    /// The set for a terminal: ASCII when it is asked for, or when the locale's character set is not UTF-8. `variable` reads
    /// the environment.
    pub fn choose(ascii: bool, variable: impl Fn(&str) -> Option<String>) -> &'static Glyphs {
        // The first of these that is set and not empty decides, as in setlocale(3).
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| variable(name).filter(|value| !value.is_empty()))
            .unwrap_or_default();
        let charset = locale.split_once('.').map_or("", |(_, charset)| charset);
        let charset = charset.split('@').next().unwrap_or_default().to_ascii_lowercase();
        if ascii || !matches!(charset.as_str(), "utf-8" | "utf8") { &ASCII } else { &UNICODE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_unless_ascii_is_asked_for() {
        let chosen = |ascii: bool, variables: &[(&str, &str)]| {
            let found =
                |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Glyphs::choose(ascii, found).ascii
        };
        assert!(!chosen(false, &[("LANG", "en_GB.UTF-8")]));
        assert!(!chosen(false, &[("LANG", "C"), ("LC_ALL", "C.utf8")]));
        assert!(!chosen(false, &[("LC_ALL", ""), ("LC_CTYPE", "de_DE.UTF-8@euro")]));
        assert!(chosen(true, &[("LANG", "en_GB.UTF-8")]));
        assert!(chosen(false, &[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")]));
        assert!(chosen(false, &[("LANG", "de_DE.ISO-8859-1")]));
        assert!(chosen(false, &[]));
    }

    #[test]
    fn ascii_is_ascii() {
        assert!(format!("{ASCII:?}").is_ascii());
        for set in [&UNICODE, &ASCII] {
            let different: std::collections::HashSet<_> = set.patterns.iter().collect();
            assert_eq!(different.len(), set.patterns.len(), "patterns tell categories apart");
        }
    }
}
