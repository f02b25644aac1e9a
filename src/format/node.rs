//! Nodes: a structure as a tree of named bit ranges, for showing it.
//!
//! Walks and checks use the decoded structs; printers, field paths, JSON, documentation and mutation use nodes.
//! A tree is as large as its block allows (at most 64 KiB of bytes), never as large as a count on disk says.

use super::{Context, Field, Format, Null, Type};

/// A named part of a structure.
#[derive(Clone, Debug)]
pub struct Node {
    /// xfs_db's name.
    pub name: &'static str,
    /// Meaning, one line; may be empty for groups.
    pub doc: &'static str,
    /// First bit, from the start of the block.
    pub bit: u64,
    /// Left out when everything is printed.
    pub skip: bool,
    /// What it points to.
    pub points_to: Option<Type>,
    /// What it holds.
    pub body: Body,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub enum Body {
    /// One value, or an array of equal ones that lie side by side.
    Value {
        /// Bits of one element.
        bits: u32,
        /// Elements.
        count: u32,
        /// Index of the first element where it is an array.
        index: Option<u32>,
        /// How to write it.
        format: Format,
        /// Meaning of all ones and zero.
        null: Null,
    },
    /// An array of small records, written on one line each: `1:[startblock,blockcount]`.
    Records {
        /// Columns.
        fields: &'static [Field],
        /// Bits from one record to the next; negative where records lie backwards is not needed so far.
        stride: u32,
        /// Records.
        count: u32,
        /// Index of the first.
        index: u32,
    },
    /// Parts.
    Group(Vec<Node>),
    /// Numbered parts that may differ in size.
    List {
        /// Index of the first.
        index: u32,
        /// The elements.
        items: Vec<Item>,
    },
    /// Nothing that can be shown: xfs_db writes `(empty)` where a fork has no content.
    Empty,
}

/// Element of a [`Body::List`].
#[derive(Clone, Debug)]
pub struct Item {
    /// First bit, from the start of the block.
    pub bit: u64,
    /// Its parts.
    pub nodes: Vec<Node>,
}

impl Node {
    /// A group of nodes under one name.
    pub fn group(name: &'static str, bit: u64, nodes: Vec<Node>) -> Self {
        Self { name, doc: "", bit, skip: false, points_to: None, body: Body::Group(nodes) }
    }

    /// A numbered list of groups.
    pub fn list(name: &'static str, bit: u64, index: u32, items: Vec<Item>) -> Self {
        Self { name, doc: "", bit, skip: false, points_to: None, body: Body::List { index, items } }
    }

    /// Records side by side. The count is cut to what `bytes` can hold.
    pub fn records(
        name: &'static str,
        doc: &'static str,
        bit: u64,
        fields: &'static [Field],
        (stride, count, index): (u32, u32, u32),
        bytes: &[u8],
    ) -> Self {
        let count = count.min(fits(bytes, bit, stride));
        Self { name, doc, bit, skip: false, points_to: None, body: Body::Records { fields, stride, count, index } }
    }

    /// An array of values side by side. The count is cut to what `bytes` can hold.
    pub fn array(
        name: &'static str,
        doc: &'static str,
        bit: u64,
        (bits, count, index): (u32, u32, u32),
        format: Format,
        bytes: &[u8],
    ) -> Self {
        let count = count.min(fits(bytes, bit, bits));
        let body = Body::Value { bits, count, index: Some(index), format, null: Null::Plain };
        Self { name, doc, bit, skip: false, points_to: None, body }
    }

    /// One value.
    pub fn value(name: &'static str, doc: &'static str, bit: u64, bits: u32, format: Format) -> Self {
        let body = Body::Value { bits, count: 1, index: None, format, null: Null::Plain };
        Self { name, doc, bit, skip: false, points_to: None, body }
    }

    /// A string of `len` bytes.
    pub fn text(name: &'static str, doc: &'static str, bit: u64, len: u32) -> Self {
        Self::value(name, doc, bit, len.saturating_mul(8), Format::Text)
    }

    /// The same node, pointing to a structure.
    #[must_use]
    pub fn to(mut self, target: Type) -> Self {
        self.points_to = Some(target);
        self
    }

    /// The same node, with another meaning of all ones and zero.
    #[must_use]
    pub fn null(mut self, meaning: Null) -> Self {
        if let Body::Value { null, .. } = &mut self.body {
            *null = meaning;
        }
        self
    }

    /// A row of a table at `base`.
    pub fn from_field(field: &Field, base: u64) -> Self {
        let body = Body::Value {
            bits: field.bits,
            count: field.count,
            index: field.array.then_some(0),
            format: field.format,
            null: field.null,
        };
        let bit = base.saturating_add(u64::from(field.bit));
        Self { name: field.name, doc: field.doc, bit, skip: field.skip, points_to: field.points_to, body }
    }
}

/// How many elements of `bits` bits fit between `bit` and the end of `bytes`.
pub(crate) fn fits(bytes: &[u8], bit: u64, bits: u32) -> u32 {
    let total = u64::try_from(bytes.len()).unwrap_or(0).saturating_mul(8);
    let rest = total.saturating_sub(bit).checked_div(u64::from(bits)).unwrap_or(0);
    u32::try_from(rest).unwrap_or(u32::MAX)
}

/// The rows of a table in xfs_db's order.
pub fn order(fields: &[Field]) -> Vec<&Field> {
    let mut rows: Vec<&Field> = fields.iter().filter(|field| field.placed_after.is_none()).collect();
    for field in fields {
        let Some(after) = field.placed_after else { continue };
        let at = rows.iter().position(|row| row.name == after).map_or(rows.len(), |at| at.saturating_add(1));
        rows.insert(at, field);
    }
    rows
}

/// The rows of a table as nodes, `base` bits into the block: those that exist here, in xfs_db's order. Rows named
/// `atime.sec`, `atime.nsec` become a group `atime`.
pub fn table(fields: &[Field], context: &Context, bytes: &[u8], base: u64) -> Vec<Node> {
    let start = usize::try_from(base.checked_div(8).unwrap_or(0)).unwrap_or(usize::MAX);
    let own = bytes.get(start..).unwrap_or_default();
    let exist = |field: &&Field| (field.exists)(context, own);
    let mut nodes: Vec<Node> = Vec::with_capacity(fields.len());
    for field in fields.iter().filter(|field| field.placed_after.is_none()).filter(exist) {
        let node = Node::from_field(field, base);
        let Some((group, part)) = node.name.split_once('.') else {
            nodes.push(node);
            continue;
        };
        let bit = node.bit;
        let node = Node { name: part, ..node };
        match nodes.last_mut() {
            Some(Node { name, body: Body::Group(parts), .. }) if *name == group => parts.push(node),
            _ => nodes.push(Node::group(group, bit, vec![node])),
        }
    }
    for field in fields.iter().filter(exist) {
        let Some(after) = field.placed_after else { continue };
        let at = nodes.iter().position(|n| n.name == after).map_or(nodes.len(), |at| at.saturating_add(1));
        nodes.insert(at, Node::from_field(field, base));
    }
    nodes
}
