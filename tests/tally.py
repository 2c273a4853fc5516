#!/usr/bin/env python3
"""Runs the command of a test run, shows its output, and ends with one line: N passed, N failed, N skipped.

    tests/tally.py tests/skips.txt make test-lines

Counts the results of Rust's test programs, of pytest and of TAP programs, on the host and in the lab's guests. Each
skipped test is named with its reason. The first file lists the skips that are allowed, a regular expression per line; any
other skip is a failure, because a test that silently does nothing proves nothing. The exit code is the command's, or 1.
Before the last line it prints the run's row for tests/runs.md.
"""
import datetime
import getpass
import os
import re
import resource
import subprocess
import sys
import time

RUST = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;")
PYTEST = re.compile(r"^(?=.*\b(?:passed|failed|skipped)\b)(?:=+ )?(.*) in [\d.]+s\b")
PYTEST_PART = re.compile(r"(\d+) (passed|failed|skipped|error)")
TAP = re.compile(r"^(not ok|ok) \d+ - (.*)")
TAP_SKIP = re.compile(r"# SKIP\b[ :]*(.*)", re.IGNORECASE)
SKIP = re.compile(r"^SKIP (.*)")
LINE_SKIP = re.compile(r"^SKIPPED ([^\[].*)")
PYTEST_SKIP = re.compile(r"^SKIPPED \[(\d+)\] (.*)")


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.skips = []

    def read(self, line):
        """Counts what a line of output reports."""
        if found := RUST.match(line):
            self.passed += int(found[1])
            self.failed += int(found[2])
        elif found := TAP.match(line):
            skipped = TAP_SKIP.search(found[2])
            if skipped:
                self.skips.append(f"{found[2].split('#')[0].strip()}: {skipped[1]}")
            elif found[1] == "ok":
                self.passed += 1
            else:
                self.failed += 1
        elif found := SKIP.match(line):
            self.skips.append(found[1])
            self.passed -= 1  # its program counts it as passed
        elif found := LINE_SKIP.match(line):
            self.skips.append(found[1])
        elif found := PYTEST_SKIP.match(line):
            self.skips += int(found[1]) * [found[2]]
        elif found := PYTEST.match(line):
            counts = {word: int(number) for number, word in PYTEST_PART.findall(found[1])}
            self.passed += counts.get("passed", 0)
            self.failed += counts.get("failed", 0) + counts.get("error", 0)


def not_allowed(skips, allowed):
    """The skips that no pattern of the list matches."""
    return [skip for skip in skips if not any(re.search(pattern, skip) for pattern in allowed)]


def patterns(path):
    with open(path) as file:
        lines = (line.strip() for line in file)
        return [line for line in lines if line and not line.startswith("#")]


def run(command, log=None):
    """Runs a command, shows its output as it comes, and counts it: (exit code, Tally)."""
    tally = Tally()
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    for raw in iter(running.stdout.readline, b""):
        for sink in (sys.stdout.buffer, log):
            if sink:
                sink.write(raw)
                sink.flush()
        tally.read(raw.decode(errors="replace").rstrip("\r\n"))
    return running.wait(), tally


def git(*arguments):
    """What git prints; empty outside of a repository, as in an unpacked archive."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def revision():
    """The commit, short, with `+` when files differ from it; empty outside of a repository."""
    commit = git("rev-parse", "--short", "HEAD")
    return commit + ("+" if commit and git("status", "--porcelain") else "")


def where(folder, target, user):
    """What is special about the place of a run."""
    below = [f"below {root}" for root in ("/tmp", "/run") if folder.startswith(f"{root}/")]
    spaces = ["spaces in the path"] if " " in folder else []
    elsewhere = ["CARGO_TARGET_DIR elsewhere"] if target else []
    return ", ".join((below or ["a clone"]) + spaces + elsewhere + [f"as {user}" if user == "root" else "as a user"])


def minutes(seconds):
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


class Clock:
    """The time that a run takes, and how busy other programs keep the processors meanwhile."""

    def __init__(self):
        self.started, self.busy_before = time.monotonic(), self.busy()

    @staticmethod
    def busy():
        """Time that all programs have had the processors, in s (proc_stat(5): user, nice, system; not guests twice)."""
        with open("/proc/stat") as file:
            user, nice, system = map(int, file.readline().split()[1:4])
        return (user + nice + system) / os.sysconf("SC_CLK_TCK")

    def read(self):
        """The run's duration, its own processor time, and the share of the processors that others had, in percent."""
        took = time.monotonic() - self.started
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = own.ru_utime + own.ru_stime
        others = max(self.busy() - self.busy_before - own, 0)
        return took, own, 100 * others / (took * os.cpu_count())


def row(tally, code, clock):
    """The run as a row of tests/runs.md."""
    took, own, others = clock.read()
    cells = [
        datetime.date.today().isoformat(),
        revision() or "no repository",
        where(os.getcwd(), os.environ.get("CARGO_TARGET_DIR"), getpass.getuser()),
        f"{tally.passed} passed, {tally.failed} failed, {len(tally.skips)} skipped",
        "green" if code == 0 else "red",
        minutes(took),
        minutes(own),
        f"{others:.0f} %",
    ]
    return f"| {' | '.join(cells)} |"


def main():
    allowed, command = patterns(sys.argv[1]), sys.argv[2:]
    clock = Clock()
    code, tally = run(command)
    unknown = not_allowed(tally.skips, allowed)
    for skip in tally.skips:
        print(f"skipped{' and not allowed' if skip in unknown else ''}: {skip}")
    code = code or int(bool(unknown))
    print(f"For tests/runs.md:\n{row(tally, code, clock)}")
    print(f"test: {tally.passed} passed, {tally.failed} failed, {len(tally.skips)} skipped", flush=True)
    if unknown:
        print(f"test: {len(unknown)} tests were skipped that {sys.argv[1]} does not list", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
