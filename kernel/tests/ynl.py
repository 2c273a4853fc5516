# SPDX-License-Identifier: GPL-2.0-only
"""canwire by the kernel's own YNL client and our description of the family. In the guest: ynl.py FOLDER, which has the
client, the description and Python's yaml (ynl.sh)."""
import json
import os
import subprocess
import sys

import guest
from canwire import BUS_STATS_FIELDS, NODE_STATS_FIELDS, down, up, wait_until

FOLDER = sys.argv[1]
sys.path[:0] = [f"{FOLDER}/python", f"{FOLDER}/ynl"]
from lib import NlError, YnlFamily  # noqa: E402

family = None


def do(command, **attributes):
    return family.do(command, attributes)


def dump(command, **attributes):
    return family.dump(command, attributes)


def refusal(command, **attributes):
    """Why the kernel refuses a command."""
    try:
        do(command, **attributes)
    except NlError as error:
        return str(error)
    raise AssertionError(f"{command} is not refused")


def by_cli(*arguments):
    """What the client's program prints; once, because it reads the description first, which takes seconds."""
    done = subprocess.run(
        [sys.executable, f"{FOLDER}/ynl/cli.py", "--spec", f"{FOLDER}/ynl/canwire.yaml", "--no-schema", "--output-json",
         *arguments], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": f"{FOLDER}/python"})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def words(data, fields):
    """A structure of u64s."""
    return {name: int.from_bytes(data[8 * n:8 * n + 8], sys.byteorder) for n, name in enumerate(fields[:len(data) // 8])}


def test_nodes():
    do("node-add", node="wcan0", bus="A")
    do("node-add", **{"node": "wcan1", "bus": "A", "fifo-frames": 5, "tx-buffers": 1, "fd-tolerant": 1})
    do("node-add", node="wcan2", bus="B")
    assert [node["node"] for node in dump("node-get")] == ["wcan0", "wcan1", "wcan2"]
    assert [node["node"] for node in dump("node-get", bus="A")] == ["wcan0", "wcan1"]
    node = do("node-get", node="wcan1")
    expected = {"bus": "A", "slot": 1, "fifo-frames": 5, "tx-buffers": 1, "fd-tolerant": 1, "connected": 1}
    assert {name: node[name] for name in expected} == expected, node
    assert "fifo-bytes" not in node
    assert [node["node"] for node in by_cli("--dump", "node-get", "--json", '{"bus": "A"}')] == ["wcan0", "wcan1"]


def test_a_bus():
    bus = do("bus-get", bus="A")
    assert (bus["bus"], bus["nodes"], bus["slip-ns"]) == ("A", 2, 0), bus
    do("bus-set", **{"bus": "A", "slip-ns": 5000, "seed": 7})
    assert do("bus-get", bus="A")["slip-ns"] == 5000
    assert sorted(one["bus"] for one in dump("bus-get")) == ["A", "B"]


def test_the_source_sends_what_it_was_told():
    up("wcan0", 1000000)
    up("wcan1", 1000000)
    frame = (0x123).to_bytes(4, sys.byteorder) + bytes([2, 0, 0, 0]) + bytes(64)
    do("source-start", **{"bus": "A", "frame": frame.hex(), "period-ns": 1000000, "count": 10,
                          "source-flags": ["number"]})

    def frames():
        return words(do("bus-get", bus="A")["bus-stats"], BUS_STATS_FIELDS)["frames"]
    wait_until(lambda: frames() == 10, 60, "ten frames")
    assert words(do("node-get", node="wcan0")["node-stats"], NODE_STATS_FIELDS)["received"] == 10
    do("source-stop", bus="A")


def test_errors_are_injected_and_refused():
    do("inject", bus="A", error="crc", count=1)
    do("connect", node="wcan1", connected=0)
    assert do("node-get", node="wcan1")["connected"] == 0
    do("connect", node="wcan1", connected=1)
    trouble = refusal("node-add", node="wcan0", bus="A")
    assert "exists" in trouble, trouble
    assert refusal("node-get", node="nobody")
    trouble = refusal("source-start", bus="A")
    assert "FRAME is missing" in trouble, trouble


def test_nodes_are_deleted():
    down("wcan0")
    for name in ("wcan0", "wcan1", "wcan2"):
        do("node-delete", node=name)
    assert dump("node-get") == [] and dump("bus-get") == []


TESTS = (test_nodes, test_a_bus, test_the_source_sends_what_it_was_told, test_errors_are_injected_and_refused,
         test_nodes_are_deleted)


def main():
    global family
    guest.load()
    family = YnlFamily(f"{FOLDER}/ynl/canwire.yaml", "")
    failed = 0
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except (AssertionError, NlError) as error:
            print(f"not ok {number} - {test.__name__}: {error}")
            failed += 1
    trouble = guest.trouble()
    assert not trouble, trouble
    print(f"1..{len(TESTS)}")
    return failed != 0


sys.exit(main())
