//! Which allocations a list shows.
//!
//! Owns: what a filter is: its terms. Refuses: order and windows.
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

mod prepared;
mod read;
mod write;

pub(super) use prepared::{label, step_of};
pub use write::{and_terms, exact_term, group_term};

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
            let (term, behind) = match read::exact(rest) {
                Some(exact) => exact?,
                None => {
                    let (word, behind) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                    (read::term(word)?, behind)
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
}

#[cfg(test)]
mod tests {
    use memscope_wire::{Category, Origin};

    use super::super::answer::{GroupRow, STACKED};
    use super::super::query::Grouping;
    use super::*;
    use crate::allocation::{Allocation, Model, flag};

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
