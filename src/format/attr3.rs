//! Blocks of the attribute fork, told apart by magic: leaf, node, value. On V4 a value has no header, so whatever is
//! neither leaf nor node is taken for one.

use super::on_disk::Format;
use super::{Context, Node, attr_leaf, attr_remote, bits, da_block, da_node, node::fits};

/// The nodes of a block of the attribute fork; none for a magic that is no attribute block's (V5).
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    let magic = da_block::info(bytes).map_or(0, |info| info.magic);
    if magic == attr_leaf::magic_of(context) {
        return attr_leaf::nodes(context, bytes);
    }
    if magic == da_node::magic_of(context) {
        let mut nodes = vec![da_node::header_node("hdr", context, bytes)];
        nodes.extend(da_node::entries_node("btree", context, bytes));
        return nodes;
    }
    if !context.has_crc() {
        let doc = "Bytes of the value.";
        let len = context.block_size.min(fits(bytes, 0, 8)).saturating_mul(8);
        return vec![Node::value("data", doc, 0, len, Format::Text)];
    }
    if bits::be32(bytes, 0) == Some(attr_remote::MAGIC) { attr_remote::nodes(context, bytes) } else { Vec::new() }
}
