//! The parts of a PTX text that a driver needs without compiling it: version, target, entries with their parameters,
//! global variables.
//!
//! Owns: reading declarations. Refuses: instructions, and texts that are no PTX.

/// What a PTX text declares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ptx {
    /// `.version`, major and minor.
    pub version: (u32, u32),
    /// `.target sm_NN`: 10 × major + minor.
    pub target: u32,
    /// Kernels, in order.
    pub entries: Vec<Entry>,
    /// Variables of the global and constant spaces.
    pub globals: Vec<Global>,
}

/// A kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Its (mangled) name.
    pub name: String,
    /// Offset and size of each parameter, in bytes.
    pub parameters: Vec<(usize, usize)>,
    /// `.maxntid` or `.reqntid`: most threads of a block, if stated.
    pub max_threads: Option<u32>,
    /// Static shared memory in bytes.
    pub shared_bytes: u32,
}

/// A variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// The content it begins with: as many bytes as were given, the rest are zeros.
    pub initial: Vec<u8>,
}

/// Why a text is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is no PTX.
    NotPtx,
    /// It breaks off.
    Truncated,
}

impl Ptx {
    /// Reads the declarations of `text`.
    pub fn parse(text: &str) -> Result<Ptx, Refusal> {
        let text = without_comments(text);
        let mut ptx = Ptx::default();
        let mut rest = text.as_str();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            // A statement ends with `;`, a definition with its block; directives without either end with the line.
            let end = rest.find([';', '{', '\n']).unwrap_or(rest.len());
            if let Some(line) = rest.strip_prefix('.').filter(|line| is_line_directive(line)) {
                let end = line.find('\n').unwrap_or(line.len());
                ptx.line_directive(&line[..end])?;
                rest = &line[end..];
            } else if let Some(position) = keyword(rest, ".entry") {
                rest = ptx.entry(&rest[position..])?;
            } else if keyword(rest, ".func").is_some() {
                rest = skip_function(rest)?;
            } else if keyword(&rest[..statement_end(rest)], ".global").is_some()
                || keyword(&rest[..statement_end(rest)], ".const").is_some()
            {
                let end = statement_end(rest);
                ptx.globals.extend(global(&rest[..end]));
                rest = rest.get(end + 1..).unwrap_or("");
            } else if rest.as_bytes().get(end) == Some(&b'{') {
                rest = after_block(&rest[end..])?;
            } else {
                rest = rest.get(end + 1..).unwrap_or("");
            }
        }
        if ptx.version == (0, 0) || ptx.target == 0 { Err(Refusal::NotPtx) } else { Ok(ptx) }
    }

    fn line_directive(&mut self, line: &str) -> Result<(), Refusal> {
        let mut words = line.split([' ', '\t', ',', '\r']).filter(|word| !word.is_empty());
        match words.next() {
            Some("version") => {
                let version = words.next().and_then(|word| word.split_once('.')).ok_or(Refusal::NotPtx)?;
                let number = |text: &str| text.parse().map_err(|_| Refusal::NotPtx);
                self.version = (number(version.0)?, number(version.1)?);
            }
            Some("target") => {
                let name = words.next().and_then(|word| word.strip_prefix("sm_")).ok_or(Refusal::NotPtx)?;
                let digits = name.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
                self.target = digits.parse().map_err(|_| Refusal::NotPtx)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads from behind `.entry`, and returns what follows the kernel's block.
    fn entry<'a>(&mut self, text: &'a str) -> Result<&'a str, Refusal> {
        let open = text.find('{').ok_or(Refusal::Truncated)?;
        let head = &text[..open];
        let (name, parameters, directives) = match (head.find('('), head.rfind(')')) {
            (Some(start), Some(end)) if start < end => (&head[..start], &head[start + 1..end], &head[end + 1..]),
            _ => {
                let end = head.trim_start().find(char::is_whitespace).unwrap_or(head.trim_start().len());
                (&head.trim_start()[..end], "", &head.trim_start()[end..])
            }
        };
        let rest = after_block(&text[open..])?;
        let body = &text[open..text.len() - rest.len()];
        let mut entry = Entry { name: name.trim().to_owned(), ..Entry::default() };
        let mut end = 0;
        for parameter in parameters.split(',').filter(|parameter| !parameter.trim().is_empty()) {
            let variable = Variable::parse(parameter).ok_or(Refusal::NotPtx)?;
            let offset = usize::next_multiple_of(end, variable.alignment);
            entry.parameters.push((offset, variable.bytes));
            end = offset + variable.bytes;
        }
        entry.max_threads = threads(directives);
        let shared = body.split([';', '{', '}']).filter(|statement| statement.trim_start().starts_with(".shared"));
        entry.shared_bytes = shared.filter_map(Variable::parse).map(|variable| variable.bytes as u32).sum();
        self.entries.push(entry);
        Ok(rest)
    }
}

/// A declared variable or parameter.
struct Variable<'a> {
    name: &'a str,
    bytes: usize,
    alignment: usize,
}

impl Variable<'_> {
    /// Reads `.space [.align N] [.vN] .type [.ptr …] name[count]`.
    fn parse(text: &str) -> Option<Variable<'_>> {
        let (mut element, mut vector, mut alignment) = (0, 1, None);
        let mut name = "";
        let mut words = text.split_whitespace().peekable();
        let mut after_pointer = false;
        while let Some(word) = words.next() {
            match word {
                ".align" => {
                    let value = words.next()?.parse::<usize>().ok().filter(|value| value.is_power_of_two())?;
                    // Behind `.ptr`, the alignment is that of the memory pointed to.
                    if !after_pointer {
                        alignment = Some(value);
                    }
                }
                ".ptr" => after_pointer = true,
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                word if word.starts_with('.') => element = size_of_type(word).unwrap_or(element),
                word => name = word,
            }
        }
        let (base, counts) = match name.find('[') {
            Some(at) => (&name[..at], &text[text.rfind(name)? + at..]),
            None => (name, ""),
        };
        let mut count = 1_usize;
        for part in counts.split('[').skip(1) {
            let number = part.split(']').next()?.trim();
            count = count.checked_mul(if number.is_empty() { 0 } else { number.parse().ok()? })?;
        }
        let bytes = element * vector;
        let alignment = alignment.unwrap_or(bytes.max(1));
        (element > 0 && !base.is_empty()).then_some(Variable {
            name: base,
            bytes: bytes.checked_mul(count)?,
            alignment,
        })
    }
}

fn size_of_type(word: &str) -> Option<usize> {
    Some(match word {
        ".b8" | ".u8" | ".s8" | ".pred" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" | ".tf32" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" | ".texref" | ".samplerref" | ".surfref" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

fn is_line_directive(line: &str) -> bool {
    ["version", "target", "address_size", "file", "loc", "pragma"].iter().any(|word| line.starts_with(word))
}

/// Position behind `word` if it occurs in the first statement of `text` as a word of its own.
fn keyword(text: &str, word: &str) -> Option<usize> {
    let limit = text.find([';', '{']).unwrap_or(text.len());
    let position = text[..limit].find(word)? + word.len();
    text[position..].starts_with([' ', '\t', '\n', '\r']).then_some(position)
}

/// End of a statement that may hold an initialiser in braces.
fn statement_end(text: &str) -> usize {
    text.find(';').unwrap_or(text.len())
}

fn skip_function(text: &str) -> Result<&str, Refusal> {
    let end = text.find([';', '{']).ok_or(Refusal::Truncated)?;
    if text.as_bytes()[end] == b'{' { after_block(&text[end..]) } else { Ok(&text[end + 1..]) }
}

/// What follows the block that `text` begins with.
fn after_block(text: &str) -> Result<&str, Refusal> {
    let mut depth = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return Ok(&text[index + 1..]);
        }
    }
    Err(Refusal::Truncated)
}

fn threads(directives: &str) -> Option<u32> {
    let position = [".reqntid", ".maxntid"].iter().find_map(|word| directives.find(word).map(|at| at + word.len()))?;
    let numbers = directives[position..].split('.').next()?;
    numbers.split(',').try_fold(1_u32, |product, number| product.checked_mul(number.trim().parse().ok()?))
}

fn global(statement: &str) -> Option<Global> {
    if statement.trim_start().starts_with(".extern") {
        return None;
    }
    let (declaration, value) = statement.split_once('=').unwrap_or((statement, ""));
    let declaration = declaration.replace(".visible", "").replace(".weak", "").replace(".common", "");
    let variable = Variable::parse(&declaration)?;
    let element = declaration.split_whitespace().filter_map(size_of_type).next_back()?;
    let numbers = value.split(['{', '}', ',']).map(str::trim).filter(|word| !word.is_empty());
    let mut initial: Vec<u8> = Vec::new();
    for number in numbers {
        // An address of another symbol is left as zeros: nothing on the host follows it.
        initial.extend(&literal(number).unwrap_or(0).to_le_bytes()[..element.min(8)]);
    }
    initial.truncate(variable.bytes);
    Some(Global { name: variable.name.to_owned(), bytes: variable.bytes, initial })
}

/// The bits of a PTX literal: decimal, 0x, 0f (f32 bits) or 0d (f64 bits).
fn literal(text: &str) -> Option<u64> {
    let text = text.trim_end_matches('U');
    let hexadecimal = ["0x", "0X", "0f", "0F", "0d", "0D"].iter().find_map(|prefix| text.strip_prefix(prefix));
    match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<i128>().ok().map(|value| value as u64),
    }
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        plain.push_str(&rest[..start]);
        rest = &rest[start..];
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            plain.push(' ');
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else {
            plain.push('/');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
// made by hand {
.version 8.4
.target sm_75, debug
.address_size 64
.global .align 4 .u32 counter = 7;
.visible .const .align 2 .b8 names[5] = {104, 0x69};
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 out) helper(.param .b32 in)
;
.visible .entry _Z3fooPfS_(
	.param .u64 .ptr .global .align 16 a,
	.param .u32 n, /* , .param .u64 hidden */
	.param .align 8 .b8 meta[2056],
	.param .f32 scale
)
.maxntid 128, 2, 1
.minnctapersm 2
{
	.reg .b32 %r<3>;
	.shared .align 4 .f32 tile[256];
	{ ret; }
}
.entry bare
{ ret; }
";

    #[test]
    fn declarations_are_read() {
        let ptx = Ptx::parse(TEXT).unwrap();
        assert_eq!((ptx.version, ptx.target), ((8, 4), 75));
        let names: Vec<&str> = ptx.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["_Z3fooPfS_", "bare"]);
        assert_eq!(ptx.entries[0].parameters, [(0, 8), (8, 4), (16, 2056), (2072, 4)]);
        assert_eq!(ptx.entries[0].max_threads, Some(256));
        assert_eq!(ptx.entries[0].shared_bytes, 1024);
        let counter = Global { name: "counter".into(), bytes: 4, initial: vec![7, 0, 0, 0] };
        let names = Global { name: "names".into(), bytes: 5, initial: vec![104, 105] };
        assert_eq!(ptx.globals, [counter, names]);
    }

    #[test]
    fn what_is_no_ptx_is_refused() {
        assert_eq!(Ptx::parse("hello, world;"), Err(Refusal::NotPtx));
        assert_eq!(Ptx::parse(""), Err(Refusal::NotPtx));
        let cut = &TEXT[..TEXT.find("ret;").unwrap()];
        assert_eq!(Ptx::parse(cut), Err(Refusal::Truncated));
    }

    #[test]
    fn a_literal_keeps_its_bits() {
        assert_eq!(literal("0f3F800000"), Some(0x3f80_0000));
        assert_eq!(literal("-1"), Some(u64::MAX));
        assert_eq!(literal("4294967295U"), Some(u64::from(u32::MAX)));
        assert_eq!(literal("counter"), None);
    }
}
