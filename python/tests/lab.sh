#!/bin/sh
# In the lab's guest, in the folder `python`: interfaces, then pytest with these arguments, in the folder of python-can's sources
# ($1). The guest keeps what it read of the host's files, but not of the folder from which the lab is started: each start of
# Python would read its packages anew.
set -eu
root=$(dirname "$PWD") sources=$1
shift
for module in vcan vxcan can-bcm; do modprobe $module; done
ip link add vcan0 type vcan
ip link add vx0 type vxcan peer name vx1
for name in vcan0 vx0 vx1; do ip link set $name mtu 72 up; done
cd "$sources"
export TEST_SOCKETCAN=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/python/tests:$sources"
exec "$root/target/python-plugin/bin/python" -m pytest -c /dev/null --rootdir "$sources" -p no:cacheprovider -q -rs \
  -o faulthandler_timeout=120 "$@"
