#!/bin/bash
# What rules cost a frame: medians of a gateway's latency, one frame at a time, in the engine (ring/spin+write) and in
# can-gw, with 1, 80 and 2048 rules of which the last matches, and with a modification. In the virtual clock:
#   target/release/canter lab --clock virtual --cpus 2 -- studies/rules-cost.sh target/release/canter
set -eu
canter=${1:-canter}
count=${COUNT:-200}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for card in can0 can1 can2 can3 can4; do
    ip link set $card up type can bitrate 1000000 2>/dev/null || ip link set $card up
done
# The gateway's interrupts go to the gateway's processor.
while read -r line rest; do
    case $rest in
        *can3* | *can4*) echo 1 > "/proc/irq/${line%:}/smp_affinity_list" ;;
        *can0* | *can1* | *can2*) echo 0 > "/proc/irq/${line%:}/smp_affinity_list" ;;
    esac
done < /proc/interrupts

# rules KIND COUNT [LINE]: the last rule matches the frame, the others do not.
rules() {
    printf '[[route]]\nfrom = "can3"\nto = "can4"\n'
    for ((at = 1; at <= $2; at++)); do
        printf '[[route.rule]]\nframes = "classic"\nfilter = ["'
        case $1 in
            # 2048 standard identifiers are all there are: the last is that of the frame.
            sff) printf '%03X' $(((at == $2) ? 0x7FF : (at - 1) % 2047)) ;;
            eff) printf '%08X' $(((at == $2) ? 0x12345678 : 0x10000000 + at * 7919)) ;;
            masked) ((at == $2)) && printf '12345600:9FFFFF00' || printf '%08X:9FFFFF00' $((0x10000000 + at * 256)) ;;
        esac
        printf '"]\n%s' "$( ((at == $2)) && printf '%s\n' "${3:-}")"
        printf '\n'
    done
}

# measure ID: the median in ns.
measure() {
    "$canter" latency --send can0 --direct can1 --routed can2 --count "$count" --gap 50us --len 8 --id "$1" \
        --quiet --cpu 0 --json - | sed -n 's/^ *"p50": \([0-9]*\).*/\1/p' | head -1
}

# engine ID [OPTIONS]: by the user-space engine.
engine() {
    id=$1
    shift
    "$canter" gateway can3 can4 --method ring/spin+write --cpu 1 "$@" 2> "$folder/said" &
    gateway=$!
    until grep -q Ctrl-C "$folder/said"; do sleep 0.01; done
    measure "$id"
    kill $gateway
    wait $gateway || true
}

# kernel ID FILE: by can-gw.
kernel() {
    "$canter" rules apply "$2" --quiet
    measure "$1"
    "$canter" rules clear --quiet
}

printf '%-34s %10s %10s\n' 'latency, median ns' engine can-gw
cangw -A -s can3 -d can4
bare=$(measure 7FF)
cangw -F
printf '%-34s %10s %10s\n' 'no rules' "$(engine 7FF)" "$bare"
for kind in sff eff masked; do
    id=12345678
    [ $kind = sff ] && id=7FF
    for number in 1 80 2048; do
        rules $kind $number > "$folder/rules.toml"
        printf '%-34s %10s %10s\n' "$number $kind" "$(engine $id --rules "$folder/rules.toml")" \
            "$(kernel $id "$folder/rules.toml")"
    done
done
change='set = { id = "7FE" }
or = { data = "0000010000000000" }'
rules sff 1 "$change" > "$folder/rules.toml"
printf '%-34s %10s %10s\n' '1 sff, identifier and data changed' "$(engine 7FF --rules "$folder/rules.toml")" \
    "$(kernel 7FF "$folder/rules.toml")"
