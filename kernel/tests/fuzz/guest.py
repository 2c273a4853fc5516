#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the fuzzer in a guest, judges the kernel's log, memory and kmemleak, and writes the result.

guest.py FUZZ MODULES RESULT KEY=VALUE...: `seconds`, `seed` and `patience` are the fuzzer's, `fail_nth=1` runs that part
first, the others are only noted. Exit code 1: a report names a function of ours, memory grew, or the fuzzer failed.
"""
import gc
import os
import re
import subprocess
import sys
import time

HEAD = re.compile(r"BUG: |WARNING: |UBSAN: |ODEBUG: |Oops|general protection fault|refcount_t: |kernel BUG at|"
                  r"INFO: task .* blocked|rcu: INFO: .*stall|unregister_netdevice: waiting|inconsistent lock|"
                  r"possible (recursive|circular)|Kernel panic|list_(add|del) corruption|leaked reference")
OURS = re.compile(r"\[(canwire|canchar|canprobe|canbare)\]|\b(cw|canchar|canprobe|canbare|card_pair)_\w+")
# Lines of one report at most.
REPORT_LINES = 90
# What a machine of 2 GiB may hold more of after many rounds: caches of the kernel that nobody empties.
GROWTH_KIB_MAX = 24 << 10
LEAKS = "/sys/kernel/debug/kmemleak"


def reports(log):
    """Reports as lists of lines: from a head to the next one."""
    found = []
    for line in log.split("\n"):
        text = re.sub(r"^\[[^]]*\] ", "", line)
        if HEAD.search(text):
            if not found or len(found[-1]) > 4 or not HEAD.search(found[-1][-1]):
                found.append([])
            found[-1].append(text)
        elif found and len(found[-1]) < REPORT_LINES:
            found[-1].append(text)
    return found


def kernel_log():
    return subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout


def memory_kib():
    """What the kernel holds for itself, its caches emptied as far as they can be."""
    for _ in range(3):
        gc.collect()
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")
        time.sleep(1)  # RCU and the works of network namespaces; there is nothing to wait for
    with open("/proc/meminfo") as file:
        sizes = {name: int(value.split()[0]) for name, value in (line.split(":") for line in file)}
    return sum(sizes.get(name, 0) for name in ("SUnreclaim", "VmallocUsed", "Percpu", "KernelStack", "PageTables"))


def leaks():
    """Objects that nobody refers to, by kmemleak's second look: the first may meet pointers on their way."""
    if not os.path.exists(LEAKS):
        return []
    for _ in range(2):
        with open(LEAKS, "w") as file:
            file.write("scan")
        time.sleep(6)  # younger objects than five seconds are not reported
    with open(LEAKS) as file:
        found = file.read().split("unreferenced object")[1:]
    # Of a module that has gone, only addresses are left.
    return [leak for leak in found if OURS.search(leak) or re.search(r"\] 0xffffffff[ac]0", leak)]


def set_faults():
    """Also allocations that may wait fail, of any order."""
    for what in ("failslab", "fail_page_alloc"):
        for name, value in (("ignore-gfp-wait", "N"), ("ignore-gfp-highmem", "N"), ("min-order", "0"), ("verbose", "0")):
            path = f"/sys/kernel/debug/{what}/{name}"
            if os.path.exists(path):
                with open(path, "w") as file:
                    file.write(value)
    path = "/sys/kernel/debug/fail_usercopy/verbose"
    if os.path.exists(path):
        with open(path, "w") as file:
            file.write("0")


def fuzz(program, modules, *words):
    done = subprocess.run([program, "--modules", modules, *words], stdout=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        print(done.stdout)
    return done.returncode, done.stdout


def quoted(lines):
    return '"""\n' + "\n".join(lines).replace("\\", "\\\\").replace('"""', '""\\"') + '\n"""'


def main():
    program, modules, result = sys.argv[1:4]
    notes = dict(word.split("=", 1) for word in sys.argv[4:])
    seconds, seed = int(notes.get("seconds", 60)), int(notes["seed"])
    options = ["--patience", notes.get("patience", "60")]
    # And no module of the kernel's for a name that no interface has: it would take a second each time.
    subprocess.run("modprobe -qa can can_raw can_dev af_packet vcan; echo > /proc/sys/kernel/modprobe; ip link add vcan0 type vcan; ip link set vcan0 up; rmmod canwire canchar canprobe canbare",
                   shell=True, stderr=subprocess.DEVNULL)
    failed, nth, made, grown = [], "", "", 0
    if notes.pop("fail_nth", ""):
        set_faults()
        code, nth = fuzz(program, modules, "--fail-nth", *options)
        if code:
            failed.append("fail-nth")
    if seconds and not failed:
        # Caches fill first.
        warm = max(10, seconds // 6)
        code, made = fuzz(program, modules, "--seed", str(seed + 1), "--seconds", str(warm), *options)
        before = memory_kib()
        if not code:
            code, made = fuzz(program, modules, "--seed", str(seed), "--seconds", str(max(10, seconds - warm)), *options)
            grown = memory_kib() - before
        if code:
            failed.append("fuzz")
        if grown > GROWTH_KIB_MAX:
            failed.append(f"memory: {grown} KiB more")
    lost = leaks()
    found = reports(kernel_log())
    ours = [report for report in found if any(OURS.search(line) for line in report)]
    failed += ["kmemleak"] * bool(lost) + ["reports"] * bool(ours)
    for report in ours:
        print("\n".join(report), file=sys.stderr)
    for leak in lost[:5]:
        print("unreferenced object" + leak, file=sys.stderr)
    with open(result, "w") as file:
        print(f'kernel = "{os.uname().release}"\nprocessors = {os.cpu_count()}', file=file)
        for name, value in notes.items():
            print(f'{name} = "{value}"', file=file)
        print(f'verdict = "{"failed: " + ", ".join(failed) if failed else "passed"}"\nmemory_grown_kib = {grown}\n'
              f"reports_of_ours = {len(ours)}\nreports_of_others = {len(found) - len(ours)}\nleaks = {len(lost)}", file=file)
        if found:
            heads = [("ours: " if report in ours else "other: ") + report[0] for report in found]
            print("reports = " + quoted(heads[:200]), file=file)
        print("\n[fuzz]\n" + made.replace("[calls.", "[fuzz.calls.") + "\n" + nth, file=file)
    print(f"{'FAILED: ' + ', '.join(failed) if failed else 'passed'}: {len(ours)} reports of ours, "
          f"{len(found) - len(ours)} of others, {len(lost)} leaks, {grown} KiB more, "
          f"{(re.search('^calls_made = ([0-9]+)', made, re.M) or [0, 0])[1]} calls")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
