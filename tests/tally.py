#!/usr/bin/env python3
"""Runs the command of a test run, shows its output, and ends with one line: N passed, N failed, N skipped.

    tests/tally.py tests/skips.txt make test-all-lines

Counts the results of Rust's test programs, of pytest and of TAP programs, on the host and in the lab's guests. Each
skipped test is named with its reason. The first file lists the skips that are allowed, a regular expression per line; any
other skip is a failure, because a test that silently does nothing proves nothing. The exit code is the command's, or 1.
"""
import re
import subprocess
import sys

RUST = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;")
PYTEST = re.compile(r"^(?=.*\b(?:passed|failed|skipped)\b)(?:=+ )?(.*) in [\d.]+s\b")
PYTEST_PART = re.compile(r"(\d+) (passed|failed|skipped|error)")
TAP = re.compile(r"^(not ok|ok) \d+ - (.*)")
TAP_SKIP = re.compile(r"# SKIP\b[ :]*(.*)", re.IGNORECASE)
SKIP = re.compile(r"^SKIP (.*)")
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


def main():
    allowed, command = patterns(sys.argv[1]), sys.argv[2:]
    tally = Tally()
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    for raw in iter(run.stdout.readline, b""):
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        tally.read(raw.decode(errors="replace").rstrip("\r\n"))
    code = run.wait()
    unknown = not_allowed(tally.skips, allowed)
    for skip in tally.skips:
        print(f"skipped{' and not allowed' if skip in unknown else ''}: {skip}")
    print(f"test: {tally.passed} passed, {tally.failed} failed, {len(tally.skips)} skipped")
    if unknown:
        print(f"test: {len(unknown)} tests were skipped that {sys.argv[1]} does not list", file=sys.stderr)
    return code or int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())
