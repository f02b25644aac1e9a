//! A whole structure as `print` of xfs_db 7.2 writes it, and what xfs_db prints differently from what the disk says:
//! its quirks, kept in one place. They change text output only; JSON has the plain truth.

use super::print::{Style, print};
use super::raw;
use super::text::escaped;
use super::value::View;
use crate::format::{Body, Format, Node, Type};

/// Writes all of a structure. With more on request ([`Style::verbose`]) it is always written as fields.
pub fn print_all(out: &mut String, kind: Type, view: View<'_>, mut nodes: Vec<Node>, style: Style) {
    if !style.verbose {
        match kind {
            // xfs_db has no print function for inodata and log.
            Type::Data | Type::Inodata | Type::Log => return raw::words(out, view.bytes),
            Type::Text | Type::Rtbitmap | Type::Rtsummary => return raw::text(out, view.bytes),
            Type::Symlink if !view.context.has_crc() => return plain_string(out, view.bytes),
            _ => {}
        }
    }
    if nodes.is_empty() {
        return out.push_str(" = Unrecognized metadata or type mismatch\n");
    }
    apply_quirks(kind, view, &mut nodes);
    print(out, view, &nodes, style);
}

/// A target of a symbolic link without header. xfs_db writes the bytes as they are; here control characters are
/// escaped.
fn plain_string(out: &mut String, bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    out.push('"');
    out.push_str(&escaped(bytes.get(..end).unwrap_or_default()));
    out.push_str("\"\n");
}

/// Makes the tree of a whole structure print as xfs_db prints it.
fn apply_quirks(kind: Type, view: View<'_>, nodes: &mut [Node]) {
    match kind {
        Type::Inode => onlink_hidden_by_data(view, nodes),
        Type::Dir3 => file_types(view.context.has_crc(), nodes),
        _ => {}
    }
}

/// File types in directory blocks: xfs_db knows none on V4, and on V5 prints one for free spaces, too, which is the
/// first byte of their tag.
fn file_types(v5: bool, nodes: &mut [Node]) {
    for node in nodes.iter_mut().filter(|node| matches!(node.name, "bu" | "du")) {
        let Body::List { items, .. } = &mut node.body else { continue };
        for item in items {
            let free = item.nodes.first().is_some_and(|first| first.name == "freetag");
            let tag = item.nodes.iter().position(|part| part.name == "tag");
            match tag.and_then(|at| Some((at, item.nodes.get(at)?.bit))) {
                _ if !v5 => item.nodes.retain(|part| part.name != "filetype"),
                Some((at, bit)) if free => item.nodes.insert(at, Node::value("filetype", "", bit, 8, Format::Dec)),
                _ => {}
            }
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
