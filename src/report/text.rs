//! Text that is safe on a terminal: an image is hostile input, its names may hold escape sequences.

use std::borrow::Cow;
use std::fmt::Write;

/// Does this character show nothing itself, but change how others are shown? Control characters, marks that turn the
/// direction of writing, line separators, characters without width: two names that look alike could differ by them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Bytes as text: valid UTF-8 stays, hidden characters ([`is_hidden`]) and stray bytes become `\x1b` and the like, a backslash
/// becomes two.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if is_hidden(c) => {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        let _ = write!(out, "\\x{byte:02x}");
                    }
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// A message whose parts may come from a disk: hidden characters but the end of a line as `\u{202e}`, the rest as it is.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hides = |c: char| is_hidden(c) && c != '\n';
    if !text.contains(hides) {
        return text.into();
    }
    let shown = text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if hides(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    });
    shown.into()
}

/// A number of bytes with the unit a person would use: `1.5 GiB`, `512 bytes`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let log = bytes.checked_ilog2().unwrap_or(0) / 10;
    let Some(unit) = log.checked_sub(1).and_then(|i| UNITS.get(usize::try_from(i).ok()?)) else {
        return format!("{bytes} bytes");
    };
    let whole = bytes >> (10 * log);
    let tenths = ((u128::from(bytes) * 10) >> (10 * log)) % 10;
    if tenths == 0 { format!("{whole} {unit}") } else { format!("{whole}.{tenths} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal() {
        assert_eq!(escaped(b"plain \xc3\xa4"), "plain \u{e4}");
        assert_eq!(escaped(b"\x1b[2J\n\xff\\"), "\\x1b[2J\\n\\xff\\\\");
        assert_eq!(escaped("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
        assert_eq!(visible("one\ntwo\u{2066}\u{1b}[m"), "one\ntwo\\u{2066}\\u{1b}[m");
        // Dashes, quotation marks and dots lie between the marks, and show.
        let shown = "\u{2010}\u{2013}\u{2018}\u{201c}\u{2026}\u{2027}";
        assert_eq!((visible(shown), escaped(shown.as_bytes())), (shown.into(), shown.to_owned()));
    }

    #[test]
    fn sizes() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(31_588_352), "30.1 MiB");
        assert_eq!(size(1 << 30), "1 GiB");
        assert_eq!(size(u64::MAX), "15.9 EiB");
    }
}
