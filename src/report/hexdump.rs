//! Bytes as hexadecimal lines; runs of equal lines become one `*`.

use std::fmt::Write;

/// Sixteen bytes a line: offset (from `base`), bytes, printable characters.
pub fn hexdump(bytes: &[u8], base: u64) -> String {
    let mut out = String::new();
    let mut previous: Option<&[u8]> = None;
    let mut starred = false;
    for (line, offset) in bytes.chunks(16).zip((0u64..).step_by(16)) {
        if previous == Some(line) {
            if !starred {
                out.push_str("*\n");
            }
            starred = true;
            continue;
        }
        (previous, starred) = (Some(line), false);
        let _ = write!(out, "{:08x} ", base.saturating_add(offset));
        for (i, byte) in line.iter().enumerate() {
            let _ = write!(out, "{}{byte:02x}", if i == 8 { "  " } else { " " });
        }
        let width = 49usize.saturating_sub(line.len() * 3 + usize::from(line.len() > 8));
        let _ = write!(out, "{:width$}  |", "");
        out.extend(line.iter().map(|&b| if (0x20..0x7f).contains(&b) { char::from(b) } else { '.' }));
        out.push_str("|\n");
    }
    if starred {
        let _ = writeln!(out, "{:08x}", base.saturating_add(u64::try_from(bytes.len()).unwrap_or(0)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_hexdump_c() {
        let mut bytes = b"XFSB".to_vec();
        bytes.resize(64, 0);
        let expected = "\
00000000  58 46 53 42 00 00 00 00  00 00 00 00 00 00 00 00  |XFSB............|
00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
00000040
";
        assert_eq!(hexdump(&bytes, 0), expected);
        assert_eq!(hexdump(b"ab", 512), "00000200  61 62                                             |ab|\n");
    }
}
