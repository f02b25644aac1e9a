//! `fsmap`: every range of every device with its owner.

use super::args::number;
use super::session::Session;
use super::target;
use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::report::fsmap::{Part, Row, Table, json};
use crate::units::{AgNumber, Device, RgNumber};
use crate::walk::fsmap::{self, Owner, Query};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Arguments of `fsmap`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The table is that of xfs_io's fsmap -v: all numbers in units of 512 bytes. A block that files share has a line for each.
Owners come from the reverse mapping btrees where there are any, else from reading all inodes; with --no-rmap always
from the inodes. A byte of START and END may be given in sectors (8s), in k, m, g or t. Records that reach over an end
come whole.

  xfsinspect fsmap disk.img --json
  xfsinspect fsmap disk.img --ag 3 --free
  xfsinspect fsmap disk.img --device rt --rtdev rt.img 0 1g")]
pub struct FsmapArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// First byte
    #[arg(value_name = "START", value_parser = number)]
    pub start: Option<u64>,
    /// First byte behind
    #[arg(value_name = "END", value_parser = number)]
    pub end: Option<u64>,
    /// Only this device
    #[arg(long, value_name = "DEVICE", value_enum)]
    pub device: Option<DeviceName>,
    /// Only this AG
    #[arg(long, value_name = "N", conflicts_with_all = ["device", "rg", "start"])]
    pub ag: Option<u32>,
    /// Only this realtime group
    #[arg(long, value_name = "N", conflicts_with_all = ["device", "start"])]
    pub rg: Option<u32>,
    /// Only free space
    #[arg(long)]
    pub free: bool,
    /// Do not use the reverse mapping btrees: read all inodes
    #[arg(long)]
    pub no_rmap: bool,
}

/// A device on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DeviceName {
    /// Data device.
    Data,
    /// Realtime section.
    Rt,
    /// External log.
    Log,
}

impl From<DeviceName> for Device {
    fn from(name: DeviceName) -> Self {
        match name {
            DeviceName::Data => Self::Data,
            DeviceName::Rt => Self::Rt,
            DeviceName::Log => Self::Log,
        }
    }
}

/// What was asked for, in bytes of a device.
fn query(args: &FsmapArgs, geometry: &Geometry) -> Result<Query> {
    let rmap = !args.no_rmap;
    let of = |device: Device, group: Option<fsmap::Group>, name: String| {
        let group = group.ok_or_else(|| Error::request(format!("{name}: there is no such group")))?;
        Ok(Query { device: Some(device), bytes: group.byte..group.end_byte(geometry), rmap })
    };
    if let Some(ag) = args.ag {
        return of(Device::Data, fsmap::ag(geometry, AgNumber(ag)), format!("AG {ag}"));
    }
    if let Some(rg) = args.rg {
        let groups = geometry.realtime.as_ref().is_some_and(|rt| rt.groups.is_some());
        let group = fsmap::realtime_group(geometry, RgNumber(rg)).filter(|_| groups);
        return of(Device::Rt, group, format!("realtime group {rg}"));
    }
    let device = args.device.map(Device::from);
    let there = match device {
        Some(Device::Rt) => geometry.realtime.is_some(),
        Some(Device::Log) => geometry.log_start.is_none(),
        Some(Device::Data) | None => true,
    };
    if !there {
        let name = if device == Some(Device::Rt) { "realtime section" } else { "external log" };
        return Err(Error::request(format!("--device: there is no {name}")));
    }
    let bytes = args.start.unwrap_or(0)..args.end.unwrap_or(u64::MAX);
    if bytes.is_empty() {
        return Err(Error::request(format!("the range from byte {} to {} is empty", bytes.start, bytes.end)));
    }
    Ok(Query { device, bytes, rmap })
}

/// Answers.
pub fn run(session: &mut Session, args: &FsmapArgs) -> Result<()> {
    let target = target::open(session, &args.target)?;
    let geometry = target.volume.geometry();
    let query = query(args, geometry)?;
    let as_json = session.common.json;
    let sb = target.volume.superblock();
    let bytes = |blocks: u32| u64::from(blocks).saturating_mul(geometry.block_size());
    let mut table = Table::new((bytes(sb.unit), bytes(sb.width)));
    let shared = RefCell::new(session);
    let mut report = |error| shared.borrow_mut().problem(&error);
    let _ = fsmap::for_each(&target.volume, &query, &mut report, &mut |range| {
        if !args.free || range.owner == Owner::Free {
            let row = row(geometry, range);
            let text = if as_json { Some(json(&row)) } else { table.add(&row) };
            if let Some(text) = text {
                shared.borrow_mut().print(&text);
            }
        }
        if shared.borrow().closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if !as_json {
        shared.borrow_mut().print(&table.finish());
    }
    target.close(shared.into_inner());
    Ok(())
}

/// A range as it is shown.
pub fn row(geometry: &Geometry, range: &fsmap::Range) -> Row {
    let part = match range.owner {
        Owner::File(mapped) => Some(Part {
            ino: mapped.ino,
            fork: mapped.fork,
            bmbt: mapped.bmbt,
            offset: mapped.offset.saturating_mul(geometry.block_size()),
            unwritten: mapped.unwritten,
        }),
        _ => None,
    };
    Row {
        device: range.device,
        start: range.start.0,
        length: range.length,
        group: range.group,
        owner: range.owner.name(),
        part,
        shared: range.shared,
    }
}
