#!/bin/bash
# What a build costs at run time beside another one, in the lab's virtual clock, where an instruction takes 1 ns:
#
#     canter lab --clock virtual --cards 5 -- packaging/cost.sh USUAL STATIC
#
# Prints, for each program, the processor time of a recording's own threads per frame, and the shortest latency of a gateway,
# which no tick of the kernel is in. The sender of the recorded frames is USUAL.
set -euo pipefail
[ $# = 2 ] || { echo 'usage: packaging/cost.sh USUAL STATIC' >&2; exit 2; }
usual=$1
frames=20000
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; kill $(jobs -p) 2>/dev/null || true' EXIT

spent() { # spent PID: what all of its threads have taken, in ns
	awk '{ sum += $1 } END { printf "%d\n", sum }' /proc/"$1"/task/*/schedstat
}

recording() { # recording PROGRAM FILE
	"$1" capture vcan0 -o "$scratch/$2" --overwrite 2>"$scratch/said" &
	local pid=$! before after
	until grep -q '^capture: ' "$scratch/said"; do sleep 0.1; done
	"$usual" generate vcan0 -n 1000 -g 50us -q
	sleep 2
	before=$(spent $pid)
	"$usual" generate vcan0 -n $frames -g 50us -q
	sleep 2
	after=$(spent $pid)
	kill -INT $pid
	wait $pid || { echo 'the recording is not complete' >&2; return 1; }
	echo $(((after - before) / frames))
}

gateway() { # gateway PROGRAM METHOD: meter and gateway are the same program
	"$1" latency --through can3,can4 --method "$2" --send can0 --direct can1 --routed can2 --count 400 \
		--json "$scratch/gateway.json" -q >/dev/null
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["series"][0]["latency_ns"]["min"])' "$scratch/gateway.json"
}

less() { echo $(($1 < $2 ? $1 : $2)); }

row() { # row NAME FUNCTION ARGUMENTS…: the same by both programs, in turn; the less of two, which nothing else has disturbed
	local name=$1 function=$2 a b
	shift 2
	a=$($function "$usual" "$@")
	b=$($function "$static" "$@")
	b=$(less "$b" "$($function "$static" "$@")")
	a=$(less "$a" "$($function "$usual" "$@")")
	awk -v name="$name" -v a="$a" -v b="$b" 'BEGIN { printf "%s\t%d\t%d\t%.3f\n", name, a, b, b / a }'
}
static=$2

modprobe vcan
ip link add vcan0 type vcan
ip link set vcan0 up
for card in 0 1 2 3 4; do ip link set can$card up type can bitrate 1000000; done
printf 'what\tusual\tstatic\tratio\n'
for file in a.pcapng a.log a.pcapng.zst; do row "recording ${file#a}, ns per frame" recording "$file"; done
for method in read+write ring/spin+write recvmmsg+sendmmsg; do row "gateway $method, shortest latency in ns" gateway "$method"; done
