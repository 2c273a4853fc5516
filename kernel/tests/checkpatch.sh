#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# checkpatch.sh: the modules against the kernel's own rules: checkpatch.pl --strict without a complaint, for all but compat.h,
# which is about versions; kernel-doc without a warning, for every function and structure of the headers that programs or
# several modules include, and nowhere else; no function that 6.1.0 lacks; and ioctl numbers that the kernel's list
# gives to nobody.
tests=$(cd "$(dirname "$0")" && pwd)
source=$("$tests/source.sh") || exit 1
cd "$tests/.." || exit 1
command -v perl >/dev/null || { echo "checkpatch.sh: perl is missing: apt-get install perl" >&2; exit 1; }
failed=0
fail() {
	echo "checkpatch.sh: $*" >&2
	failed=1
}
mapfile -t files < <(find . -name '*.[ch]' -not -path './tests/*' -not -name compat.h | sort)
headers=(./uapi/*.h ./card_pair.h ./canchar/chip_sja1000.h ./canchar/board_kvaser_pci.h
	./canchar/bit_timing.h ./canwire/driver.h)

for file in "${files[@]}"; do
	complaints=$(perl "$source/scripts/checkpatch.pl" --strict --no-tree --terse --show-types -f "$file" 2>&1 |
		grep -v '^total: 0 errors, 0 warnings, 0 checks')
	[ -z "$complaints" ] || fail "$complaints"
done

complaints=$(perl "$source/scripts/kernel-doc" -none -Werror "${headers[@]}" 2>&1) || fail "$complaints"
elsewhere=$(printf '%s\n' "${files[@]}" | grep -vxFf <(printf '%s\n' "${headers[@]}") | xargs grep -l '^/\*\*$')
[ -z "$elsewhere" ] || fail "kernel-doc in a header of one module, or in code:" $elsewhere
# What has kernel-doc, by its name; static inline functions need none.
documented=$(perl "$source/scripts/kernel-doc" -man "${headers[@]}" 2>/dev/null |
	sed -n 's/^\.TH "[^"]*" [0-9] "\([^"]*\)".*/\1/p' | sed 's/^\(struct\|enum\|union\) //' | sort -u)
for header in "${headers[@]}"; do
	# Prototypes, which begin in the first column, and structures with a body.
	names=$(sed -n -e 's/^struct \([a-z0-9_]*\) {$/\1/p' \
		-e '/^\(static\|#\|\t\|extern\|typedef\|CANWIRE_ASSERT\|static_assert\)/d' \
		-e '/^[a-z_0-9]/s/^[a-z_0-9 ]*[ *]\([a-z0-9_]*\)(.*/\1/p' "$header")
	for name in $names; do
		grep -qx "$name" <<<"$documented" || fail "$header: $name: no kernel-doc"
	done
done

# 6.1.0 and 6.2 lack what later kernels of 6.1 have, which the lab builds for: DKMS would fail there.
newer=$(grep -nwE 'list_count_nodes' "${files[@]}")
[ -z "$newer" ] || fail "not in every kernel that dkms.conf accepts: $newer"

# Our code and the ranges of numbers, as uapi/canchar.h says.
code=$(sed -n 's/^#define CANCHAR_IOC[\t ]*0x\(..\).*/\1/p' uapi/canchar.h)
taken=$(grep -i "^0x$code " "$source/Documentation/userspace-api/ioctl/ioctl-number.rst")
[ -n "$code" ] || fail "uapi/canchar.h: no ioctl code found"
[ -z "$taken" ] || fail "ioctl code 0x$code is taken: $taken"
[ $failed = 0 ] && echo "checkpatch.sh: ${#files[@]} files: checkpatch --strict, kernel-doc and ioctl numbers: ok"
exit $failed
