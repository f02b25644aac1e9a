//! `cat`: the content of files, holes as zeros.

use super::object;
use super::session::Session;
use super::target;
use crate::error::{Error, Result};
use crate::walk::file::{self, Piece};
use crate::walk::{Inode, Walk};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `cat`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Holes and blocks that are allocated but unwritten read as zeros. The content of a realtime file comes from the realtime
device (--rtdev); without it, it is refused.

  xfsinspect cat disk.img /etc/fstab
  xfsinspect cat disk.img --rtdev rt.img 200064 > movie")]
pub struct CatArgs {
    /// Image or block device
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,
    /// Files, by path or inode number
    #[arg(required = true, value_name = "PATH|INO")]
    pub what: Vec<OsString>,
    /// Take the blocks of a realtime file as blocks of the data device: for a flag that was set by mistake
    #[arg(long)]
    pub as_data: bool,
}

/// Answers.
pub fn run(session: &mut Session, args: &CatArgs) -> Result<()> {
    if session.common.json {
        return Err(Error::request("cat: the content of a file has no JSON form"));
    }
    let target = target::open(session, &args.target)?;
    let walk = Walk::new(&target.volume);
    let shared = RefCell::new(session);
    for object in object::open_all(&shared, &walk, &args.what) {
        let inode = object.block.inode();
        let believed = if args.as_data { Ok(()) } else { target.believe_realtime(inode) };
        if let Err(error) = believed.and_then(|()| write(&shared, &walk, inode, args.as_data)) {
            match error {
                Error::Corrupt { .. } => shared.borrow_mut().problem(&error),
                _ => shared.borrow_mut().error(&error),
            }
        }
    }
    target.close(shared.into_inner());
    Ok(())
}

fn write(session: &RefCell<&mut Session>, walk: &Walk<'_>, inode: Inode<'_>, as_data: bool) -> Result<()> {
    let zeros = [0u8; 1 << 16];
    let mut content = if as_data { file::content_on_data(walk, inode)? } else { file::content(walk, inode)? };
    while let Some(piece) = content.next_piece() {
        match piece? {
            Piece::Data { bytes, .. } => session.borrow_mut().print_bytes(bytes),
            Piece::Zeros { mut length, .. } => {
                while length > 0 && !session.borrow().closed() {
                    let part = usize::try_from(length).unwrap_or(usize::MAX).min(zeros.len());
                    session.borrow_mut().print_bytes(zeros.get(..part).unwrap_or_default());
                    length = length.saturating_sub(part as u64);
                }
            }
        }
        if session.borrow().closed() {
            break;
        }
    }
    Ok(())
}
