#!/bin/bash
# Tries what `make dist` has made, each thing from an empty folder and without this one's environment: packaging/try.sh target/published
#
# Arm's programs run under qemu-user, and must make the same recordings and texts as this machine's.
set -euo pipefail
[ $# = 1 ] || { echo 'usage: packaging/try.sh FOLDER' >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
dist=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
thing=dist
complain() { echo "$thing: $1" >&2; exit 1; }

empty() { # empty NAME: goes to an empty folder
	thing=$1
	mkdir -p "$scratch/$1"
	cd "$scratch/$1"
}
bare() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$scratch" LC_ALL=C TZ=UTC "$@"; }

# The largest size of a program, in bytes.
WHOLE=12000000
FIELD=6000000
is_static() { # is_static PROGRAM MOST
	! readelf -lW "$1" | grep -q INTERP || complain "$1 needs a dynamic linker"
	! readelf -dW "$1" | grep -q NEEDED || complain "$1 needs libraries"
	readelf -hW "$1" | grep -q "Type: *DYN" || complain "$1 lies at the same addresses in every process"
	! readelf -SW "$1" | grep -q -e debug_ -e symtab || complain "$1 has line tables or symbols"
	[ "$(stat -c %s "$1")" -le "$2" ] || complain "$1 is larger than $2 bytes"
}

# Two buses for ten seconds, 100 frames/s each.
drive() {
	awk 'BEGIN { for (n = 0; n < 1000; n++) {
		printf "(17000000%02d.%06d) can0 %03X#%04X\n", n / 100, n % 100 * 10000, 256 + n % 7, n
		printf "(17000000%02d.%06d) can1 18FEF1%02X#%016X\n", n / 100, n % 100 * 10000 + 2500, n % 3, n * 65537
	} }'
}

# What a program does without CAN: it converts, describes and measures a recording. Prints one text for all processors.
work() { # work PROGRAM…
	drive >drive.log
	local from=drive.log to
	for to in a.pcapng.zst a.blf a.mf4 a.asc back.log; do
		bare "$@" convert -q "$from" -o "$to" --overwrite >said 2>&1 || { cat said >&2; complain "convert to $to"; }
		from=$to
	done
	cut -d' ' -f2- back.log | cmp - <(cut -d' ' -f2- drive.log) >&2 || complain 'frames changed on their way through four formats'
	bare "$@" info drive.log a.blf a.mf4
	bare "$@" dump drive.log | tail -n 3
	bare "$@" convert -q drive.log -o drive.parquet
	bare "$@" info drive.parquet
	bare "$@" capture --help
	bare "$@" methods | head -n 5
}

program() { # program PROCESSOR [EMULATOR]
	local file root=canter-$version-$1
	empty "$1"
	tar -xf "$dist/$root.tar.gz"
	is_static "$root/canter" $WHOLE
	for file in README.md COPYRIGHT man/canter-capture.1 completions/canter.bash docs/tour.md; do
		[ -s "$root/$file" ] || complain "no $file"
	done
	[ "$(bare ${2-} "$root/canter" --version)" = "canter $version" ] || complain --version
	work ${2-} "$PWD/$root/canter" >"$scratch/$1.txt"
	cmp "$scratch/$1.txt" "$scratch/$(uname -m).txt" || complain "another text than this machine's"
	echo "$1: well"
}

programs() {
	local archive processor
	program "$(uname -m)" # first: its text is what the others are compared with
	for archive in "$dist/canter-$version"-*.tar.gz; do
		processor=${archive#*"/canter-$version-"} processor=${processor%.tar.gz}
		case $processor in
		"$(uname -m)" | source) ;;
		aarch64) program aarch64 "$(command -v qemu-aarch64-static)" ;;
		armv7) program armv7 "$(command -v qemu-arm-static)" ;;
		*) complain "no way to run $processor here" ;;
		esac
	done
}

# Without the laboratory, the program is for machines that only record and route.
field() {
	thing='without the laboratory'
	for program in "$here"/target/field/*-musl*/dist/canter; do
		is_static "$program" $FIELD
		! bare "$program" lab --help >/dev/null 2>&1 || complain 'it has a laboratory'
		bare "$program" capture --help | grep -q -e --rotate-size || complain 'capture --help'
	done
	echo "$thing: well"
}

# The lab's guest records by the program that started the lab.
lab() {
	empty lab
	local program=$scratch/$(uname -m)/canter-$version-$(uname -m)/canter
	"$program" lab --quiet -- 'for card in can0 can1; do ip link set $card up type can bitrate 500000; done
		canter capture can1 -o drive.pcapng > account 2>&1 &
		until grep -q "^capture: " account; do sleep 0.1; done
		canter generate can0 -n 500 -g 2 -q; sleep 1; kill -INT %1; wait %1; cat account' >said 2>&1 || { cat said; complain "canter lab"; }
	grep -q 'capture: complete' said || { cat said; complain 'the recording in the lab is not complete'; }
	bare "$program" info drive.pcapng | grep -q '500' || complain 'the recording in the lab has not 500 frames'
	[ "$(uname -m)" != x86_64 ] || "$program" lab --quiet --bare-metal -- canter methods 2>&1 | grep -q '^ *yes *bare-metal' ||
		complain 'the program carries no gateway without an operating system'
	echo "canter lab: well"
}

wheels() {
	local wheel
	for wheel in "$dist/canter-$version"-*.whl; do
		empty "$(basename "$wheel" .whl)"
		python3 -m zipfile -e "$wheel" .
		cmp "canter-$version.data/scripts/canter" "$scratch"/*/"canter-$version-$(machine "$wheel")/canter" || complain 'another program than the archive'
	done
	python3 "$here/python/tests/wheels.py" "$dist"
	empty pip
	python3 -m venv venv
	venv/bin/pip install -q --disable-pip-version-check "$dist/canter-$version"-*"$(uname -m).whl"
	[ "$(bare venv/bin/canter --version)" = "canter $version" ] || complain 'pip installs no command canter'
	bare venv/bin/python -c 'import can, canter; from can.interfaces import BACKENDS; assert BACKENDS["canter"] == ("canter.bus", "CanterBus")'
	echo "pip install: well"
}
machine() { case $1 in *armv7l*) echo armv7 ;; *aarch64*) echo aarch64 ;; *) echo x86_64 ;; esac; }

# A CI's container, as small as Debian's image, in namespaces of its own: the archive is unpacked and the lab runs a test there.
container() { # container SUITE
	empty "container-$1"
	if [ "$(id -u)" != 0 ]; then
		echo "SKIPPED $thing: a chroot needs root"
		return
	fi
	local archive=canter-$version-$(uname -m) mirror
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -n 1)
	mmdebstrap --quiet --variant=minbase "$1" root "deb $mirror $1 main"
	cp "$dist/$archive.tar.gz" root/root/
	cp /etc/resolv.conf root/etc/resolv.conf
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root unshare --mount --pid --fork --kill-child sh -euc '
		mount --rbind /dev root/dev; mount -t proc proc root/proc
		chroot root sh -euc "cd; tar -xf $1.tar.gz; $1/canter lab --ci -- sh -c \"ip -brief link show can4\""' sh "$archive" >said 2>&1 ||
		{ cat said >&2; complain 'the lab does not run a test'; }
	grep -q '^can4 ' said || { cat said >&2; complain 'the test does not see can4'; }
	echo "$thing: well"
}

# The sources build where nothing else is.
sources() {
	empty sources
	tar -xf "$dist/canter-$version-source.tar.gz"
	cd "canter-$version-source"
	CARGO_TARGET_DIR=$here/target/dist-source cargo build -q --locked -p canter --no-default-features
	[ "$("$here/target/dist-source/debug/canter" --version)" = "canter $version" ] || complain --version
	echo "sources: well"
}

# The SBOM has what Cargo.lock says of the program, and no more.
crates() {
	thing=canter-$version.cdx.json
	cd "$here"
	python3 - "$dist/$thing" <(cargo tree --locked -p canter -e normal --target all --prefix none --format '{p}') <<-'end'
		import json, sys
		bom = json.load(open(sys.argv[1]))
		assert bom["bomFormat"] == "CycloneDX", bom["bomFormat"]
		said = {(part["name"], part["version"]) for part in bom["components"]}
		words = (line.split() for line in open(sys.argv[2]))
		built = {(word[0], word[1].lstrip("v")) for word in words if word} - {("canter", bom["metadata"]["component"]["version"])}
		assert said == built, f"only in the SBOM: {sorted(said - built)}; missing: {sorted(built - said)}"
		assert all(part.get("licenses") for part in bom["components"]), "a crate without a licence"
		print(f"SBOM: {len(said)} crates")
	end
}

programs
field
lab
container bookworm
container trixie
wheels
sources
crates
(cd "$dist" && "$here/packaging/test.sh" .)
(cd "$dist" && sha256sum -c --quiet SHA256SUMS) || complain SHA256SUMS
[ "$(wc -l <"$dist/SHA256SUMS")" = "$(ls "$dist" | grep -vc SHA256SUMS)" ] || complain 'SHA256SUMS lacks a file'
