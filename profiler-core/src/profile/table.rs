//! Columns, and the Parquet tables made of them.
//!
//! Owns: types, encodings, and reading and writing whole column chunks. Refuses: meaning, and files (`archive`).

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

type Result<T> = std::result::Result<T, ParquetError>;

/// Rows of a row group.
pub(super) const GROUP_ROWS: usize = 1 << 20;
/// Most rows that a reader takes from one table: what a session can number, twice.
const MAX_ROWS: i64 = 1 << 31;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Up to 8, 16 or 32 bits, not negative.
    Narrow(u8),
    /// 64 bits, not negative.
    Wide,
    /// 64 bits with a sign.
    Signed,
    /// UTF-8.
    Text,
}

/// How a column is encoded before zstd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Coding {
    /// Few different values.
    Dictionary,
    /// Values near their predecessors.
    Delta,
    /// Neither.
    Plain,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub optional: bool,
    pub coding: Coding,
}

/// Shorthand for tables of fields: a required column.
pub(super) const fn required(name: &'static str, kind: Kind, coding: Coding) -> Field {
    Field { name, kind, optional: false, coding }
}

/// Shorthand for tables of fields: a column with absent values.
pub(super) const fn optional(name: &'static str, kind: Kind, coding: Coding) -> Field {
    Field { name, kind, optional: true, coding }
}

/// Values of a column; of an optional one, only those that are there.
#[derive(Clone, Debug)]
enum Values {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
    Text(Vec<ByteArray>),
}

/// A part of a column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    values: Values,
    /// 1 where a value is there, 0 where not; `None` for a required column.
    levels: Option<Vec<i16>>,
}

impl Column {
    pub fn narrow(values: impl Iterator<Item = u32>) -> Column {
        Column { values: Values::Narrow(values.map(|value| value as i32).collect()), levels: None }
    }

    pub fn wide(values: impl Iterator<Item = u64>) -> Column {
        Column { values: Values::Wide(values.map(|value| value as i64).collect()), levels: None }
    }

    pub fn text(values: impl Iterator<Item = String>) -> Column {
        Column { values: Values::Text(values.map(|text| text.into_bytes().into()).collect()), levels: None }
    }

    pub fn optional_narrow(values: impl Iterator<Item = Option<u32>>) -> Column {
        let (values, levels) = split(values, |value| value as i32);
        Column { values: Values::Narrow(values), levels: Some(levels) }
    }

    pub fn optional_wide(values: impl Iterator<Item = Option<u64>>) -> Column {
        let (values, levels) = split(values, |value| value as i64);
        Column { values: Values::Wide(values), levels: Some(levels) }
    }

    pub fn optional_signed(values: impl Iterator<Item = Option<i64>>) -> Column {
        let (values, levels) = split(values, |value| value);
        Column { values: Values::Wide(values), levels: Some(levels) }
    }

    pub fn optional_text(values: impl Iterator<Item = Option<String>>) -> Column {
        let (values, levels) = split(values, |text: String| text.into_bytes().into());
        Column { values: Values::Text(values), levels: Some(levels) }
    }

    /// Numbers, absent ones as `None`; of a narrow column too.
    pub fn numbers(&self) -> Vec<Option<u64>> {
        let mut numbers = Vec::with_capacity(self.rows());
        self.each(|number| numbers.push(number));
        numbers
    }

    /// Numbers of a column without absent ones.
    pub fn all_numbers(&self) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(self.rows());
        self.each(|number| numbers.push(number.unwrap_or_default()));
        numbers
    }

    fn rows(&self) -> usize {
        match (&self.values, &self.levels) {
            (_, Some(levels)) => levels.len(),
            (Values::Narrow(values), None) => values.len(),
            (Values::Wide(values), None) => values.len(),
            (Values::Text(values), None) => values.len(),
        }
    }

    /// Tells each number, absent ones as `None`, without a copy of them all.
    pub fn each(&self, tell: impl FnMut(Option<u64>)) {
        match &self.values {
            Values::Narrow(values) => self.present(values, |value| u64::from(*value as u32), tell),
            Values::Wide(values) => self.present(values, |value| *value as u64, tell),
            Values::Text(_) => {}
        }
    }

    fn present<V>(&self, values: &[V], number: impl Fn(&V) -> u64, mut tell: impl FnMut(Option<u64>)) {
        match &self.levels {
            None => values.iter().for_each(|value| tell(Some(number(value)))),
            Some(levels) => {
                let mut values = values.iter();
                levels.iter().for_each(|level| tell(if *level > 0 { values.next().map(&number) } else { None }));
            }
        }
    }

    /// Texts, absent ones as `None`.
    pub fn texts(&self) -> Vec<Option<String>> {
        match &self.values {
            Values::Text(values) => {
                self.merge(values.iter().map(|text| String::from_utf8_lossy(text.data()).into_owned()))
            }
            _ => Vec::new(),
        }
    }

    fn merge<T>(&self, mut values: impl Iterator<Item = T>) -> Vec<Option<T>> {
        match &self.levels {
            None => values.map(Some).collect(),
            Some(levels) => levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect(),
        }
    }
}

fn split<T, V>(values: impl Iterator<Item = Option<T>>, value: impl Fn(T) -> V) -> (Vec<V>, Vec<i16>) {
    let (mut present, mut levels) = (Vec::new(), Vec::with_capacity(values.size_hint().0));
    for item in values {
        levels.push(i16::from(item.is_some()));
        present.extend(item.map(&value));
    }
    (present, levels)
}

/// Writes a table, with what is said of the whole of it (a key, and a text): `group` gives the columns of each row group, in the order
/// of the fields.
pub(super) fn write<W: Write + Send>(
    out: W,
    fields: &[Field],
    said: Option<(&str, String)>,
    groups: usize,
    mut group: impl FnMut(usize) -> Vec<Column>,
) -> Result<()> {
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema(fields)?), Arc::new(properties(fields, said)?))?;
    for number in 0..groups {
        let columns = group(number);
        let mut out = writer.next_row_group()?;
        for column in columns {
            let Some(mut out) = out.next_column()? else {
                return Err(ParquetError::General("more columns than fields".into()));
            };
            let levels = column.levels.as_deref();
            match &column.values {
                Values::Narrow(values) => out.typed::<Int32Type>().write_batch(values, levels, None)?,
                Values::Wide(values) => out.typed::<Int64Type>().write_batch(values, levels, None)?,
                Values::Text(values) => out.typed::<ByteArrayType>().write_batch(values, levels, None)?,
            };
            out.close()?;
        }
        out.close()?;
    }
    writer.close()?;
    Ok(())
}

fn schema(fields: &[Field]) -> Result<Type> {
    let column = |field: &Field| {
        let (physical, logical) = match field.kind {
            Kind::Narrow(bits) => (Physical::INT32, Some(LogicalType::integer(bits as i8, false))),
            Kind::Wide => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::Signed => (Physical::INT64, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if field.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder(field.name, physical)
            .with_repetition(repetition)
            .with_converted_type(ConvertedType::NONE)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    };
    let columns = fields.iter().map(column).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("memscope").with_fields(columns).build()
}

fn properties(fields: &[Field], said: Option<(&str, String)>) -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("memscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_data_page_size_limit(1 << 20)
        .set_write_batch_size(1 << 14)
        .set_key_value_metadata(said.map(|(key, text)| vec![KeyValue::new(key.to_owned(), text)]))
        .set_max_row_group_row_count(Some(GROUP_ROWS));
    for field in fields {
        let path = ColumnPath::from(field.name);
        properties = match field.coding {
            Coding::Dictionary => properties.set_column_dictionary_enabled(path, true),
            Coding::Plain => properties.set_column_dictionary_enabled(path, false),
            Coding::Delta => properties
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_dictionary_enabled(path, false),
        };
    }
    Ok(properties.build())
}

/// A table that is being read.
pub(super) struct Table<R: ChunkReader + 'static> {
    reader: SerializedFileReader<R>,
}

impl<R: ChunkReader + 'static> Table<R> {
    pub fn open(source: R) -> Result<Table<R>> {
        let reader = SerializedFileReader::new(source)?;
        let rows: i64 =
            reader.metadata().row_groups().iter().map(|group| group.num_rows().max(0)).fold(0, i64::saturating_add);
        let absurd = |rows: i64| !(0..=MAX_ROWS).contains(&rows);
        if absurd(rows) || reader.metadata().row_groups().iter().any(|group| absurd(group.num_rows())) {
            return Err(ParquetError::General(format!("the table claims {rows} rows")));
        }
        Ok(Table { reader })
    }

    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    pub fn group_rows(&self, group: usize) -> usize {
        self.reader.metadata().row_group(group).num_rows().max(0) as usize
    }

    /// One column of one row group.
    pub fn column(&self, group: usize, name: &str) -> Result<Column> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let Some(index) = schema.columns().iter().position(|column| column.name() == name) else {
            return Err(ParquetError::General(format!("the table has no column `{name}`")));
        };
        let descriptor = schema.column(index);
        if descriptor.max_rep_level() > 0 || descriptor.max_def_level() > 1 {
            return Err(ParquetError::General(format!("column `{name}` is nested")));
        }
        let optional = descriptor.max_def_level() > 0;
        let rows = self.group_rows(group);
        let row_group = self.reader.get_row_group(group)?;
        let mut levels = Vec::new();
        // Capacity grows with what is really decoded, not with what the footer claims.
        macro_rules! read {
            ($reader:expr) => {{
                let mut values = Vec::new();
                let mut done = 0;
                while done < rows {
                    let levels = if optional { Some(&mut levels) } else { None };
                    let (records, _, _) =
                        $reader.read_records((rows - done).min(1 << 16), levels, None, &mut values)?;
                    if records == 0 {
                        return Err(ParquetError::General(format!("column `{name}` ends early")));
                    }
                    done += records;
                }
                values
            }};
        }
        let values = match row_group.get_column_reader(index)? {
            ColumnReader::Int32ColumnReader(mut reader) => Values::Narrow(read!(reader)),
            ColumnReader::Int64ColumnReader(mut reader) => Values::Wide(read!(reader)),
            ColumnReader::ByteArrayColumnReader(mut reader) => Values::Text(read!(reader)),
            _ => return Err(ParquetError::General(format!("column `{name}` has an unexpected type"))),
        };
        Ok(Column { values, levels: optional.then_some(levels) })
    }

    /// Numbers of a whole column.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<u64>>> {
        let mut all = Vec::new();
        for group in 0..self.groups() {
            all.extend(self.column(group, name)?.numbers());
        }
        Ok(all)
    }

    /// Numbers of a column that older profiles do not have; empty there.
    pub fn added_numbers(&self, name: &str) -> Result<Vec<Option<u64>>> {
        if self.has(name) { self.numbers(name) } else { Ok(Vec::new()) }
    }

    /// The same of texts.
    pub fn added_texts(&self, name: &str) -> Result<Vec<Option<String>>> {
        if self.has(name) { self.texts(name) } else { Ok(Vec::new()) }
    }

    /// True when it has this column: older profiles do not have all.
    pub fn has(&self, name: &str) -> bool {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().any(|column| column.name() == name)
    }

    /// Texts of a whole column.
    pub fn texts(&self, name: &str) -> Result<Vec<Option<String>>> {
        let mut all = Vec::new();
        for group in 0..self.groups() {
            all.extend(self.column(group, name)?.texts());
        }
        Ok(all)
    }
}
