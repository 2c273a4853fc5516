#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# napi_weight.sh KERNEL OUT: what the packets of one turn of Ethernet's NAPI cost CAN. A real-time kernel of the lab, a
# flood of pings to its e1000, gateways on wires whose controllers stamp; OUT/64.json as the driver has it, OUT/1.json
# with a packet a turn (COUNT: frames, 1000).
set -e
tests=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$tests/../.." && pwd)
canter=${CANTER:-${CARGO_TARGET_DIR:-$root/target}/debug/canter}
kernel=$1 out=$(mkdir -p "$2" && cd "$2" && pwd)
share=$root/target/canwire
release=$("$tests/release.sh" "$kernel")
flock "$share/building" "$tests/build.sh" "$share" "$release" >&2
cat >"$out/napi-weight.toml" <<END
name = "napi-weight"
title = "Gateways beside Ethernet"
source = "CANlatester"

[lab]
kernels = ["$kernel"]
clock = "virtual"
cpus = 1
bus = "wire"

[latency]
methods = ["can-gw", "read+write"]
loads = ["ethernet-receive"]
tuning = ["", "napi=80"]
traffic = ["period=1ms"]
lens = [8]
count = ${COUNT:-1000}
jitter = "200us"
realtime = 60
END
for weight in 64 1; do
	"$canter" lab --quiet --kernel "$kernel" --clock virtual --bus wire --net --timeout 60m --share "$out" --share "$root/target" -- \
		sh -c 'insmod "$1/$(uname -r)/napi_weight.ko" weight=$2 && dmesg | grep napi_weight: >&2 &&
			"$4" study run "$3/napi-weight.toml" --quiet --interfaces wcan0,wcan3,wcan4 --gateway wcan1,wcan2 \
				--instrument hardware --out "$3/of-$2" && mv "$3/of-$2"/napi-weight*.json "$3/$2.json" && rm -r "$3/of-$2"' \
		sh "$share" "$weight" "$out" "$canter"
done
rm "$out/napi-weight.toml"
