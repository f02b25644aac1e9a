//! What is in this file? `cargo run --example read_file IMAGE PATH [RTIMAGE]`

use xfsinspect::Xfs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [image, path, rest @ ..] = args.as_slice() else { return Err("an image and a path, please".into()) };
    let mut builder = Xfs::builder(image);
    if let [rt, ..] = rest {
        builder = builder.realtime(rt);
    }
    let fs = builder.open()?;
    std::io::copy(&mut fs.path(path)?.reader()?, &mut std::io::stdout().lock())?;
    Ok(())
}
