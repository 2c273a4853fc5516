#!/bin/bash
# Upgrades, removes and purges the package while its services run, under systemd: packaging/running.sh PACKAGE.deb
# It changes the machine that it runs on: in a guest of the lab only,
#     canter lab --systemd -- packaging/running.sh "$PWD"/target/deb/canter_*_amd64.deb
set -eu
grep -q canter-lab /proc/1/cmdline || { echo "running.sh: in canter lab --systemd only" >&2; exit 2; }
package=$1
unit=canter-capture@drive
export DEBIAN_FRONTEND=noninteractive
# Without triggers: man-db would index all pages of the host, in an emulated processor.

complain() { echo "running.sh: $1" >&2; journalctl --no-pager -o cat -u $unit | tail -n 20 >&2; exit 1; }
process() { systemctl show --value -p MainPID $unit; }

# A host that is a container forbids packages to start and stop services.
rm -f /usr/sbin/policy-rc.d
modprobe vcan
ip link add vcan0 type vcan
ip link set vcan0 up
dpkg --no-triggers -i "$package"
cat >/etc/canter/canter.toml <<-'end'
	[capture.drive]
	interfaces = ["vcan0"]
	output = "drive-{run}.log"
end
systemctl enable --now $unit
before=$(process)
[ "$before" != 0 ] || complain "$unit does not run"
cansend vcan0 123#11

dpkg --no-triggers -i "$package" | tee /tmp/upgraded
[ "$(process)" = "$before" ] || complain "the upgrade stopped or restarted the recording"
grep -q "systemctl restart $unit.service" /tmp/upgraded || complain "the upgrade does not name what still runs the old program"
cansend vcan0 124#22
systemctl restart $unit
[ "$(process)" != "$before" ] || complain "no restart"

dpkg --no-triggers -r canter
[ "$(process)" = 0 ] || complain "removed, and the recording still runs"
[ "$(systemctl show --value -p Result $unit)" = success ] || complain "its end was not a clean one"
[ "$(grep -c 'vcan0 12[34]#' /var/lib/canter/drive-0001.log)" = 2 ] || complain "frames are missing around the upgrade"
dpkg --no-triggers -P canter
[ ! -e /etc/canter ] || complain "purged, and /etc/canter is there"
[ ! -L /etc/systemd/system/multi-user.target.wants/$unit.service ] || complain "purged, and still enabled"
[ -e /var/lib/canter/drive-0001.log ] || complain "purged, and the recording is gone"
[ "$(stat -c %U /var/lib/canter/drive-0001.log)" = _canter ] || complain "the recording has lost its owner"
echo "$package: upgraded, removed and purged beside a running recording"
