//! `canter lab --kernel list`: the kernels that the lab can boot here, each with its suite.

use super::{debian, installed};
use crate::lab::{
    apt::{
        Image, Series,
        offers::{self, Offer},
        suites,
    },
    arch::Arch,
    cache::Cache,
    programs,
    progress::Progress,
};
use canter_cli::failure::Result;
use canter_cli::terminal::{Ink, PLAIN, Table};

/// A line of the list.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    series: Series,
    release: String,
    /// The suite, or why the kernel cannot be had.
    from: String,
    cached: bool,
}

/// Prints the newest kernel of each series.
pub fn print(arch: Arch, cache: &Cache, progress: &Progress) -> Result<()> {
    if programs::find(programs::APT).is_none() && arch.is_host() {
        println!("{}", installed::names().join("\n"));
        return Ok(());
    }
    let mut known = offers::list(&debian::own_apt(arch, cache, progress)?)?;
    let more = suites::state(arch).and_then(|state| {
        let _renewed = state.renew(cache, progress)?;
        offers::list(&state.open(cache, progress)?)
    });
    match more {
        // The host's own stay before newer ones of other suites, as in the search for one kernel.
        Ok(more) => {
            let is_new = |offer: &Offer| {
                !known.iter().any(|own| own.image.series == offer.image.series && own.missing.is_none())
            };
            let new: Vec<_> = more.into_iter().filter(is_new).collect();
            known.extend(new);
        }
        Err(failure) => eprintln!("canter: {failure}"),
    }
    let mut text = String::new();
    table(&lines(&known, &debian::images(cache), arch)).print(&mut text, Ink::for_stdout());
    print!("{text}");
    Ok(())
}

/// The newest offered kernel of each series, and those of the cache.
fn lines(known: &[Offer], cached: &[String], arch: Arch) -> Vec<Line> {
    let mut cached: Vec<_> = cached.iter().filter_map(|package| Image::parse(package)).collect();
    cached.retain(|image| image.series.arch == arch);
    let offered = offers::by_series(known);
    let mut lines: Vec<_> = offered
        .into_iter()
        .map(|Offer { image, suite, missing, .. }| Line {
            series: image.series.clone(),
            release: image.release.clone(),
            from: match missing {
                Some(package) => format!("{suite}, no {}", part(package, &image.release)),
                None => suite.clone(),
            },
            cached: false,
        })
        .collect();
    cached.sort_by(|a, b| a.numbers().cmp(b.numbers()));
    for image in cached {
        let of_series = lines.iter_mut().find(|line| line.series == image.series);
        match of_series {
            // The one in the cache is what the lab boots.
            Some(line) => {
                if line.release != image.release {
                    line.release.clone_from(&image.release);
                    line.from.clear();
                }
                line.cached = true;
            }
            None => lines.push(Line {
                series: image.series.clone(),
                release: image.release.clone(),
                from: String::new(),
                cached: true,
            }),
        }
    }
    lines
}

/// The part of a kernel that a package is: `linux-modules`.
fn part<'a>(package: &'a str, release: &str) -> &'a str {
    package.strip_suffix(release).map_or(package, |part| part.trim_end_matches('-'))
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(&["<kernel", "<release", "<cache", "<suite"]);
    for Line { series, release, from, cached } in lines {
        let cached = if *cached { "yes" } else { "" };
        let cells = [&series.name(), release, cached, from].map(|cell| (cell.to_owned(), PLAIN));
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(package: &str, suite: &str, missing: Option<&str>) -> Offer {
        let image = Image::parse(package).unwrap();
        let missing = missing.map(str::to_owned);
        Offer { image, suite: suite.to_owned(), packages: vec![], missing }
    }

    #[test]
    fn the_list_names_suite_cache_and_what_is_missing() {
        let known = [
            offer("linux-image-7.3.4+deb13-rt-amd64", "trixie-backports", None),
            offer(
                "linux-image-7.0.13+deb13-amd64",
                "trixie-backports",
                Some("linux-modules-7.0.13+deb13-amd64"),
            ),
            offer("linux-image-6.12.117+deb12-amd64", "bookworm-security", None),
        ];
        let cached =
            ["linux-image-6.12.94+deb12-amd64", "linux-image-7.3.4+deb13-rt-amd64"].map(str::to_owned);
        let mut text = String::new();
        table(&lines(&known, &cached, Arch::Amd64)).print(&mut text, Ink::none());
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: Vec<_> = text.lines().map(words).collect();
        assert_eq!(
            text[1..4],
            [
                "6.12 6.12.94+deb12-amd64 yes",
                "7.0 7.0.13+deb13-amd64 trixie-backports, no linux-modules",
                "7.3-rt 7.3.4+deb13-rt-amd64 yes trixie-backports",
            ]
        );
    }
}
