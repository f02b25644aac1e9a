//! A tree of nodes as `print` of xfs_db 7.2 writes it, line for line; with more on request: place, size and meaning
//! of each field.

use super::value::View;
use crate::format::{Body, Field, Node, Null, node_order};
use std::fmt::Write;

/// What is added to xfs_db's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Byte, size and meaning behind each value.
    pub verbose: bool,
}

/// Writes `nodes`; those that are left out by default only where they were asked for by name.
pub fn print(out: &mut String, view: View<'_>, nodes: &[Node], style: Style) {
    let mut printer = Printer { out, view, style };
    printer.nodes(nodes, "");
}

struct Printer<'a, 'o> {
    out: &'o mut String,
    view: View<'a>,
    style: Style,
}

/// Column where the remarks of the verbose form begin.
const REMARK: usize = 48;

impl Printer<'_, '_> {
    fn nodes(&mut self, nodes: &[Node], prefix: &str) {
        for node in nodes.iter().filter(|node| !node.skip) {
            self.node(node, prefix);
        }
    }

    fn node(&mut self, node: &Node, prefix: &str) {
        let name = format!("{prefix}{}", node.name);
        match &node.body {
            Body::Group(nodes) => self.nodes(nodes, &format!("{name}.")),
            Body::List { index, items } => {
                for (i, item) in (*index..).zip(items) {
                    self.nodes(&item.nodes, &format!("{name}[{i}]."));
                }
            }
            Body::Empty => self.line(node, &name, 0, |p| p.out.push_str("(empty)")),
            Body::Value { bits, count, index, format, null } => {
                let name = indexed(&name, *index, *count);
                let total = u64::from(*bits).saturating_mul(u64::from(*count));
                self.line(node, &name, total, |p| {
                    p.values(node.bit, *bits, (*count, *index), (*format, *null));
                });
            }
            Body::Records { fields, stride, count, index } => {
                let name = indexed(&name, Some(*index), *count);
                let total = u64::from(*stride).saturating_mul(u64::from(*count));
                self.line(node, &name, total, |p| p.records(node.bit, fields, *stride, (*count, *index)));
            }
        }
    }

    fn line(&mut self, node: &Node, name: &str, bits: u64, value: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        let _ = write!(self.out, "{name} = ");
        value(self);
        if self.style.verbose {
            let width = self.out.get(start..).map_or(0, |line| line.lines().last().unwrap_or("").chars().count());
            let pad = REMARK.saturating_sub(width).max(1);
            let _ = write!(self.out, "{:pad$}# byte {}", "", node.bit / 8);
            let _ = match (node.bit % 8, bits % 8) {
                (0, 0) => write!(self.out, ", {} bytes", bits / 8),
                (bit, _) => write!(self.out, " bit {bit}, {bits} bits"),
            };
            if !node.doc.is_empty() {
                let _ = write!(self.out, ": {}", node.doc.trim());
            }
        }
        self.out.push('\n');
    }

    fn values(
        &mut self,
        first: u64,
        bits: u32,
        (count, index): (u32, Option<u32>),
        (format, null): (crate::format::Format, Null),
    ) {
        for i in 0..count {
            let bit = u64::from(i).saturating_mul(u64::from(bits)).saturating_add(first);
            if self.skipped(bit, bits, null) {
                continue;
            }
            if let Some(index) = index.filter(|_| count > 1) {
                let _ = write!(self.out, "{}:", index.saturating_add(i));
            }
            self.view.write(self.out, bit, bits, format, null);
            if i.saturating_add(1) < count {
                self.out.push(' ');
            }
        }
    }

    /// Is this element one that xfs_db leaves out?
    fn skipped(&self, bit: u64, bits: u32, null: Null) -> bool {
        let raw = crate::format::bits::bit_range(self.view.bytes, bit, bits);
        match null {
            Null::NamedZeroSkipped | Null::ZeroSkipped => raw == Some(0),
            Null::Skipped => raw == Some(if bits >= 64 { u64::MAX } else { (1u64 << bits).saturating_sub(1) }),
            Null::Plain | Null::Named => false,
        }
    }

    fn records(&mut self, first: u64, fields: &[Field], stride: u32, (count, index): (u32, u32)) {
        let shown: Vec<&Field> = node_order(fields).into_iter().filter(|f| !f.skip && self.exists(f)).collect();
        let names: Vec<&str> = shown.iter().map(|f| f.name).collect();
        let _ = write!(self.out, "[{}] ", names.join(","));
        for i in 0..count {
            let bit = u64::from(i).saturating_mul(u64::from(stride)).saturating_add(first);
            let _ = write!(self.out, "\n{}:", index.saturating_add(i));
            for (n, field) in shown.iter().enumerate() {
                self.out.push(if n == 0 { '[' } else { ',' });
                let at = bit.saturating_add(u64::from(field.bit));
                if !self.skipped(at, field.bits, field.null) {
                    self.view.write(self.out, at, field.bits, field.format, field.null);
                }
            }
            self.out.push(']');
            if i.saturating_add(1) < count {
                self.out.push(' ');
            }
        }
    }

    fn exists(&self, field: &Field) -> bool {
        (field.exists)(self.view.context, self.view.bytes)
    }
}

/// `name[0-63]`, `name[5]`, `name`.
fn indexed(name: &str, index: Option<u32>, count: u32) -> String {
    match index {
        None => name.to_owned(),
        Some(first) if count <= 1 => format!("{name}[{first}]"),
        Some(first) => format!("{name}[{first}-{}]", first.saturating_add(count).saturating_sub(1)),
    }
}
