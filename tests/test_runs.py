"""tally.py and everything.py: what they count, and what they remember."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import everything
import tally

OUTPUT = """\
test result: ok. 36 passed; 0 failed; 5 ignored; 0 measured; 0 filtered out; finished in 0.56s
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.0s
ok 1 - A frame arrives
not ok 2 - Another does
ok 3 - A third # SKIP no card
SKIP a_name_of_a_test: there is no tshark here
SKIPPED lint: this toolchain has no clippy
SKIPPED [2] test/back2back_test.py:145: TODO
76 passed, 4 skipped, 2 deselected, 2 warnings in 227.80s (0:03:47)
======= 1 failed, 2 passed, 1 error in 5.40s =======
test doctor::finds ... ok
"""


def test_results_of_rust_tap_and_pytest_are_counted_and_skips_keep_their_reason():
    count = tally.Tally()
    for line in OUTPUT.splitlines():
        count.read(line)
    # A skip of Rust's counts as passed in its program's line, and must not be counted twice.
    assert (count.passed, count.failed) == (36 + 3 + 1 - 1 + 76 + 2, 1 + 1 + 2)
    assert count.skips == [
        "A third: no card",
        "a_name_of_a_test: there is no tshark here",
        "lint: this toolchain has no clippy",
        "test/back2back_test.py:145: TODO",
        "test/back2back_test.py:145: TODO",
    ]
    assert tally.not_allowed(count.skips, ["^A third", "^lint: ", "back2back"]) == [count.skips[1]]


@pytest.mark.parametrize(
    "place, words",
    [
        (("/home/u/canter", None, "u"), "a clone, as a user"),
        (("/tmp/a b/canter", None, "root"), "below /tmp, spaces in the path, as root"),
        (("/home/u/canter", "/t", "u"), "a clone, CARGO_TARGET_DIR elsewhere, as a user"),
    ],
)
def test_the_place_of_a_run_is_described(place, words):
    assert tally.where(*place) == words


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a Makefile that counts the runs of its lines, and no make's variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".gitignore").write_text("state\nruns-*\nbroken\n")
    (tmp_path / "allowed").write_text("# none\n")
    line = "\t@echo run >> runs-$@; echo 'ok 1 - it works'\n"
    broken = "\t@echo run >> runs-$@; test ! -e broken\n"
    skipping = "\t@echo run >> runs-$@; echo 'SKIP a test: no reason'\n"
    (tmp_path / "Makefile").write_text(f"good:\n{line}other:\n{line}bad:\n{broken}skipping:\n{skipping}")
    commit(tmp_path)
    return tmp_path


def commit(folder):
    git = ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "change"], check=True)


def runs(folder, line):
    path = folder / f"runs-{line}"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_line_that_passed_is_not_repeated_and_one_that_failed_is(repository, capsys):
    (repository / "broken").touch()
    assert everything.main("state", "allowed", ["good", "bad", "other"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED  bad" in printed and "passed  other" in printed
    (repository / "broken").unlink()
    assert everything.main("state", "allowed", ["good", "bad", "other"]) == 0
    assert [runs(repository, line) for line in ("good", "bad", "other")] == [1, 2, 1]
    assert "passed  good" in capsys.readouterr().out


def test_another_commit_repeats_all_and_files_that_differ_remember_nothing(repository):
    everything.main("state", "allowed", ["good"])
    commit(repository)
    everything.main("state", "allowed", ["good"])
    assert runs(repository, "good") == 2
    (repository / "allowed").write_text("# changed\n")
    everything.main("state", "allowed", ["good", "other"])
    everything.main("state", "allowed", ["good", "other"])
    assert (runs(repository, "good"), runs(repository, "other")) == (4, 2)


def test_a_skip_that_is_not_allowed_fails_its_line(repository, capsys):
    assert everything.main("state", "allowed", ["skipping"]) == 1
    assert "skipped and not allowed: a test: no reason" in capsys.readouterr().out
