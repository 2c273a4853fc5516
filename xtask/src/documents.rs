//! `make lint`: finds paragraphs of the documents whose lines are too long to be read beside code.

/// The columns of a line. Tables, examples and headings may be longer.
const COLUMNS: usize = 120;

/// Lines that are too long and have a place to break them, a blank outside of code and of comments; with their numbers.
pub fn too_long(text: &str) -> Vec<(usize, &str)> {
    let mut example = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            example = !example;
        }
        let whole =
            example || line.starts_with(['|', '#']) || line.starts_with("    ") || line.starts_with("<!--");
        if !whole && line.chars().count() > COLUMNS && breaks(line.trim_start().trim_start_matches("- ")) {
            found.push((number + 1, line));
        }
    }
    found
}

/// Whether a line has a blank outside of code and of comments.
fn breaks(line: &str) -> bool {
    let outside_code = line.split('`').step_by(2);
    outside_code.map(without_comments).any(|text| text.contains(' '))
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, after)| after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_of_a_paragraph_is_found_with_its_number() {
        let long = "word ".repeat(30);
        let text = format!("# Title\n{long}\n- {long}\nshort");
        let lines: Vec<usize> = too_long(&text).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn tables_examples_and_what_cannot_be_broken_may_be_long() {
        let long = "word ".repeat(30);
        let code = format!("`{long}`");
        let comment = format!("3.4<!--= {long} -->");
        assert_eq!(too_long(&format!("| {long} |\n    {long}\n```\n{long}\n```\n{code}\n{comment}")), []);
    }
}
