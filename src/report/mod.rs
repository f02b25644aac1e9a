//! How things are shown: nodes, findings and figures in, text or JSON out. Never reads from a device.

pub mod hexdump;
pub mod info;
#[cfg(feature = "cli")]
pub mod json;
pub mod print;
pub mod raw;
pub mod select;
pub mod text;
pub mod value;
pub mod xfs_db;
