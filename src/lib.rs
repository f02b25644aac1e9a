//! Read-only inspection of XFS on disk, from images or devices, the realtime section first class.
//!
//! The modules are the path that bytes take, one way:
//!
//! | module | question |
//! |---|---|
//! | [`source`] | where do bytes come from? knows no XFS |
//! | [`mod@format`] | what do they mean? a slice in, values out; no judgement |
//! | [`geometry`] | the superblock as trusted numbers; every conversion of addresses |
//! | [`volume`] | devices and geometry: the only place that turns an address into a read |
//! | [`walk`] | how are pointers followed? btrees, forks, directories, attributes; ends on any input |
//! | [`check`] | what is wrong? rules as data, findings out |
//! | [`hazard`] | what is dangerous though valid, and who refuses it? rows of data, verdicts by kernel |
//! | [`report`] | how is it shown? text and JSON |
//! | [`Xfs`] | the door: a file system and its objects, put together from the layers |
//! | `cli` | the program: arguments, commands, exit status (feature `cli`) |
//!
//! [`units`] has the address types, [`error`] the errors and the places they speak of.
//!
//! ```no_run
//! use xfsinspect::Xfs;
//!
//! let fs = Xfs::builder("/dev/md2").realtime("/dev/md3").open()?;
//! print!("{}", fs.info());
//! for entry in fs.path("/video")?.entries() {
//!     let entry = entry?;
//!     println!("{} {}", entry.ino, entry.name.escape_ascii());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// A panic where stderr or stdout cannot be written: the program writes through its session.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod check;
#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
pub mod format;
pub mod geometry;
pub mod hazard;
pub mod report;
pub mod source;
pub mod units;
pub mod volume;
pub mod walk;
mod xfs;

pub use xfs::{Builder, Content, Object, Xfs};
