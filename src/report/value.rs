//! One value as xfs_db writes it. Its habits live here: `null`, octal modes, C escapes, ctime dates.

use crate::format::bits::{bit_range, little_endian, signed};
use crate::format::checksum::{CrcState, verify};
use crate::format::dinode::{METATYPE_NAMES, fork_format};
use crate::format::dquot::DiskDquot;
use crate::format::{Context, Format, Null, Structure, Uuid};
use std::fmt::Write;

/// Where values are read from: the bytes of a structure and what is known of their file system.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The whole structure.
    pub bytes: &'a [u8],
    /// Its file system.
    pub context: &'a Context,
}

/// A value, read but not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Unsigned number.
    Number(u64),
    /// Signed number: sizes, seconds.
    Signed(i64),
    /// All ones where that means "none".
    Null,
    /// Bytes of a name or value.
    Text(&'a [u8]),
    /// UUID.
    Uuid(Uuid),
    /// Checksum with its state.
    Crc(u32, CrcState),
}

/// Seconds and nanoseconds of a timestamp in either form (`xfs_inode_from_disk_ts`).
pub fn timestamp(raw: u64, bigtime: bool) -> (i64, u32) {
    let time = crate::format::dinode_view::time(raw, bigtime);
    (time.sec, time.nsec)
}

/// Seconds since 1970 as ctime(3) writes them in UTC: `Mon Nov 30 08:56:25 2026`; the number where no calendar goes.
pub fn ctime(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        Err(_) => seconds.to_string(),
    }
}

impl<'a> View<'a> {
    /// Reads the value of `bits` bits at `bit`; `None` where it lies outside the structure.
    pub fn read(&self, bit: u64, bits: u32, format: Format, null: Null) -> Option<Value<'a>> {
        let byte = usize::try_from(bit / 8).ok()?;
        match format {
            Format::Text => {
                let length = usize::try_from(bits / 8).ok()?;
                return self.bytes.get(byte..byte.checked_add(length)?).map(Value::Text);
            }
            Format::Uuid => return crate::format::bits::array(self.bytes, byte).map(|b| Value::Uuid(Uuid(b))),
            Format::Crc => {
                let stored = u32::try_from(little_endian(self.bytes, bit, bits)?).ok()?;
                let state = if self.context.has_crc() { verify(self.bytes, byte) } else { CrcState::Unchecked };
                return Some(Value::Crc(stored, state));
            }
            _ => {}
        }
        let raw = match format {
            Format::DecLittle | Format::HexLittle => little_endian(self.bytes, bit, bits)?,
            _ => bit_range(self.bytes, bit, bits)?,
        };
        let ones = if bits >= 64 { u64::MAX } else { (1u64 << bits).saturating_sub(1) };
        Some(match format {
            _ if !matches!(null, Null::Plain | Null::ZeroSkipped) && raw == ones => Value::Null,
            Format::Signed => Value::Signed(signed(raw, bits)),
            Format::TimeSec => Value::Signed(timestamp(raw, false).0),
            Format::BigTimeSec => Value::Signed(timestamp(raw, true).0),
            Format::TimeNsec => Value::Number(u64::from(timestamp(raw, false).1)),
            Format::BigTimeNsec => Value::Number(u64::from(timestamp(raw, true).1)),
            Format::QuotaTimer => Value::Number(self.quota_timer(raw)),
            _ => Value::Number(raw),
        })
    }

    /// Writes it as xfs_db would; nothing where it lies outside the structure.
    pub fn write(&self, out: &mut String, bit: u64, bits: u32, format: Format, null: Null) {
        let Some(value) = self.read(bit, bits, format, null) else { return };
        if matches!(null, Null::NamedZeroSkipped | Null::ZeroSkipped) && value == Value::Number(0) {
            return;
        }
        let _ = match value {
            Value::Null if null == Null::Skipped => Ok(()),
            Value::Null => out.write_str("null"),
            Value::Text(bytes) => {
                c_string(out, bytes);
                Ok(())
            }
            Value::Uuid(uuid) => write!(out, "{uuid}"),
            Value::Crc(0, state) => write!(out, "0 ({})", state_name(state)),
            // xfs_db reads the little-endian field as big-endian: its number is the bytes in disk order.
            Value::Crc(crc, state) => write!(out, "{:#x} ({})", crc.swap_bytes(), state_name(state)),
            Value::Signed(n) if matches!(format, Format::TimeSec | Format::BigTimeSec) => out.write_str(&ctime(n)),
            Value::Signed(n) => write!(out, "{n}"),
            Value::Number(n) if format == Format::QuotaTimer => out.write_str(&self.grace(n)),
            Value::Number(n) => number(out, n, format),
        };
    }
}

impl View<'_> {
    /// A timer of the quota record that these bytes are, in seconds.
    fn quota_timer(&self, raw: u64) -> u64 {
        let raw = u32::try_from(raw).unwrap_or(u32::MAX);
        DiskDquot::decode(self.bytes).map_or(u64::from(raw), |record| record.timer(raw))
    }

    /// Such a timer as text: record 0 has lengths of grace times, the others the time when one ends.
    fn grace(&self, seconds: u64) -> String {
        let lengths = DiskDquot::decode(self.bytes).is_none_or(|record| record.id == 0);
        if lengths || seconds == 0 { seconds.to_string() } else { ctime(seconds.cast_signed()) }
    }
}

/// xfs_db's word for the state of a checksum.
pub fn state_name(state: CrcState) -> &'static str {
    match state {
        CrcState::Unchecked => "unchecked",
        CrcState::Correct => "correct",
        CrcState::Bad { .. } => "bad",
    }
}

fn number(out: &mut String, n: u64, format: Format) -> std::fmt::Result {
    let named = |out: &mut String, names: &[&str]| match usize::try_from(n).ok().and_then(|i| names.get(i)) {
        Some(name) => write!(out, "{n} ({name})"),
        None => write!(out, "{n}"),
    };
    match format {
        Format::Hex | Format::HexLittle if n != 0 => write!(out, "{n:#x}"),
        Format::Oct if n != 0 => write!(out, "0{n:o}"),
        Format::ForkFormat => named(out, &fork_format::NAMES),
        Format::MetaType => named(out, &METATYPE_NAMES),
        _ => write!(out, "{n}"),
    }
}

/// A quoted string with xfs_db's escapes (`fp_charns`). Its letters for control characters are its own: they
/// count from `\a`, so a tab is `\c` and a newline `\d`.
pub fn c_string(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'\'' | b'"' | b'?' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            7..=13 => out.extend(['\\', char::from(byte.saturating_sub(7).saturating_add(b'a'))]),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_case_c49() {
        // bigtime file system of C49: raw 4361615344123456789 is 2040-02-29T12:34:56.123456789Z.
        let (seconds, nanos) = timestamp(4_361_615_344_123_456_789, true);
        assert_eq!((ctime(seconds).as_str(), nanos), ("Wed Feb 29 12:34:56 2040", 123_456_789));
        assert_eq!(ctime(timestamp(0x7fff_ffff_0000_0000, false).0), "Tue Jan 19 03:14:07 2038");
        assert_eq!(ctime(-1_724_755_800), "Fri May  7 13:10:00 1915");
        assert_eq!(ctime(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn strings_as_xfs_db_escapes_them() {
        let mut out = String::new();
        c_string(&mut out, b"a b\\?\t\n\0\xc3~");
        assert_eq!(out, r#""a b\\\?\c\d\000\303~""#);
    }
}
