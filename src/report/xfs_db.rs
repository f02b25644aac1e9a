//! What xfs_db prints differently from what the disk says: its quirks, kept in one place. They change text output
//! only; JSON has the plain truth.

use super::value::View;
use crate::format::{Body, Node, Type};

/// Makes the tree of a whole structure print as xfs_db prints it.
pub fn apply_quirks(kind: Type, view: View<'_>, nodes: &mut [Node]) {
    if kind == Type::Inode {
        onlink_hidden_by_data(view, nodes);
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
