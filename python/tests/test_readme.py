"""The examples of the README run as they stand there, on a vcan in place of can0 and can1."""

import pathlib
import re
import subprocess
import sys

import pytest

README = pathlib.Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number):
    text = EXAMPLES[number].replace('"can0,can1"', '"vcan0,vx0"').replace('"can0"', '"vcan0"')
    peer = (
        "import subprocess; peer = subprocess.Popen('while :; do cansend vcan0 123#1122334455667788; sleep 0.05; done', "
        "shell=True)\ntry:\n"
    )
    program = peer + "".join(f"    {line}\n" for line in text.splitlines()) + "finally:\n    peer.kill()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{text}\n{done.stderr}"
