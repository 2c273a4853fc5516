#!/bin/sh
# Fuzzes each reader for SECONDS (1200) that has no line of this length in the kept table yet; so it goes on after an
# interruption, reader by reader. campaign.sh [FOLDER]: the table is FOLDER/campaign.tsv (results/fuzz).
set -u
folder=$(realpath -m "${1:-results/fuzz}")
cd "$(dirname "$0")"
seconds=${SECONDS_EACH:-1200}
mkdir -p "$folder"
./run.sh 1 csv >/dev/null || exit 1 # builds it
program=$(ls ../target/fuzz/build/*/debug/canter-fuzz)
for reader in $("$program"); do
  minutes=$(awk -F '\t' -v r="$reader" '$1 == r && $2 > m { m = $2 } END { print m + 0 }' "$folder/campaign.tsv" 2>/dev/null)
  if awk -v m="${minutes:-0}" -v s="$seconds" 'BEGIN { exit !(m * 60 >= s - 6) }'; then
    continue
  fi
  FUZZ_BUILT=1 RESULT=$folder/campaign.tsv ./run.sh "$seconds" "$reader"
done
