//! Which allocations a list shows.
//!
//! Owns: the spelling of terms, and the test of one allocation. Refuses: order and windows.
//!
//! A filter is a list of terms, separated by blanks, that must all hold:
//!
//! | term | lets through |
//! | --- | --- |
//! | `attn` | what has it in its name, function, scope, category or origin, in upper or lower case |
//! | `>4MiB`, `<1GiB` | what is larger, or smaller; units are B, KiB, MiB, GiB, TiB, their first letters, and kB, MB, GB, TB |
//! | `step:12` | what was made in step 12 |
//! | `category:weights` | that category; the beginning of its name is enough |
//! | `scope:h.3` | what has it in the path of its scope |
//! | `line:net.py:12` | what has it in the line of the program that made it |
//! | `name:bias` | what has it in its name, or, without one, in its function |
//! | `stream:0x7f00` | what was made on that stream; `stream:default` is stream 0 |
//! | `gpu:1` | what lies on that GPU, by the number that the list shows |
//! | `pid:4711` | what that process holds |
//! | `scope=model/h.1` | what has exactly this path as its scope, letter for letter; `scope=""` is outside all scopes |
//! | `inside=model/h.1` | what has this path as its scope, or a scope inside that; `*` stands for a number: `inside=model/h.*` |
//! | `name=bias` | what has exactly this name, or, without a name, this function |
//! | `line="a/net.py:12 in f"` | what was made at exactly this line of the program; `line=""` is none that is known |
//! | `category=weights` | exactly that category |
//!
//! Behind `=`, a text with blanks stands in quotes: `scope="my model/h.1"`; within them `\"` is a quote and `\\` a backslash.
//! Another word before a single colon is an error; in `ns::function` the colons are part of the word.

use std::collections::HashMap;

use memscope_wire::{Category, Origin};

use crate::allocation::{Allocation, Model, Sites};
use crate::report::lies_in;

use super::answer::{GroupRow, STACKED};
use super::part::Positions;
use super::query::Grouping;

/// The terms, each as an example, and what it lets through: what a view tells of filters.
pub const TERMS: &[(&str, &str)] = &[
    ("attn", "has it in its name, function, scope, category or origin"),
    (">4MiB", "is larger"),
    ("<1GiB", "is smaller"),
    ("category:weights", "is of that category; the beginning of its name is enough"),
    ("scope:h.3", "has it in the path of its scope"),
    ("name:bias", "has it in its name, or, without one, in its function"),
    ("line:net.py:12", "has it in the line of the program that made it"),
    ("step:12", "was made in step 12"),
    ("stream:0x7f00", "was made on that stream; stream:default is stream 0"),
    ("gpu:1", "lies on that GPU, by the number that the list shows"),
    ("pid:4711", "belongs to that process"),
    ("inside=model/h.1", "was made in that scope or inside it; * stands for a number"),
    ("scope=model/h.1", "was made in exactly that scope; scope=\"\" is outside all scopes"),
    ("name=bias", "has exactly this name, or, without one, this function"),
    ("line=\"a/net.py:12 in f\"", "was made at exactly this line; line=\"\" is none that is known"),
    ("category=weights", "is exactly of that category"),
];

/// One term.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Term {
    Text(String),
    Above(u64),
    Below(u64),
    Step(u64),
    Category(String),
    Scope(String),
    Name(String),
    Line(String),
    Stream(u64),
    Gpu(u64),
    Pid(u32),
    /// Exactly this text, in this column.
    Exact(Whole, String),
}

/// What an exact term looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whole {
    Scope,
    /// Or inside it.
    Inside,
    Name,
    Line,
    Category,
}

/// Terms that were read, without knowledge of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    terms: Vec<Term>,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// A sentence that names the term that cannot be read.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let (mut terms, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() {
            let (term, behind) = match exact(rest) {
                Some(exact) => exact?,
                None => {
                    let (word, behind) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                    (term(word)?, behind)
                }
            };
            terms.push(term);
            rest = behind.trim_start();
        }
        Ok(Filter { terms })
    }

    /// Reads a filter; one that cannot be read lets everything through, and is told with the sentence that says why.
    pub(super) fn or_all(text: &str) -> (Filter, Option<String>) {
        match Filter::parse(text) {
            Ok(filter) => (filter, None),
            Err(error) => (Filter::default(), Some(error)),
        }
    }

    /// True when it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Makes the filter fast for a model: texts are looked through once.
    pub(super) fn prepare<'m>(&self, model: &'m Model) -> Prepared<'m> {
        let words = Words::of(model, self.terms.iter().any(Term::reads_text));
        let tests = self.terms.iter().map(|term| term.test(model, &words)).collect();
        Prepared { model, positions: Positions::of(model), tests }
    }
}

/// The terms that let through what a group holds; `None` for what no term can say.
pub fn group_term(grouping: Grouping, group: &GroupRow) -> Option<String> {
    match grouping {
        Grouping::Name => {
            let name = exact_term("name", group.name.as_ref()?);
            let category = STACKED.into_iter().find(|category| group.live[*category as usize] > 0)?;
            Some(format!("{name} {}", exact_term("category", category.name())))
        }
        Grouping::Category => Some(exact_term("category", &group.label)),
        Grouping::Scope => Some(exact_term("scope", &group.label)),
        Grouping::Line => Some(exact_term("line", &group.label)),
        Grouping::Size => {
            let size = group.live.iter().sum::<u64>().checked_div(group.allocations)?;
            Some(format!(">{}B <{}B", size.checked_sub(1)?, size.checked_add(1)?))
        }
    }
}

/// A filter that lets through only that for which these terms hold, too.
pub fn and_terms(filter: &str, terms: &str) -> String {
    // What the same terms have let through needs no more of them.
    if format!(" {filter} ").contains(&format!(" {terms} ")) {
        return filter.to_owned();
    }
    format!("{} {terms}", filter.trim()).trim_start().to_owned()
}

/// The term that lets through what has exactly this text in a column: `scope`, `inside`, `name`, `line` or `category`.
pub fn exact_term(column: &str, text: &str) -> String {
    format!("{column}={}", quoted(text))
}

/// A text as it stands behind `=`.
fn quoted(text: &str) -> String {
    if !text.is_empty() && !text.starts_with('"') && !text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An exact term at the beginning of a text, and what is behind it; `None` when another term stands there.
fn exact(text: &str) -> Option<Result<(Term, &str), String>> {
    let (column, value) = text.split_once('=')?;
    let whole = match column {
        "scope" => Whole::Scope,
        "inside" => Whole::Inside,
        "name" => Whole::Name,
        "line" => Whole::Line,
        "category" => Whole::Category,
        _ => return None,
    };
    let (value, behind) = match value.strip_prefix('"') {
        Some(quoted) => match unquoted(quoted) {
            Some(both) => both,
            None => return Some(Err(format!("`{text}` needs a quote at its end"))),
        },
        None => {
            let (word, behind) = value.split_at(value.find(char::is_whitespace).unwrap_or(value.len()));
            (word.to_owned(), behind)
        }
    };
    if whole == Whole::Category && !Category::ALL.iter().any(|category| category.name() == value) {
        return Some(Err(format!("`category={value}`: there is no such category; there are {}", categories())));
    }
    Some(Ok((Term::Exact(whole, value), behind)))
}

/// A text up to its closing quote, and what is behind that.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut escaped) = (String::new(), false);
    for (at, char) in text.char_indices() {
        match char {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            '"' if !escaped => return Some((value, &text[at + 1..])),
            char => value.push(char),
        }
        escaped = false;
    }
    None
}

fn categories() -> String {
    Category::ALL.map(Category::name).join(", ")
}

fn term(text: &str) -> Result<Term, String> {
    if let Some(size) = text.strip_prefix('>') {
        return Ok(Term::Above(bytes(size).ok_or_else(|| no_size(text))?));
    }
    if let Some(size) = text.strip_prefix('<') {
        return Ok(Term::Below(bytes(size).ok_or_else(|| no_size(text))?));
    }
    let number = |value: &str| parse_number(value).ok_or_else(|| format!("`{text}` needs a number, as in `step:12`"));
    let lower = |value: &str| value.to_lowercase();
    Ok(match text.split_once(':') {
        Some(("step", value)) => Term::Step(number(value)?),
        Some(("stream", "default")) => Term::Stream(0),
        Some(("stream", value)) => Term::Stream(number(value)?),
        Some(("gpu", value)) => Term::Gpu(number(value)?),
        Some(("pid", value)) => {
            Term::Pid(u32::try_from(number(value)?).map_err(|_| format!("`{text}` is no process id"))?)
        }
        Some(("category", value)) => {
            let value = lower(value);
            if !Category::ALL.iter().any(|category| category.name().starts_with(&value)) {
                return Err(format!("`{text}`: no category begins like this; there are {}", categories()));
            }
            Term::Category(value)
        }
        Some(("scope", value)) => Term::Scope(lower(value)),
        Some(("name", value)) => Term::Name(lower(value)),
        Some(("line", value)) => Term::Line(lower(value)),
        Some((column, value)) if is_word(column) && !value.starts_with(':') => {
            return Err(format!(
                "`{text}`: there is no `{column}:`; there are step, stream, gpu, pid, category, scope, line and name, and \
                 `name:{text}` looks for this text"
            ));
        }
        _ => Term::Text(lower(text)),
    })
}

/// True for what could be meant as the name of a column.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_ascii_alphabetic() || char == '_')
}

fn no_size(text: &str) -> String {
    format!("`{text}` needs a size, as in `>4MiB`")
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A size with a unit.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1u64,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit),
        // Fractions are for people: a rounded number of bytes is what they mean.
        Err(_) => number.parse::<f64>().ok().map(|number| (number * unit as f64).round() as u64),
    }
}

/// Texts of a model in lower case, by number.
struct Words {
    names: Vec<String>,
    scopes: Vec<String>,
}

impl Words {
    fn of(model: &Model, wanted: bool) -> Words {
        if !wanted {
            return Words { names: Vec::new(), scopes: Vec::new() };
        }
        let names = (0..model.names.len() as u32).map(|name| model.names.text(name).to_lowercase());
        let scopes = (0..model.scopes.len() as u32).map(|scope| model.scopes.path(scope, &model.names).to_lowercase());
        Words { names: names.collect(), scopes: scopes.collect() }
    }
}

/// A term as look-ups.
enum Test {
    Text {
        names: Vec<bool>,
        scopes: Vec<bool>,
        categories: [bool; Category::ALL.len()],
        origins: [bool; 4],
    },
    Above(u64),
    Below(u64),
    Step(u64),
    Category([bool; Category::ALL.len()]),
    Scope(Vec<bool>),
    Name(Vec<bool>),
    /// By node of the tree of stacks.
    Line(Vec<bool>),
    Stream(u64),
    Gpu(u64),
    Pid(u32),
}

/// By node of the tree of stacks: whether its site's text is one that is looked for.
fn sites(model: &Model, wanted: impl Fn(&str) -> bool) -> Vec<bool> {
    let sites = Sites::of(&model.stacks, &model.names);
    let mut known = HashMap::new();
    let mut test = |node: u32| {
        let site = sites.site(node);
        *known.entry(site).or_insert_with(|| wanted(&model.stacks.text(site, &model.names)))
    };
    (0..model.stacks.len() as u32).map(&mut test).collect()
}

impl Term {
    fn reads_text(&self) -> bool {
        matches!(self, Term::Text(_) | Term::Scope(_) | Term::Name(_))
    }

    fn test(&self, model: &Model, words: &Words) -> Test {
        let within = |texts: &[String], part: &String| texts.iter().map(|text| text.contains(part)).collect();
        match self {
            Term::Text(part) => Test::Text {
                names: within(&words.names, part),
                scopes: within(&words.scopes, part),
                categories: Category::ALL.map(|category| category.name().contains(part)),
                origins: [0, 1, 2, 3].map(|origin| Origin::from_number(origin).name().contains(part)),
            },
            Term::Above(bytes) => Test::Above(*bytes),
            Term::Below(bytes) => Test::Below(*bytes),
            Term::Step(number) => Test::Step(*number),
            Term::Category(begin) => Test::Category(Category::ALL.map(|category| category.name().starts_with(begin))),
            Term::Scope(part) => Test::Scope(within(&words.scopes, part)),
            Term::Name(part) => Test::Name(within(&words.names, part)),
            Term::Line(part) => Test::Line(sites(model, |text| text.to_lowercase().contains(part))),
            Term::Exact(Whole::Line, line) => Test::Line(sites(model, |text| text == line)),
            Term::Stream(stream) => Test::Stream(*stream),
            Term::Gpu(number) => Test::Gpu(*number),
            Term::Pid(pid) => Test::Pid(*pid),
            Term::Exact(Whole::Scope, path) => {
                let scopes = 0..model.scopes.len() as u32;
                Test::Scope(scopes.map(|scope| model.scopes.path(scope, &model.names) == *path).collect())
            }
            Term::Exact(Whole::Inside, path) => {
                let scopes = 0..model.scopes.len() as u32;
                Test::Scope(scopes.map(|scope| lies_in(&model.scopes.path(scope, &model.names), path)).collect())
            }
            Term::Exact(Whole::Name, text) => {
                Test::Name((0..model.names.len() as u32).map(|name| model.names.text(name) == *text).collect())
            }
            Term::Exact(Whole::Category, name) => Test::Category(Category::ALL.map(|category| category.name() == name)),
        }
    }
}

/// A filter that knows a model.
pub(super) struct Prepared<'m> {
    model: &'m Model,
    positions: Positions,
    tests: Vec<Test>,
}

impl Prepared<'_> {
    /// True when all terms hold.
    pub fn lets(&self, allocation: &Allocation) -> bool {
        self.tests.iter().all(|test| self.holds(test, allocation))
    }

    fn holds(&self, test: &Test, allocation: &Allocation) -> bool {
        let at = |found: &[bool], number: u32| found.get(number as usize).copied().unwrap_or(false);
        match test {
            Test::Text { names, scopes, categories, origins } => {
                at(names, allocation.name)
                    || at(names, allocation.function)
                    || at(scopes, allocation.scope)
                    || categories[allocation.category as usize]
                    || origins[allocation.origin as usize]
            }
            Test::Above(bytes) => allocation.requested > *bytes,
            Test::Below(bytes) => allocation.requested < *bytes,
            Test::Step(number) => step_of(self.model, allocation) == Some(*number),
            Test::Category(found) => found[allocation.category as usize],
            Test::Scope(found) => at(found, allocation.scope),
            Test::Name(found) => at(found, label(allocation)),
            Test::Line(found) => at(found, allocation.stack),
            Test::Stream(stream) => self.model.streams.value(allocation.stream) == *stream,
            Test::Gpu(number) => self.positions.number(allocation).is_some_and(|shown| u64::from(shown) == *number),
            Test::Pid(pid) => self.model.processes[allocation.process as usize].info.pid == *pid,
        }
    }
}

/// The step in which an allocation was made.
pub(super) fn step_of(model: &Model, allocation: &Allocation) -> Option<u64> {
    allocation.step.checked_sub(1).map(|position| model.steps.value(position))
}

/// What an allocation is called: its name, else its function.
pub(super) fn label(allocation: &Allocation) -> u32 {
    if allocation.name != 0 { allocation.name } else { allocation.function }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::flag;

    fn model() -> Model {
        let mut model = Model::new();
        let names = ["", "h.0.Attn.weight", "cuMemAlloc_v2", "Forward"].map(|name| model.names.number_of(name));
        let forward = model.scopes.child(0, names[3]);
        model.steps.position(70);
        model.steps.position(12);
        model.streams.position(0);
        model.streams.position(0x7f00);
        model.process_by_index.insert(crate::journal::entry::ProcessIndex(0), 0);
        let mut process = crate::allocation::Process::new(crate::journal::entry::ProcessIndex(0));
        process.info.pid = 4711;
        model.processes.push(process);
        let named = Allocation {
            bytes: 4 << 20,
            requested: 4 << 20,
            name: names[1],
            function: names[2],
            scope: forward,
            step: 2,
            stream: 1,
            category: Category::Weights,
            origin: Origin::Tagged,
            ..Allocation::vacant()
        };
        let plain = Allocation { requested: 100, bytes: 512, function: names[2], ..Allocation::vacant() };
        let block = Allocation { requested: 3 << 30, bytes: 3 << 30, flags: flag::BLOCK, ..Allocation::vacant() };
        model.allocations = vec![named, plain, block];
        model
    }

    fn matching(text: &str) -> Vec<usize> {
        let model = model();
        let filter = Filter::parse(text).expect("a filter");
        let prepared = filter.prepare(&model);
        (0..model.allocations.len()).filter(|at| prepared.lets(&model.allocations[*at])).collect()
    }

    #[test]
    fn each_kind_of_term_finds_what_it_names() {
        for (text, expected) in [
            ("", &[0, 1, 2][..]),
            ("  ", &[0, 1, 2]),
            ("attn", &[0]),
            ("CUMEM", &[0, 1]),
            ("forward", &[0]),
            ("weights", &[0]),
            ("unknown", &[1, 2]),
            ("tagged", &[0]),
            ("nothing", &[]),
            (">100", &[0, 2]),
            (">99", &[0, 1, 2]),
            ("<4MiB", &[1]),
            ("<4.5M", &[0, 1]),
            (">1GiB", &[2]),
            (">4MB", &[0, 2]),
            ("step:12", &[0]),
            ("step:70", &[]),
            ("category:w", &[0]),
            ("category:unknown", &[1, 2]),
            ("category:wo", &[]),
            ("scope:for", &[0]),
            ("name:attn", &[0]),
            ("name:cumem", &[1]),
            ("stream:0x7f00", &[0]),
            ("stream:0", &[1, 2]),
            ("stream:default", &[1, 2]),
            ("::vector", &[]),
            ("a.b:c", &[]),
            ("pid:4711", &[0, 1, 2]),
            ("pid:4712", &[]),
            ("std::vector", &[]),
            ("cumem <1KiB", &[1]),
        ] {
            assert_eq!(matching(text), expected, "{text}");
        }
    }

    #[test]
    fn an_exact_term_takes_in_nothing_that_only_begins_alike() {
        let mut model = model();
        let tens = ["Forward0", "my \\ \"layer\"/x"].map(|name| {
            let name = model.names.number_of(name);
            model.scopes.child(0, name)
        });
        let in_scope = |scope| Allocation { scope, requested: 5, bytes: 5, ..Allocation::vacant() };
        model.allocations.extend(tens.map(in_scope));
        let matching = |text: &str| -> Vec<usize> {
            let filter = Filter::parse(text).expect("a filter");
            let prepared = filter.prepare(&model);
            (0..model.allocations.len()).filter(|at| prepared.lets(&model.allocations[*at])).collect()
        };
        assert_eq!(matching("scope:Forward"), [0, 3], "a part takes in both");
        assert_eq!(matching(&exact_term("scope", "Forward")), [0]);
        assert_eq!(matching("scope=forward"), [0usize; 0], "letter for letter");
        assert_eq!(matching(&exact_term("scope", "my \\ \"layer\"/x")), [4]);
        assert_eq!(matching(&format!("<1KiB  {}  unknown", exact_term("scope", "my \\ \"layer\"/x"))), [4]);
        assert_eq!(exact_term("scope", ""), "scope=\"\"");
        assert_eq!(matching("scope=\"\""), [1, 2], "outside all scopes");
        assert_eq!(matching("name=h.0.Attn.weight"), [0]);
        assert_eq!(matching("name=cuMemAlloc_v2"), [1]);
        assert_eq!(matching("category=weights"), [0]);
        for text in ["category=w", "scope=\"a", "attn scope=\"a b"] {
            Filter::parse(text).expect_err(text);
        }
    }

    #[test]
    fn a_scope_with_all_inside_it_is_one_term() {
        assert_eq!(matching("inside=Forward"), [0]);
        assert_eq!(matching("inside=For"), [0usize; 0]);
    }

    #[test]
    fn each_example_of_a_term_is_one() {
        for (term, _) in TERMS {
            assert_eq!(Filter::parse(term).map(|filter| filter.terms.len()), Ok(1), "{term}");
        }
    }

    #[test]
    fn a_group_becomes_terms_of_a_filter() {
        let group =
            |label: &str| GroupRow { label: label.into(), name: None, allocations: 3, live: [0, 300, 0, 0, 0, 0, 0] };
        assert_eq!(group_term(Grouping::Category, &group("weights")).as_deref(), Some("category=weights"));
        assert_eq!(group_term(Grouping::Scope, &group("a/my layer")).as_deref(), Some("scope=\"a/my layer\""));
        assert_eq!(group_term(Grouping::Scope, &group("")).as_deref(), Some("scope=\"\""));
        assert_eq!(group_term(Grouping::Name, &group("h.*.out")), None, "several names");
        let one = GroupRow { name: Some("my out".into()), ..group("my out") };
        let category = STACKED.into_iter().find(|category| one.live[*category as usize] > 0).expect("one").name();
        assert_eq!(group_term(Grouping::Name, &one), Some(format!("name=\"my out\" category={category}")));
        assert_eq!(group_term(Grouping::Size, &group("100 B")).as_deref(), Some(">99B <101B"));
    }

    #[test]
    fn terms_are_added_once() {
        assert_eq!(and_terms("", "name=a category=weights"), "name=a category=weights");
        assert_eq!(and_terms(">1MiB ", "scope=a"), ">1MiB scope=a");
        assert_eq!(and_terms(">1MiB scope=a step:3", "scope=a"), ">1MiB scope=a step:3");
        assert_eq!(and_terms("scope=ab", "scope=a"), "scope=ab scope=a");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for text in [
            ">",
            ">4XB",
            "<x",
            "step:",
            "step:x",
            "stream:0xg",
            "pid:99999999999",
            "category:z",
            ">18EiB",
            ">.",
            "foo:bar",
            "gpu:x",
            "device:",
        ] {
            let error = Filter::parse(text).expect_err(text);
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
        assert!(Filter::parse("attn >").is_err());
    }
}
