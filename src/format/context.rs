//! The few numbers of a file system on which layouts depend.

use super::features::Features;

/// What a layout must know besides the bytes: sizes and features, taken from a superblock that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// File system block in bytes.
    pub block_size: u32,
    /// Sector in bytes: the size of each AG header.
    pub sector_size: u32,
    /// Inode in bytes.
    pub inode_size: u32,
    /// Directory block in bytes: a power of two of file system blocks.
    pub dir_block_size: u32,
    /// Version and feature bits.
    pub features: Features,
}

impl Context {
    /// A context for bytes whose file system is unknown: V5 or V4 with mkfs's sizes.
    pub fn assumed(v5: bool) -> Self {
        Self {
            block_size: 4096,
            sector_size: 512,
            inode_size: if v5 { 512 } else { 256 },
            dir_block_size: 4096,
            features: Features::assumed(v5),
        }
    }

    /// Self-describing metadata with checksums (V5)?
    pub fn has_crc(&self) -> bool {
        self.features.is_v5()
    }
}
