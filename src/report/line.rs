//! One JSON object on one line, written field by field: for lists of a million lines, where a tree of values per
//! line would cost more than finding them.

use super::json::hex;
use super::text::is_hidden;
use std::fmt::{Display, Write};

/// A line being written.
#[derive(Debug)]
pub struct Line {
    text: String,
}

impl Line {
    /// Begins an object of that type.
    pub fn new(kind: &str) -> Self {
        let mut text = String::with_capacity(256);
        let _ = write!(text, "{{\"type\":\"{kind}\"");
        Self { text }
    }

    fn name(&mut self, name: &str) -> &mut String {
        self.text.push_str(",\"");
        self.text.push_str(name);
        self.text.push_str("\":");
        &mut self.text
    }

    /// An integer.
    #[must_use]
    pub fn number(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.name(name), "{value}");
        self
    }

    /// An integer, or null.
    #[must_use]
    pub fn maybe(mut self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => {
                self.name(name).push_str("null");
                self
            }
        }
    }

    /// A truth value, or null.
    #[must_use]
    pub fn truth(mut self, name: &str, value: Option<bool>) -> Self {
        self.name(name).push_str(match value {
            Some(true) => "true",
            Some(false) => "false",
            None => "null",
        });
        self
    }

    /// A string that needs no escapes: names from tables, numbers in quotes.
    #[must_use]
    pub fn plain(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.name(name), "\"{value}\"");
        self
    }

    /// Bytes in lower-case hex.
    #[must_use]
    pub fn hex(self, name: &str, value: &[u8]) -> Self {
        self.plain(name, hex(value))
    }

    /// Bytes as a string, or null; exactly under `name_hex`, too, where they are no UTF-8.
    #[must_use]
    pub fn bytes(mut self, name: &str, value: Option<&[u8]>) -> Self {
        let Some(value) = value else {
            self.name(name).push_str("null");
            return self;
        };
        let text = String::from_utf8_lossy(value);
        let exact = std::str::from_utf8(value).is_ok();
        push_string(self.name(name), &text);
        if exact { self } else { self.hex(&format!("{name}_hex"), value) }
    }

    /// The line, with its end.
    pub fn finish(mut self) -> String {
        self.text.push_str("}\n");
        self.text
    }
}

/// A string with the escapes of JSON.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_hidden(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_as_json() {
        let line = Line::new("x")
            .bytes("path", Some(b"a\"\\\n\t\x01\x7f\xc3\xa4\xe2\x80\xae\xf3\xa0\x80\x81"))
            .bytes("name", Some(b"\xff"))
            .bytes("target", None)
            .number("size", u64::MAX)
            .maybe("none", None::<u64>)
            .truth("shared", Some(true))
            .plain("mode", format_args!("{:o}", 0o100_644))
            .finish();
        let value: serde_json::Value = serde_json::from_str(&line).expect("valid");
        let right = serde_json::json!({"type": "x", "path": "a\"\\\n\t\u{1}\u{7f}\u{e4}\u{202e}\u{e0001}", "name": "\u{fffd}",
            "name_hex": "ff", "target": null, "size": u64::MAX, "none": null, "shared": true, "mode": "100644"});
        assert_eq!(value, right);
        assert!(line.contains("\\u202e\\udb40\\udc01"));
    }
}
