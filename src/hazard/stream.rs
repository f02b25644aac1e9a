//! A recording workload on a geometry: what each frame touches, how often space is allocated, how long it lasts.
//!
//! Arithmetic only. How long a write takes is not on the disk, so nothing here promises a latency.

use super::Facts;
/// The workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Bytes of a frame, each appended with one write.
    pub frame: u64,
    /// Frames of one stream in 1000 seconds.
    pub millifps: u64,
    /// Streams, each into a file of its own.
    pub streams: u64,
    /// Milliseconds within which a frame must be written; by default the time between two frames.
    pub deadline_ms: Option<u64>,
}

impl Workload {
    /// From `BYTES:FPS[:COUNT]`; the bytes may have a unit, the rate up to three decimals. What no recorder does is refused:
    /// a frame that one `write` cannot hold, a million frames a second, more bytes than a file can have.
    ///
    /// # Errors
    /// One sentence on what is wrong.
    pub fn parse(text: &str, number: impl Fn(&str) -> Result<u64, String>) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let (frame, fps, count) = match parts.as_slice() {
            [frame, fps] => (*frame, *fps, "1"),
            [frame, fps, count] => (*frame, *fps, *count),
            _ => return Err(format!("{text:?}: expected BYTES_PER_FRAME:FPS or BYTES_PER_FRAME:FPS:COUNT")),
        };
        let (whole, part) = fps.split_once('.').unwrap_or((fps, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let rate = (digits(whole) && digits(part) && part.len() <= 3 && !whole.is_empty())
            .then(|| format!("{whole}{part:0<3}").parse::<u64>().ok())
            .flatten()
            .filter(|&n| n > 0);
        let millifps = rate.ok_or_else(|| format!("{fps:?} is no rate: expected frames per second, as 25 or 29.97"))?;
        let frame = number(frame)?;
        let streams = number(count)?;
        if frame == 0 || streams == 0 {
            return Err(format!("{text:?}: a frame has at least 1 byte, and there is at least 1 stream"));
        }
        if frame > LARGEST_WRITE {
            return Err(format!(
                "{text:?}: a frame of {frame} bytes, expected up to {LARGEST_WRITE}: no write takes more, and a frame is one write"
            ));
        }
        if millifps > MOST_MILLIFPS {
            let most = MOST_MILLIFPS / 1000;
            return Err(format!("{text:?}: a rate of {fps} frames a second, expected up to {most}"));
        }
        if streams > MOST_STREAMS {
            return Err(format!("{text:?}: {streams} streams, expected up to {MOST_STREAMS}"));
        }
        let workload = Self { frame, millifps, streams, deadline_ms: None };
        let most = u128::from(i64::MAX.unsigned_abs());
        if workload.per_kilosecond() * u128::from(streams) / 1000 > most {
            return Err(format!("{text:?}: more than {most} bytes a second, which is more than a file can have"));
        }
        Ok(workload)
    }

    /// With a deadline.
    ///
    /// # Errors
    /// One sentence where it is none: 0, or more than a day.
    pub fn with_deadline(self, ms: Option<u64>) -> Result<Self, String> {
        match ms {
            Some(ms) if !(1..=LONGEST_DEADLINE_MS).contains(&ms) => {
                Err(format!("{ms}: expected 1 to {LONGEST_DEADLINE_MS}, a day"))
            }
            _ => Ok(Self { deadline_ms: ms, ..self }),
        }
    }

    /// Bytes of one stream in 1000 seconds.
    fn per_kilosecond(&self) -> u128 {
        u128::from(self.frame) * u128::from(self.millifps)
    }

    /// Bytes of all streams in a second.
    pub fn bytes_per_second(&self) -> u64 {
        narrow(self.per_kilosecond() * u128::from(self.streams) / 1000)
    }

    /// Bytes of one stream in an hour.
    pub fn bytes_per_hour(&self) -> u64 {
        narrow(self.per_kilosecond() * 3600 / 1000)
    }

    /// Bytes of all streams in 1000 seconds.
    pub fn bytes_per_kilosecond(&self) -> u64 {
        narrow(self.per_kilosecond() * u128::from(self.streams))
    }

    /// The deadline in microseconds, rounded down: what was asked for, or the time between two frames.
    pub fn deadline_us(&self) -> u64 {
        match self.deadline_ms {
            Some(ms) => ms.saturating_mul(1000),
            None => 1_000_000_000u64.checked_div(self.millifps).unwrap_or(0),
        }
    }

    /// Bytes a second that meet the deadline when all streams deliver at once.
    fn deadline_rate(&self) -> u64 {
        let Some(ms) = self.deadline_ms else { return self.bytes_per_second() };
        let at_once = u128::from(self.frame) * u128::from(self.streams) * 1000;
        narrow(at_once.checked_div(u128::from(ms)).unwrap_or(0))
    }

    /// Seconds until so many bytes are written.
    fn seconds(&self, bytes: u64) -> u64 {
        let rate = self.per_kilosecond() * u128::from(self.streams);
        narrow((u128::from(bytes) * 1000).checked_div(rate).unwrap_or(0))
    }
}

/// Bytes that one `write` takes at most (`MAX_RW_COUNT`: `INT_MAX` in whole pages).
const LARGEST_WRITE: u64 = 0x7fff_f000;
/// Frames of a stream in 1000 seconds: a million a second.
const MOST_MILLIFPS: u64 = 1_000_000_000;
/// Streams.
const MOST_STREAMS: u64 = 1_000_000;
/// A day.
const LONGEST_DEADLINE_MS: u64 = 86_400_000;

fn narrow(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// How often something happens: per 1000 seconds, or per 1000 of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milli(pub u64);

impl std::fmt::Display for Milli {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0 / 1000, self.0 % 1000);
        let text = format!("{part:03}");
        match text.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            part => write!(f, "{whole}.{part}"),
        }
    }
}

/// How a frame lies on units of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Bytes of a unit.
    pub unit: u64,
    /// Units that a frame touches at least …
    pub least: u64,
    /// … and at most, wherever earlier frames ended.
    pub most: u64,
    /// Bytes by which the frame is no multiple.
    pub rest: u64,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The units that frames touch when one is written behind the other.
pub fn touched(frame: u64, unit: u64) -> Option<Touched> {
    if unit == 0 || frame == 0 {
        return None;
    }
    // Frames begin at every multiple of the common divisor within a unit.
    let latest = unit.saturating_sub(gcd(frame, unit));
    let most = (u128::from(latest) + u128::from(frame)).div_ceil(u128::from(unit));
    Some(Touched { unit, least: frame.div_ceil(unit), most: narrow(most), rest: frame % unit })
}

/// Is one size a multiple of another?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Name and bytes of what should be the multiple.
    pub of: (&'static str, u64),
    /// Name and bytes of the unit.
    pub unit: (&'static str, u64),
}

impl Relation {
    /// What is left over; 0 for a multiple.
    pub fn rest(&self) -> u64 {
        self.of.1.checked_rem(self.unit.1).unwrap_or(0)
    }
}

/// Extents of one stream in a recorded hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerHour {
    /// Where nothing else allocates in between.
    pub least: u64,
    /// Where the streams take turns.
    pub most: u64,
}

/// An option of mkfs.xfs that would fit better, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MkfsOption {
    /// As typed.
    pub option: String,
    /// Why.
    pub reason: String,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The workload.
    pub workload: Workload,
    /// Is it about the realtime section? Else about the data section.
    pub realtime: bool,
    /// Bytes that are allocated at once: the realtime extent, or the block.
    pub allocation: u64,
    /// Frames on realtime extents (blocks without a section).
    pub extents: Option<Touched>,
    /// Frames on stripe units and stripe widths of the data section.
    pub stripes: [Option<Touched>; 2],
    /// Frames per allocation unit, in thousandths.
    pub frames_per_extent: Milli,
    /// Allocations of all streams in a second, in thousandths, without a hint.
    pub allocations: Milli,
    /// Which sizes are multiples of which.
    pub relations: Vec<Relation>,
    /// Bytes of the section, and free ones.
    pub room: (u64, u64),
    /// Seconds until an empty section, and what is free now, is full.
    pub seconds: (u64, u64),
    /// Extents per hour and stream without a hint …
    pub per_hour: PerHour,
    /// Bytes of a realtime extent that would fit better.
    pub best: u64,
    /// … and with a hint of so many bytes, which kernels take for the section at hand.
    pub hint: u64,
    /// Extents per hour and stream with that hint.
    pub per_hour_hint: PerHour,
    /// Bytes per second that meet the deadline when all streams deliver at once.
    pub deadline_rate: u64,
    /// mkfs options.
    pub options: Vec<MkfsOption>,
    /// What cannot be told, and what else to know.
    pub notes: Vec<String>,
}

/// Blocks of the longest extent record.
const LONGEST: u64 = (1 << 21) - 1;
/// Largest realtime extent.
const LARGEST_EXTENT: u64 = 1 << 30;

/// Computes it. Sizes of a superblock that make no sense give zeros, not errors.
pub fn advise(facts: &Facts, workload: Workload) -> Advice {
    let sb = &facts.sb;
    let block = facts.block().max(1);
    let realtime = facts.rt();
    let extent = facts.rt_extent_bytes();
    let allocation = if realtime { extent.max(1) } else { block };
    let (unit, width) = (u64::from(sb.unit).saturating_mul(block), u64::from(sb.width).saturating_mul(block));
    let ag = u64::from(sb.agblocks).saturating_mul(block);
    let (frame, streams) = (workload.frame, workload.streams);
    let per_stream = workload.per_kilosecond();
    let room = if realtime {
        (sb.rblocks.0.saturating_mul(block), sb.frextents.saturating_mul(extent))
    } else {
        (sb.dblocks.0.saturating_mul(block), sb.fdblocks.saturating_mul(block))
    };
    // One write per frame: it allocates once, unless what was allocated before still has room for it.
    let allocations = |size: u64| {
        let by_size = per_stream / u128::from(size.max(1));
        narrow(by_size.min(u128::from(workload.millifps)) * u128::from(streams))
    };
    let hour = workload.bytes_per_hour();
    // The longest record, of whole allocation units.
    let units = LONGEST.saturating_mul(block).checked_div(allocation).unwrap_or(0).max(1);
    let longest = units.saturating_mul(allocation);
    let per_hour = |size: u64| {
        let least = hour.div_ceil(longest);
        let pieces = if streams == 1 { least } else { hour.div_ceil(size.clamp(1, longest)) };
        PerHour { least, most: pieces.max(least) }
    };
    let second = narrow(per_stream / 1000).max(frame);
    let whole = if width > 0 { width } else { block };
    let best = fitting(second, whole);
    let hint = fitting_hint(
        second,
        if realtime { extent } else { whole },
        ag.min(u64::from(u32::MAX).saturating_mul(block)),
        realtime,
    );
    // Without a hint a frame is one piece, rounded up to whole allocation units.
    let piece = frame.div_ceil(allocation).saturating_mul(allocation);
    let mut relations = vec![Relation { of: ("frame", frame), unit: ("block", block) }];
    if realtime {
        relations.push(Relation { of: ("frame", frame), unit: ("realtime extent", extent) });
    }
    if unit > 0 {
        relations.push(Relation { of: ("frame", frame), unit: ("stripe unit", unit) });
        relations.push(Relation { of: ("frame", frame), unit: ("stripe width", width) });
        if realtime {
            relations.push(Relation { of: ("realtime extent", extent), unit: ("stripe unit", unit) });
            relations.push(Relation { of: ("realtime extent", extent), unit: ("stripe width", width) });
        }
        relations.push(Relation { of: ("AG", ag), unit: ("stripe unit", unit) });
        relations.push(Relation { of: ("AG", ag), unit: ("stripe width", width) });
    }
    relations.retain(|relation| relation.unit.1 > 0);
    let mut advice = Advice {
        workload,
        realtime,
        allocation,
        extents: touched(frame, allocation),
        stripes: [touched(frame, unit), touched(frame, width)],
        frames_per_extent: Milli(narrow(u128::from(allocation) * 1000 / u128::from(frame.max(1)))),
        allocations: Milli(allocations(allocation)),
        relations,
        room,
        seconds: (workload.seconds(room.0), workload.seconds(room.1)),
        per_hour: per_hour(piece),
        best,
        hint,
        per_hour_hint: per_hour(hint),
        deadline_rate: workload.deadline_rate(),
        options: Vec::new(),
        notes: Vec::new(),
    };
    options(facts, &mut advice, (unit, width), second);
    advice
}

/// The smallest power of two times `unit` that holds `bytes`, up to the largest realtime extent.
fn fitting(bytes: u64, unit: u64) -> u64 {
    let mut size = unit.max(1);
    while size < bytes && size.saturating_mul(2) <= LARGEST_EXTENT {
        size = size.saturating_mul(2);
    }
    size
}

/// An extent size hint for `bytes`, of whole units: a realtime file's must be a multiple of the realtime extent, and one of
/// the data section is refused beyond half an AG (`xfs_inode_validate_extsize`).
fn fitting_hint(bytes: u64, unit: u64, ag: u64, realtime: bool) -> u64 {
    let unit = unit.max(1);
    let size = fitting(bytes, unit);
    let most = if realtime { LARGEST_EXTENT.max(unit) } else { ag / 2 };
    if size <= most { size } else { most.checked_div(unit).unwrap_or(0).max(1).saturating_mul(unit) }
}

fn options(facts: &Facts, advice: &mut Advice, (unit, width): (u64, u64), second: u64) {
    let block = facts.block().max(1);
    let size = super::geometry::size;
    let Workload { frame, streams, .. } = advice.workload;
    let (best, hint) = (advice.best, advice.hint);
    let mut option = |option: String, reason: String| advice.options.push(MkfsOption { option, reason });
    let of_width = if width > 0 { format!(", a multiple of the stripe width {}", size(width)) } else { String::new() };
    let bits = facts.bits_per_block().saturating_mul(best);
    let zoned = facts.features.has_zoned();
    if !advice.realtime {
        option(
            format!("-r rtdev=DEVICE,extsize={best}"),
            format!(
                "there is no realtime section; an extent of {} takes a second of a stream ({}){of_width}, so each stream allocates about once a second",
                size(best),
                size(second)
            ),
        );
        option(
            format!("-d extszinherit={}", hint.div_ceil(block)),
            format!(
                "in the data section: new files ask for {} at a time, so that {streams} streams do not cut each other into pieces of one frame",
                size(hint)
            ),
        );
    } else {
        let misfit = advice.relations.iter().any(|r| r.of.0 == "realtime extent" && r.rest() != 0);
        // Extents of zones are one block.
        if !zoned && (advice.allocation < best / 2 || misfit) {
            let (more, why) = match facts.ro_compat(4) && best > block {
                true => (" -m reflink=0", "; with shared extents (reflink) an extent can only be one block"),
                false => ("", ""),
            };
            option(
                format!("-r rtdev=DEVICE,extsize={best}{more}"),
                format!(
                    "the extent is {} now; {} takes a second of a stream ({}){of_width}: fewer allocations, longer extents, at most one extent lost per file{why}",
                    size(advice.allocation),
                    size(best),
                    size(second)
                ),
            );
        }
        option("-d rtinherit=1".to_owned(), "new files become realtime files without being told".to_owned());
        option(
            format!("-d extszinherit={}", hint.div_ceil(block)),
            format!(
                "a hint of {}, a multiple of the extent of {}, gives nearly the same without a larger extent; a hint that is none is \
                 refused, or makes files that cannot be opened",
                size(hint),
                size(advice.allocation)
            ),
        );
    }
    // Kernels that know realtime groups do not run off the end of a bitmap.
    if !(advice.realtime && facts.features.has_metadir()) {
        option(
            "-r size=".to_owned() + "BYTES",
            format!(
                "any size but a multiple of {} (8 x block size x extent): kernels before 5.10 run off the end of such a bitmap (rt-bitmap-end-scan)",
                size(bits)
            ),
        );
    }
    if unit > 0 && unit < 64 << 10 {
        let chunks = frame.div_ceil(unit);
        option(
            "-d su=CHUNK,sw=DISKS".to_owned(),
            format!(
                "must be what the array has: now {} and {}, and a frame is spread over {chunks} chunks; with chunks of 512 KiB it would be {}",
                size(unit),
                size(width),
                frame.div_ceil(512 << 10)
            ),
        );
    }
    let padded = frame.div_ceil(block).saturating_mul(block);
    let mut note = |text: String| advice.notes.push(text);
    if frame % block != 0 {
        note(format!(
            "a frame of {frame} bytes is no multiple of the block: with O_DIRECT it must be padded (to {padded}, {} bytes more), buffered writes copy the block that two frames share twice",
            padded.saturating_sub(frame)
        ));
    }
    if advice.realtime && unit > 0 {
        note(
            "stripe unit and width are those of the data device; the superblock has none of the realtime device"
                .to_owned(),
        );
    }
    note(
        "how long a write takes, and how far single writes lie from the mean, is not on the disk: measure it"
            .to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("{text:?} is no number"))
    }

    #[test]
    fn workloads() {
        let w = Workload::parse("5700000:20:3", number).expect("good");
        assert_eq!((w.frame, w.millifps, w.streams), (5_700_000, 20_000, 3));
        assert_eq!((w.bytes_per_second(), w.deadline_us()), (342_000_000, 50_000));
        // 1000 / 29.97 = 33.3667 ms: what comes in that time goes out at the rate of the streams, not at that of 33 ms.
        let w = Workload::parse("1000000:29.97", number).expect("good");
        assert_eq!((w.millifps, w.deadline_us(), w.deadline_rate()), (29_970, 33_366, 29_970_000));
        // Faster than a frame a millisecond, and less than a byte a second: 160 MiB are full after 167772160000 s.
        let w = Workload::parse("100:2000", number).expect("good");
        assert_eq!((w.deadline_us(), w.deadline_rate()), (500, 200_000));
        let w = Workload::parse("1:0.001", number).expect("good");
        assert_eq!((w.bytes_per_second(), w.bytes_per_kilosecond(), w.seconds(160 << 20)), (0, 1, 167_772_160_000));
        assert!(Workload::parse("2147479552:1000000:1000000", number).is_err());
        for (ms, good) in [(0, false), (1, true), (86_400_000, true), (86_400_001, false), (u64::MAX, false)] {
            assert_eq!(w.with_deadline(Some(ms)).is_ok(), good, "{ms}");
        }
        for (text, good) in
            [("2147479552:1", true), ("2147479553:1", false), ("1:1000000", true), ("1:1000000.001", false)]
        {
            assert_eq!(Workload::parse(text, number).is_ok(), good, "{text}");
        }
        for bad in [
            "",
            "1",
            "1:0",
            "0:5",
            "1:5:0",
            "1:1.2345",
            "1:-1",
            "1:2:3:4",
            "x:1",
            "1:.5",
            "1:1e3",
            "1000000000000000000:1",
            "9223372036854775808:1",
            "1:1:1000001",
        ] {
            assert!(Workload::parse(bad, number).is_err(), "{bad}");
        }
    }

    #[test]
    fn frames_on_units() {
        // 5.7 MB on 4 KiB: 1391.6 units, at most one more wherever it begins; common divisor 32.
        let t = touched(5_700_000, 4096).expect("some");
        assert_eq!((t.least, t.most, t.rest), (1392, 1393, 5_700_000 % 4096));
        // A multiple that always begins on a unit touches no more than it fills.
        assert_eq!(touched(8192, 4096).map(|t| (t.least, t.most)), Some((2, 2)));
        // Half a unit: one; three quarters: one or two.
        assert_eq!(touched(2048, 4096).map(|t| (t.least, t.most)), Some((1, 1)));
        assert_eq!(touched(3072, 4096).map(|t| (t.least, t.most)), Some((1, 2)));
        assert_eq!(touched(1, 0), None);
    }

    #[test]
    fn brute_force_agrees() {
        for (frame, unit) in [(3u64, 7u64), (10, 4), (12, 8), (7, 7), (1, 5), (9, 6)] {
            let t = touched(frame, unit).expect("some");
            let counts = (0..unit * 3).map(|n| ((n + 1) * frame - 1) / unit - n * frame / unit + 1);
            let (least, most) = counts.fold((u64::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
            assert_eq!((t.least, t.most), (least, most), "{frame} on {unit}");
        }
    }

    #[test]
    fn thousandths() {
        assert_eq!(Milli(1500).to_string(), "1.5");
        assert_eq!(Milli(718).to_string(), "0.718");
        assert_eq!(Milli(60_000).to_string(), "60");
    }
}
