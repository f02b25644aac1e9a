//! What can be typed.

use super::cat::CatArgs;
use super::convert::ConvertArgs;
use super::find::FindArgs;
use super::frag::FragArgs;
use super::free::FreeArgs;
use super::fsmap::FsmapArgs;
use super::ls::LsArgs;
use super::map::MapArgs;
use super::owner::OwnerArgs;
use super::quota::QuotaArgs;
use super::rt::RtArgs;
use super::stat::StatArgs;
use super::xattr::XattrArgs;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Read-only inspector of XFS file systems: images and devices, the realtime section first class.
#[derive(Clone, Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "\
Exit status: 0 answered, nothing wrong; 1 something is damaged, or a danger applies to a kernel that was asked for;
2 could not answer, or not wholly; 3 (check, preflight, rt) the log is dirty and the verdict is of the state before
recovery."
)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Common {
    /// Realtime device or image
    #[arg(long, global = true, value_name = "PATH")]
    pub rtdev: Option<PathBuf>,
    /// External log device or image
    #[arg(long, global = true, value_name = "PATH")]
    pub logdev: Option<PathBuf>,
    /// JSON instead of text: an object for one answer, an object per line for lists
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,
    /// No progress bar
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Threads for work on several AGs at once (default: one per core)
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<usize>,
    /// Only answers and errors, no warnings
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// More about each answer
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Tell at the end what was read from the devices
    #[arg(long, global = true)]
    pub io_stats: bool,
    /// The file system begins at this byte of the target
    #[arg(long, global = true, value_name = "BYTES", value_parser = number)]
    pub offset: Option<u64>,
    /// Map regular files into memory (if a file is cut short meanwhile, the program dies)
    #[arg(long, global = true)]
    pub mmap: bool,
    /// Unpack zstd images that need more than 128 MiB of memory for it (up to 2 GiB)
    #[arg(long, global = true)]
    pub zstd_long: bool,
    /// Read through the superblock copy in this AG
    #[arg(long, global = true, value_name = "N")]
    pub sb: Option<u32>,
    /// Search the whole device for superblock copies, not only its first GiB
    #[arg(long, global = true)]
    pub scan: bool,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Geometry, as xfs_info prints it
    Info(InfoArgs),
    /// Any structure, field by field, as xfs_db prints it
    Show(ShowArgs),
    /// Names in directories, with what their inodes say
    Ls(LsArgs),
    /// One object in full
    Stat(StatArgs),
    /// Content of files
    Cat(CatArgs),
    /// Extended attributes
    Xattr(XattrArgs),
    /// Objects by name, size, owner, flags, times; the paths of an inode
    Find(FindArgs),
    /// Where a file lies
    Map(MapArgs),
    /// Whether the file system is consistent, and what is wrong where
    Check(CheckArgs),
    /// What kernels, boot loaders and tools do with it, and what is dangerous
    Preflight(PreflightArgs),
    /// What a hazard or a finding means, and what to do
    Explain(ExplainArgs),
    /// Free space: histogram of free extents, as xfs_db's freesp prints it
    Free(FreeArgs),
    /// Fragmentation, as xfs_db's frag counts it, with the worst files
    Frag(FragArgs),
    /// Quotas: limits and usage on disk, beside a recount from the inodes
    Quota(QuotaArgs),
    /// One address in all units, with the arithmetic
    Convert(ConvertArgs),
    /// Every range of the devices with its owner
    Fsmap(FsmapArgs),
    /// The realtime section: geometry, use, what is wrong; bitmap, summary, groups, free runs, owners
    Rt(RtArgs),
    /// Who owns a byte, sector or block
    Owner(OwnerArgs),
}

/// Arguments of `info`.
#[derive(Clone, Debug, clap::Args)]
pub struct InfoArgs {
    /// Images, block devices, or mount points
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<PathBuf>,
}

/// Arguments of `show`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
WHAT is one of
  sb N, agf N, agi N, agfl N       header of AG N (N is 0 if left out)
  bnobt N, cntbt N, inobt N, finobt N, rmapbt N, refcntbt N
                                   root block of that btree of AG N (0 if left out)
  inode N                          inode by number
  rtsb                             realtime superblock
  fsblock N, agblock AG:BLOCK      block of the data device
  daddr N                          512-byte unit of the data device
  rtblock N                        block of the realtime section
  /a/path                          inode by path
  dblock INO|PATH N                block N of a file or directory; ablock: of its attribute fork
A block is shown as what its magic number says, as bytes (data) where it says nothing, or as --as TYPE asks:
  agf agfl agi attr3 bmapbta bmapbtd bnobt cntbt data dir3 dqblk finobt inobt inodata inode log refcntbt rgbitmap
  rgsummary rmapbt rtbitmap rtrefcntbt rtrmapbt rtsb rtsummary sb symlink text; V4 names attr and dir2 are accepted
FIELDs name parts of it: core.size  u3.bmx[0-3].startblock  unlinked[5]

  xfsinspect show disk.img sb 0
  xfsinspect show disk.img agf 1 freeblks longest
  xfsinspect show disk.img agblock 2:17
  xfsinspect show disk.img fsblock 24 --as bmapbtd 'recs[1-5]' -v")]
pub struct ShowArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// What to show, then the fields to show of it
    #[arg(required = true, value_name = "WHAT")]
    pub what: Vec<String>,
    /// Type of the structure in a block (xfs_db's type names)
    #[arg(long = "as", value_name = "TYPE")]
    pub kind: Option<String>,
    /// The bytes, too
    #[arg(long)]
    pub hex: bool,
}

/// Arguments of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Nothing is ever written. Exit status: 0 clean; 1 damage; 3 the log is dirty, and nothing is wrong that recovery could not
put right; 2 not everything could be looked at.

  xfsinspect check disk.img
  xfsinspect check /dev/md2 --rtdev /dev/md3 --json
  xfsinspect explain freesp-only-in-bnobt")]
pub struct CheckArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Look only at these AGs; what needs the whole file system is left out
    #[arg(long = "ag", value_name = "N,…", value_delimiter = ',')]
    pub ags: Vec<u32>,
    /// Only findings with these ids, whose ids begin so, or of these structures
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Findings that are shown; more are counted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub max_findings: usize,
}

/// Arguments of `preflight`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
A version is an upstream release: 5.4 is the first of its series, 5.4.302 that one. A distribution's version
(4.18.0-553.el8_10) is answered by its upstream number, host is the running kernel.

  xfsinspect preflight disk.img
  xfsinspect preflight /dev/md2 --rtdev /dev/md3 --kernel 3.2.22
  xfsinspect preflight disk.img --stream 5700000:20:3 --deadline-ms 50
  xfsinspect preflight disk.img --enable-rt 2t:1m
  xfsinspect preflight disk.img --kernel 6.18 --kconfig /boot/config-6.18.2 --logical-sector 4096")]
pub struct PreflightArgs {
    /// Image, block device, or mount point
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Answer for this kernel only, in full (may be repeated)
    #[arg(long = "kernel", value_name = "VERSION")]
    pub kernels: Vec<String>,
    /// How the kernel is built: a /boot/config-VERSION or .config
    #[arg(long, value_name = "FILE")]
    pub kconfig: Option<PathBuf>,
    /// Look at the superblock and the AG headers only: what inodes, extents and btrees decide stays open
    #[arg(long)]
    pub quick: bool,
    /// Advice for recording: frames of so many bytes, so many a second, in COUNT streams (default 1), instead of kernels
    #[arg(long, value_name = "BYTES:FPS[:COUNT]")]
    pub stream: Option<String>,
    /// Milliseconds within which a frame of --stream must be written (default: the time between two)
    #[arg(long, value_name = "N", requires = "stream")]
    pub deadline_ms: Option<u64>,
    /// What adding a realtime section of this size would do (extents of EXTSZ bytes), instead of kernels
    #[arg(long, value_name = "SIZE[:EXTSZ]")]
    pub enable_rt: Option<String>,
    /// Logical sector of the device the image will lie on, in bytes
    #[arg(long, value_name = "BYTES", value_parser = number)]
    pub logical_sector: Option<u64>,
}

/// Arguments of `explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
  xfsinspect explain | grep quota
  xfsinspect explain rt-bitmap-end-scan
  xfsinspect explain sb-dalign-without-unit")]
pub struct ExplainArgs {
    /// Ids of hazards, findings or warnings; without one, all are listed
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// The whole registry of hazards, as docs/hazards.md
    #[arg(long, hide = true)]
    pub catalogue: bool,
}

/// A number, decimal or 0x hexadecimal, with an optional unit: s (512 bytes), or k, m, g, t, p, e, powers of 1024 as in
/// xfsprogs (KiB, MiB … are the same).
pub fn number(text: &str) -> Result<u64, String> {
    let plain = text.strip_suffix("iB").filter(|rest| rest.ends_with(|c: char| "kKMGTPE".contains(c))).unwrap_or(text);
    let (digits, unit) = match plain.strip_suffix(|c: char| "skmgtpeSKMGTPE".contains(c)) {
        Some(digits) if !plain.starts_with("0x") => (digits, plain.get(digits.len()..).unwrap_or("")),
        _ => (plain, ""),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+')),
    };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "s" => 512,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        "p" => 1 << 50,
        "e" => 1 << 60,
        _ => 1u64,
    };
    let value = value.and_then(|value| value.checked_mul(factor));
    value.ok_or_else(|| {
        format!("{text:?} is no number: expected digits below 2^64, with or without k, m, g, t, p, e (powers of 1024) or s (512)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn numbers() {
        assert_eq!(number("9437184"), Ok(9_437_184));
        assert_eq!(number("0x10"), Ok(16));
        assert_eq!(number("9m"), Ok(9 << 20));
        assert_eq!(number("18432s"), Ok(9_437_184));
        assert_eq!((number("4KiB"), number("2MiB"), number("1p")), (Ok(4096), Ok(2 << 20), Ok(1 << 50)));
        for bad in ["", "x", "-1", "+1", "1q", "99999999999t", "0x", "16e", "1iB", "5siB", "1.6t", "iB", "k"] {
            assert!(number(bad).is_err(), "{bad}");
        }
    }
}
