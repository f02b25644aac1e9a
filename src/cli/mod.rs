//! The command line: arguments in, text or JSON out, an exit status. A user of the library like any other.

mod address;
mod args;
mod cat;
mod check;
mod convert;
mod damage;
mod explain;
mod find;
mod frag;
mod free;
mod fsmap;
mod info;
mod journal;
mod ls;
mod map;
mod object;
mod owner;
mod preflight;
mod quota;
mod session;
mod show;
mod stat;
mod target;
mod xattr;

pub use session::Outcome;

use args::{Args, Command};
use clap::Parser;
use session::Session;
use std::process::ExitCode;

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers, anything else is a usage error: 2, as clap has it.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let mut session = Session::new(args.common.clone());
    let result = match &args.command {
        Command::Info(info) => info::run(&mut session, info),
        Command::Show(show) => show::run(&mut session, show),
        Command::Ls(ls) => ls::run(&mut session, ls),
        Command::Stat(stat) => stat::run(&mut session, stat),
        Command::Cat(cat) => cat::run(&mut session, cat),
        Command::Xattr(xattr) => xattr::run(&mut session, xattr),
        Command::Find(find) => find::run(&mut session, find),
        Command::Map(map) => map::run(&mut session, map),
        Command::Check(check) => check::run(&mut session, check),
        Command::Preflight(preflight) => preflight::run(&mut session, preflight),
        Command::Explain(explain) => explain::run(&mut session, explain),
        Command::Free(free) => free::run(&mut session, free),
        Command::Frag(frag) => frag::run(&mut session, frag),
        Command::Quota(quota) => quota::run(&mut session, quota),
        Command::Convert(convert) => convert::run(&mut session, convert),
        Command::Fsmap(fsmap) => fsmap::run(&mut session, fsmap),
        Command::Owner(owner) => owner::run(&mut session, owner),
    };
    if let Err(error) = result {
        session.error(&error);
    }
    session.finish()
}
