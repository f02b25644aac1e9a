//! Extended attributes small enough to live in the inode. `struct xfs_attr_sf_hdr`, `struct xfs_attr_sf_entry`;
//! `xfs_attr_shortform_verify` (xfs_attr_leaf.c).

use super::node::{Item, fits};
use super::on_disk::Format;
use super::{Context, Node, Type, bits};

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

/// Header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole list, header included, as stored.
    pub totsize: u16,
    /// Attributes, as stored.
    pub count: u8,
}

/// An attribute, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Byte within the fork.
    pub at: usize,
    /// Bytes it takes.
    pub size: usize,
    /// Flags ([`flags`]).
    pub flags: u8,
    /// Name, any bytes.
    pub name: &'a [u8],
    /// Value, any bytes.
    pub value: &'a [u8],
}

/// The header of a list in the attribute fork `fork`; `None` where the fork is too short.
pub fn header(fork: &[u8]) -> Option<Header> {
    Some(Header { totsize: bits::be16(fork, 0)?, count: *fork.get(2)? })
}

/// Iterates over the attributes; ends after `count` of them, or where one leaves the fork.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    fork: &'a [u8],
    at: usize,
    left: u8,
}

/// The attributes in the attribute fork `fork`. Fewer than the header's count means that one does not fit.
pub fn entries(fork: &[u8]) -> Entries<'_> {
    Entries { fork, at: 4, left: header(fork).map_or(0, |header| header.count) }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.entry();
        match &entry {
            Some(entry) => self.at = entry.at.saturating_add(entry.size),
            None => self.left = 0,
        }
        entry
    }
}

impl<'a> Entries<'a> {
    fn entry(&self) -> Option<Entry<'a>> {
        let at = self.at;
        let [namelen, valuelen, flags] = bits::array(self.fork, at)?;
        let name_at = at.checked_add(3)?;
        let value_at = name_at.checked_add(usize::from(namelen))?;
        let end = value_at.checked_add(usize::from(valuelen))?;
        let (name, value) = (self.fork.get(name_at..value_at)?, self.fork.get(value_at..end)?);
        Some(Entry { at, size: end.checked_sub(at)?, flags, name, value })
    }
}

/// What a parent pointer has as its value (`struct xfs_parent_rec`): inode and generation of the directory.
pub fn parent_of(value: &[u8]) -> Option<(crate::units::Ino, u32)> {
    if value.len() != 12 {
        return None;
    }
    Some((crate::units::Ino(bits::be64(value, 0)?), bits::be32(value, 8)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_on_any_input() {
        let fork = [0, 13, 2, 0, 1, 2, flags::ROOT, b'a', b'v', b'w', 250, 0, 0, b'b'];
        let all: Vec<_> = entries(&fork).collect();
        assert_eq!(all.len(), 1, "the second name does not fit");
        assert_eq!((all[0].name, all[0].value, all[0].flags, all[0].size), (&b"a"[..], &b"vw"[..], flags::ROOT, 6));
        assert_eq!(entries(&[255; 400]).count(), 0);
        assert_eq!(entries(&[0; 2]).count(), 0);
        assert_eq!(parent_of(&[0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 7]), Some((crate::units::Ino(128), 7)));
    }
}
