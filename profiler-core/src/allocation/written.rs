//! How a model is written where its own types do not say it: numbers of the wire's words, maps whose keys are no text, names.
//!
//! Owns: both directions. Refuses: files (`journal::checkpoint`).

use std::collections::HashMap;
use std::hash::Hash;

use memscope_wire::{Category, MemoryKind, Object, Origin, TextId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::names::Names;
use super::row::{Allocation, AllocationId, Container};

/// An [`Allocation`] without the names of its fields: there may be millions.
#[derive(Serialize, Deserialize)]
pub(super) struct Row(u64, u64, u64, u64, u64, Numbers, Words);

/// Stream, container plus 1, step, phase, scope, stack, name, thread, process, function.
type Numbers = (u32, u32, u32, u32, u32, u32, u32, u32, u32, u32);
/// Device, category, origin, memory, flags.
type Words = (u16, u8, u8, u8, u16);

impl From<Allocation> for Row {
    fn from(row: Allocation) -> Row {
        let container = row.container().map_or(0, |id| id.0.wrapping_add(1));
        let numbers = (
            row.stream,
            container,
            row.step,
            row.phase,
            row.scope,
            row.stack,
            row.name,
            row.thread,
            row.process,
            row.function,
        );
        let words = (row.device, row.category as u8, row.origin as u8, row.memory as u8, row.flags);
        Row(row.address, row.bytes, row.requested, row.birth_ticks, row.death_ticks, numbers, words)
    }
}

impl From<Row> for Allocation {
    fn from(Row(address, bytes, requested, birth_ticks, death_ticks, numbers, words): Row) -> Allocation {
        let (stream, container, step, phase, scope, stack, name, thread, process, function) = numbers;
        let (device, category, origin, memory, flags) = words;
        Allocation {
            address,
            bytes,
            requested,
            birth_ticks,
            death_ticks,
            stream,
            container: container.checked_sub(1).and_then(|id| Container::new(AllocationId(id))),
            step,
            phase,
            scope,
            stack,
            name,
            thread,
            process,
            function,
            device,
            category: Category::from_number(category),
            origin: Origin::from_number(origin),
            memory: MemoryKind::from_number(memory),
            flags,
        }
    }
}

/// A kind of memory by its number.
pub(super) mod memory {
    use super::*;

    pub fn serialize<S: Serializer>(memory: &MemoryKind, out: S) -> Result<S::Ok, S::Error> {
        (*memory as u8).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MemoryKind, D::Error> {
        u8::deserialize(from).map(MemoryKind::from_number)
    }
}

/// A map as a list of pairs.
pub(super) mod pairs {
    use super::*;

    pub fn serialize<S: Serializer, K: Serialize, V: Serialize>(
        map: &HashMap<K, V>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_seq(map)
    }

    pub fn deserialize<'de, D, K, V>(from: D) -> Result<HashMap<K, V>, D::Error>
    where
        D: Deserializer<'de>,
        K: Deserialize<'de> + Hash + Eq,
        V: Deserialize<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

/// What the driver made, as a list.
pub(super) mod objects {
    use super::*;

    pub fn serialize<S: Serializer>(map: &HashMap<(Object, u64), u32>, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(map.iter().map(|((object, handle), device)| (*object as u8, *handle, *device)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<HashMap<(Object, u64), u32>, D::Error> {
        let list = Vec::<(u8, u64, u32)>::deserialize(from)?;
        Ok(list.into_iter().map(|(object, handle, device)| ((Object::from_number(object), handle), device)).collect())
    }
}

/// A name: its hash, its bytes as the first 256 characters, its parts, whether it is whole.
type WrittenName = (u64, String, u32, bool);

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
        out.collect_seq(self.parts().map(|(id, bytes, parts, complete)| (id.0, text(bytes), parts, complete)))
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Names, D::Error> {
        let names = Vec::<WrittenName>::deserialize(from)?;
        // Bytes become characters of the same number, and back.
        let bytes = |text: String| text.chars().map(|char| char as u32 as u8).collect();
        Ok(Names::of_parts(names.into_iter().map(|(id, text, parts, whole)| (TextId(id), bytes(text), parts, whole))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_and_names_come_back_as_they_were() {
        let row = Allocation {
            address: 1,
            bytes: 2,
            requested: 3,
            birth_ticks: 4,
            death_ticks: u64::MAX,
            stream: 5,
            container: Container::new(AllocationId(0)),
            step: 6,
            phase: 7,
            scope: 8,
            stack: 9,
            name: 10,
            thread: 11,
            process: 12,
            function: 13,
            device: Allocation::NO_DEVICE,
            category: Category::Optimizer,
            origin: Origin::Tagged,
            memory: MemoryKind::Managed,
            flags: 0xffff,
        };
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Allocation>(&text).unwrap(), row);
        assert_eq!(serde_json::from_str::<Allocation>(&text.replace("[5,1,", "[5,0,")).unwrap().container, None);
        let mut names = Names::new();
        let whole = names.number_of("weights");
        let odd = TextId::of(&[0xff; 40]);
        names.part(odd, 40, 0, &[0xff; 32]);
        let text = serde_json::to_string(&names).unwrap();
        let mut back: Names = serde_json::from_str(&text).unwrap();
        assert_eq!((back.text(whole), back.len()), ("weights".to_owned(), names.len()));
        // The second part of a name comes after it was written.
        let number = back.number(odd);
        assert!(!back.is_complete(number));
        back.part(odd, 40, 1, &[0xff; 32]);
        assert!(back.is_complete(number) && back.id(number) == odd);
    }
}
