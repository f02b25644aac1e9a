//! Bytes without a structure of their own: file content, and whatever xfs_db's types `data`, `text`, `inodata` and
//! `log` are asked to show.

use super::{Context, Format, Node, node::fits};

/// One node with all the bytes.
pub fn layout(_: &Context, bytes: &[u8]) -> Vec<Node> {
    vec![Node::value("data", "Bytes.", 0, fits(bytes, 0, 8).saturating_mul(8), Format::Text)]
}
