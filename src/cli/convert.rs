//! `convert`: one address in all units.

use super::args::number;
use super::session::Session;
use super::target;
use crate::error::{Error, Result};
use crate::report::convert::{Converted, Kind, convert};
use crate::report::json::SCHEMA;
use serde_json::{Map, Value as Json};
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `convert`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Units of the data section: agnumber agblock agino fsblock ino daddr byte, with inoidx inooff blkoff bboff within them;
of the realtime section: rgnumber rgblock rtblock rtx rbmblock rbmword rsumlog rsumblock rsuminfo, and with --realtime also
daddr and byte of its device. xfs_db's other names (agno, fsb, rgno ...) work, too. An address that does not exist is an
error.

  xfsinspect convert disk.img fsblock 8197
  xfsinspect convert disk.img agno 1 agblock 5 inoidx 3
  xfsinspect convert disk.img rtblock 5000 rsumlog 3")]
pub struct ConvertArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// A unit and a value; several where it takes several to make an address
    #[arg(required = true, num_args = 2.., value_name = "UNIT VALUE")]
    pub address: Vec<String>,
    /// byte and daddr are those of the realtime device
    #[arg(short, long)]
    pub realtime: bool,
}

/// Answers.
pub fn run(session: &mut Session, args: &ConvertArgs) -> Result<()> {
    let pairs = pairs(&args.address)?;
    let target = target::open(session, &args.target)?;
    let converted = convert(target.volume.geometry(), &pairs, args.realtime);
    target.close(session);
    let converted = converted.map_err(|text| Error::request(format!("{}: {text}", target.name)))?;
    if session.common.json {
        let mut object = object(&converted);
        object.insert("target".into(), target.name.clone().into());
        object.insert("warnings".into(), session.take_warnings());
        session.print_json(object);
    } else {
        session.print(&text(&converted));
    }
    Ok(())
}

fn pairs(words: &[String]) -> Result<Vec<(Kind, u64)>> {
    if !words.len().is_multiple_of(2) {
        return Err(Error::request(
            "convert needs a unit and a value for each part of the address: agnumber 1 agblock 5",
        ));
    }
    let pair = |two: &[String]| {
        let (name, value) = (two.first().map_or("", String::as_str), two.get(1).map_or("", String::as_str));
        let kind = Kind::by_name(name).ok_or_else(|| {
            let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            Error::request(format!("{name:?} is no unit; there are {}", names.join(" ")))
        })?;
        Ok((kind, number(value).map_err(Error::request)?))
    };
    words.chunks(2).map(pair).collect()
}

fn text(converted: &Converted) -> String {
    let width = |f: &dyn Fn(u64) -> String| converted.units.iter().map(|unit| f(unit.value).len()).max().unwrap_or(0);
    let (decimal, hex) = (width(&|n| n.to_string()), width(&|n| format!("{n:#x}")));
    let mut out = String::new();
    for unit in &converted.units {
        let assumed = if converted.assumed.contains(&unit.kind) { " (not given, taken as 0)" } else { "" };
        let _ = writeln!(
            out,
            "{:<9} {:>decimal$} {:>hex$}  = {}{assumed}",
            unit.kind.name(),
            unit.value,
            format!("{:#x}", unit.value),
            unit.how
        );
    }
    out
}

fn object(converted: &Converted) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("type".into(), "address".into());
    object.insert("schema".into(), SCHEMA.into());
    object.insert("device".into(), converted.device.name().into());
    object.insert("start_bytes".into(), converted.byte.0.into());
    let units: Map<String, Json> = converted.units.iter().map(|u| (u.kind.name().to_owned(), u.value.into())).collect();
    let how: Map<String, Json> =
        converted.units.iter().map(|u| (u.kind.name().to_owned(), u.how.clone().into())).collect();
    object.insert("units".into(), units.into());
    object.insert("arithmetic".into(), how.into());
    let assumed: Vec<Json> = converted.assumed.iter().map(|kind| kind.name().into()).collect();
    object.insert("assumed".into(), assumed.into());
    object
}
