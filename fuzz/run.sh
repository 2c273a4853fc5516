#!/bin/sh
# Fuzzes readers, one after the other: run.sh SECONDS [READER…]; all of them without a name.
# Inputs that fail go to target/fuzz/artifacts/READER, and what is found to target/fuzz/found/READER, where the next run
# continues. Prints a line per reader (see HEAD below); with RESULT=FILE it appends them to that file. Exit code 1 when an
# input failed. It needs a stable Rust and g++.
set -eu
cd "$(dirname "$0")"
seconds=${1:?run.sh SECONDS [READER…]}
shift
HEAD='reader	minutes	executions	edges	crashes	hangs	out of memory	slowest ms	peak MB	inputs	revision	date'

# Coverage by LLVM's pass that libFuzzer reads; a target, so that build scripts are built without it.
host=$(rustc -vV | sed -n 's/^host: //p')
pass='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
pass="$pass -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
pass="$pass -Cllvm-args=-sanitizer-coverage-trace-compares"
out=$(realpath -m "${FUZZ_TARGET:-../target/fuzz}")
# FUZZ_BUILT: the program is that of the last run. FEATURES=--no-default-features: for recordings only, which builds sooner.
if [ -z "${FUZZ_BUILT:-}" ]; then
  RUSTFLAGS="$pass --cfg fuzzing" cargo build --locked ${FEATURES:-} --target "$host" --target-dir "$out/build"
  git rev-parse --short HEAD >"$out/revision"
fi
# libFuzzer starts itself by a shell and quotes no path: this folder by a name without spaces.
link=$(mktemp -d)
trap 'rm -rf "$link"' EXIT
ln -s "$out" "$link/out"
ln -s "$PWD/corpus" "$link/corpus"
program=$out/build/$host/debug/canter-fuzz
revision=$(cat "$out/revision")

[ $# -gt 0 ] || set -- $("$program")
failed=0
for reader; do
  found=$out/found/$reader artifacts=$out/artifacts/$reader work=$out/work/$reader
  rm -rf "$work"
  mkdir -p "$found" "$artifacts" "$work" "corpus/$reader"
  # Temporary files, which some formats need, in memory.
  TMPDIR=/dev/shm READER=$reader STATS=$work/stats "$link/out/build/$host/debug/canter-fuzz" "$link/out/found/$reader" \
    "$link/corpus/$reader" -fork=1 -ignore_crashes=1 \
    -ignore_timeouts=1 -ignore_ooms=1 -max_len=1048576 -timeout=60 -rss_limit_mb=2048 -max_total_time="$seconds" \
    -artifact_prefix="$link/out/artifacts/$reader/" >"$work/log" 2>&1 || true
  # #1234: cov: 567 ft: 890 corp: 12 exec/s 345 oom/timeout/crash: 0/0/0 time: 60s …
  last=$(grep -a '^#[0-9]*: cov:' "$work/log" | tail -1)
  [ -n "$last" ] || { tail -20 "$work/log" >&2; echo "fuzz: $reader: did not run (log: $work/log)" >&2; failed=1; continue; }
  field() { printf '%s\n' "$last" | sed -n "s|.*$1 *\([0-9/]*\).*|\1|p"; }
  counts=$(field 'oom/timeout/crash:')
  ooms=${counts%%/*} rest=${counts#*/}
  largest() { cat "$work"/stats.* 2>/dev/null | awk -v at="$1" -v unit="$2" '$at > m { m = $at } END { printf "%.1f", m / unit }'; }
  line=$(printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s' "$reader" "$(awk -v s="$(field ' time:')" 'BEGIN { printf "%.1f", s / 60 }')" \
    "$(printf '%s\n' "$last" | sed -n 's/^#\([0-9]*\):.*/\1/p')" "$(field 'cov:')" "${rest#*/}" "${rest%%/*}" "$ooms" "$(largest 1 1e6)" "$(largest 2 1e6)" \
    "$(ls "$found" | wc -l)" "$revision" "$(date -u +%FT%RZ)")
  [ "$counts" = 0/0/0 ] || { failed=1; echo "fuzz: $reader: failing inputs are in $artifacts (READER=$reader $program FILE)" >&2; }
  if [ -n "${RESULT:-}" ]; then
    [ -s "$RESULT" ] || printf '%s\n' "$HEAD" >"$RESULT"
    printf '%s\n' "$line" >>"$RESULT"
  fi
  printf '%s\n%s\n' "$HEAD" "$line"
done
exit $failed
