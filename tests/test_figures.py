"""Figures in the documents are those of their files, and docs/figures.py finds those that are not."""
import json
import pathlib
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


def series(method, p50, **condition):
    condition = {"load": "none", "traffic": "one-at-a-time", **condition}
    return {"method": method, "condition": condition, "latency_ns": {"p50": p50, "max": 2 * p50}, "floor_ns": 1000,
            "ledger": {"sent": 400, "received": 300, "lost": {"socket": 60, "gateway": 40}}, "paper": {"ns": 49000}}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """A project with two kept files and no document."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "results/run").mkdir(parents=True)
    kept = [series("can-gw", 12396), series("can-gw", 20000, load="cpu"), series("ring+write", 17761),
            series("read+write", 5000, varied={"name": "filters", "unit": "", "value": 80}, variant="masked EFF")]
    (tmp_path / "results/run/figure.json").write_text(json.dumps({"series": kept}))
    (tmp_path / "results/run/bench.tsv").write_text("# by hand\nrecorder\tinstructions\nours -o F\t12380\nempty\t\n")
    return tmp_path


def check(folder, text, *options):
    (folder / "README.md").write_text("<!-- figures: results/run/figure.json -->\n" + text)
    return run("--root", folder, *options)


RIGHT = """It takes 12.4<!--= can-gw load=none p50 in µs --> µs.
A ratio of 1.43<!--= ring+write p50 / can-gw load=none p50 -->, less the floor
1.47<!--= ( ring+write p50 - ring+write floor_ns ) / ( can-gw load=none p50 - can-gw load=none floor_ns ) -->, times the paper's
49<!--= ring+write paper.ns in µs --> µs; 25<!--= ring+write lost / ring+write sent in % --> %.
It lost 60<!--= ring+write lost.socket --> frames, took 5.0<!--= read+write variant="masked EFF" filters=80 p50 in µs --> µs and
12 380<!--= bench:"ours -o F" instructions --> instructions, or 12 000<!--= bench:"ours -o F" instructions to 1000 -->.

<!-- table: | | $1 load=$2 p50 in µs; $1 load=$2 max in µs | $1 load=$2 p50 / can-gw load=none p50 - 1 in % -->
| gateway | load | median, longest | more |
| --- | --- | ---: | ---: |
| `can-gw`, the kernel's | none | 12.4, 24.8 | + 0.0 % |
| **`can-gw`** | `cpu` | 20.0, 40.0 | + 61.3 % |
| `ring+write` | none | none | 43<!--= ring+write p50 / can-gw load=none p50 - 1 in % --> |
"""


def test_numbers_that_are_right_pass(folder):
    code, lines = check(folder, RIGHT)
    assert (code, lines) == (0, ["16 figures are those of their files"])


@pytest.mark.parametrize("text, complaint", [
    # A number that differs.
    ("12.5<!--= can-gw load=none p50 in µs --> µs", "12.5: the file has 12.4 (can-gw load=none p50 in µs)"),
    ("12.39<!--= can-gw load=none p50 in µs --> µs", "12.39: the file has 12.40"),
    ("12380<!--= bench:\"ours -o F\" instructions to 100 -->", "12380: the file has 12400"),
    # A marker that names not exactly one number.
    ("12.4<!--= can-gw p50 in µs --> µs", "2 series are can-gw, not one: they differ by load"),
    ("12.4<!--= bpf p50 in µs --> µs", "0 series are bpf, not one"),
    ("12.4<!--= can-gw load!=cpu p51 in µs --> µs", "can-gw load!=cpu has no p51"),
    ("12.4<!--= bench:empty instructions -->", "empty has no instructions"),
    ("12.4<!--= other:can-gw p50 -->", "results/run/other.json: No such file or directory"),
    ("12.4<!--= can-gw -->", "METHOD [KEY=VALUE …] FIELD is needed"),
    ("12.4<!--= ring+write p50 in parsecs -->", "in parsecs: not one of"),
    ("12.4<!--= ring+write p50 to 5 -->", "to 5: 10, 100 or so"),
    ("12.4<!--= ( ring+write p50 -->", "a ) is missing"),
    ("12.4<!--= ring+write p50 ) -->", "')' is not expected"),
    ("12.4<!--= ring+write p50 / 0 -->", "divides by 0"),
    ("twelve<!--= ring+write p50 -->", "no number before the marker"),
    ("<!-- table: | $1 p50 -->\n\nText", "no table directly below"),
    ("<!-- table: | ring+write p50 -->\n| a | b |\n| --- | --- |\n| x | 1, 2 |\n", "1, 2: 2 numbers, 1 expressions"),
    # A number without a marker.
    ("It takes 12.4 µs.", "12.4 µs: no marker"),
    ("It takes 3, 4 and\n5 instructions per frame.", "3 instructions per frame: no marker"),
    ("It takes 0.71 of it.", "0.71: no marker"),
    ("It takes 12 380.", "12 380: no marker"),
    ("| a | b |\n| --- | --- |\n| x | + 7 |\n", "7: no marker"),
])
def test_a_number_that_is_wrong_or_has_no_source_is_one_line_and_exit_code_1(folder, text, complaint):
    code, lines = check(folder, text)
    assert code == 1
    assert complaint in lines[0] and lines[0].startswith("README.md:"), lines


def test_code_and_numbers_without_a_unit_of_a_result_need_no_marker(folder):
    code, lines = check(folder, "Kernel 6.12 has `sleep 5 ms` and 20 buses.\n\n    it took 12.4 µs\n\n```\n3 ms\n```\n")
    assert (code, lines) == (0, ["0 figures are those of their files"])


def test_a_number_that_is_no_result_is_listed_with_a_reason_as_long_as_it_is_there(folder):
    not_results = folder / "docs/not_results.txt"
    not_results.write_text("# why\nREADME.md: 20 ms, 0.5 (defaults)\n")
    assert check(folder, "After 20 ms, by 0.5.")[0] == 0
    code, lines = check(folder, "After 20 ms.")
    assert (code, lines[0]) == (1, "docs/not_results.txt:2: README.md: 0.5: no such number there any more")
    not_results.write_text("README.md: 20 ms, 0.5\n")
    assert check(folder, "")[1][0] == "docs/not_results.txt:1: not DOCUMENT: NUMBER UNIT, … (why)"


def test_write_corrects_every_number_with_the_digits_that_it_had(folder):
    path = folder / "results/run/figure.json"
    path.write_text(path.read_text().replace("12396", "1112396").replace("24792", "2224792"))
    code, lines = check(folder, RIGHT)
    assert (code, len(lines)) == (1, 8), lines
    code, lines = check(folder, RIGHT, "--write")
    assert (code, lines) == (0, ["16 figures are those of their files"])
    text = (folder / "README.md").read_text()
    assert "It takes 1 112.4<!--= can-gw load=none p50 in µs --> µs." in text
    assert "| `can-gw`, the kernel's | none | 1 112.4, 2 224.8 | + 0.0 % |" in text
    assert "| `cpu` | 20.0, 40.0 | - 98.2 % |" in text
    assert run("--root", folder) == (0, ["16 figures are those of their files"])


def test_a_damaged_file_is_one_line(folder):
    (folder / "results/run/figure.json").write_text('{"series": [')
    code, lines = check(folder, "12.4<!--= can-gw p50 in µs --> µs")
    assert (code, len(lines)) == (1, 2) and "results/run/figure.json: not a result" in lines[0]
