//! `show`: one structure, field by field.

use super::args::{ShowArgs, number};
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
use crate::units::{AgNumber, FsBlock, Ino};
use crate::volume::{AgHeader, Block, Volume};
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
    let answer = find(&target.volume, args);
    if let Ok(answer) = &answer {
        show(session, &target.volume, answer, args)?;
    }
    target.close(session);
    answer.map(|_| ())
}

/// The number that a word is, if it is one.
fn as_number(word: Option<&String>) -> Option<u64> {
    word.filter(|w| w.starts_with(|c: char| c.is_ascii_digit())).and_then(|w| number(w).ok())
}

fn find<'a>(volume: &Volume, args: &'a ShowArgs) -> Result<Answer<'a>> {
    let (what, rest) = args.what.split_first().ok_or_else(|| Error::request("show what?"))?;
    let header = match what.as_str() {
        "sb" => Some((Type::Sb, AgHeader::Superblock)),
        "agf" => Some((Type::Agf, AgHeader::Agf)),
        "agi" => Some((Type::Agi, AgHeader::Agi)),
        "agfl" => Some((Type::Agfl, AgHeader::Agfl)),
        _ => None,
    };
    let given = as_number(rest.first());
    let fields = if given.is_some() { rest.get(1..).unwrap_or_default() } else { rest };
    let needed = || given.ok_or_else(|| Error::request(format!("show {what} needs a number: show TARGET {what} N")));
    if let Some((kind, header)) = header {
        let ag = given.unwrap_or(0);
        let ag = u32::try_from(ag).map_err(|_| Error::request(format!("{what} {ag}: no such AG")))?;
        return Ok(Answer { kind, block: volume.ag_header(AgNumber(ag), header)?, fields });
    }
    match what.as_str() {
        "inode" => Ok(Answer { kind: Type::Inode, block: volume.inode(Ino(needed()?))?, fields }),
        "fsblock" => {
            let block = FsBlock(needed()?);
            let kind = wanted_type(args)?;
            let blocks = kind.size(volume.context()).div_ceil(volume.context().block_size);
            let mut read = volume.blocks(block, blocks, format!("{} in block {block}", kind.name()))?;
            read.bytes.truncate(usize::try_from(kind.size(volume.context())).unwrap_or(usize::MAX));
            Ok(Answer { kind, block: read, fields })
        }
        other => Err(Error::request(format!(
            "show {}: not known; there are sb, agf, agi, agfl, inode, fsblock",
            crate::report::text::escaped(other.as_bytes())
        ))),
    }
}

fn wanted_type(args: &ShowArgs) -> Result<Type> {
    let names = || crate::format::STRUCTURES.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let Some(name) = &args.kind else {
        return Err(Error::request(format!("a block needs its type: --as TYPE, one of {}", names())));
    };
    Type::by_name(name).ok_or_else(|| {
        let name = crate::report::text::escaped(name.as_bytes());
        Error::request(format!("--as {name}: no such type; there are {}", names()))
    })
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
