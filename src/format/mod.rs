//! What bytes mean: a slice in, values out. No I/O, and no judgement — a damaged value is decoded like any other.
//!
//! Fixed structures are tables ([`on_disk!`](crate::format::on_disk)): one block gives the Rust struct, its decoder,
//! sizes and offsets checked at compile time, xfs_db's names, print formats and conditions. What varies (an inode with
//! its forks, a directory block) is a *layout*: a function from bytes to [`Node`]s, made of those tables. Printing,
//! field paths, JSON, documentation, mutation tests and fuzzing walk nodes and know no structure by name.
//!
//! [`STRUCTURES`] is the list of everything that can be shown.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::as_conversions))]

pub mod bits;
pub mod checksum;
mod context;
pub mod features;
mod node;
pub mod on_disk;
mod structures;

pub mod acl;
pub mod agf;
pub mod agfl;
pub mod agi;
pub mod attr3;
pub mod attr_leaf;
pub mod attr_remote;
pub mod attr_shortform;
pub mod bmbt;
pub mod bnobt;
pub mod btree_block;
pub mod cntbt;
pub mod da_block;
pub mod da_node;
pub mod dinode;
pub mod dinode_view;
pub mod dir3;
pub mod dir_data;
pub mod dir_free;
pub mod dir_leaf;
pub mod dir_shortform;
pub mod dquot;
pub mod finobt;
pub mod guess;
pub mod hash;
pub mod inobt;
pub mod log;
pub mod log_item;
pub mod raw;
pub mod refcountbt;
pub mod rmapbt;
pub mod rtbitmap;
pub mod rtrefcountbt;
pub mod rtrmapbt;
pub mod rtsb;
pub mod rtsummary;
pub mod superblock;
pub mod symlink;

pub use context::Context;
pub use node::{Body, Item, Node, order as node_order, table as node_table};
pub use on_disk::{Crc, Field, Format, Null, Structure, Uuid};
pub use structures::{STRUCTURES, StructureType, Type, layout};
