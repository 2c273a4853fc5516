#!/usr/bin/env python3
"""Ties every figure in the documents to the kept file that has it.

    docs/figures.py            one line for each number that differs, cannot be found, or has no marker; exit code 1
    docs/figures.py --write    rewrites the numbers that differ, with as many digits as before

A figure has a marker behind it, a comment that readers do not see; the folder or file of results is named above, once:

    <!-- figures: results/2026-11-22-lab-all/2011-fig8.6.12.json -->
    can-gw's worst latency is 6.2<!--= can-gw load=none max in µs --> µs.   (a comment that begins a line would end the paragraph)

A table has one line directly above it with an expression for each column: `$1`, `$2` … are the row's own cells (the code in
a cell, if there is some), `;` separates the numbers of a cell, an empty column is not measured. A cell's own markers win.

    <!-- table: | $1 p50 in µs | $1 p50 / can-gw p50 -->

An expression is `[FILE:]METHOD [KEY=VALUE …] FIELD`, with fields and conditions named as in docs/result.md (`p50`, `max`,
`per_frame`, `floor_ns`, `lost.socket`, `paper.ns`; `lost` is all of them) and a varied number by its name (`filters=80`;
`variant=` means none; `lost!=0` any but that). It must be exactly one series. FILE is a file in the folder, without `.json`. Of a
table of a bench (`.tsv`) METHOD is the first column and FIELD the head of another. Numbers, `+ - * / ( )` between spaces and
`in µs` (ms, s, %, G, M) calculate; `to 10` rounds to tens. Text in quotes is one word.

docs/not_results.txt lists numbers that look like results and are none, with the reason.
"""
import argparse
import csv
import dataclasses
import decimal
import fractions
import json
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Written by a program and compared with the files by a test (papers.md), or a record of the past.
DOCUMENTS = ["README.md", "HACKING.md", "ARCHITECTURE.md", "docs/*.md", "kernel/README.md", "kernel/*/README.md", "crates/*/README.md",
             "python/README.md", "baremetal/README.md", "fuzz/README.md", "results/*/README.md"]
WRITTEN_BY_A_PROGRAM = ["docs/papers.md"]
NOT_RESULTS = "docs/not_results.txt"

#: What a value of a file, in ns or as it is, is multiplied by.
UNITS = {"ns": 1, "instructions": 1, "µs": fractions.Fraction(1, 1000), "ms": fractions.Fraction(1, 10**6),
         "s": fractions.Fraction(1, 10**9), "%": 100, "G": fractions.Fraction(1, 10**9), "M": fractions.Fraction(1, 10**6)}

NUMBER = r"(?:\d{1,3}(?: \d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
#: With its sign, which is not the dash of a list.
SIGNED = rf"(?<![\w.])(?:(?<=[^\n])[+-] ?)?{NUMBER}"
UNIT = (r"(?:µs|ms|ns|s|min|minutes?|seconds?|%|×|times|(?:G )?instructions?(?:/s| per frame| a frame)?|frames/s|frames per second|"
        r"bytes per frame|M?B/s|bytes/s)")
#: One number with a unit, or several with one: 4, 5 and 6 µs.
WITH_UNIT = re.compile(rf"(?<![\w.=])({NUMBER}(?:(?:, | and | or | to | × |…){NUMBER})*)( ?)({UNIT})(?![\w/])")
#: Without a unit: a ratio (versions look like decimals above 1), or a number of four digits and more.
ALONE = re.compile(r"(?<![\w.=])(?:0\.\d+|\d{1,3}(?: \d{3})+)(?![\w.]*\d)")
#: A cell of a table that is numbers and nothing else.
CELL = re.compile(rf"[+−~\s*]*({NUMBER}(?:(?:[,;]| to |…)\s*{NUMBER})*)\s*({UNIT})?[\s*]*")
MARKER = re.compile(r"<!--=\s*(.*?)\s*-->", re.DOTALL)
DIRECTIVE = re.compile(r"<!-- (figures|table):\s*(.*?)\s*-->", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class Problem(Exception):
    """What is wrong with an expression, or with the file that it names."""


@dataclasses.dataclass
class Figure:
    """A number of a document that has an expression: where it stands, as it is written, and what the file says."""
    start: int
    written: str
    expression: str
    expected: str


def flattened(series):
    """A series as one level of names, as docs/result.md has them."""
    condition = dict(series["condition"])
    varied = condition.pop("varied", None)
    row = {"method": series["method"], "variant": "", **condition, **series.get("latency_ns", {}), **series.get("cost_ns", {}),
           **series.get("wire", {}), "floor_ns": series.get("floor_ns"), "sent": series["ledger"]["sent"],
           "received": series["ledger"]["received"], "lost": sum(series["ledger"]["lost"].values())}
    row.update({f"lost.{place}": frames for place, frames in series["ledger"]["lost"].items()})
    row.update({f"paper.{name}": value for name, value in series.get("paper", {}).items()})
    if varied:
        row[varied["name"]] = varied["value"]
    return row


class Results:
    """Rows of the kept files; each file is read once."""

    def __init__(self, root):
        self.root, self.files = root, {}

    def rows(self, scope, name):
        if not scope:
            raise Problem("no results are named above (<!-- figures: results/… -->)")
        path = self.root / scope
        if name:
            folder = path if path.is_dir() else path.parent
            path = next((folder / f"{name}{end}" for end in (".json", ".tsv") if (folder / f"{name}{end}").exists()),
                        folder / f"{name}.json")
        if path not in self.files:
            self.files[path] = self.read(path)
        return path.relative_to(self.root), self.files[path]

    def read(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                if path.suffix == ".tsv":
                    return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
                return [flattened(series) for series in json.load(file)["series"]]
        except OSError as error:
            raise Problem(f"{path.relative_to(self.root)}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise Problem(f"{path.relative_to(self.root)}: not a result: {error}") from error

    def value(self, scope, words):
        """The number that `[FILE:]METHOD [KEY=VALUE …] FIELD` names."""
        if len(words) < 2:
            raise Problem(f"{' '.join(words)!r}: METHOD [KEY=VALUE …] FIELD is needed")
        (first, *conditions), field = words[:-1], words[-1]
        name, _, method = first.rpartition(":")
        path, rows = self.rows(scope, name)
        found = [row for row in rows if str(next(iter(row.values()))) == method
                 and all(holds(condition, row) for condition in conditions)]
        if len(found) != 1:
            raise Problem(f"{path}: {len(found)} series are {' '.join([method, *conditions])}, not one" + hint(found))
        if found[0].get(field) in (None, ""):
            raise Problem(f"{path}: {' '.join([method, *conditions])} has no {field}")
        try:
            return fractions.Fraction(str(found[0][field]))
        except ValueError as error:
            raise Problem(f"{path}: {field} of {method} is no number: {found[0][field]}") from error


def holds(condition, row):
    key, _, value = condition.partition("=")
    negated = key.endswith("!")
    return (str(row.get(key.removesuffix("!"), "")) == value) != negated


def hint(rows):
    """By which conditions the rows that were found differ."""
    differing = [key for key in (rows[0] if rows else {}) if not isinstance(rows[0][key], (list, dict))
                 and len({str(row.get(key)) for row in rows}) > 1]
    return f": they differ by {', '.join(differing[:3])}" if differing else ""


class Expression:
    """A small calculator over values of files."""

    def __init__(self, text, results, scope):
        try:
            self.words = shlex.split(text)
        except ValueError as error:
            raise Problem(f"{text}: {error}") from error
        self.results, self.scope, self.place, self.scale = results, scope, None, 1
        self.take_suffix("to", self.set_place)
        self.take_suffix("in", self.set_scale)

    def take_suffix(self, word, use):
        if len(self.words) > 2 and self.words[-2] == word:
            use(self.words[-1])
            self.words = self.words[:-2]

    def set_place(self, text):
        if not re.fullmatch(r"10+", text):
            raise Problem(f"to {text}: 10, 100 or so")
        self.place = int(text)

    def set_scale(self, unit):
        if unit not in UNITS:
            raise Problem(f"in {unit}: not one of {', '.join(UNITS)}")
        self.scale = UNITS[unit]

    def result(self):
        try:
            value = self.sum() * self.scale
        except ZeroDivisionError as error:
            raise Problem("divides by 0") from error
        if self.words:
            raise Problem(f"{self.words[0]!r} is not expected")
        return value

    def sum(self):
        value = self.product()
        while self.words and self.words[0] in ("+", "-"):
            value = value + self.product() if self.words.pop(0) == "+" else value - self.product()
        return value

    def product(self):
        value = self.operand()
        while self.words and self.words[0] in ("*", "/"):
            value = value * self.operand() if self.words.pop(0) == "*" else value / self.operand()
        return value

    def operand(self):
        if self.words and self.words[0] == "(":
            self.words.pop(0)
            value = self.sum()
            if not self.words or self.words.pop(0) != ")":
                raise Problem("a ) is missing")
            return value
        taken = []
        while self.words and self.words[0] not in ("+", "-", "*", "/", "(", ")"):
            taken.append(self.words.pop(0))
        if len(taken) == 1 and re.fullmatch(r"\d+(\.\d+)?", taken[0]):
            return fractions.Fraction(taken[0])
        return self.results.value(self.scope, taken)


def as_written(value, like, place):
    """The value with as many decimals as `like` has, signed and grouped as it is."""
    sign = re.match(r"(?:[+-] ?)?", like)[0].replace("-", "+")
    if sign or value < 0:
        magnitude = as_written(abs(value), like.lstrip("+- "), place)
        return (sign.replace("+", "-") or "-") + magnitude if value < 0 else sign + magnitude
    decimals = len(like.partition(".")[2])
    value = value / place if place else value
    exact = decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)
    rounded = exact.quantize(decimal.Decimal(1).scaleb(-decimals), decimal.ROUND_HALF_UP)
    text = f"{rounded * place if place else rounded:,f}"
    ungrouped = len(like.partition(".")[0]) >= 4 and " " not in like
    return text.replace(",", "" if ungrouped else " ")


class Document:
    """One document: its figures, and the numbers that have no marker."""

    def __init__(self, path, text, results):
        self.path, self.text, self.results = path, text, results
        self.figures, self.problems = [], []
        #: The text without what is no prose, of the same length, so that places remain.
        self.bare = without_code(text)
        self.scopes = [(m.start(), m[2]) for m in DIRECTIVE.finditer(self.bare) if m[1] == "figures"]
        self.find_tables()
        self.find_markers()

    def line(self, place):
        return self.text.count("\n", 0, place) + 1

    def complain(self, place, text):
        self.problems.append((self.line(place), text))

    def scope(self, place):
        return next((scope for start, scope in reversed(self.scopes) if start < place), None)

    def add(self, start, written, text):
        """A number with an expression: compared, or complained about."""
        try:
            expression = Expression(text, self.results, self.scope(start))
            expected = as_written(expression.result(), written, expression.place)
        except Problem as problem:
            self.complain(start, f"{written}: {problem}")
        else:
            self.figures.append(Figure(start, written, text, expected))
        self.blank(start, start + len(written))

    def blank(self, start, end):
        self.bare = self.bare[:start] + re.sub(r"[^\n]", "\0", self.bare[start:end]) + self.bare[end:]

    def find_markers(self):
        for marker in MARKER.finditer(self.bare):
            number = re.search(rf"{SIGNED}$", self.bare[:marker.start()])
            if not number:
                self.complain(marker.start(), f"no number before the marker {marker[1]!r}")
                continue
            self.add(number.start(), number[0], " ".join(marker[1].split()))

    def find_tables(self):
        for directive in DIRECTIVE.finditer(self.bare):
            if directive[1] != "table":
                continue
            table = re.match(r"\n((?:\|[^\n]*(?:\n|$))+)", self.text[directive.end():])
            if not table:
                self.complain(directive.start(), "no table directly below")
                continue
            columns = [column.strip() for column in " ".join(directive[2].split()).split("|")]
            start = directive.end() + 1
            for number, row in enumerate(table[1].splitlines(keepends=True)):
                if number > 1:
                    self.row(start, row, columns)
                start += len(row)

    def row(self, start, row, columns):
        """A row of a table: its numbers by the columns' expressions."""
        cells = [(start + m.start(), m[0]) for m in re.finditer(r"(?<=\|)[^|\n]+(?=\|)", row)]
        labels = [label(cell) for _, cell in cells]
        for (place, cell), column in zip(cells, columns):
            if not column or MARKER.search(cell):
                continue
            numbers = list(re.finditer(SIGNED, self.bare[place:place + len(cell)]))
            expressions = column.split(";")
            if numbers and len(numbers) != len(expressions):
                self.complain(place, f"{cell.strip()}: {len(numbers)} numbers, {len(expressions)} expressions")
                continue
            for number, text in zip(numbers, expressions):
                text = re.sub(r"\$(\d)", lambda m: shlex.quote(labels[int(m[1]) - 1]), text).strip()
                self.add(place + number.start(), number[0], text)

    def unmarked(self):
        """Numbers that look like results and have no expression: (place, number with its unit)."""
        text = COMMENT.sub(lambda m: re.sub(r"[^\n]", "\0", m[0]), self.bare)
        found = {}
        for match in WITH_UNIT.finditer(re.sub(r"\n(?! *[|\n-])", " ", text)):
            for number in re.finditer(NUMBER, match[1]):
                found[match.start(1) + number.start()] = f"{number[0]} {match[3]}"
        for match in ALONE.finditer(text):
            found.setdefault(match.start(), match[0])
        for row in re.finditer(r"^\|.*\|$(?!\n\| ?-)", text, re.MULTILINE):
            for cell in list(re.finditer(r"(?<=\|)[^|\n]*(?=\|)", row[0]))[1:]:
                bare = CELL.fullmatch(cell[0].strip())
                if bare:
                    for number in re.finditer(NUMBER, cell[0]):
                        found.setdefault(row.start() + cell.start() + number.start(),
                                         f"{number[0]} {bare[2]}" if bare[2] else number[0])
        return sorted(found.items())

    def rewritten(self):
        text = self.text
        for figure in sorted(self.figures, key=lambda figure: figure.start, reverse=True):
            text = text[:figure.start] + figure.expected + text[figure.start + len(figure.written):]
        return text


def label(cell):
    """What `$1` stands for: the code in a cell, else its text."""
    code = re.search(r"`([^`]+)`", cell)
    return code[1] if code else COMMENT.sub("", cell).strip()


def without_code(text):
    """The text with code and the targets of links blanked; all else keeps its place."""
    def blanked(match):
        return re.sub(r"[^\n]", "\0", match[0])
    text = re.sub(r"^```.*?^```$", blanked, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ {4}.*$", blanked, text, flags=re.MULTILINE)
    comments = [match.span() for match in COMMENT.finditer(text)]

    def unless_comment(match):
        return match[0] if any(a <= match.start() < b for a, b in comments) else blanked(match)
    text = re.sub(r"`[^`]+`", unless_comment, text)
    return re.sub(r"\]\([^)]*\)", unless_comment, text)


class NotResults:
    """docs/not_results.txt: `DOCUMENT: NUMBER UNIT, … (why)`; `*` is every document, `all` every number."""

    def __init__(self, root):
        self.entries, self.used, self.problems = {}, set(), []
        path = root / NOT_RESULTS
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = re.fullmatch(r"(\S+): (.+) \((.+)\)", line)
            if not match:
                self.problems.append(f"{NOT_RESULTS}:{number}: not DOCUMENT: NUMBER UNIT, … (why)")
                continue
            for entry in match[2].split(", "):
                self.entries[match[1], entry] = number

    def has(self, document, found):
        for key in ((document, found), ("*", found), (document, "all")):
            if key in self.entries:
                self.used.add(key)
                return True
        return False

    def unused(self):
        return [f"{NOT_RESULTS}:{line}: {document}: {entry}: no such number there any more"
                for (document, entry), line in self.entries.items() if (document, entry) not in self.used]


def run(root, write):
    """All problems as lines, and how many numbers are tied to a file."""
    results, not_results = Results(root), NotResults(root)
    lines, tied = [], 0
    for path in sorted({path for pattern in DOCUMENTS for path in root.glob(pattern)}):
        name = str(path.relative_to(root))
        if name in WRITTEN_BY_A_PROGRAM:
            continue
        document = Document(name, path.read_text(encoding="utf-8"), results)
        tied += len(document.figures)
        for figure in document.figures:
            if figure.written != figure.expected and not write:
                document.complain(figure.start, f"{figure.written}: the file has {figure.expected} ({figure.expression})")
        for place, found in document.unmarked():
            if not not_results.has(name, found):
                document.complain(place, f"{found}: no marker (docs/figures.py --help) and not in {NOT_RESULTS}")
        if write and document.rewritten() != document.text:
            path.write_text(document.rewritten(), encoding="utf-8")
        lines += [f"{name}:{line}: {text}" for line, text in sorted(document.problems)]
    return lines + not_results.problems + not_results.unused(), tied


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="rewrite the numbers that differ")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    lines, tied = run(arguments.root, arguments.write)
    print("\n".join([*lines, f"{tied} figures are those of their files" if not lines else f"{len(lines)} problems"]))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
