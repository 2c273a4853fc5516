#!/bin/sh
# tests/bisect_kernel.sh: `git bisect run` with the recipe of docs/kernels.md finds, among 16 commits to net/can, the one
# that made can_rcv 100 instructions dearer for each frame, past a commit that does not build. In the lab's cache, because the
# kernel's build takes no path with spaces: Debian's source of 6.12, whose net/can is a git repository, and its build, which
# a later call continues.
set -eu
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
canter=$(realpath "${CANTER:-${CARGO_TARGET_DIR:-$top/target}/debug/canter}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/canter
extracted=$cache/debug-kernel/linux-source-6.12
mkdir -p "$cache/bisect-kernel"
cd "$cache/bisect-kernel"
export canter
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost

# The copy of kernel/tests/debug_kernel.sh, or Debian's package.
fetch_source() {
	[ ! -d linux ] || return 0
	rm -rf new && mkdir new
	if [ -f "$extracted/Makefile" ]; then
		cp -a "$extracted" new/
	else
		(cd new && apt-get download -q linux-source-6.12)
		dpkg-deb --fsys-tarfile new/linux-source-6.12_*.deb | tar xO ./usr/src/linux-source-6.12.tar.xz | tar xJ -C new
	fi
	(cd new/linux-source-6.12 && git init -q -b main && echo '*' > .git/info/exclude && git add -f net/can &&
		git commit -q -m "net/can of Debian's 6.12" && git tag base)
	mv new/linux-source-6.12 linux
	rm -rf new
}

commit() { git commit -q -am "$1"; }
# The commit in the middle, the first that git tries, does not build.
plant() {
	for number in $(seq 16); do
		case $number in
		8) echo "what is no program" >> net/can/bcm.c; commit "does not build" ;;
		9) sed -i '$d' net/can/bcm.c; commit "builds again" ;;
		11)
			sed -i '/^static int can_rcv(/,/^}/s/^\tcan_receive(skb, dev);$/\tfor (int i = 0; i < 50; i++)\n\t\tbarrier();\n&/' \
				net/can/af_can.c
			commit "100 instructions for each frame"
			culprit=$(git rev-parse HEAD)
			;;
		*)
			set -- raw.c af_can.c gw.c proc.c af_can.h
			shift $((number % 5))
			echo "/* $number */" >> "net/can/$1"
			commit "a comment in $1"
			;;
		esac
	done
}

fetch_source
cat > study.toml <<'study'
name = "cost"
title = "What a frame costs"
source = ""

[lab]
kernels = ["6.12"]
clock = "virtual"
cpus = 1

[syscalls]
frames = [8192]
batch = [64]
queue = 64
len = 8
study
cd linux
git bisect reset > /dev/null 2>&1 || true
git checkout -q --force --detach base
plant
slower=$(git rev-parse HEAD)
git checkout -q base

since=$(date +%s)
"$canter" lab --kernel-config > ../lab.config
make -s O=../build KCONFIG_ALLCONFIG="$PWD/../lab.config" allnoconfig
grep -E '^(# )?CONFIG_' ../lab.config | while read -r wanted; do
	grep -qxF "$wanted" ../build/.config || { echo "bisect_kernel.sh: not taken over: $wanted" >&2; exit 1; }
done
make -s -j2 O=../build bzImage modules > ../build.log 2>&1 || { tail -20 ../build.log >&2; exit 1; }
echo "# the build of the base: $(($(date +%s) - since)) s"
rm -rf ../before
"$canter" study run ../study.toml --quiet --kernel ../build --out ../before

since=$(date +%s)
git bisect start "$slower" base > /dev/null
git bisect run sh -c 'begin=$(date +%s); make -s -j2 O=../build bzImage modules || exit 125; rm -rf ../after
	echo "# built in $(($(date +%s) - begin)) s"
	"$canter" study run ../study.toml --quiet --kernel ../build --out ../after; case $? in 0|3) ;; *) exit 125 ;; esac
	"$canter" report --compare ../before ../after --bound 1%; case $? in 0) ;; 1) exit 1 ;; *) exit 125 ;; esac' \
	> ../bisect.log 2>&1 || { cat ../bisect.log >&2; exit 1; }
found=$(git rev-parse refs/bisect/bad)
skipped=$(git bisect log | grep -c '^git bisect skip' || true)
git bisect reset > /dev/null 2>&1
grep '^# built in' ../bisect.log
echo "# $(grep -c '^running ' ../bisect.log) steps: $(($(date +%s) - since)) s"
failed() { cat ../bisect.log >&2; echo "not ok - $1" >&2; exit 1; }
[ "$found" = "$culprit" ] || failed "found $found instead of $culprit"
[ "$skipped" -ge 1 ] || failed "the commit that does not build was not tried"
echo "ok - the commit of 100 instructions for each frame is found"
