//! Prints the items that recovery of a dirty log would replay, to be compared with `xfs_logprint -t`.
use std::sync::Arc;
use xfsinspect::source::{Cached, FileSource};
use xfsinspect::volume::{Choice, Devices, Volume};
use xfsinspect::walk::log;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: log_items IMAGE [LOGDEV]")?;
    let mut devices = Devices::data_only(Arc::new(Cached::new(FileSource::open(path.as_ref())?)));
    if let Some(path) = std::env::args().nth(2) {
        devices.log = Some(Arc::new(Cached::new(FileSource::open(path.as_ref())?)));
    }
    let volume = Volume::open(devices, Choice::default())?;
    let state = log::state(&volume);
    let Some(recovery) = log::verify(&volume, &state).map_err(|why| why.to_string())? else {
        println!("nothing to replay");
        return Ok(());
    };
    let fails = log::items(&volume, &state, &recovery, &mut |at, item| println!("{at} {item:?}"));
    if let Some((at, why)) = fails.map_err(|why| why.to_string())? {
        println!("recovery fails at {at}: {why}");
    }
    Ok(())
}
