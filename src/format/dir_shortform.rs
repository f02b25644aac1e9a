//! A directory small enough to live in its inode. `struct xfs_dir2_sf_hdr`, `struct xfs_dir2_sf_entry`;
//! `xfs_dir2_sf_verify` (xfs_dir2_sf.c).

use super::node::{Item, fits};
use super::on_disk::Format;
use super::{Context, Node, Type};

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
