//! What is in this directory? `cargo run --example list_directory IMAGE [PATH]`

use xfsinspect::Xfs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let fs = Xfs::open(args.next().ok_or("an image, please")?)?;
    for entry in fs.path(args.next().unwrap_or_default())?.entries() {
        match entry {
            Ok(entry) => println!("{:>12} {}", entry.ino, entry.name.escape_ascii()),
            // One block is damaged; the entries of the others still come.
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}
