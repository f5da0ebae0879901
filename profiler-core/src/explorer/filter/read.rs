//! A term as the user spells it.
//!
//! Owns: the grammar of one term, and the sentences for what is none. Refuses: to know a session (`prepared.rs`).

use memscope_wire::Category;

use super::{Term, Whole};

/// An exact term at the beginning of a text, and what is behind it; `None` when another term stands there.
pub fn exact(text: &str) -> Option<Result<(Term, &str), String>> {
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

pub fn term(text: &str) -> Result<Term, String> {
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
