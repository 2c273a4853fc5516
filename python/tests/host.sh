#!/bin/sh
# What needs no CAN, on the host: tables, and what an import says; the native module of target/python-plugin beside the peers of
# target/python.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$root"/target/python-plugin/lib/python3*/site-packages/canter "$scratch/canter"
cd "$scratch"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$scratch"
"$root/target/python/bin/python" -P -m pytest -c /dev/null --rootdir "$root/python/tests" -p no:cacheprovider -q -rs \
  "$root/python/tests/test_tables.py" "$root/python/tests/test_requirements.py"
