//! The table that a Rust bench prints: a line `# TITLE`, a line of headings, and a line for each row, cells separated by
//! tabs. A row is named by its cells up to the first number: `canter .pcapng`.

use canter_cli::{failure, trouble, whole_file};
use std::{fs, path::Path};

#[derive(Debug, PartialEq)]
pub struct BenchTable {
    pub title: String,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl BenchTable {
    pub fn load(path: &Path) -> failure::Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| trouble::file_failure(path, "read", error))?;
        Ok(Self::of_text(&text))
    }

    /// Reads the table. That of a bench that failed lacks headings or rows, so its figures are missing.
    fn of_text(text: &str) -> Self {
        let cells = |line: &str| line.split('\t').map(ToOwned::to_owned).collect::<Vec<_>>();
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(cells);
        let headings = lines.next().unwrap_or_default();
        Self { title: title.to_owned(), headings, rows: lines.collect() }
    }

    pub fn save(&self, path: &Path) -> failure::Result<()> {
        let lines = [&self.headings].into_iter().chain(&self.rows).map(|cells| cells.join("\t"));
        let text = format!("# {}\n{}\n", self.title, lines.collect::<Vec<_>>().join("\n"));
        whole_file::write(path, "write the table", &text)
    }

    /// The number in a row and a column.
    pub fn figure(&self, row: &str, column: &str) -> Result<f64, String> {
        let column_at = self.headings.iter().position(|heading| heading == column);
        let column_at = column_at.ok_or_else(|| format!("no column {column}"))?;
        let cells = self.rows.iter().find(|cells| name(cells) == row).ok_or("no such row")?;
        cells
            .get(column_at)
            .and_then(|cell| cell.parse().ok())
            .ok_or_else(|| format!("no number in {column}"))
    }

    /// The medians of the numbers of several tables with the same rows; everything else is that of the first.
    pub fn of_medians(tables: &[Self]) -> Self {
        let [first, ..] = tables else { unreachable!("a bench has a table") };
        let cell = |row: &[String], heading: &str, cell: &str| {
            let is_number = cell.parse::<f64>().is_ok();
            let same = || tables.iter().filter_map(|table| table.figure(&name(row), heading).ok()).collect();
            let median = if is_number { super::median(same()) } else { None };
            median.map_or(cell.to_owned(), |median| median.to_string())
        };
        let row = |row: &Vec<String>| {
            first.headings.iter().zip(row).map(|(heading, each)| cell(row, heading, each)).collect()
        };
        Self {
            title: first.title.clone(),
            headings: first.headings.clone(),
            rows: first.rows.iter().map(row).collect(),
        }
    }
}

/// A row's cells up to the first number.
fn name(cells: &[String]) -> String {
    let words: Vec<&str> =
        cells.iter().take_while(|cell| cell.parse::<f64>().is_err()).map(String::as_str).collect();
    words.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Cost of a recording\nrecorder\tfile\tinstructions\tcommand\ncanter\t.log\t971\t7\ndumpcap\t\t7649\t\n";

    fn table(text: &str) -> BenchTable {
        BenchTable::of_text(text)
    }

    #[test]
    fn a_row_is_named_by_its_cells_up_to_the_first_number() {
        let table = table(TEXT);
        assert_eq!(table.title, "Cost of a recording");
        assert_eq!(table.figure("canter .log", "instructions"), Ok(971.0));
        assert_eq!(table.figure("dumpcap", "instructions"), Ok(7649.0));
        assert_eq!(table.figure("dumpcap", "command"), Err("no number in command".to_owned()));
        assert_eq!(table.figure("tcpdump", "instructions"), Err("no such row".to_owned()));
        assert_eq!(table.figure("dumpcap", "bytes"), Err("no column bytes".to_owned()));
        let of_failure = BenchTable::of_text("");
        assert_eq!(of_failure.figure("dumpcap", "instructions"), Err("no column instructions".to_owned()));
    }

    #[test]
    fn the_medians_of_several_tables_keep_what_is_no_number() {
        let others = [TEXT.replace("971", "990"), TEXT.replace("971", "980").replace("7649", "7000")];
        let medians = BenchTable::of_medians(&[table(TEXT), table(&others[0]), table(&others[1])]);
        assert_eq!(medians, table(&TEXT.replace("971", "980")));
    }
}
