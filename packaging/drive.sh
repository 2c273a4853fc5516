#!/bin/bash
# A whole drive by the package's service, under systemd: packaging/drive.sh PACKAGE.deb
# Boot without interfaces, an interface that comes late, a full disk that gets room again, a hat that is unplugged, a crash
# loop, an upgrade, a purge. At the end every frame that was sent is in a file, or an account says where it was lost.
# It changes the machine that it runs on: in a guest of the lab only,
#     canter lab --systemd --clock virtual -- packaging/drive.sh "$PWD"/target/deb/canter_*_amd64.deb
set -eu
grep -q canter-lab /proc/1/cmdline || { echo "drive.sh: in canter lab --systemd only" >&2; exit 2; }
package=$1
unit=canter-capture@drive
folder=/var/lib/canter/drive
sent=0
export DEBIAN_FRONTEND=noninteractive

complain() { echo "drive.sh: $1" >&2; journalctl --no-pager -o cat -u $unit | tail -n 40 >&2; ls -l $folder >&2; exit 1; }
# until_holds WHAT COMMAND…: time passes quickly in the virtual clock, and the lab's own limit ends a wait without end.
until_holds() {
	local what=$1
	shift
	for _ in $(seq 3000); do
		! "$@" || return 0
		sleep 0.2
	done
	complain "still not: $what"
}
# Each text once: it looks at what the journal has got since the last call.
mark=0
journal() { journalctl --no-pager -o cat -u $unit; }
says() { journal | tail -n "+$((mark + 1))" | grep -qF -- "$1"; }
until_says() {
	until_holds "$1" says "$1"
	mark=$(journal | wc -l)
}
written() { cat $folder/drive-*.log 2>/dev/null | wc -l; }
send() {
	cangen drvs0 -g 1 -p 1000 -n "$1" -I 1 -L 8 -D i
	sent=$((sent + $1))
}
plug_in() {
	ip link add drvs0 type vxcan peer name drv0
	ip link set drvs0 up
	ip link set drv0 up
}
# Sends frames and waits until they are written: what a kill may cost is what is younger than the flush interval.
drive() {
	local before
	before=$(written)
	send "$1"
	until_holds "$1 more frames are written" has_written $((before + $1))
}
has_written() { [ "$(written)" -ge "$1" ]; }

rm -f /usr/sbin/policy-rc.d # a host that is a container forbids packages to start services
modprobe vxcan
dpkg --no-triggers -i "$package"
cat >/etc/canter/canter.toml <<-end
	[capture.drive]
	interfaces = ["drv0"]
	output = "drive/drive-{run}.log"
	flush-interval = "500ms"
	keep-runs = 20
end
mkdir -p $folder
mount -t tmpfs -o size=4M,mode=777 none $folder

# Boot: no interface is there. Then it comes.
systemctl enable --now $unit
until_says 'drv0: find: no such device'
plug_in
until_says 'drv0: found'
drive 1000

# The disk is filled by somebody, and freed.
head -c 8M /dev/zero >$folder/filler 2>/dev/null || true
send 3000
until_says 'frames are counted but not written'
rm $folder/filler
until_says 'the recording continues here'
drive 500

# The hat is unplugged and plugged in again.
ip link delete drv0
until_says 'drv0: '
plug_in
until_says 'drv0: found'
drive 500

# A crash loop. A killed recorder leaves its files, and no account of losses: the run with losses ends before. Frames that
# come while no recorder runs are nobody's: none is sent then.
systemctl restart $unit
drive 200
for crash in 1 2 3; do
	systemctl kill -s KILL $unit
	restarts() { [ "$(systemctl show --value -p NRestarts $unit)" -ge $crash ] && systemctl is-active -q $unit; }
	until_holds "restart $crash" restarts
	drive 200
done

# An upgrade goes on recording; then it is restarted.
process=$(systemctl show --value -p MainPID $unit)
dpkg --no-triggers -i "$package"
[ "$(systemctl show --value -p MainPID $unit)" = "$process" ] || complain 'the upgrade has ended the recording'
drive 200
systemctl restart $unit
drive 200
systemctl stop $unit
dpkg --no-triggers -P canter
[ ! -e /etc/canter ] || complain 'purged, and /etc/canter is there'

# Every frame once, or told of as lost.
python3 - $folder $sent <<-'end'
	import glob, json, sys
	folder, sent = sys.argv[1], int(sys.argv[2])
	files = sorted(glob.glob(folder + "/drive-*.log"))
	frames = sum(len(open(name).readlines()) for name in files)
	accounts = [json.load(open(name)) for name in sorted(glob.glob(folder + "/*.account.json"))]
	lost = sum(sum(frames for place, frames in one["lost"].items() if place != "overrun_events") for one in accounts)
	for one in accounts:
	    print(one["file"], one["frames"], one["verdict"], sep=": ")
	if frames + lost != sent or lost == 0:
	    sys.exit(f"drive.sh: {sent} sent, {frames} in {len(files)} files, {lost} told of as lost")
	print(f"{sent} frames sent = {frames} in {len(files)} files + {lost} told of as lost, in {len(accounts)} runs")
end
