#!/bin/sh
# Imports the wheel in every Python from 3.10 that this machine has, each in an environment of its own, without CAN.
set -eu
wheel=$(ls -t "$1"/canter-*.whl | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tried=0
for python in /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
	"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2> /dev/null || continue
	"$python" -m venv "$scratch/venv"
	"$scratch/venv/bin/pip" install -q --disable-pip-version-check "$wheel"
	"$scratch/venv/bin/python" - <<-'end'
		import sys, can, canter
		from can.interfaces import BACKENDS
		assert BACKENDS["canter"] == ("canter.bus", "CanterBus"), BACKENDS
		try:
		    can.Bus(interface="canter", channel="nocan9")
		except can.CanInitializationError as error:
		    print("Python", sys.version.split()[0], "imports it and says:", error)
	end
	tried=$((tried + 1))
	rm -rf "$scratch/venv"
done
echo "$tried Pythons"
[ "$tried" -ge 2 ] || { echo "SKIP: fewer than two Pythons from 3.10 here" >&2; exit 4; }
