"""Figures in the documents are those of their files, docs/figures.py finds those that are not; named files exist."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "docs/figures.py"


def run(*arguments):
    done = subprocess.run([sys.executable, PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def test_every_figure_in_the_documents_is_that_of_its_file():
    code, lines = run()
    assert code == 0, "\n".join(lines)


def missing(document, text, files):
    """The paths in backticks, as they are or from some folder on, and the test modules that are not among `files`."""
    for code in re.findall(r"`([^`\n]+)`", text):
        module = re.fullmatch(r"(canter[\w-]*|sja1000)::(\w+)", code)
        if module and f"crates/{module[1]}/tests/it/{module[2]}.rs" not in files:
            yield f"{document}: {code}"
        for path in re.findall(r"(?<!\S)(?!target/|/)[\w./-]+(?:\.(?:c|h|md|py|rs|sh)|/)(?!\S)", code):
            if not any(f"/{file}".endswith(f"/{path}") or path.endswith("/") and f"/{path}" in f"/{file}" for file in files):
                yield f"{document}: {path}"


def test_every_file_that_the_documents_name_exists():
    files = set(subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())
    documents = ["README.md", "ARCHITECTURE.md", "HACKING.md", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
    documents.remove("docs/moved.md")  # it has the paths of before
    assert not [line for name in documents for line in missing(name, (ROOT / name).read_text(), files)]
    wrong = "`a.rs`, `b/a.rs --quick`, `it/` and `canter::a` exist, `c/a.rs`, `canter::b` and `x/` do not; `target/x/` is made"
    assert list(missing("D", wrong, {"crates/canter/tests/it/a.rs", "b/a.rs"})) == ["D: c/a.rs", "D: canter::b", "D: x/"]


def series(method, p50, **condition):
    condition = {"load": "none", "traffic": "one-at-a-time", **condition}
    return {"method": method, "condition": condition, "latency_ns": {"p50": p50, "max": 2 * p50}, "floor_ns": 1000,
            "ledger": {"sent": 400, "received": 300, "lost": {"socket": 60, "gateway": 40}}, "paper": {"ns": 49000}}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """A project with two kept files and no document."""
    (tmp_path / "results/run").mkdir(parents=True)
    kept = [series("can-gw", 12396), series("can-gw", 20000, load="cpu"), series("ring+write", 17761),
            series("read+write", 5000, varied={"name": "filters", "unit": "", "value": 80}, variant="masked EFF")]
    (tmp_path / "results/run/figure.json").write_text(json.dumps({"series": kept}))
    (tmp_path / "results/run/bench.tsv").write_text("# by hand\nrecorder\tinstructions\nours -o F\t12380\nempty\t\n")
    return tmp_path


def check(folder, text, *options):
    (folder / "README.md").write_text("<!-- figures: results/run -->\n" + text)
    return run("--root", folder, *options)


RIGHT = """It takes 12.4<!--= figure:can-gw load=none p50 in µs --> µs.
A ratio of 1.43<!--= figure:ring+write p50 / figure:can-gw load=none p50 -->, the paper's
49<!--= figure:ring+write paper.ns in µs --> µs; 8<!--= figure:ring+write floor_ns / figure:can-gw load=none p50 in % --> %.
It lost 60<!--= figure:ring+write lost.socket --> of 100<!--= figure:ring+write lost --> frames, took
5.0<!--= figure:read+write variant="masked EFF" filters=80 p50 in µs --> µs and 12 380<!--= bench:"ours -o F" instructions -->
instructions.

<!-- table: | | figure:$1 load=$2 p50 in µs
  | figure:$1 load=$2 p50 / figure:can-gw load=none p50 -->
| gateway | load | median | ratio |
| --- | --- | ---: | ---: |
| `can-gw`, the kernel's | none | 12.4 | 1.00 |
| **`can-gw`** | `cpu` | 20.0 | 1.61 |
| `ring+write` | none | none | 17761<!--= figure:ring+write p50 --> |
"""


def test_numbers_that_are_right_pass(folder):
    assert check(folder, RIGHT) == (0, ["13 figures are those of their files"])


@pytest.mark.parametrize("text, complaint", [
    # A number that differs.
    ("12.5<!--= figure:can-gw load=none p50 in µs --> µs", "12.5: the file has 12.4"),
    ("12.39<!--= figure:can-gw load=none p50 in µs --> µs", "12.39: the file has 12.40"),
    ("<!-- table: | figure:$1 p50 in µs -->\n| a | b |\n| --- | --- |\n| `ring+write` | 17.7 |\n", "17.7: the file has 17.8"),
    # A comment that names not exactly one number.
    ("12.4<!--= figure:can-gw p50 in µs --> µs", "2 series are can-gw, not one: they differ by load"),
    ("12.4<!--= figure:bpf p50 in µs --> µs", "0 series are bpf, not one"),
    ("12.4<!--= figure:can-gw load=none p51 in µs --> µs", "can-gw load=none has no number p51"),
    ("12.4<!--= bench:empty instructions -->", "empty has no number instructions"),
    ("12.4<!--= other:can-gw p50 -->", "results/run/other.json: No such file or directory"),
    ("12.4<!--= figure:can-gw -->", "METHOD [KEY=VALUE …] FIELD is needed"),
    ("12.4<!--= figure:ring+write p50 in parsecs -->", "in parsecs: not one of"),
    ("12.4<!--= figure:ring+write p50 / -->", "METHOD [KEY=VALUE …] FIELD is needed"),
    ("twelve<!--= figure:ring+write p50 -->", "not one number before the comment"),
    ("<!-- table: | $1 p50 -->\n\nText", "no table directly below"),
    ("<!-- table: | figure:ring+write p50 -->\n| a | b |\n| --- | --- |\n| x | 1, 2 |\n", "not one number"),
])
def test_a_number_that_is_wrong_or_has_no_source_is_one_line_and_exit_code_1(folder, text, complaint):
    code, lines = check(folder, text)
    assert (code, len(lines)) == (1, 2), lines
    assert complaint in lines[0] and lines[0].startswith("README.md:"), lines


def test_write_corrects_every_number_with_the_digits_that_it_had(folder):
    path = folder / "results/run/figure.json"
    path.write_text(path.read_text().replace("12396", "1112396"))
    code, lines = check(folder, RIGHT)
    assert (code, len(lines)) == (1, 6), lines
    assert check(folder, RIGHT, "--write") == (0, ["13 figures are those of their files"])
    text = (folder / "README.md").read_text()
    assert "It takes 1 112.4<!--= figure:can-gw load=none p50 in µs --> µs." in text
    assert "| `can-gw`, the kernel's | none | 1 112.4 | 1.00 |" in text
    assert "| **`can-gw`** | `cpu` | 20.0 | 0.02 |" in text
    assert "17761<!--" in text
    assert run("--root", folder) == (0, ["13 figures are those of their files"])


def test_a_damaged_file_is_one_line(folder):
    (folder / "results/run/figure.json").write_text('{"series": [')
    code, lines = check(folder, "12.4<!--= figure:can-gw p50 in µs --> µs")
    assert (code, len(lines)) == (1, 2) and "results/run/figure.json: not a result" in lines[0]
