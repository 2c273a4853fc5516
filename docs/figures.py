#!/usr/bin/env python3
"""Compares the figures in the documents with the kept results that they name.

    docs/figures.py            one line for each figure that differs or cannot be found; exit code 1
    docs/figures.py --write    rewrites the figures that differ, with as many digits as before

A figure has a comment behind it, which readers do not see; the folder or file of results is named above, once:

    <!-- figures: results/2026-11-26-lab-all/2011-fig8.6.12.json -->
    can-gw's worst latency is 6.2<!--= can-gw load=none max in µs --> µs.   (a comment that begins a line would end the paragraph)

A table has one line directly above it that says the same for each column: `$1`, `$2` … are the row's own cells (the code in a
cell, if it has some). Columns without a text, cells without a number and cells with a comment are not compared.

    <!-- table: | $1 p50 in µs | $1 p50 / can-gw p50 -->

The comment is `[FILE:]METHOD [KEY=VALUE …] FIELD`, or one such divided by another, and perhaps `in` µs, ms, s or %. Fields and
conditions are named as in docs/result.md (`p50`, `max`, `per_frame`, `floor_ns`, `lost.socket`, `paper.ns`; `lost` is all of
them; `"stages.soft interrupt"` is that stage's part of the median frame, `model` the median on the board), a varied number by its name (`filters=80`; `variant=` means none). Exactly one series must match. FILE is a file in the
folder, without `.json`. In a table of a bench (`.tsv`) METHOD is the first column and FIELD another one. Text in quotes is one
word.
"""
import argparse
import csv
import decimal
import fractions
import functools
import json
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ["*.md", "docs/*.md", "kernel/*.md", "kernel/*/*.md", "crates/*/*.md", "python/*.md", "results/*/*.md"]

#: By what a value in ns, or a ratio, is divided.
UNITS = {"µs": 1000, "ms": 10**6, "s": 10**9, "%": fractions.Fraction(1, 100)}
NUMBER = r"(?<![\w.])\d+(?: \d{3})*(?:\.\d+)?"
MARKER = re.compile(rf"({NUMBER})?<!--=\s*(.*?)\s*-->", re.DOTALL)
SCOPE = re.compile(r"<!-- figures:\s*(\S+)\s*-->")
TABLE = re.compile(r"<!-- table:\s*(.*?)\s*-->\n((?:\|[^\n]*(?:\n|$))*)", re.DOTALL)


class Problem(Exception):
    """What is wrong with a comment, or with the file that it names."""


def flattened(series):
    """A series as one level of names, as docs/result.md has them."""
    condition = dict(series["condition"])
    varied = condition.pop("varied", None)
    lost = series["ledger"]["lost"]
    row = {"method": series["method"], "variant": "", **condition, **series.get("latency_ns", {}), **series.get("cost_ns", {}),
           **series.get("wire", {}), "floor_ns": series.get("floor_ns"), "lost": sum(lost.values())}
    row.update({f"lost.{place}": frames for place, frames in lost.items()})
    row.update({f"stages.{stage['name']}": stage["median_frame_ns"] for stage in series.get("stages", {}).get("stages", [])})
    row["model"] = (series.get("stages", {}).get("model") or {}).get("median_frame_ns")
    row.update({f"paper.{name}": value for name, value in series.get("paper", {}).items()})
    if varied:
        row[varied["name"]] = varied["value"]
    return row


@functools.cache
def rows(path):
    try:
        with open(path, encoding="utf-8") as file:
            if path.suffix == ".tsv":
                return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
            return [flattened(series) for series in json.load(file)["series"]]
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(f"{path}: not a result: {error}") from error


def value(scope, words):
    """The number that `[FILE:]METHOD [KEY=VALUE …] FIELD` names."""
    if len(words) < 2:
        raise Problem(f"{' '.join(words)!r}: METHOD [KEY=VALUE …] FIELD is needed")
    (first, *conditions), field = words[:-1], words[-1]
    name, _, method = first.rpartition(":")
    path = scope
    if name:
        table = scope / f"{name}.tsv"
        path = table if table.exists() else scope / f"{name}.json"
    wanted = [condition.partition("=")[::2] for condition in conditions]
    found = [row for row in rows(path) if str(next(iter(row.values()))) == method
             and all(str(row.get(key, "")) == text for key, text in wanted)]
    series = " ".join([method, *conditions])
    if len(found) != 1:
        differing = [key for key in (found[0] if found else {}) if len({str(row.get(key)) for row in found}) > 1]
        raise Problem(f"{path}: {len(found)} series are {series}, not one"
                      + (f": they differ by {', '.join(differing[:3])}" if differing else ""))
    try:
        return fractions.Fraction(str(found[0][field]))
    except (KeyError, ValueError) as error:
        raise Problem(f"{path}: {series} has no number {field}") from error


def expected(scope, text, like):
    """The figure that a comment names, with as many decimals as `like` has, and grouped like it."""
    if not scope:
        raise Problem("no results are named above (<!-- figures: results/… -->)")
    try:
        words = shlex.split(text)
        unit = 1
        if words[-2:-1] == ["in"]:
            unit = UNITS[words[-1]]
            words = words[:-2]
        divided = words.index("/") if "/" in words else len(words)
        result = value(scope, words[:divided]) / unit
        if divided < len(words):
            result /= value(scope, words[divided + 1:])
    except KeyError as error:
        raise Problem(f"in {error.args[0]}: not one of {', '.join(UNITS)}") from error
    except (ValueError, ZeroDivisionError) as error:
        raise Problem(f"{text}: {error}") from error
    exact = decimal.Decimal(result.numerator) / decimal.Decimal(result.denominator)
    rounded = exact.quantize(decimal.Decimal(1).scaleb(-len(like.partition(".")[2])), decimal.ROUND_HALF_UP)
    ungrouped = " " not in like and len(like.partition(".")[0]) > 3
    return f"{rounded:,f}".replace(",", "" if ungrouped else " ")


def label(cell):
    """What `$1` stands for: the code in a cell, else its text."""
    code = re.search(r"`([^`]+)`", cell)
    return shlex.quote(code[1] if code else cell.strip())


def figures(text):
    """Each figure of a document: where it stands, as it is written (None: there is no number), and its comment."""
    for marker in MARKER.finditer(text):
        yield marker.start(), marker[1], " ".join(marker[2].split())
    for table in TABLE.finditer(text):
        if not table[2]:
            yield table.start(), None, "no table directly below"
        columns = " ".join(table[1].split()).split("|")
        for row in list(re.finditer(r"\|.*\|", table[2]))[2:]:
            cells = list(re.finditer(r"(?<=\|)[^|\n]+(?=\|)", row[0]))
            for cell, column in zip(cells, columns):
                numbers = list(re.finditer(NUMBER, cell[0]))
                if column.strip() and numbers and not MARKER.search(cell[0]):
                    start = table.start(2) + row.start() + cell.start() + numbers[0].start()
                    comment = re.sub(r"\$(\d)", lambda m: label(cells[int(m[1]) - 1][0]), column).strip()
                    yield start, numbers[0][0] if len(numbers) == 1 else None, comment


def check(root, path, write):
    """The problems of a document, as lines, and how many of its figures are right; `write` corrects them."""
    text = path.read_text(encoding="utf-8")
    problems, right = [], 0
    for start, written, comment in sorted(figures(text), reverse=True):
        scopes = SCOPE.findall(text[:start])
        try:
            if written is None:
                raise Problem("not one number before the comment, in the cell or in the table")
            result = expected(scopes and root / scopes[-1], comment, written)
            if result != written and not write:
                raise Problem(f"{written}: the file has {result}")
            text = text[:start] + result + text[start + len(written):]
            right += 1
        except Problem as problem:
            line = text.count("\n", 0, start) + 1
            problems.insert(0, f"{path.relative_to(root)}:{line}: {comment}: {str(problem).replace(f'{root}/', '')}")
    if write:
        path.write_text(text, encoding="utf-8")
    return problems, right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="rewrite the figures that differ")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    checked = [check(arguments.root, path, arguments.write)
               for pattern in DOCUMENTS for path in sorted(arguments.root.glob(pattern))]
    problems = [line for lines, _ in checked for line in lines]
    print("\n".join([*problems, f"{len(problems)} problems" if problems
                     else f"{sum(right for _, right in checked)} figures are those of their files"]))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
