//! Prints the items that recovery of a dirty log would replay, to be compared with `xfs_logprint -t`.

use xfsinspect::Xfs;
use xfsinspect::walk::log;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: log_items IMAGE [LOGDEV]")?;
    let mut builder = Xfs::builder(path);
    if let Some(path) = std::env::args().nth(2) {
        builder = builder.log(path);
    }
    let fs = builder.open()?;
    let volume = fs.volume();
    let state = log::state(volume);
    let Some(recovery) = log::verify(volume, &state).map_err(|why| why.to_string())? else {
        println!("nothing to replay");
        return Ok(());
    };
    let fails = log::items(volume, &state, &recovery, &mut |at, item| println!("{at} {item:?}"));
    if let Some((at, why)) = fails.map_err(|why| why.to_string())? {
        println!("recovery fails at {at}: {why}");
    }
    Ok(())
}
