#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the fuzzer in a guest, judges the kernel's log, memory and kmemleak, and writes the result.

guest.py FUZZ MODULES RESULT KEY=VALUE...: `seconds`, `seed` and `patience` are the fuzzer's, `fail_nth=1` runs that part
first, `replay=CALLS` makes only these calls again, the others are only noted. Exit code 1: the kernel reported something
(of data races: one that names a function of ours), memory grew, objects leaked, or the fuzzer failed.
"""
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HEAD = re.compile(r"BUG: |WARNING: |UBSAN: |ODEBUG: |Oops|general protection fault|refcount_t: |kernel BUG at|"
                  r"INFO: task .* blocked|rcu: INFO: .*stall|unregister_netdevice: waiting|inconsistent lock|"
                  r"possible (recursive|circular)|Kernel panic|list_(add|del) corruption|leaked reference")
OURS = re.compile(r"\[(canwire|canchar|canprobe|canbare)\]|\b(cw|canchar|canprobe|canbare|card_pair)_\w+")
# Races of 6.12 on its own objects, on purpose or harmless, which it does not mark: the clock is a latch, one of two copies
# of which is whole; two bits of NAPI's state are read while others change; a sleeper looks whether its timer has expired; a
# transmit queue's state is read before a frame is taken, while a driver wakes the queue.
KERNELS_OWN = (r"KCSAN: data-race in (timekeeping_cycles_to_ns(.*\n)+ ktime_get_mono_fast_ns\+|"
               r"napi_complete_done / napi_schedule_prep|hrtimer_wakeup / schedule_hrtimeout_range_clock|"
               r"__qdisc_run / netif_tx_wake_queue)")
# Lines of one report at most.
REPORT_LINES = 90
# What a machine of 2 GiB may hold more of after many rounds: caches of the kernel that nobody empties.
GROWTH_KIB_MAX = 24 << 10
LEAKS = "/sys/kernel/debug/kmemleak"


def reports(log):
    """Reports as lists of lines: from a head to the end that the kernel marks, or to the next head."""
    found, is_open = [], False
    for line in log.split("\n"):
        text = re.sub(r"^\[[^]]*\] ", "", line)
        if HEAD.search(text):
            if not is_open or len(found[-1]) > 4 or not HEAD.search(found[-1][-1]):
                found.append([])
            found[-1].append(text)
            is_open = True
        elif is_open:
            found[-1].append(text)
            # A line below a report may name a module of ours by chance.
            framed = text.startswith("=" * 60) and re.search("KASAN|KCSAN", found[-1][0])
            is_open = not framed and "---[ end trace" not in text and len(found[-1]) < REPORT_LINES
    return found


def is_ours(report):
    """A report with a function of our modules anywhere in it, unless it is one of KERNELS_OWN."""
    return any(OURS.search(line) for line in report) and not re.search(KERNELS_OWN, "\n".join(report))


def is_bad(report):
    """The kernel reports data races of its own, too, and stalls when the machine around the guest has no time for it."""
    return is_ours(report) or not re.search("KCSAN|stall|soft lockup", report[0])


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


FAILSLAB = "/sys/kernel/debug/failslab"


def set_failslab(percent):
    """Of the allocations of tasks that ask for it (make-it-fail), one of ten may fail, and of these so many do."""
    for name, value in (("task-filter", "Y"), ("interval", 10), ("times", -1), ("space", 0), ("ignore-gfp-wait", "N"),
                        ("verbose", 0), ("probability", percent)):
        with open(f"{FAILSLAB}/{name}", "w") as file:
            file.write(str(value))


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
    # A file, not a pipe: a process that hangs in the kernel would keep the pipe open for ever.
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        code = subprocess.run([program, "--modules", modules, *words], stdout=file).returncode
        file.seek(0)
        printed = file.read()
    if code:
        print(printed, flush=True)
    return code, printed


def replay(program, modules, patience, calls):
    """The calls that were made again, without what they returned."""
    done = subprocess.run([program, "--modules", modules, "--patience", patience, "--replay", calls], capture_output=True,
                          text=True)
    return done.returncode, [line.split(" #")[0] for line in done.stdout.split("\n")[1:] if line]


def replays_differ(program, modules, patience, seed):
    """A stretch of calls is the same each time, and as one call after the other."""
    code, calls = replay(program, modules, patience, f"0/{seed:x}+3-42")
    again = replay(program, modules, patience, f"0/{seed:x}+3-42")
    one_by_one = replay(program, modules, patience, "0/" + ",".join(call.split()[0] for call in calls))
    return code or len(set(calls)) < 40 or again != (0, calls) or one_by_one != (0, calls)


def quoted(lines):
    return '"""\n' + "\n".join(lines).replace("\\", "\\\\").replace('"""', '""\\"') + '\n"""'


def prepare():
    """What the kernel reported while it booted on a busy machine is forgotten."""
    # Afterwards no module of the kernel's for a name that no interface has: each would take a second.
    subprocess.run("dmesg -C; modprobe -qa can can_raw can_dev af_packet vcan; echo > /proc/sys/kernel/modprobe; "
                   "ip link add vcan0 type vcan; ip link set vcan0 up; rmmod canwire canchar canprobe canbare",
                   shell=True, stderr=subprocess.DEVNULL)


def keep_tracepoints_on():
    """With several processors, two others watch the handlers of interrupts, so that canprobe's watch changes a list of
    functions and no code: QEMU before 8.1 may execute an old byte of code that another processor changed (HACKING.md)."""
    if os.cpu_count() == 1:
        return
    tracing = "/sys/kernel/tracing"
    if not os.path.ismount(tracing):
        subprocess.run(["mount", "-t", "tracefs", "none", tracing], stderr=subprocess.DEVNULL)
    if not os.path.isdir(f"{tracing}/events/irq"):
        return  # a kernel without tracepoints, where canprobe watches nothing
    os.mkdir(f"{tracing}/instances/fuzz")
    for instance in (tracing, f"{tracing}/instances/fuzz"):
        for event in ("irq_handler_entry", "irq_handler_exit"):
            with open(f"{instance}/events/irq/{event}/enable", "w") as file:
                file.write("1")


def fuzz_with_failures(run, seconds, seed):
    """Where the kernel can, allocations fail now and then for a part of the time. Answers how much of it is left."""
    if not os.path.exists(FAILSLAB):
        return 0, "", seconds
    part = max(10, seconds // 4)
    set_failslab(2)
    code, made = run("--seed", str(seed + 2), "--seconds", str(part), "--failslab")
    set_failslab(0)
    return code, made, seconds - part


def fuzz_rounds(run, seconds, seed):
    """The reason of a failure, what was printed, also with failing allocations, and how much more memory the kernel has."""
    # Caches fill first.
    warm, failures = max(10, seconds // 6), ""
    code, made = run("--seed", str(seed + 1), "--seconds", str(warm))
    before = memory_kib()
    if not code:
        code, failures, seconds = fuzz_with_failures(run, seconds, seed)
    if not code:
        code, made = run("--seed", str(seed), "--seconds", str(max(10, seconds - warm)))
    grown = memory_kib() - before
    if code:
        return ["fuzz"], made, failures, grown
    return [f"memory: {grown} KiB more"] * (grown > GROWTH_KIB_MAX), made, failures, grown


def write_result(path, notes, values, heads, printed):
    with open(path, "w") as file:
        print(f'kernel = "{os.uname().release}"\nprocessors = {os.cpu_count()}', file=file)
        for name, value in notes.items():
            print(f'{name} = "{value}"', file=file)
        for name, value in values.items():
            print(f"{name} = {value}", file=file)
        if heads:
            print("reports = " + quoted(heads[:200]), file=file)
        for part, text in printed.items():
            if text:
                print(f"\n[{part}]\n" + text.replace("[calls.", f"[{part}.calls."), file=file)


def main():
    # Not from the share: an allocation that fails in the 9P client loses a file of it for ever.
    folder = tempfile.mkdtemp()
    program, modules = shutil.copy(sys.argv[1], folder), shutil.copytree(sys.argv[2], f"{folder}/modules")
    result = sys.argv[3]
    notes = dict(word.split("=", 1) for word in sys.argv[4:])
    seconds, seed, patience = int(notes["seconds"]), int(notes["seed"]), notes["patience"]
    prepare()
    keep_tracepoints_on()
    failed, nth, made, failures, grown = [], "", "", "", 0

    def run(*words):
        return fuzz(program, modules, "--patience", patience, "--slower", notes["slower"], *words)

    if "replay" in notes:
        words = ["--modules", modules, "--patience", patience, "--slower", notes["slower"], "--replay", notes["replay"]]
        return subprocess.run([program, *words]).returncode
    failed += ["replay"] * bool(replays_differ(program, modules, patience, seed))
    if notes.pop("fail_nth", ""):
        set_faults()
        code, nth = run("--fail-nth")
        failed += ["fail-nth"] * bool(code)
    if seconds and not failed:
        failed, made, failures, grown = fuzz_rounds(run, seconds, seed)
    lost = leaks()
    found = reports(kernel_log())
    ours = [report for report in found if is_ours(report)]
    bad = [report for report in found if is_bad(report)]
    calls = int((re.search("^calls_made = ([0-9]+)", made, re.M) or [0, 0])[1])
    failed += ["kmemleak"] * bool(lost) + ["reports"] * bool(bad) + ["no calls"] * bool(seconds and made and not calls)
    for text in ["\n".join(report) for report in bad[:10]] + ["unreferenced object" + leak for leak in lost[:5]]:
        print(text, file=sys.stderr)
    others = len(found) - len(ours)
    write_result(result, notes, {
        "verdict": f'"{"failed: " + ", ".join(failed) if failed else "passed"}"', "memory_grown_kib": grown,
        "reports_of_ours": len(ours), "reports_of_others": others, "leaks": len(lost),
    }, [("ours: " if report in ours else "other: ") + report[0] for report in found], {"fuzz": made, "failslab": failures, "fail_nth": nth})
    print(f"1..1\n{'not ok' if failed else 'ok'} 1 - the modules bear the fuzzer on {notes['line']} with {os.cpu_count()} "
          f"processors ({', '.join(failed) + ': ' if failed else ''}{len(ours)} reports of ours, {others} of others, "
          f"{len(lost)} leaks, {grown} KiB more, {calls} calls)")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
