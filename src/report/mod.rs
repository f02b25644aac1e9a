//! How things are shown: nodes, findings and figures in, text or JSON out. Never reads from a device.

#[cfg(feature = "cli")]
pub mod bmap;
pub mod check;
pub mod convert;
pub mod coverage;
#[cfg(feature = "cli")]
pub mod entry;
pub mod explain;
#[cfg(feature = "cli")]
pub mod fsmap;
pub mod hexdump;
pub mod histogram;
pub mod info;
#[cfg(feature = "cli")]
pub mod json;
#[cfg(feature = "cli")]
pub mod line;
#[cfg(feature = "cli")]
pub mod preflight;
#[cfg(feature = "cli")]
pub mod preflight_json;
#[cfg(feature = "cli")]
mod preflight_rt;
pub mod print;
pub mod raw;
#[cfg(feature = "cli")]
pub mod rt;
#[cfg(feature = "cli")]
mod rt_whole;
pub mod select;
#[cfg(feature = "cli")]
pub mod stream;
pub mod text;
pub mod value;
pub mod warning;
mod wrap;
pub mod xfs_db;
