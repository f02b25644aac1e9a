//! Extended attributes small enough to live in the inode. `struct xfs_attr_sf_hdr`, `struct xfs_attr_sf_entry`;
//! `xfs_attr_shortform_verify` (xfs_attr_leaf.c).

use super::node::{Item, fits};
use super::on_disk::Format;
use super::{Context, Node, Type};

/// Bits of an attribute's flags, on disk.
pub mod flags {
    /// Value lies in the leaf block.
    pub const LOCAL: u8 = 1;
    /// Namespace `trusted`.
    pub const ROOT: u8 = 2;
    /// Namespace `security`.
    pub const SECURE: u8 = 4;
    /// Parent pointer.
    pub const PARENT: u8 = 8;
    /// Being changed: not visible.
    pub const INCOMPLETE: u8 = 0x80;
    /// The namespace bits.
    pub const NAMESPACES: u8 = ROOT | SECURE | PARENT;
}

fn byte(bytes: &[u8], bit: u64) -> u8 {
    let at = usize::try_from(bit.checked_div(8).unwrap_or(0)).unwrap_or(usize::MAX);
    bytes.get(at).copied().unwrap_or(0)
}

/// The record a parent pointer has as its value (`struct xfs_parent_rec`).
pub(crate) fn parent_record(bit: u64) -> Node {
    Node::group(
        "parent_dir",
        bit,
        vec![
            Node::value("inumber", "Inode of the parent directory.", bit, 64, Format::Dec).to(Type::Inode),
            Node::value("gen", "Generation of the parent directory.", bit.saturating_add(64), 32, Format::Dec),
        ],
    )
}

/// The node `sfattr` at `bit` of the inode.
pub fn node(_: &Context, inode: &[u8], bit: u64) -> Node {
    let count = byte(inode, bit.saturating_add(16));
    let header = Node::group(
        "hdr",
        bit,
        vec![
            Node::value("totsize", "Bytes of the whole list.", bit, 16, Format::Dec),
            Node::value("count", "Attributes.", bit.saturating_add(16), 8, Format::Dec),
        ],
    );
    let first = bit.saturating_add(32);
    let mut items = Vec::new();
    let mut at = first;
    for _ in 0..count {
        if fits(inode, at, 24) == 0 {
            break;
        }
        let (namelen, valuelen) = (byte(inode, at), byte(inode, at.saturating_add(8)));
        let flag_bit = at.saturating_add(16);
        let name_bit = at.saturating_add(24);
        let value_bit = name_bit.saturating_add(u64::from(namelen).saturating_mul(8));
        let flag = |name, doc, from_top: u64| Node::value(name, doc, flag_bit.saturating_add(from_top), 1, Format::Dec);
        let mut flags_node = Node::value("flags", "Flags.", flag_bit, 8, Format::Hex);
        flags_node.skip = true;
        let mut nodes = vec![
            Node::value("namelen", "Length of the name in bytes.", at, 8, Format::Dec),
            Node::value("valuelen", "Length of the value in bytes.", at.saturating_add(8), 8, Format::Dec),
            flags_node,
            flag("root", "Namespace trusted.", 6),
            flag("secure", "Namespace security.", 5),
            flag("parent", "Parent pointer.", 4),
        ];
        let shown = u32::from(namelen).min(fits(inode, name_bit, 8));
        if shown > 0 {
            nodes.push(Node::text("name", "Name.", name_bit, shown));
        }
        if byte(inode, flag_bit) & flags::NAMESPACES == flags::PARENT {
            nodes.push(parent_record(value_bit));
        } else {
            let shown = u32::from(valuelen).min(fits(inode, value_bit, 8));
            if shown > 0 {
                nodes.push(Node::text("value", "Value.", value_bit, shown));
            }
        }
        items.push(Item { bit: at, nodes });
        at = value_bit.saturating_add(u64::from(valuelen).saturating_mul(8));
    }
    let mut nodes = vec![header];
    if !items.is_empty() {
        nodes.push(Node::list("list", first, 0, items));
    }
    Node::group("sfattr", bit, nodes)
}
