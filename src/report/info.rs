//! The report of xfs_info, byte for byte as xfsprogs 7.2 prints it (`xfs_report_geom`).

use crate::format::superblock::Superblock;
use std::fmt::Write;

/// Names of the devices in the report.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceNames<'a> {
    /// Data device.
    pub data: &'a str,
    /// External log, where one was given.
    pub log: Option<&'a str>,
    /// Realtime device, where one was given.
    pub rt: Option<&'a str>,
}

/// Figures that nothing on disk tells any more print as `?`.
fn told(known: bool, value: impl std::fmt::Display) -> String {
    if known { value.to_string() } else { "?".to_owned() }
}

/// The report. `complete` is false where the superblock was only inferred: then what could not be is `?`.
pub fn report(sb: &Superblock, zoned: (u64, u64), names: DeviceNames<'_>, complete: bool) -> String {
    let f = sb.features();
    let bit = u8::from;
    let dir_block = u64::from(sb.blocksize).checked_shl(u32::from(sb.dirblklog)).unwrap_or(0);
    let sunit = sb.logsunit.checked_div(sb.blocksize).unwrap_or(0);
    let extsz = sb.rextsize.wrapping_mul(sb.blocksize);
    let log_sector = if f.has_sector() { sb.logsectsize } else { 512 };
    let log = if !complete {
        "?"
    } else if sb.logstart.0 > 0 {
        "internal log"
    } else {
        names.log.unwrap_or("external")
    };
    let realtime = if !complete {
        "?"
    } else if sb.rblocks.0 == 0 {
        "none"
    } else if zoned.0 != 0 {
        "internal"
    } else {
        names.rt.unwrap_or("external")
    };
    let (rgcount, rgextents) = if f.has_metadir() { (sb.rgcount, sb.rgextents) } else { (0, 0) };
    let t = |value: &dyn std::fmt::Display| told(complete, value);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "meta-data={:<22} isize={:<6} agcount={}, agsize={} blks",
        names.data, sb.inodesize, sb.agcount, sb.agblocks
    );
    let _ = writeln!(
        out,
        "         ={:<22} sectsz={:<5} attr={}, projid32bit={}",
        "",
        sb.sectsize,
        2,
        t(&bit(f.has_projid32()))
    );
    let _ = writeln!(
        out,
        "         ={:<22} crc={:<8} finobt={}, sparse={}, rmapbt={}",
        "",
        bit(f.is_v5()),
        bit(f.has_finobt()),
        t(&bit(f.has_sparse())),
        bit(f.has_rmapbt())
    );
    let _ = writeln!(
        out,
        "         ={:<22} reflink={:<4} bigtime={} inobtcount={} nrext64={}",
        "",
        bit(f.has_reflink()),
        t(&bit(f.has_bigtime())),
        bit(f.has_inobtcount()),
        t(&bit(f.has_nrext64()))
    );
    let _ = writeln!(
        out,
        "         ={:<22} exchange={:<3} metadir={}",
        "",
        t(&bit(f.has_exchange())),
        t(&bit(f.has_metadir()))
    );
    let _ = writeln!(
        out,
        "data     ={:<22} bsize={:<6} blocks={}, imaxpct={}",
        "",
        sb.blocksize,
        sb.dblocks,
        t(&sb.imax_pct)
    );
    let _ = writeln!(out, "         ={:<22} sunit={:<6} swidth={} blks", "", t(&sb.unit), t(&sb.width));
    let _ = writeln!(
        out,
        "naming   =version {:<14} bsize={:<6} ascii-ci={}, ftype={}, parent={}",
        2,
        t(&dir_block),
        t(&bit(f.has_ascii_ci())),
        t(&bit(f.has_ftype())),
        t(&bit(f.has_parent()))
    );
    let _ = writeln!(
        out,
        "log      ={log:<22} bsize={:<6} blocks={}, version={}",
        sb.blocksize,
        t(&sb.logblocks),
        t(&if f.has_logv2() { 2 } else { 1 })
    );
    let _ = writeln!(
        out,
        "         ={:<22} sectsz={:<5} sunit={} blks, lazy-count={}",
        "",
        t(&log_sector),
        t(&sunit),
        t(&bit(f.has_lazy_count()))
    );
    let _ = writeln!(
        out,
        "realtime ={realtime:<22} extsz={:<6} blocks={}, rtextents={}",
        t(&extsz.cast_signed()),
        t(&sb.rblocks.0.cast_signed()),
        t(&sb.rextents.0.cast_signed())
    );
    let _ =
        writeln!(out, "         ={:<22} rgcount={:<4} rgsize={} extents", "", t(&rgcount.cast_signed()), t(&rgextents));
    let _ = writeln!(
        out,
        "         ={:<22} zoned={:<6} start={} reserved={}",
        "",
        t(&bit(f.has_zoned())),
        t(&zoned.0),
        t(&zoned.1)
    );
    out
}
