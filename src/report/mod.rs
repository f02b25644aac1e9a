//! How things are shown: nodes, findings and figures in, text or JSON out. Never reads from a device.

#[cfg(feature = "cli")]
pub mod bmap;
#[cfg(feature = "cli")]
pub mod entry;
#[cfg(feature = "cli")]
pub mod fsmap;
pub mod hexdump;
pub mod info;
#[cfg(feature = "cli")]
pub mod json;
#[cfg(feature = "cli")]
pub mod line;
pub mod print;
pub mod raw;
pub mod select;
pub mod text;
pub mod value;
pub mod xfs_db;
