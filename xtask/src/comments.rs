//! `make lint`: finds doc comments that lean on the item above. In an editor and on docs.rs, each stands alone.

/// Beginnings of a doc comment that is understood only with its neighbours.
const LEANING: &[&str] = &["…", "It ", "Its ", "As [", "Of ", "The same", "That ", "Those ", "And "];

/// Doc comments that do not stand alone, with the numbers of their lines: they begin by leaning on something, or they end
/// with `…` to be continued by the next item's.
pub fn leaning(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut above = None;
    for (number, line) in text.lines().enumerate() {
        let doc = line.trim_start().strip_prefix("///").map(str::trim);
        match (above, doc) {
            (None, Some(first)) if LEANING.iter().any(|start| first.starts_with(start)) => {
                found.push((number + 1, first));
            }
            (Some(last), None) if str::ends_with(last, '…') => found.push((number, last)),
            _ => {}
        }
        above = doc;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_leans_on_its_neighbour_is_found_with_its_line() {
        let text = "/// How often a recording tries…\nA,\n    /// It does when there is room.\n    B,\n/// The same.\nC";
        let lines: Vec<usize> = leaning(text).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }

    #[test]
    fn a_comment_that_stands_alone_is_left_alone() {
        let text =
            "/// Items, in order.\n/// It has a second line…\n/// and a third.\nA,\n// The same.\nB, /// C\n";
        assert_eq!(leaning(text), []);
    }
}
