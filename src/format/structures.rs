//! THE list of structures: everything that `show` can print, mutation tests mutate and fuzzing fuzzes.
//! Names are xfs_db's type names. A new structure is one file here in `format/` and one row below.

use super::{Context, Node};
use super::{agf, agfl, agi, bmbt, dinode, dir_data, superblock};

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
    /// Inode with its forks (`struct xfs_dinode`; `xfs_dinode_verify`).
    Inode, "inode", Inode, dinode::layout;
    /// Extent map btree block of a data fork (`struct xfs_btree_block`; `xfs_bmbt_verify`).
    Bmapbtd, "bmapbtd", Block, bmbt::layout;
    /// Extent map btree block of an attribute fork (`struct xfs_btree_block`; `xfs_bmbt_verify`).
    Bmapbta, "bmapbta", Block, bmbt::layout;
    /// Directory block (`struct xfs_dir3_data_hdr`; `xfs_dir3_block_verify`, `xfs_dir3_data_verify`).
    Dir3, "dir3", DirBlock, dir_data::layout;
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
        }
    }
}

/// The nodes of a structure of type `kind` in `bytes`.
pub fn layout(kind: Type, context: &Context, bytes: &[u8]) -> Vec<Node> {
    (kind.row().layout)(context, bytes)
}
