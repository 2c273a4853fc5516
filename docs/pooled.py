#!/usr/bin/env python3
"""One table of a study's latencies in several boots: docs/pooled.py FOLDER STUDY > FOLDER/pooled.tsv

Each row is a series of all boots of a kernel together. `p999_low` and `p999_high` bound the latency that one of
1000 frames exceeds, with a confidence of 95 % (order statistics: the number of frames beyond it has a binomial
distribution). A lost frame is later than all others; a figure that would be one is `lost`.
"""
import collections
import json
import math
import pathlib
import sys

QUANTILE = 0.999


def beyond(frames, probability):
    """The smallest number of frames beyond the quantile that is not exceeded with this probability."""
    share, number, total = 1 - QUANTILE, 0, 0.0
    while True:
        total += math.comb(frames, number) * share**number * (1 - share) ** (frames - number)
        if total >= probability:
            return number
        number += 1


def row(words, parts):
    latencies = sorted(ns for part in parts for ns, count in part["latency_ns"]["buckets"] for _ in range(count))
    longest = max(part["latency_ns"]["max"] for part in parts)
    sent = sum(part["ledger"]["sent"] for part in parts)
    lost = sent - len(latencies)
    rank = {"p50": sent - math.ceil(sent / 2) + 1, "p999": max(1, math.floor(sent * (1 - QUANTILE)) + 1),
            "p999_low": beyond(sent, 0.975) + 1, "p999_high": max(1, beyond(sent, 0.025))}
    figures = {field: str(latencies[lost - top]) if top > lost else "lost" for field, top in rank.items()}
    order = ["p50", "p999_low", "p999", "p999_high"]
    return [*words, str(len(parts)), str(sent), str(lost), *(figures[field] for field in order), str(longest)]


def main():
    series = collections.defaultdict(list)
    folder, study = pathlib.Path(sys.argv[1]), sys.argv[2]
    for path in sorted(folder.glob(f"{study}.*.boot*.json")):
        kernel = path.name.removeprefix(f"{study}.").split(".boot")[0]
        for one in json.loads(path.read_text())["series"]:
            condition = one["condition"]
            if one.get("latency_ns"):
                series[one["method"], kernel, condition["load"], condition.get("variant") or "usual"].append(one)
    print("\t".join("method kernel load tuning boots sent lost p50 p999_low p999 p999_high max".split()))
    for words, parts in series.items():
        print("\t".join(row(words, parts)))


if __name__ == "__main__":
    main()
