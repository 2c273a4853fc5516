#!/bin/bash
# What converting a frame costs, beside other programs: make bench-convert
#
# Classic frames with 8 bytes on 20 buses, in a RAM disk. A conversion's user and system time, less that of a file with
# one frame, by frame: in the virtual clock an instruction takes 1 ns. PYTHON: a Python with python-can, whose MF4 is not
# measured.
set -eu -o pipefail
exec 3>&2
cd "$(mktemp -d)"
log() { # FRAMES
  awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "(%d.%06d) can%d %03X#%08X%08X\n",
    1700000000 + i / 20000, i % 20000 * 50, i % 20, 256 + i % 20, i * 7919 % 4294967296, i }'
}
log 1 > one.log
log 5000 > some.log
log 100000 > all.log

# Prints the ms of processor time that a command takes.
spent() {
  TIMEFORMAT='%3U %3S'
  { time "$@" > said 2>&1 || { cat said >&3; exit 1; }; } 2>&1 | awk '{ print ($1 + $2) * 1000 }'
}

canter_converts() { canter convert "$1" -o "$2" --format "${2##*.}" --overwrite -q; }
canter_compresses() { canter convert "$1" -o "$2.zst" --format "${2##*.}" --overwrite -q; }
python_can() { "$PYTHON" -m can.logconvert "$1" "$2"; }
log2asc_converts() { log2asc -I "$1" -O "$2" $(seq -f can%g 0 19); }
tshark_converts() { tshark -r "$1" -w "$2" -F pcapng; }

row() { # PROGRAM FUNCTION FILE-OF-MANY FRAMES FROM TO
  local start took bytes
  rm -rf out.*
  start=$(spent "$2" "one.$5" "out.$6")
  rm -rf out.*
  took=$(spent "$2" "$3.$5" "out.$6")
  bytes=$(du -sbc out.* | tail -1 | cut -f1)
  awk -v w="$1" -v f="$5" -v o="$6" -v t="$took" -v s="$start" -v b="$bytes" -v n="$4" \
    'BEGIN { printf "%-12s .%-7s .%-8s %12.0f %10.1f\n", w, f, o, (t - s) * 1e6 / n, b / n }'
}

for format in pcapng blf asc mf4; do
  for many in one some all; do canter_converts $many.log $many.$format > said 2>&1; done
done
printf '%-12s %-8s %-9s %12s %10s\n' program from to 'ns a frame' 'B a frame'
for pair in log:pcapng pcapng:log log:blf blf:log log:asc asc:log log:csv log:mf4 mf4:log log:parquet; do
  row canter canter_converts all 100000 "${pair%:*}" "${pair#*:}"
done
row 'canter, zst' canter_compresses all 100000 log pcapng
row tshark tshark_converts some 5000 log pcapng
row log2asc log2asc_converts all 100000 log asc
for pair in log:blf blf:log log:asc asc:log log:csv; do
  row python-can python_can some 5000 "${pair%:*}" "${pair#*:}"
done
