//! Where exactly the field of a finding lies. Checks name structure, part and field (`agf 0 › bnobt block 4 › recs[3]`,
//! `startblock`); the layouts of [`crate::format`] know its bits. Findings are few, so this is looked up at the end.

use super::finding::Finding;
use crate::format::log::RecordHeader;
use crate::format::{Body, Context, Item, Node, Structure, Type, layout, node_table};
use crate::format::{agf, agi, dinode, superblock};
use crate::units::ByteOffset;
use crate::volume::Volume;

/// Narrows the place of a finding from the structure to its field, where the layout has that field. What has no place
/// of its own in the structure (counters that disagree, space of an AG) keeps that of the structure.
pub fn pinpoint(volume: &Volume, finding: &mut Finding) {
    if let Some((bit, bits)) = bits_of(volume, finding) {
        let (first, end) = (bit >> 3, bit.saturating_add(bits).div_ceil(8));
        if end <= finding.place.length
            && let Some(byte) = finding.place.byte.checked_add(first)
        {
            finding.place.byte = ByteOffset(byte.0);
            finding.place.length = end.saturating_sub(first);
        }
    }
}

fn bits_of(volume: &Volume, finding: &Finding) -> Option<(u64, u64)> {
    let place = &finding.place;
    if place.structure.starts_with("log block ") {
        let name = place.field?.strip_prefix("h_")?;
        let field = RecordHeader::FIELDS.iter().find(|field| field.name == name)?;
        return Some((field.bit.into(), field.bits.into()));
    }
    let segments: Vec<&str> = place.structure.split(" › ").collect();
    let at = segments.iter().rposition(|segment| kind(segment).is_some())?;
    let kind = segments.get(at).and_then(|segment| kind(segment))?;
    let parts = segments.get(at.saturating_add(1)..)?;
    let context = volume.context();
    // Where a block could not be found the place is that of who names it.
    let sector = matches!(kind, Type::Sb | Type::Agf | Type::Agi | Type::Agfl);
    let length = u32::try_from(place.length).ok()?;
    if length > kind.size(context) || length < kind.size(context) && !sector {
        return None;
    }
    if let [part] = parts
        && let Some(offset) = part.strip_prefix("offset 0x")
    {
        // A place within a directory block; one of several blocks need not lie in one piece.
        let offset = u64::from_str_radix(offset, 16).ok()?;
        return (length <= context.block_size && offset < place.length).then_some((offset.saturating_mul(8), 8));
    }
    let field = kernel_to_xfs_db(kind, place.field.unwrap_or(finding.rule.field));
    if field == "pad" && matches!(kind, Type::Dir3 | Type::Attr3) {
        return None; // There are several.
    }
    let block = volume.read(place.device, place.byte, length, "").ok()?;
    let nodes = layout(kind, context, &block.bytes);
    let mut whole: Vec<Step<'_>> = field.split('.').map(step).collect::<Option<_>>()?;
    let mut steps: Vec<Step<'_>> = Vec::new();
    for part in parts {
        match part.strip_prefix("child ") {
            // Key or pointer of that number.
            Some(number) => whole.first_mut()?.1 = Some(number.parse().ok()?),
            // A root in an inode is one of the groups that are left out.
            None if part.ends_with(" root") => {}
            None => steps.extend(part.split('.').map(step).collect::<Option<Vec<_>>>()?),
        }
    }
    let parts = steps;
    whole.splice(..0, parts.iter().copied());
    // A rule about a record as a whole names no field of it that a layout has.
    descend(&nodes, &whole, context, &block.bytes).or_else(|| descend(&nodes, &parts, context, &block.bytes))
}

/// The type that a part of the name of a structure stands for.
fn kind(segment: &str) -> Option<Type> {
    let mut words = segment.split(' ');
    match (words.next()?, words.next()?) {
        (name, "block") => Type::by_name(name).or(match name {
            "directory" => Some(Type::Dir3),
            "attribute" => Some(Type::Attr3),
            _ => None,
        }),
        ("inode", _) => Some(Type::Inode),
        (name @ ("sb" | "agf" | "agi" | "agfl"), _) => Type::by_name(name),
        _ => None,
    }
}

/// Names of rules that are not those of xfs_db.
const NAMES: &[(&str, &str)] = &[
    ("blkno", "bno"),
    ("anextents", "naextents"),
    ("btree", "nbtree"),
    ("bests", "fbests"),
    ("bests", "lbests"),
    ("ino", "inumber"),
];

/// Is this what a rule calls `name`?
fn is_called(node: &Node, name: &str) -> bool {
    node.name == name || NAMES.contains(&(name, node.name))
}

/// Rules have the kernel's names, layouts those of xfs_db.
fn kernel_to_xfs_db(kind: Type, name: &'static str) -> &'static str {
    let fields = match kind {
        Type::Sb => superblock::Superblock::FIELDS,
        Type::Agf => agf::Agf::FIELDS,
        Type::Agi => agi::Agi::FIELDS,
        Type::Inode => dinode::DinodeCore::FIELDS,
        _ => return name,
    };
    fields.iter().find(|field| field.kernel_name == name || field.name == name).map_or(name, |field| field.name)
}

/// A name, and the index of an element.
type Step<'a> = (&'a str, Option<u32>);

fn step(text: &str) -> Option<Step<'_>> {
    match text.split_once('[') {
        None => Some((text, None)),
        Some((name, index)) => Some((name, Some(index.strip_suffix(']')?.parse().ok()?))),
    }
}

/// First bit and number of bits of what `steps` lead to.
fn descend(nodes: &[Node], steps: &[Step<'_>], context: &Context, bytes: &[u8]) -> Option<(u64, u64)> {
    let ((name, index), rest) = steps.split_first()?;
    let Some(node) = nodes.iter().find(|node| is_called(node, name)) else {
        // The groups of a structure are left out of the names of its fields: `size` is `core.size`.
        return nodes.iter().find_map(|node| match &node.body {
            Body::Group(parts) => descend(parts, steps, context, bytes),
            _ => None,
        });
    };
    let element = |width: u32, count: u32, first: u32| {
        let skip = index.unwrap_or(first).checked_sub(first).filter(|&skip| skip < count)?;
        Some(node.bit.saturating_add(u64::from(skip).saturating_mul(u64::from(width))))
    };
    match &node.body {
        Body::Value { bits, count, index: first, .. } if rest.is_empty() => {
            let bit = element(*bits, *count, first.unwrap_or(0))?;
            let wanted = if index.is_some() { 1 } else { *count };
            Some((bit, u64::from(*bits).saturating_mul(u64::from(wanted))))
        }
        Body::Records { fields, stride, count, index: first } => {
            index.as_ref()?;
            let bit = element(*stride, *count, *first)?;
            match rest {
                [] => Some((bit, u64::from(*stride))),
                _ => descend(&node_table(fields, context, bytes, bit), rest, context, bytes),
            }
        }
        Body::List { index: first, items } => {
            let skip = index.as_ref()?.checked_sub(*first)?;
            let Item { bit, nodes } = items.get(usize::try_from(skip).ok()?)?;
            match rest {
                [] => Some((*bit, 8)),
                _ => descend(nodes, rest, context, bytes),
            }
        }
        Body::Group(parts) if !rest.is_empty() => descend(parts, rest, context, bytes),
        Body::Group(parts) => parts.first().map(|first| (first.bit, 8)),
        Body::Value { .. } | Body::Empty => None,
    }
}
