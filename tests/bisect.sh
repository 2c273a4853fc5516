#!/bin/sh
# tests/bisect.sh FOLDER: `git bisect run` with the recipe of docs/report.md finds the commit that made a gateway slower, and the
# one that made it lose every frame, past a commit that does not build. In FOLDER: a clone of this repository with planted
# commits, and what they build. Ten minutes.
set -eu
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
mkdir -p "$1"
cd "$1"
export CARGO_TARGET_DIR="$PWD/target"
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
rm -rf repository before after
git clone -q "$top" repository
cat > study.toml <<'study'
name = "bisect"
title = "A gateway whose commits are judged"
source = "none"

[lab]
kernels = ["6.12"]
clock = "virtual"
cpus = 2

[latency]
traffic = ["one-at-a-time"]
count = 1000
lens = [2]
methods = ["read+write"]
study
route=crates/canter-route/src/gateway/route.rs
place='^    match transmit.transmit(frames) {$'
slower='    for step in 0..150u32 { std::hint::black_box(step); }'
silent='    if frames.len() < usize::MAX { return Ok(Taken::Some(frames.len())); }'

cd repository
grep -q "$place" "$route" || { echo "bisect.sh: $route has no such line: $place" >&2; exit 1; }
commit() { git commit -q --allow-empty -am "$1" && git rev-parse HEAD; }
# The base, a comment, one that does not build, a comment, the culprit, a comment.
plant() {
	git checkout -q --detach "$base"
	echo "// one" >> "$route"; commit "a comment" > /dev/null
	echo "what is no program" >> "$route"; commit "does not build" > /dev/null
	sed -i '$d' "$route"; echo "// two" >> "$route"; commit "builds again" > /dev/null
	sed -i "s/$place/$1\n&/" "$route"; culprit=$(commit "$2")
	echo "// three" >> "$route"; commit "another comment" > /dev/null
}
judge() {
	plant "$1" "$2"
	git bisect start HEAD "$base" > /dev/null
	git bisect run sh -c 'cargo build -q -p canter --locked || exit 125; rm -rf ../after
		"$CARGO_TARGET_DIR/debug/canter" study run ../study.toml --quiet --out ../after; case $? in 0|3) ;; *) exit 125 ;; esac
		../canter report --compare ../before ../after --bound 2%; case $? in 0) ;; 1) exit 1 ;; *) exit 125 ;; esac' \
		> "../$2.log" 2>&1 || { cat "../$2.log" >&2; exit 1; }
	found=$(git rev-parse refs/bisect/bad)
	git bisect reset > /dev/null 2>&1
	[ "$found" = "$culprit" ] || { cat "../$2.log" >&2; echo "not ok - $2: found $found instead of $culprit" >&2; exit 1; }
	echo "ok - the commit that $2 is found"
}

base=$(git rev-parse HEAD)
cargo build -q -p canter --locked
cp "$CARGO_TARGET_DIR/debug/canter" ../canter
../canter study run ../study.toml --quiet --out ../before
judge "$slower" "is slower"
judge "$silent" "loses every frame"
