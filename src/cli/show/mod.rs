//! `show`: one structure, field by field. What is asked for is found in [`find`], its type where none is given in
//! [`guess`].

mod file;
mod find;
mod guess;

use super::args::ShowArgs;
use super::session::{Outcome, Session};
use super::target;
use crate::error::{Error, Result};
use crate::format::checksum::CrcState;
use crate::format::{Body, Node, Type, layout};
use crate::report::hexdump::hexdump;
use crate::report::print::{Style, print};
use crate::report::select::select;
use crate::report::value::{Value, View};
use crate::report::{json, xfs_db};
use crate::volume::{Block, Volume};
use serde_json::Map;

/// What was asked for: a type, its bytes, and the fields.
struct Answer<'a> {
    kind: Type,
    block: Block,
    fields: &'a [String],
}

/// Answers.
pub fn run(session: &mut Session, args: &ShowArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    let answer = find::find(&target.volume, args);
    if let Ok(answer) = &answer {
        show(session, &target.volume, answer, args)?;
    }
    target.close(session);
    answer.map(|_| ())
}

fn show(session: &mut Session, volume: &Volume, answer: &Answer<'_>, args: &ShowArgs) -> Result<()> {
    let view = View { bytes: &answer.block.bytes, context: volume.context() };
    let all = layout(answer.kind, volume.context(), &answer.block.bytes);
    if let Some((stored, computed)) = bad_crc(view, &all) {
        let text = format!(
            "{}: the checksum is wrong: stored {:#x}, computed {:#x}; values are shown as they are",
            answer.block.place,
            stored.swap_bytes(),
            computed.swap_bytes()
        );
        session.warn("bad-crc", text, Outcome::Findings);
    }
    let mut chosen: Vec<Node> = Vec::new();
    for field in answer.fields {
        let node = select(&all, field, volume.context(), &answer.block.bytes);
        chosen.push(node.map_err(|e| Error::request(format!("{}: {e}", answer.block.place.structure)))?);
    }
    if answer.fields.is_empty() {
        chosen = all;
    }
    if session.common.json {
        let mut object = Map::new();
        object.insert("type".into(), "structure".into());
        object.insert("kind".into(), answer.kind.name().into());
        object.extend(json::place(&answer.block.place));
        object.insert("fields".into(), json::nodes(view, &chosen).into());
        if args.hex {
            object.insert("bytes_hex".into(), json::hex(view.bytes).into());
        }
        object.insert("warnings".into(), session.take_warnings());
        session.print_json(object);
        return Ok(());
    }
    let mut out = String::new();
    let style = Style { verbose: session.common.verbose };
    if answer.fields.is_empty() {
        xfs_db::print_all(&mut out, answer.kind, view, chosen, style);
    } else {
        print(&mut out, view, &chosen, style);
    }
    if args.hex {
        out.push_str(&hexdump(view.bytes, answer.block.place.byte.0));
    }
    session.print(&out);
    Ok(())
}

/// Stored and computed checksum, where they differ.
fn bad_crc(view: View<'_>, nodes: &[Node]) -> Option<(u32, u32)> {
    nodes.iter().find_map(|node| match &node.body {
        Body::Group(parts) => bad_crc(view, parts),
        Body::Value { bits, format, null, .. } => match view.read(node.bit, *bits, *format, *null) {
            Some(Value::Crc(stored, CrcState::Bad { computed })) => Some((stored, computed)),
            _ => None,
        },
        _ => None,
    })
}
