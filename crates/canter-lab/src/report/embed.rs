//! Data embedded in the page: figures for its script, and the compressed results for download.

use crate::report::numbers::Numbers;
use crate::report::{profiles, ranking};
use canter_measure::result::{Latency, ResultFile};
use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// The size limit of a page, so that it can be mailed and opens at once.
pub const PAGE_BYTES_MAX: usize = 2_000_000;
/// Buckets per distribution when the complete distributions do not fit, tried in this order.
const BUCKETS_KEPT: [usize; 3] = [64, 16, 4];

/// `[[id, label, condition, frames sent, lost, p50, max, floor, the paper's points], …]`
pub fn figures(all: &[Numbers<'_>]) -> String {
    let mut rows: Vec<serde_json::Value> = Vec::new();
    for Numbers { result, latencies, .. } in all {
        let several = all.len() > 1;
        let origin = [result.study.as_str(), &result.environment.flavour()].join(" ");
        for group in latencies {
            let condition = ranking::describe(group.condition);
            let origin = if several { format!("{}, ", origin.trim()) } else { String::new() };
            for row in &group.rows {
                let lost = row.series.ledger.lost.total();
                let papers: Vec<(u64, u64)> = profiles::paper_points(group, row)
                    .into_iter()
                    .map(|(_, scaled, m)| (scaled, m as u64))
                    .collect();
                rows.push(serde_json::json!([
                    row.id,
                    row.label(),
                    format!("{origin}{condition}"),
                    row.figure.count.saturating_add(lost),
                    lost,
                    row.figure.p50,
                    row.figure.max,
                    row.series.floor_ns,
                    papers,
                ]));
            }
        }
    }
    for_script(&serde_json::Value::from(rows).to_string())
}

/// JSON that cannot end its `<script>` element.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The results, one `<script>` each, and whether their distributions are `whole` or `thinned` to fit into `room` bytes.
/// Nothing when even thinned distributions are too large.
pub fn archive(results: &[ResultFile], room: usize) -> (String, &'static str) {
    let whole: String = results.iter().enumerate().map(|(n, result)| element(n, &result.to_json())).collect();
    if whole.len() <= room {
        return (whole, "whole");
    }
    for most in BUCKETS_KEPT {
        let thinned = results.iter().map(|result| thinned(result, most)).enumerate();
        let thinned: String = thinned.map(|(n, result)| element(n, &result.to_json())).collect();
        if thinned.len() <= room {
            return (thinned, "thinned");
        }
    }
    (String::new(), "none")
}

fn element(n: usize, json: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(json.as_bytes()).and_then(|()| encoder.finish());
    let data = BASE64.encode(&written.expect("memory takes everything"));
    format!("<script type=\"application/gzip\" id=\"json-{n}\">{data}</script>\n")
}

/// The same result with fewer buckets and no timelines; percentiles, minimum and maximum stay exact.
fn thinned(result: &ResultFile, most: usize) -> ResultFile {
    let mut result = result.clone();
    for series in &mut result.series {
        series.timeline = None;
        if let Some(latency) = &mut series.latency_ns {
            latency.buckets = fewer(latency, most);
        }
    }
    result
}

/// Merges neighbouring buckets under the upper edge of the last; the longest latencies keep their buckets.
fn fewer(latency: &Latency, most: usize) -> Vec<[u64; 2]> {
    let buckets = &latency.buckets;
    let single = most / 2;
    if buckets.len() <= most {
        return buckets.clone();
    }
    let (many, last) = buckets.split_at(buckets.len() - single);
    let together = many.chunks(many.len().div_ceil(single)).map(|chunk| {
        let sum = chunk.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket[1]));
        [chunk[chunk.len() - 1][0], sum]
    });
    together.chain(last.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_loses_no_frame_and_keeps_the_worst() {
        let buckets: Vec<[u64; 2]> = (1..=1000).map(|n| [n * n, 1 + n % 3]).collect();
        let latency = Latency { buckets: buckets.clone(), ..Latency::default() };
        let fewer = fewer(&latency, 64);
        let sum = |buckets: &[[u64; 2]]| buckets.iter().map(|bucket| bucket[1]).sum::<u64>();
        assert!(fewer.len() <= 64);
        assert_eq!((sum(&fewer), fewer.last()), (sum(&buckets), buckets.last()));
        assert!(fewer.is_sorted_by(|a, b| a[0] < b[0]));
    }

    #[test]
    fn a_name_cannot_end_the_script() {
        assert!(!for_script("[\"</script>\"]").contains('<'));
    }
}
