#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# build.sh driver|board|virtual PROGRAM: canchar's core and SJA1000 as a program of user space, with kernel.h in place of the
# kernel's headers: driver.c, for one chip of a test, board.c, for a Kvaser card with four, or virtual.c, for virtual devices.
set -e
here=$(cd "$(dirname "$0")" && pwd)
canchar=$here/../../canchar
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
sources=("$canchar"/{core,send,queue,device,thread,chip_sja1000,chip_sja1000_setup}.c)
[ "$1" != board ] || sources+=("$canchar/board_kvaser_pci.c")
[ "$1" != virtual ] || sources+=("$canchar/chip_virtual.c")
# What kernel.h includes itself is the C library's.
grep -ho '^#include <\(uapi/\)\?linux/[a-z0-9_/]*\.h>' "${sources[@]}" "$canchar"/*.h | sort -u | sed 's/.*<\(.*\)>/\1/' |
	grep -vx -e linux/errno.h -e linux/limits.h -e linux/types.h -e linux/can.h -e linux/can/error.h | while read -r header; do
		mkdir -p "$empty/$(dirname "$header")"
		: >"$empty/$header"
	done
${CC:-cc} -std=gnu11 -O1 -g -Wall -Wno-unused -Wno-format -Werror -fsanitize=address,undefined -fno-sanitize-recover \
	-include "$here/kernel.h" -I "$empty" -o "$2" "$here/$1.c" "$here/memory.c" "${sources[@]}"
