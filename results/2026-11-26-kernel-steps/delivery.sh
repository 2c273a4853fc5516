# In the guest: frames to an interface that nobody reads, or that has one socket which waits. $1: with or without, $2: frames
modprobe vcan; ip link add v0 type vcan; ip link set v0 up
sysctl -qw net.core.rmem_max=200000000
[ "$1" = with ] && { candump -r 100000000 v0 > /dev/null & sleep 1; kill -STOP $!; }
canter generate v0 -g 0 -n $2 -L 8 -I 123 -q
[ "$1" = with ] && kill -KILL %1
true
