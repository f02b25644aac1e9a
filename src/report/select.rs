//! Field paths as xfs_db takes them: `core.size`, `u3.bmx[0-3].startblock`, `unlinked[5]`.
//! A path prunes the tree of nodes to what it names; printing then needs nothing special.

use crate::format::{Body, Context, Item, Node};
use std::fmt;

/// Why a path names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The text is no path.
    Syntax(String),
    /// No such field here.
    NotFound {
        /// The name.
        name: String,
        /// Names that would do.
        known: Vec<&'static str>,
    },
    /// An index on something that has none.
    NotArray(&'static str),
    /// An index out of bounds.
    OutOfRange {
        /// The array.
        name: &'static str,
        /// First and last index asked for.
        asked: (u32, u32),
        /// First and last index there are; `None` for an empty array.
        bounds: Option<(u32, u32)>,
    },
    /// A part of something that has no parts.
    NoParts(&'static str),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => write!(f, "bad syntax in field name {text}"),
            Self::NotFound { name, known } => write!(f, "field {name} not found; there are {}", known.join(", ")),
            Self::NotArray(name) => write!(f, "field {name} is not an array"),
            Self::OutOfRange { name, bounds: None, .. } => write!(f, "no elements in {name}"),
            Self::OutOfRange { name, asked: (a, b), bounds: Some((low, high)) } if a == b => {
                write!(f, "index {a} for field {name} out of range {low}-{high}")
            }
            Self::OutOfRange { name, asked: (a, b), bounds: Some((low, high)) } => {
                write!(f, "indices {a}-{b} for field {name} out of range {low}-{high}")
            }
            Self::NoParts(name) => write!(f, "field {name} has no subfields"),
        }
    }
}

/// One part of a path: a name, and the first and last index asked for.
type Step = (String, Option<(u32, u32)>);

fn parse(path: &str) -> Result<Vec<Step>, PathError> {
    let bad = || PathError::Syntax(crate::report::text::escaped(path.as_bytes()));
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    path.split('.')
        .map(|part| {
            let (name, index) = match part.split_once('[') {
                None => (part, None),
                Some((name, rest)) => (name, Some(rest.strip_suffix(']').ok_or_else(bad)?)),
            };
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(bad());
            }
            let index = match index {
                None => None,
                Some(text) => {
                    let (low, high) = text.split_once('-').unwrap_or((text, text));
                    Some(number(low).zip(number(high)).ok_or_else(bad)?)
                }
            };
            Ok((name.to_owned(), index))
        })
        .collect()
}

/// The nodes that `path` names, within pruned copies of the nodes that hold them.
///
/// # Errors
/// What is wrong with the path.
pub fn select(nodes: &[Node], path: &str, context: &Context, bytes: &[u8]) -> Result<Node, PathError> {
    let steps = parse(path)?;
    step(nodes, &steps, context, bytes)
}

fn step(nodes: &[Node], steps: &[Step], context: &Context, bytes: &[u8]) -> Result<Node, PathError> {
    let Some(((name, index), rest)) = steps.split_first() else {
        return Err(PathError::Syntax(String::new()));
    };
    let Some(node) = nodes.iter().find(|node| node.name == name) else {
        let known = nodes.iter().map(|node| node.name).collect();
        return Err(PathError::NotFound { name: name.clone(), known });
    };
    let mut node = narrow(node, *index)?;
    node.skip = false;
    if rest.is_empty() {
        return Ok(node);
    }
    node.body = match node.body {
        Body::Group(parts) => Body::Group(vec![step(&parts, rest, context, bytes)?]),
        Body::List { index, items } => Body::List { index, items: within(items, rest, context, bytes)? },
        Body::Records { fields, stride, count, index } => {
            let items = (0..count)
                .map(|i| u64::from(i).saturating_mul(u64::from(stride)).saturating_add(node.bit))
                .map(|bit| Item { bit, nodes: crate::format::node_table(fields, context, bytes, bit) })
                .collect();
            Body::List { index, items: within(items, rest, context, bytes)? }
        }
        Body::Value { .. } | Body::Empty => return Err(PathError::NoParts(node.name)),
    };
    Ok(node)
}

fn within(items: Vec<Item>, rest: &[Step], context: &Context, bytes: &[u8]) -> Result<Vec<Item>, PathError> {
    items
        .into_iter()
        .map(|item| Ok(Item { bit: item.bit, nodes: vec![step(&item.nodes, rest, context, bytes)?] }))
        .collect()
}

/// A node cut down to the elements asked for.
fn narrow(node: &Node, asked: Option<(u32, u32)>) -> Result<Node, PathError> {
    let mut node = node.clone();
    let Some((low, high)) = asked else { return Ok(node) };
    let name = node.name;
    let check = |first: u32, count: u32| {
        let last = first.saturating_add(count).checked_sub(1).filter(|_| count > 0);
        match last {
            Some(last) if low >= first && high <= last && low <= high => Ok(low.saturating_sub(first)),
            last => Err(PathError::OutOfRange { name, asked: (low, high), bounds: last.map(|last| (first, last)) }),
        }
    };
    let wanted = high.saturating_sub(low).saturating_add(1);
    let skip_bits = |skip: u32, width: u32| u64::from(skip).saturating_mul(u64::from(width));
    match &mut node.body {
        Body::Value { bits, count, index: Some(index), .. } => {
            let skip = check(*index, *count)?;
            node.bit = node.bit.saturating_add(skip_bits(skip, *bits));
            (*index, *count) = (low, wanted);
        }
        Body::Records { stride, count, index, .. } => {
            let skip = check(*index, *count)?;
            node.bit = node.bit.saturating_add(skip_bits(skip, *stride));
            (*index, *count) = (low, wanted);
        }
        Body::List { index, items } => {
            let skip = check(*index, u32::try_from(items.len()).unwrap_or(u32::MAX))?;
            let skip = usize::try_from(skip).unwrap_or(usize::MAX);
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            *items = items.drain(..).skip(skip).take(wanted).collect();
            *index = low;
        }
        _ => return Err(PathError::NotArray(name)),
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_xfs_db_reads_them() {
        assert_eq!(parse("u3.bmx[0-3].startblock").expect("good").len(), 3);
        assert_eq!(parse("bno[0x10]").expect("good"), [("bno".to_owned(), Some((16, 16)))]);
        for bad in ["", "a.", "bno[1", "bno[x]", "bno[1-]", "a b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
