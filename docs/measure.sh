#!/bin/bash
# Measures what the documents quote and no study has: docs/measure.sh FOLDER [PART…], as root or with the packages that
# `make setup` names, after cargo build --release and make target/python. Then change the folder in the documents' `figures:`
# comments; docs/figures.py --write does the rest.
# Parts: record convert python wire first_loss syscalls lateness
set -euo pipefail
cd "$(dirname "$0")/.."
canter=$PWD/target/release/canter
folder=$1
shift
mkdir -p "$folder"

virtual() { # OPTION… -- COMMAND: in the lab's virtual clock
  "$canter" lab --quiet --clock virtual "$@" </dev/null
}

# What recording a frame costs; threads by their names. The medians of three runs, which differ by some per cent.
record() {
  for run in 1 2 3; do
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$canter lab --quiet --clock virtual --" \
      cargo bench --locked -p canter --bench record | tee /dev/stderr | awk '
      BEGIN { OFS = "\t"; print "recorder", "file", "instructions", "bytes", "delivery", "receiver", "writer", "command" }
      / [0-9]+ +[0-9.]+  / && !/^ / { match($0, / +[0-9]+ +[0-9.]+  /); name = substr($0, 1, RSTART - 1)
        split(substr($0, RSTART), number, " ") }
      /^    delivery/ { gsub(",", ""); delete part; for (i = 1; i < NF; i += 2) part[$i] = $(i + 1)
        file = name; if (!sub(/^canter /, "", file)) file = ""
        sub(/[, ].*/, "", name)
        print name, file, number[1], number[2], part["delivery"], part["canter-capture"], part["canter-write"], part["canter"] }
      ' > "$folder/record.$run" || echo "measure: record: a ceiling is exceeded" >&2
  done
  python3 - "$folder/record" <<'PYTHON'
import csv, os, statistics, sys
runs = [list(csv.reader(open(f"{sys.argv[1]}.{run}"), delimiter="\t")) for run in (1, 2, 3)]
with open(sys.argv[1] + ".tsv", "w") as table:
    for rows in zip(*runs):
        middle = [str(statistics.median_low(map(float, cells))).removesuffix(".0") if cells[0][:1].isdigit() else cells[0]
                  for cells in zip(*rows)]
        print(*middle, sep="\t", file=table)
[os.remove(f"{sys.argv[1]}.{run}") for run in (1, 2, 3)]
PYTHON
}

# What converting a frame costs.
convert() {
  virtual -- crates/canter/benches/convert.sh | tee /dev/stderr | awk '
    function name(text) { return text == "parquet" ? "Parquet" : "." text }
    BEGIN { OFS = "\t"; print "from", "to", "instructions", "bytes" }
    $2 == "→" { print name($1), name($3), $4, $5 }' > "$folder/convert.tsv"
}

# What receiving costs a Python program, and what a logger loses.
python() {
  target/python/bin/python -m pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python
  virtual -- sh -c 'modprobe vcan; ip link add vcan0 type vcan; ip link set vcan0 up
    sysctl -qw net.core.rmem_default=20000000; target/python/bin/python python/bench/cost.py
    sysctl -qw net.core.rmem_default=212992; exec target/python/bin/python python/bench/logger.py' |
    tee /dev/stderr > "$folder/python.txt"
  awk 'BEGIN { OFS = "\t"; print "back-end", "call", "instructions" } $5 == "frame" { print $1, $2, $3 }' "$folder/python.txt" > "$folder/python.tsv"
  awk 'BEGIN { OFS = "\t"; print "back-end", "logged", "lost" } $3 == "logged" { print $1, $2, $4 }' \
    "$folder/python.txt" > "$folder/python-logger.tsv"
  rm "$folder/python.txt"
}

# What canwire's timer takes.
wire() {
  printf 'kernel\t1 receiver\t2 receivers\t5 receivers\twithout a wake-up\n' > "$folder/wire-cost.tsv"
  for kernel in 6.12 6.12-rt; do
    CANTER=$canter kernel/tests/run.sh $kernel virtual measure.py cost | tee /dev/stderr |
      sed -nE "s/.*receivers ([0-9]+), ([0-9]+), ([0-9]+); ([0-9]+) with.*/$kernel\t\1\t\2\t\3\t\4/p" >> "$folder/wire-cost.tsv"
  done
}

# At which period each gateway begins to lose frames, on a machine about as slow as the 2014 paper's.
first_loss() {
  virtual --bus wire --shift 3 -- "for node in wcan2 wcan3 wcan4; do ip link set \$node up type can bitrate 1000000; done
    canter latency --instrument wire --send A --routed B --through wcan3,wcan4 --count 2000 --first-loss --traffic period \
      --method can-gw,recvmmsg+sendmmsg,recvmmsg/spin+sendmmsg,read+write,read/spin+write,read/spin+ring,io-uring+io-uring,ring+ring,ring/spin+ring,ring/spin+write,ring+write \
      --json $folder/first-loss.json"
}

# Receiving by a ring that listens to CAN only, and by one that has to receive every protocol.
syscalls() {
  virtual -- "for mtu in 16 72; do
      ip link add vcan\$mtu type vcan; ip link set vcan\$mtu mtu \$mtu up
      canter syscalls -i vcan\$mtu --frames 8192 --batch 64 --queue 64 --len 2 --json $folder/syscalls-mtu\$mtu.json
    done"
}

# How late frames are that canter generates.
lateness() {
  virtual -- "for bus in vcan0 vcan1; do ip link add \$bus type vcan; ip link set \$bus up; done
    canter generate vcan0 vcan1 --traffic period=1ms -n 1000 -L 8 --json $folder/lateness.json"
  python3 - "$folder/lateness" <<'PYTHON'
import json, os, sys
with open(sys.argv[1] + ".json") as file, open(sys.argv[1] + ".tsv", "w") as table:
    print("interface", "p50", "max", sep="\t", file=table)
    for one in json.load(file)["interfaces"]:
        print(one["interface"], one["late_ns"]["p50"], one["late_ns"]["max"], sep="\t", file=table)
os.remove(sys.argv[1] + ".json")
PYTHON
}

for part in ${*:-record convert python wire first_loss syscalls lateness}; do
  echo "measure: $part" >&2
  "$part"
done
