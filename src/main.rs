//! The program: see [`xfsinspect::cli`].

fn main() -> std::process::ExitCode {
    xfsinspect::cli::main()
}
