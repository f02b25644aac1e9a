//! Text in lines of a given width.

/// Words of `text` in lines of at most `width` columns, the first behind `first`, the others behind `rest`.
pub fn wrapped(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut out = String::from(first);
    let mut column = first.chars().count();
    let mut fresh = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !fresh && column.saturating_add(length).saturating_add(1) > width {
            out.push('\n');
            out.push_str(rest);
            column = rest.chars().count();
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column = column.saturating_add(1);
        }
        out.push_str(word);
        column = column.saturating_add(length);
        fresh = false;
    }
    out.push('\n');
    out
}

/// `a, b and c`.
#[cfg(any(test, feature = "cli"))]
pub fn list(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_time() {
        assert_eq!(wrapped("aa bb  cc\ndd", 5, "", " "), "aa bb\n cc dd\n".replace(" cc dd", " cc\n dd"));
        assert_eq!(wrapped("longerthanwidth x", 5, "> ", "  "), "> longerthanwidth\n  x\n");
        assert_eq!(wrapped("", 5, "> ", "  "), "> \n");
        assert_eq!((list(&["a"]), list(&["a", "b", "c"])), ("a".into(), "a, b and c".into()));
    }
}
