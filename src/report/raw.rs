//! Bytes as xfs_db's types `data` and `text` print them. For people there is [`super::hexdump`].

use std::fmt::Write;

/// Width of the offsets: as many hexadecimal digits as the last line needs, up to four.
fn width(last: usize) -> usize {
    match last {
        0..0x10 => 1,
        0x10..0x100 => 2,
        0x100..0x1000 => 3,
        _ => 4,
    }
}

/// Thirty-two bytes a line, in groups of four: type `data`.
pub fn words(out: &mut String, bytes: &[u8]) {
    let width = width(bytes.len().saturating_sub(1) & !31);
    for (line, at) in bytes.chunks(32).zip((0usize..).step_by(32)) {
        let _ = write!(out, "{at:0width$x}:");
        for (i, byte) in line.iter().enumerate() {
            let gap = if i % 4 == 0 { " " } else { "" };
            let _ = write!(out, "{gap}{byte:02x}");
        }
        out.push('\n');
    }
}

/// Sixteen bytes a line, letters and digits behind them: type `text`.
pub fn text(out: &mut String, bytes: &[u8]) {
    let width = width(bytes.len().saturating_sub(1) & !15);
    for (line, at) in bytes.chunks(16).zip((0usize..).step_by(16)) {
        let _ = write!(out, "{at:0width$x}:  ");
        for byte in line {
            let _ = write!(out, "{byte:02x} ");
        }
        out.push(' ');
        out.extend(line.iter().map(|&b| if b.is_ascii_alphanumeric() { char::from(b) } else { '.' }));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_xfs_db_prints_them() {
        // xfs_db 7.2: `type data`, `type text` on an inode of 256 bytes.
        let mut bytes = vec![0x49, 0x4e, 0x80, 0, 2, 2];
        bytes.resize(256, 0);
        let mut out = String::new();
        words(&mut out, &bytes);
        assert_eq!(
            out.lines().next(),
            Some("00: 494e8000 02020000 00000000 00000000 00000000 00000000 00000000 00000000")
        );
        assert!(out.lines().last().is_some_and(|line| line.starts_with("e0: 0000")));
        out.clear();
        text(&mut out, &bytes);
        assert_eq!(out.lines().next(), Some("00:  49 4e 80 00 02 02 00 00 00 00 00 00 00 00 00 00  IN.............."));
        assert_eq!(out.lines().count(), 16);
    }
}
