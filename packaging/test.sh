#!/bin/sh
# Checks the Debian packages in a folder: packaging/test.sh target/deb
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
complain() { echo "$package: $1" >&2; exit 1; }
# The lab chooses the board of an arm64 host, and 32-bit Arm is told what it needs. A Pi Zero cannot run armhf's program.
on_arm() {
	case $arch in
	arm64) code=125 line='missing programs: qemu-system-aarch64' ;;
	armhf) code=4 line='this machine is arm: the lab needs an x86-64 or arm64 machine' ;;
	*) return ;;
	esac
	found=0
	env PATH= $run "$root/usr/bin/canter" lab -- true 2> "$scratch/lab" || found=$?
	[ "$found" = "$code" ] && grep -q "$line" "$scratch/lab" || complain "canter lab: exit code $found, $(cat "$scratch/lab")"
	[ "$arch" = armhf ] || return 0
	found=0
	(exec $run_armv6 "$root/usr/bin/canter" --version) > "$scratch/version" 2>&1 || found=$?
	[ "$found" = 132 ] || complain "on ARMv6: exit code $found instead of that of an illegal instruction"
}

# machine NAME: a script that answers as `uname -m` on that machine: for armhf the answer of the emulated processor.
machine() {
	echo '#!/bin/sh'
	case $arch:$1 in
	armhf:armv6l) echo "exec $run_armv6 $scratch/machine" ;;
	armhf:*) echo "exec $run $scratch/machine" ;;
	*) echo "echo $1" ;;
	esac
}

count=0
for package in "$1"/canter_*.deb; do
	root=$scratch/$(basename "$package" .deb)
	dpkg-deb -x "$package" "$root"
	arch=$(dpkg-deb -f "$package" Architecture)
	case $arch in
	"$(dpkg --print-architecture)") run= ;;
	arm64) run="$(command -v qemu-aarch64-static) -L /usr/aarch64-linux-gnu" ;;
	armhf)
		run="$(command -v qemu-arm-static) -L /usr/arm-linux-gnueabihf"
		run_armv6="$(command -v qemu-arm-static) -cpu arm1176 -L /usr/arm-linux-gnueabihf"
		arm-linux-gnueabihf-gcc -march=armv6 -marm -mfpu=vfp -O2 -nostdlib -static -ffreestanding \
			-o "$scratch/machine" "$(dirname "$0")/machine.c"
		;;
	*) complain "no way to run $arch here" ;;
	esac
	on_arm
	$run "$root/usr/bin/canter" --version | grep -q "^canter $(dpkg-deb -f "$package" Version | sed 's/-[^-]*$//')$" || complain "--version"
	$run "$root/usr/bin/canter" capture --help | grep -q -e --rotate-size || complain "capture --help"
	$run "$root/usr/bin/canter" service check --config "$root/etc/canter/canter.toml" || complain "its configuration"
	for page in canter canter-capture canter-service-check; do
		zcat "$root/usr/share/man/man1/$page.1.gz" | grep -q '^\.TH' || complain "$page.1"
	done
	completions=$root/usr/share/bash-completion/completions/canter
	found=$(bash -c "source '$completions'; COMP_WORDS=(canter capture --rot) COMP_CWORD=2; _canter canter --rot capture
		echo \${COMPREPLY[@]}")
	[ "$found" = "--rotate-size --rotate-time" ] || complain "bash completes --rot by: $found"
	if command -v fish > /dev/null; then
		fish -c "source '$root/usr/share/fish/vendor_completions.d/canter.fish'; complete -C 'canter capture --rot'" |
			grep -q -e --rotate-size || complain "fish completions"
	fi
	if command -v zsh > /dev/null; then
		zsh -n "$root/usr/share/zsh/vendor-completions/_canter" || complain "zsh completions"
	fi
	for unit in "$root"/usr/lib/systemd/system/*; do
		grep -q '^Type=notify' "$unit" || complain "$unit"
	done
	# Debian's armhf is not Raspberry Pi OS's: the processor of a Pi Zero is refused, with a reason.
	dpkg-deb -e "$package" "$root.control"
	mkdir -p "$scratch/bin"
	for machine in armv6l armv7l; do
		machine "$machine" > "$scratch/bin/uname"
		chmod +x "$scratch/bin/uname"
		[ "$("$scratch/bin/uname" -m)" = "$machine" ] || complain "no way to be on $machine"
		if PATH=$scratch/bin:$PATH "$root.control/preinst" install 2> "$scratch/refusal"; then
			[ $machine = armv7l ] || complain "it installs on $machine"
		else
			[ $machine = armv6l ] && grep -q 'needs ARMv7' "$scratch/refusal" || complain "refused on $machine"
		fi
	done
	(cd "$root" && dpkg-deb --ctrl-tarfile "$OLDPWD/$package" | tar -xO ./md5sums | md5sum -c --quiet) || complain md5sums
	echo "$package: well"
	count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no package in $1" >&2; exit 1; }
