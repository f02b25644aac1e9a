//! THE list of structures: everything that `show` can print, mutation tests mutate and fuzzing fuzzes.
//! Names are xfs_db's type names. A new structure is one file here in `format/` and one row below.

use super::{Context, Node};
use super::{
    agf, agfl, agi, attr3, bmbt, bnobt, cntbt, dinode, dir3, dquot, finobt, inobt, raw, refcountbt, rmapbt, rtbitmap,
    rtrefcountbt, rtrmapbt, rtsb, rtsummary, superblock, symlink,
};

/// How many bytes a structure takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One sector: AG headers.
    Sector,
    /// One file system block.
    Block,
    /// One directory block: one or more file system blocks.
    DirBlock,
    /// One inode.
    Inode,
    /// One quota record.
    Dquot,
}

/// One row of [`STRUCTURES`].
#[derive(Clone, Copy)]
pub struct StructureType {
    /// Which.
    pub kind: Type,
    /// xfs_db's type name.
    pub name: &'static str,
    /// What it is, with the kernel's structure and verifier.
    pub doc: &'static str,
    /// How much of the disk it takes.
    pub extent: Extent,
    /// Bytes to nodes.
    pub layout: fn(&Context, &[u8]) -> Vec<Node>,
}

macro_rules! structures {
    ($( $(#[doc = $doc:literal])* $kind:ident, $name:literal, $extent:ident, $layout:path; )*) => {
        /// The types of structures, with xfs_db's names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Type { $( $(#[doc = $doc])* $kind, )* }

        /// Every structure that can be decoded.
        pub const STRUCTURES: &[StructureType] = &[ $(
            StructureType {
                kind: Type::$kind, name: $name, doc: concat!($($doc),*), extent: Extent::$extent, layout: $layout,
            },
        )* ];

        impl Type {
            /// The row of the list.
            pub const fn row(self) -> &'static StructureType {
                match self { $( Type::$kind => {
                    const ROW: StructureType = StructureType {
                        kind: Type::$kind, name: $name, doc: concat!($($doc),*),
                        extent: Extent::$extent, layout: $layout,
                    };
                    &ROW
                } )* }
            }
        }
    };
}

structures! {
    /// Superblock: first sector of every AG (`struct xfs_dsb`; `xfs_sb_read_verify`).
    Sb, "sb", Sector, superblock::layout;
    /// Free space header: second sector of every AG (`struct xfs_agf`; `xfs_agf_verify`).
    Agf, "agf", Sector, agf::layout;
    /// Inode header: third sector of every AG (`struct xfs_agi`; `xfs_agi_verify`).
    Agi, "agi", Sector, agi::layout;
    /// Free list, blocks kept for the free-space btrees: fourth sector (`struct xfs_agfl`; `xfs_agfl_verify`).
    Agfl, "agfl", Sector, agfl::layout;
    /// Free space btree by block (`struct xfs_alloc_rec`; `xfs_allocbt_verify`).
    Bnobt, "bnobt", Block, bnobt::layout;
    /// Free space btree by size (`struct xfs_alloc_rec`; `xfs_allocbt_verify`).
    Cntbt, "cntbt", Block, cntbt::layout;
    /// Inode btree (`struct xfs_inobt_rec`; `xfs_inobt_verify`).
    Inobt, "inobt", Block, inobt::layout;
    /// Free inode btree (`struct xfs_inobt_rec`; `xfs_inobt_verify`).
    Finobt, "finobt", Block, finobt::layout;
    /// Reverse mapping btree (`struct xfs_rmap_rec`; `xfs_rmapbt_verify`).
    Rmapbt, "rmapbt", Block, rmapbt::layout;
    /// Refcount btree (`struct xfs_refcount_rec`; `xfs_refcountbt_verify`).
    Refcntbt, "refcntbt", Block, refcountbt::layout;
    /// Reverse mapping btree of a realtime group (`struct xfs_rmap_rec`; `xfs_rtrmapbt_verify`).
    Rtrmapbt, "rtrmapbt", Block, rtrmapbt::layout;
    /// Refcount btree of a realtime group (`struct xfs_refcount_rec`; `xfs_rtrefcountbt_verify`).
    Rtrefcntbt, "rtrefcntbt", Block, rtrefcountbt::layout;
    /// Inode with its forks (`struct xfs_dinode`; `xfs_dinode_verify`).
    Inode, "inode", Inode, dinode::layout;
    /// Extent map btree block of a data fork (`struct xfs_btree_block`; `xfs_bmbt_verify`).
    Bmapbtd, "bmapbtd", Block, bmbt::layout;
    /// Extent map btree block of an attribute fork (`struct xfs_btree_block`; `xfs_bmbt_verify`).
    Bmapbta, "bmapbta", Block, bmbt::attr_layout;
    /// Directory block of any kind (`struct xfs_dir3_data_hdr` and kin; `xfs_dir3_block_verify`,
    /// `xfs_dir3_data_verify`, `xfs_dir3_leaf1_verify`, `xfs_dir3_leafn_verify`, `xfs_da3_node_verify`,
    /// `xfs_dir3_free_verify`).
    Dir3, "dir3", DirBlock, dir3::layout;
    /// Attribute block of any kind (`struct xfs_attr3_leafblock` and kin; `xfs_attr3_leaf_verify`,
    /// `xfs_da3_node_verify`, `xfs_attr3_rmt_verify`).
    Attr3, "attr3", Block, attr3::layout;
    /// Target of a symbolic link (`struct xfs_dsymlink_hdr`; `xfs_symlink_verify`).
    Symlink, "symlink", Block, symlink::layout;
    /// Quota records (`struct xfs_dqblk`; `xfs_dquot_buf_verify`).
    Dqblk, "dqblk", Dquot, dquot::layout;
    /// Realtime superblock (`struct xfs_rtsb`; `xfs_rtsb_verify`).
    Rtsb, "rtsb", Block, rtsb::layout;
    /// Realtime bitmap without groups (`union xfs_rtword_raw`).
    Rtbitmap, "rtbitmap", Block, rtbitmap::classic_layout;
    /// Realtime summary without groups (`union xfs_suminfo_raw`).
    Rtsummary, "rtsummary", Block, rtsummary::classic_layout;
    /// Realtime bitmap of a group (`struct xfs_rtbuf_blkinfo`; `xfs_rtbuf_verify`).
    Rgbitmap, "rgbitmap", Block, rtbitmap::group_layout;
    /// Realtime summary of a group (`struct xfs_rtbuf_blkinfo`; `xfs_rtbuf_verify`).
    Rgsummary, "rgsummary", Block, rtsummary::group_layout;
    /// Content of a file: bytes.
    Data, "data", Block, raw::layout;
    /// Content of a file: bytes and characters.
    Text, "text", Block, raw::layout;
    /// Content of a file: bytes.
    Inodata, "inodata", Block, raw::layout;
    /// Block of the log: bytes.
    Log, "log", Block, raw::layout;
}

impl Type {
    /// The type with that xfs_db name. On V4 file systems xfs_db says `dir2` and `attr`: both are accepted.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = match name {
            "dir2" => "dir3",
            "attr" => "attr3",
            other => other,
        };
        STRUCTURES.iter().find(|row| row.name == name).map(|row| row.kind)
    }

    /// xfs_db's name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Bytes that a structure of this type takes on this file system.
    pub fn size(self, context: &Context) -> u32 {
        match self.row().extent {
            Extent::Sector => context.sector_size,
            Extent::Block => context.block_size,
            Extent::DirBlock => context.dir_block_size,
            Extent::Inode => context.inode_size,
            Extent::Dquot => 136,
        }
    }
}

/// The nodes of a structure of type `kind` in `bytes`.
pub fn layout(kind: Type, context: &Context, bytes: &[u8]) -> Vec<Node> {
    (kind.row().layout)(context, bytes)
}
