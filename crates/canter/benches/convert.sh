#!/bin/bash
# What converting a frame costs: canter lab --quiet --clock virtual -- crates/canter/benches/convert.sh
#
# 100 000 classic frames with 8 bytes on 20 buses, in a RAM disk. A conversion's user and system time, less that of a
# file with one frame, by frame: in the virtual clock an instruction takes 1 ns.
set -eu
FRAMES=100000
cd "$(mktemp -d)"
awk -v n=$FRAMES 'BEGIN { for (i = 0; i < n; i++) printf "(%d.%06d) can%d %03X#%08X%08X\n",
  1700000000 + i / 20000, i % 20000 * 50, i % 20, 256 + i % 20, i * 7919 % 4294967296, i }' > all.log
head -1 all.log > one.log

# Prints the ms of processor time that a command takes.
spent() {
  TIMEFORMAT='%3U %3S'
  { time "$@" > said 2>&1; } 2>&1 | awk '{ print ($1 + $2) * 1000 }'
}

convert() { # FROM TO
  rm -rf out.*
  spent canter convert "$1" -o "out.$2" --format "${2%.zst}" --overwrite -q
}

printf '%-22s %12s %10s\n' conversion 'ns a frame' 'B a frame'
for pair in log:pcapng pcapng:log log:blf blf:log log:asc asc:log log:csv log:mf4 log:parquet log:pcapng.zst; do
  from=${pair%:*} to=${pair#*:}
  for size in one all; do
    [ "$from" = log ] || canter convert $size.log -o $size."$from" --overwrite -q > said 2>&1
  done
  start=$(convert one."$from" "$to")
  took=$(convert all."$from" "$to")
  bytes=$(du -sb "out.$to" | cut -f1)
  awk -v p="$from → $to" -v t="$took" -v s="$start" -v b="$bytes" -v n=$FRAMES \
    'BEGIN { printf "%-22s %12.0f %10.1f\n", p, (t - s) * 1e6 / n, b / n }'
done
