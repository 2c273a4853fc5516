#!/bin/bash
# A whole drive by the package's service, under systemd: packaging/drive.sh PACKAGE.deb
# Boot without interfaces, an interface that comes late, a full disk that gets room again, a hat that is unplugged, a crash
# loop, an upgrade, a restart, removal and purge. Every frame has a number (numbered.py). At the end each number is in a
# file, or an account has counted it as lost.
# It changes the machine that it runs on: in a guest of the lab only,
#     canter lab --systemd -- packaging/drive.sh "$PWD"/target/deb/canter_*_amd64.deb
set -eu
grep -q canter-lab /proc/1/cmdline || { echo "drive.sh: in canter lab --systemd only" >&2; exit 2; }
package=$1
here=$(dirname "$0")
unit=canter-capture@drive
folder=/var/lib/canter/drive
record=/tmp/sent
export DEBIAN_FRONTEND=noninteractive
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's Python: others start slowly in an emulated processor

complain() {
	echo "drive.sh: $1" >&2
	journal | tail -n 40 >&2
	ls -l $folder >&2
	exit 1
}
show() { systemctl show --value -p "$1" $unit; }
journal() { journalctl --no-pager -o cat -u $unit; }

# until_holds WHAT COMMAND…: the limit is for a machine that is busy with other things.
until_holds() {
	local what=$1 end=$((SECONDS + 120))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || complain "still not: $what"
		sleep 0.2
	done
}
# Each text once: it looks at what the journal has got since the last call.
mark=0
says() { journal | tail -n "+$((mark + 1))" | grep -qF -- "$1"; }
until_says() {
	until_holds "$1" says "$1"
	mark=$(journal | wc -l)
}

plug_in() {
	ip link add drvs0 type vxcan peer name drv0
	ip link set drvs0 up
	ip link set drv0 up
}
# send PHASE [COUNT]
send() { "$here/numbered.py" send drvs0 $record "$@"; }
written() { cat $folder/drive-*.log 2>/dev/null | wc -l; }
has_written() { [ "$(written)" -ge "$1" ]; }
# drive PHASE COUNT: sends and waits until all is written. A kill may cost what is younger than the flush interval.
drive() {
	local before
	before=$(written)
	send "$@"
	until_holds "$2 more frames are written" has_written $((before + $2))
}
status_has_losses() { [[ $(show StatusText) =~ ,\ [1-9][0-9]*\ lost$ ]]; }
has_restarted() { [ "$(show NRestarts)" -ge "$1" ] && systemctl is-active -q $unit; }
# Without triggers: man-db would index all pages of the host, in an emulated processor.
install() { dpkg --no-triggers -i "$package"; }

rm -f /usr/sbin/policy-rc.d # a host that is a container forbids packages to start and stop services
modprobe vxcan
install
cat >/etc/canter/canter.toml <<-end
	[capture.drive]
	interfaces = ["drv0"]
	output = "drive/drive-{run}.log"
	flush-interval = "500ms"
	keep-runs = 50
end
mkdir -p $folder
mount -t tmpfs -o size=32M,mode=777 none $folder

# Boot: no interface exists. Then it comes.
systemctl enable --now $unit
until_says 'drv0: find: no such device'
plug_in
until_says 'drv0: found'
drive late 1000

# The disk is filled by somebody, and freed.
head -c 64M /dev/zero >$folder/filler 2>/dev/null || true
send full 3000
until_says 'frames are counted but not written'
until_holds 'the status counts what is lost' status_has_losses
rm $folder/filler
until_says 'the recording continues here'
drive freed 500

# The hat is unplugged with frames behind it that are not yet written, and plugged in again.
send unplugged 300
ip link delete drv0
until_says 'drv0: is gone'
plug_in
until_says 'drv0: appeared again'
drive plugged 500

# A crash loop. A killed recorder leaves its files and no account of losses, so the run with losses ends before. Frames that
# come while no recorder runs are in nobody's account: none is sent then.
systemctl restart $unit
drive crashes 200
for crash in $(seq 12); do
	systemctl kill -s KILL $unit
	until_holds "restart $crash" has_restarted "$crash"
	[ "$crash" -lt 10 ] || drive crashes 200
done

# An upgrade goes on recording, and says what still runs the old program; then that is restarted.
process=$(show MainPID)
"$here/numbered.py" send drvs0 $record upgrade &
sender=$!
install | tee /tmp/upgraded
kill $sender
wait $sender
[ "$(show MainPID)" = "$process" ] || complain 'the upgrade stopped or restarted the recording'
grep -q "systemctl restart $unit.service" /tmp/upgraded || complain 'the upgrade does not name what runs the old program'
systemctl restart $unit
[ "$(show MainPID)" != "$process" ] || complain 'no restart'
drive restarted 200

# It is removed with frames that are not yet written, and purged.
send removed 300
dpkg --no-triggers -r canter
[ "$(show MainPID)" = 0 ] || complain 'removed, and the recording still runs'
[ "$(show Result)" = success ] || complain 'its end was not a clean one'
dpkg --no-triggers -P canter
[ ! -e /etc/canter ] || complain 'purged, and /etc/canter still exists'
[ ! -L /etc/systemd/system/multi-user.target.wants/$unit.service ] || complain 'purged, and still enabled'
[ "$(stat -c %U $folder/drive-0001.log)" = _canter ] || complain 'the recording has lost its owner'

"$here/numbered.py" check $folder $record full || complain 'frames are not accounted for'
