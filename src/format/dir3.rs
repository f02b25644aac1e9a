//! Blocks of a directory, told apart by magic: single block, data, leaf, node, free.

use super::dir_data::{self, magic};
use super::{Context, Node, bits, da_block, da_node, dir_free, dir_leaf};

/// The nodes of a directory block; none for a magic that is no directory's.
pub fn layout(context: &Context, bytes: &[u8]) -> Vec<Node> {
    match bits::be32(bytes, 0) {
        Some(magic::BLOCK_V4 | magic::BLOCK_V5 | magic::DATA_V4 | magic::DATA_V5) => {
            return dir_data::nodes(context, bytes);
        }
        Some(dir_free::magic::V4 | dir_free::magic::V5) => return dir_free::nodes(context, bytes),
        _ => {}
    }
    match da_block::info(bytes).map(|info| info.magic) {
        Some(magic) if dir_leaf::is_leaf(magic) => dir_leaf::nodes(context, bytes),
        Some(magic) if magic == da_node::magic_of(context) => {
            let mut nodes = vec![da_node::header_node("nhdr", context, bytes)];
            nodes.extend(da_node::entries_node("nbtree", context, bytes));
            nodes
        }
        _ => Vec::new(),
    }
}
