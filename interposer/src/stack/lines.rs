//! The table of lines of a code object.
//!
//! Owns: the form that `co_linetable` has since Python 3.11, as CPython describes it in Objects/locations.md (since 3.13
//! InternalDocs/code_objects.md). Refuses: columns, and to read beyond a table that says it is longer than it is.
//!
//! A table is a list of entries. The first byte of an entry has bit 7 set, and no other byte of it has; its bits 3 to 6 are the
//! entry's code, and its bits 0 to 2 how many code units (of two bytes) it is about, less one. By its code an entry moves the
//! line: 0 to 9 not at all; 10 to 12 by code − 10; 13 and 14 by a signed number that follows; 15 says that there is no line.
//! Numbers are of six bits a byte, the lowest first, and bit 6 says that more follow; of a signed one the lowest bit is the sign.

/// The line of the instruction so many code units after the first one; 0 where there is none. A frame that has not begun is
/// before the first one.
pub fn line(table: &[u8], first_line: i32, unit: isize) -> u32 {
    let (mut line, mut end, mut rest) = (first_line, 0, table);
    if unit < 0 {
        return u32::try_from(line).unwrap_or(0);
    }
    while let Some((head, follows)) = rest.split_first() {
        let code = head >> 3 & 15;
        end += isize::from(head & 7) + 1;
        line = line.wrapping_add(match code {
            10..=12 => i32::from(code) - 10,
            13 | 14 => signed(follows),
            _ => 0,
        });
        if unit < end {
            return if code == 15 { 0 } else { u32::try_from(line).unwrap_or(0) };
        }
        let next = follows.iter().position(|byte| byte & 0x80 != 0).unwrap_or(follows.len());
        rest = follows.get(next..).unwrap_or(&[]);
    }
    0
}

/// The signed number at the beginning.
fn signed(bytes: &[u8]) -> i32 {
    let (mut number, mut shift) = (0_u32, 0);
    for byte in bytes {
        number |= u32::from(byte & 63).wrapping_shl(shift);
        shift += 6;
        if byte & 64 == 0 || shift > 30 {
            break;
        }
    }
    let size = (number >> 1) as i32;
    if number & 1 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entry of this code and number of units, followed by bytes.
    fn entry(code: u8, units: u8, follows: &[u8]) -> Vec<u8> {
        [&[0x80 | code << 3 | (units - 1)], follows].concat()
    }

    #[test]
    fn each_kind_of_entry_moves_the_line() {
        let table = [
            entry(0, 1, &[0x11]),                       // the first line
            entry(10, 2, &[4, 9]),                      // the same
            entry(12, 3, &[4, 9]),                      // two below
            entry(13, 8, &[5]),                         // two above: 5 is −2
            entry(14, 1, &[0b100_0010, 0b10, 0, 1, 1]), // 2 + 2·64 = 130: 65 below
            entry(15, 1, &[]),                          // none
            entry(11, 1, &[0, 0]),                      // one below what was before
        ]
        .concat();
        let lines: Vec<u32> = (-1..18).map(|unit| line(&table, 100, unit)).collect();
        let expected = [vec![100; 4], vec![102; 3], vec![100; 8], vec![165, 0, 166, 0]].concat();
        assert_eq!(lines, expected);
    }

    /// Python's own lines of the code units of a function, each with how many there are in a row.
    fn expect(table: &[u8], first_line: i32, runs: &[(u32, usize)]) {
        let expected: Vec<u32> = runs.iter().flat_map(|(line, units)| vec![*line; *units]).collect();
        let found: Vec<u32> = (0..expected.len() as isize + 1).map(|unit| line(table, first_line, unit)).collect();
        assert_eq!(found, [expected, vec![0]].concat());
    }

    #[test]
    fn tables_that_python_has_made_say_what_python_says() {
        // Both are of Python 3.11.7, whose `co_positions()` gave the lines. A closure over several lines, 70 lines apart:
        let table = [
            0xf8, 0x80, 0x00, 0xf0, 0x02, 0x02, 0x09, 0x14, 0xf0, 0x00, 0x02, 0x09, 0x14, 0xf0, 0x00, 0x02, 0x09, 0x14,
            0xf0, 0x00, 0x02, 0x09, 0x14, 0xe0, 0x11, 0x12, 0xf0, 0x05, 0x02, 0x09, 0x14, 0xf1, 0x00, 0x02, 0x09, 0x14,
            0xf4, 0x00, 0x02, 0x09, 0x14, 0x80, 0x41, 0xf0, 0x52, 0x02, 0x00, 0x0d, 0x0e, 0xdd, 0x08, 0x09, 0x88, 0x21,
            0xd8, 0x0a, 0x0b, 0xf1, 0x03, 0x01, 0x09, 0x0d, 0xf4, 0x00, 0x01, 0x09, 0x0d, 0xf1, 0x03, 0x02, 0x0d, 0x0d,
            0xf0, 0x00, 0x02, 0x05, 0x0e,
        ];
        let runs = [(0, 1), (7, 1), (8, 4), (10, 1), (8, 9), (81, 1), (82, 7), (83, 1), (82, 7), (81, 3)];
        expect(&table, 7, &runs);
        // A `with` in a `try`, whose handlers have no line:
        let table = [
            0x80, 0x00, 0xf0, 0x02, 0x03, 0x05, 0x1c, 0xdd, 0x0d, 0x0e, 0x89, 0x53, 0x8c, 0x53, 0xf0, 0x00, 0x01, 0x09,
            0x10, 0x90, 0x41, 0xd8, 0x0c, 0x0d, 0x88, 0x41, 0x89, 0x43, 0x8c, 0x43, 0x88, 0x43, 0xf0, 0x03, 0x01, 0x09,
            0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf1, 0x00, 0x01, 0x09, 0x10, 0xf4, 0x00,
            0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10,
            0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01,
            0x09, 0x10, 0xf8, 0xf8, 0xf8, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01,
            0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf0, 0x00, 0x01, 0x09, 0x10, 0xf8,
            0xe5, 0x0b, 0x15, 0xd0, 0x04, 0x1b, 0xd0, 0x04, 0x1b, 0xd0, 0x04, 0x1b, 0x90, 0x74, 0x90, 0x74, 0x90, 0x74,
            0xd0, 0x04, 0x1b, 0xf8, 0xf8, 0xf8,
        ];
        let runs = [(1, 1), (2, 1), (3, 15), (4, 10), (3, 17), (0, 3), (3, 6), (0, 1), (5, 13), (0, 3)];
        expect(&table, 1, &runs);
    }

    #[test]
    fn a_table_that_ends_early_is_no_harm() {
        let table = [entry(14, 1, &[0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f]), entry(13, 8, &[])].concat();
        for cut in 0..=table.len() {
            for unit in 0..12 {
                line(table.get(..cut).unwrap_or(&[]), i32::MAX, unit);
            }
        }
    }
}
