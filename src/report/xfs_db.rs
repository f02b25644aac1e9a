//! What xfs_db prints differently from what the disk says: its quirks, kept in one place. They change text output
//! only; JSON has the plain truth.

use super::value::View;
use crate::format::{Body, Format, Node, Type};

/// Makes the tree of a whole structure print as xfs_db prints it.
pub fn apply_quirks(kind: Type, view: View<'_>, nodes: &mut [Node]) {
    match kind {
        Type::Inode => onlink_hidden_by_data(view, nodes),
        Type::Dir3 if !view.context.has_crc() => nodes.iter_mut().for_each(no_filetype),
        Type::Dir3 => nodes.iter_mut().for_each(filetype_of_unused),
        _ => {}
    }
}

/// xfs_db's table of V4 directory entries has no `filetype`, also where the file system keeps one.
fn no_filetype(node: &mut Node) {
    node.skip |= node.name == "filetype";
    match &mut node.body {
        Body::Group(parts) => parts.iter_mut().for_each(no_filetype),
        Body::List { items, .. } => items.iter_mut().flat_map(|item| &mut item.nodes).for_each(no_filetype),
        _ => {}
    }
}

/// On V5 xfs_db prints a `filetype` for unused space, too: the first byte of the tag at its end.
fn filetype_of_unused(node: &mut Node) {
    let Body::List { items, .. } = &mut node.body else { return };
    for item in items.iter_mut().filter(|item| item.nodes.first().is_some_and(|n| n.name == "freetag")) {
        if let Some(at) = item.nodes.iter().position(|n| n.name == "tag")
            && let Some(bit) = item.nodes.get(at).map(|tag| tag.bit)
        {
            item.nodes.insert(at, Node::value("filetype", "", bit, 8, Format::Dec));
        }
    }
}

/// xfs_db decides whether `onlink` is a metadata file type by bit 5 of flags2 without looking at the version: on
/// version 2 inodes that byte belongs to the data fork, and a letter there hides the field.
fn onlink_hidden_by_data(view: View<'_>, nodes: &mut [Node]) {
    let (version, letter) = (view.bytes.get(4).copied(), view.bytes.get(127).copied().unwrap_or(0));
    if version.is_some_and(|v| v >= 3) || letter & 0x20 == 0 {
        return;
    }
    for node in nodes.iter_mut().filter(|node| node.name == "core") {
        if let Body::Group(parts) = &mut node.body {
            parts.iter_mut().filter(|part| part.name == "onlink").for_each(|part| part.skip = true);
        }
    }
}
