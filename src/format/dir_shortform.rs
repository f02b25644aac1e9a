//! A directory small enough to live in its inode. `struct xfs_dir2_sf_hdr`, `struct xfs_dir2_sf_entry`;
//! `xfs_dir2_sf_verify` (xfs_dir2_sf.c).

use super::node::{Item, fits};
use super::on_disk::Format;
use super::{Context, Node, Type, bits};
use crate::units::Ino;

/// Header, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Entries, as stored.
    pub count: u8,
    /// Entries whose inode numbers need 8 bytes; where it is not 0, all numbers have 8.
    pub i8count: u8,
    /// Inode of the parent directory.
    pub parent: Ino,
}

impl Header {
    /// Bytes of an inode number here.
    pub fn ino_size(&self) -> usize {
        if self.i8count == 0 { 4 } else { 8 }
    }
    /// Bytes of the header (`xfs_dir2_sf_hdr_size`).
    pub fn size(&self) -> usize {
        self.ino_size().saturating_add(2)
    }
}

/// An entry, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Byte within the fork.
    pub at: usize,
    /// Bytes it takes.
    pub size: usize,
    /// Where it would lie in a directory block.
    pub offset: u16,
    /// Name, any bytes.
    pub name: &'a [u8],
    /// File type (`XFS_DIR3_FT_*`) where the file system keeps one.
    pub ftype: Option<u8>,
    /// Inode it names.
    pub ino: Ino,
}

/// The inode number of `size` bytes at `at`.
fn ino_at(bytes: &[u8], at: usize, size: usize) -> Option<Ino> {
    if size == 8 { bits::be64(bytes, at).map(Ino) } else { bits::be32(bytes, at).map(u64::from).map(Ino) }
}

/// The header of a directory in the data fork `fork`; `None` where the fork is too short.
pub fn header(fork: &[u8]) -> Option<Header> {
    let [count, i8count] = bits::array(fork, 0)?;
    let parent = ino_at(fork, 2, if i8count == 0 { 4 } else { 8 })?;
    Some(Header { count, i8count, parent })
}

/// Iterates over the entries; ends after `count` of them, or where one leaves the fork.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    fork: &'a [u8],
    at: usize,
    left: u8,
    ino_size: usize,
    ftype: bool,
}

/// The entries of a directory in the data fork `fork`. Fewer than the header's count means that one does not fit.
pub fn entries<'a>(context: &Context, fork: &'a [u8]) -> Entries<'a> {
    let (at, left, ino_size) = header(fork).map_or((0, 0, 4), |h| (h.size(), h.count, h.ino_size()));
    Entries { fork, at, left, ino_size, ftype: context.features.has_ftype() }
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
        let namelen = usize::from(*self.fork.get(at)?);
        let offset = bits::be16(self.fork, at.checked_add(1)?)?;
        let name_at = at.checked_add(3)?;
        let mut after = name_at.checked_add(namelen)?;
        let name = self.fork.get(name_at..after)?;
        let mut ftype = None;
        if self.ftype {
            ftype = Some(*self.fork.get(after)?);
            after = after.checked_add(1)?;
        }
        let ino = ino_at(self.fork, after, self.ino_size)?;
        let end = after.checked_add(self.ino_size)?;
        Some(Entry { at, size: end.checked_sub(at)?, offset, name, ftype, ino })
    }
}

/// Byte `at` of the inode.
fn byte(bytes: &[u8], bit: u64) -> u32 {
    let at = usize::try_from(bit.checked_div(8).unwrap_or(0)).unwrap_or(usize::MAX);
    bytes.get(at).copied().map_or(0, u32::from)
}

/// An inode number of 4 or 8 bytes, under the name that tells which.
fn inumber(name: &'static str, doc: &'static str, bit: u64, wide: bool) -> Node {
    let (part, bits) = if wide { ("i8", 64) } else { ("i4", 32) };
    Node::group(name, bit, vec![Node::value(part, doc, bit, bits, Format::Dec).to(Type::Inode)])
}

/// The node `sfdir3` (`sfdir2` without file types) at `bit` of the inode.
pub fn node(context: &Context, inode: &[u8], bit: u64) -> Node {
    let ftype = context.features.has_ftype();
    let count = byte(inode, bit);
    let wide = byte(inode, bit.saturating_add(8)) != 0;
    let number_bits = if wide { 64 } else { 32 };
    let header = Node::group(
        "hdr",
        bit,
        vec![
            Node::value("count", "Entries.", bit, 8, Format::Dec),
            Node::value("i8count", "Entries whose inode numbers need 8 bytes.", bit.saturating_add(8), 8, Format::Dec),
            inumber("parent", "Inode of the parent directory.", bit.saturating_add(16), wide),
        ],
    );
    let first = bit.saturating_add(16).saturating_add(number_bits);
    let mut items = Vec::new();
    let mut at = first;
    for _ in 0..count {
        if fits(inode, at, 24) == 0 {
            break;
        }
        let namelen = byte(inode, at);
        let name_bit = at.saturating_add(24);
        let after_name = name_bit.saturating_add(u64::from(namelen).saturating_mul(8));
        let number_bit = after_name.saturating_add(if ftype { 8 } else { 0 });
        let mut nodes = vec![
            Node::value("namelen", "Length of the name in bytes.", at, 8, Format::Dec),
            Node::value(
                "offset",
                "Where the entry would lie in a directory block.",
                at.saturating_add(8),
                16,
                Format::Hex,
            ),
        ];
        let shown = namelen.min(fits(inode, name_bit, 8));
        if shown > 0 {
            nodes.push(Node::text("name", "Name.", name_bit, shown));
        }
        nodes.push(inumber("inumber", "Inode of the entry.", number_bit, wide));
        if ftype {
            nodes.push(Node::value("filetype", "File type (XFS_DIR3_FT_*).", after_name, 8, Format::Dec));
        }
        items.push(Item { bit: at, nodes });
        at = number_bit.saturating_add(number_bits);
    }
    let mut nodes = vec![header];
    if !items.is_empty() {
        nodes.push(Node::list("list", first, 0, items));
    }
    Node::group(if ftype { "sfdir3" } else { "sfdir2" }, bit, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_on_any_input() {
        let context = Context::assumed(true);
        let fork = [2, 0, 0, 0, 0, 128, 1, 0, 0x60, b'a', 1, 0, 0, 0, 131, 200, 0, 0x70, b'b'];
        let header = header(&fork).expect("header");
        assert_eq!((header.count, header.parent, header.size()), (2, Ino(128), 6));
        let all: Vec<_> = entries(&context, &fork).collect();
        assert_eq!(all.len(), 1, "the second name does not fit");
        assert_eq!((all[0].name, all[0].ino, all[0].ftype, all[0].size), (&b"a"[..], Ino(131), Some(1), 9));
        assert_eq!(entries(&context, &[255; 300]).count(), 1);
        assert_eq!(entries(&context, &[1]).count(), 0);
    }
}
