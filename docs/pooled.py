#!/usr/bin/env python3
"""One table of the latencies of several boots: docs/pooled.py FOLDER > FOLDER/pooled.tsv

Each row is a series of all boots of a study and kernel together. `p999_low` and `p999_high` bound the latency that one of
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


def at(latencies, from_top):
    """The latency of this rank from the longest, 1; beyond those that arrived, frames are lost."""
    return str(latencies[-from_top]) if from_top <= len(latencies) else str(latencies[0])


def row(name, parts):
    latencies = sorted(ns for part in parts for ns, count in part["latency_ns"]["buckets"] for _ in range(count))
    longest = max(part["latency_ns"]["max"] for part in parts)
    sent = sum(part["ledger"]["sent"] for part in parts)
    lost = sent - len(latencies)
    rank = {"p50": sent - math.ceil(sent / 2) + 1, "p999": max(1, math.floor(sent * (1 - QUANTILE)) + 1),
            "p999_low": beyond(sent, 0.975) + 1, "p999_high": max(1, beyond(sent, 0.025))}
    figures = {field: at(latencies, from_top - lost) if from_top > lost else "lost" for field, from_top in rank.items()}
    order = ["p50", "p999_low", "p999", "p999_high"]
    return [name, str(len(parts)), str(sent), str(lost), *(figures[field] for field in order), str(longest)]


def main():
    series = collections.defaultdict(list)
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.boot*.json")):
        study = path.name.split(".boot")[0]
        for one in json.loads(path.read_text())["series"]:
            condition = one["condition"]
            words = [study, one["method"], condition["load"], condition.get("variant") or "usual"]
            if one.get("latency_ns"):
                series[" ".join(words)].append(one)
    print("\t".join("series boots sent lost p50 p999_low p999 p999_high max".split()))
    for name, parts in series.items():
        print("\t".join(row(name, parts)))


if __name__ == "__main__":
    main()
