#!/usr/bin/env python3
"""What each condition of the matrix costs: the geometric mean, over all series that differ in nothing else, of the ratio
of their medians (or worst cases). Prints the table of README.md."""

import json
import math
import pathlib

FOLDER = pathlib.Path(__file__).parent
# What is compared: words, the place in a series' key, its value without and with the condition.
CONDITIONS = [
    ("user space (`read+write`) instead of `can-gw`", 1, "can-gw", "read+write"),
    ("6.12-rt instead of 6.12", 0, "6.12", "6.12-rt"),
    ("6.1-rt instead of 6.1", 0, "6.1", "6.1-rt"),
    ("6.12 instead of 6.1", 0, "6.1", "6.12"),
    ("6.12-rt instead of 6.1-rt", 0, "6.1-rt", "6.12-rt"),
    ("a modification with CRC-8", 4, "", "crc8"),
    ("a modification without CRC", 4, "", "xor"),
    ("2048 filters instead of none", 4, "", "EFF 2048"),
    ("half of the bus in use", 2, "one-at-a-time", "load"),
    ("hackbench's pattern beside", 3, "none", "cpu"),
    ("a flood ping beside", 3, "none", "ethernet-receive"),
]


def measured():
    """The latencies of all series, by kernel, method, traffic, load and rules."""
    latencies = {}
    for path in FOLDER.glob("2011-matrix.*.json"):
        for series in json.loads(path.read_text())["series"]:
            condition, latency = series["condition"], series.get("latency_ns")
            varied = condition.get("varied")
            rules = condition.get("variant", "") + (f" {varied['value']}" if varied else "")
            kernel = path.name.removeprefix("2011-matrix.").removesuffix(".json")
            key = (kernel, series["method"], condition["traffic"], condition["load"], rules)
            if latency:
                latencies[key] = latency
    return latencies


def ratios(latencies, place, without, beside, statistic):
    """The ratios of all pairs of series that differ in this place only, of traffic that is no flood."""
    for key, latency in latencies.items():
        other = latencies.get(key[:place] + (without,) + key[place + 1 :])
        if key[place] == beside and other and key[2] != "flood":
            yield latency[statistic] / other[statistic]


def main():
    latencies = measured()
    print(f"{len(latencies)} series\n")
    print("| condition | median | least | most | worst frame |\n| --- | ---: | ---: | ---: | ---: |")
    for words, place, without, beside in CONDITIONS:
        medians, worst = (list(ratios(latencies, place, without, beside, one)) for one in ("p50", "max"))
        mean = [math.exp(sum(map(math.log, one)) / len(one)) for one in (medians, worst)]
        print(f"| {words} | × {mean[0]:.2f} | {min(medians):.2f} | {max(medians):.2f} | × {mean[1]:.1f} |")


if __name__ == "__main__":
    main()
