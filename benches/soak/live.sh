#!/usr/bin/env bash
# Memory of `flowgauge live` over a long time: replays a capture again and again, with other addresses each time, through
# a pair of veth interfaces, and prints the resident memory and the number of flows. The run is in order if the memory of
# its last half stays within 2 MiB of that of its first half; otherwise the exit status is 1.
#
# Usage: live.sh CAPTURE [--minutes N] [--rate PACKETS_PER_SECOND]
# The default is 60 minutes at 5000 packets/s. The first minutes fill the flow table, so that 15 minutes are the minimum.
# Needs root, libpcap, iproute2, tcpreplay and python3. Creates only the namespaces fgsoak0 and fgsoak1, and removes them.
set -euo pipefail

usage() { echo "usage: live.sh CAPTURE [--minutes N] [--rate PACKETS_PER_SECOND]" >&2; exit 2; }
(($#)) || usage
capture=$(realpath "$1") minutes=60 rate=5000
shift
while (($#)); do
    case $1 in
        --minutes) minutes=$2; shift 2 ;;
        --rate) rate=$2; shift 2 ;;
        *) usage ;;
    esac
done
((minutes >= 15)) || { echo "live.sh: --minutes must be at least 15" >&2; exit 2; }
[[ $(id -u) == 0 ]] || { echo "live.sh: root is required" >&2; exit 1; }
cd "$(dirname "$0")/../.."
cargo build --release -p flowgauge-cli --features live
flowgauge=${CARGO_TARGET_DIR:-target}/release/flowgauge
work=$(mktemp -d)
children=()
finish() {
    for child in "${children[@]}"; do kill "$child" 2> /dev/null || true; done
    ip netns del fgsoak0 2> /dev/null || true
    ip netns del fgsoak1 2> /dev/null || true
    rm -rf "$work"
}
trap finish EXIT

for name in fgsoak0 fgsoak1; do
    ip netns add "$name"
    ip netns exec "$name" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
ip -n fgsoak0 link add near type veth peer name far netns fgsoak1
ip -n fgsoak0 link set near mtu 9000 up
ip -n fgsoak1 link set far mtu 9000 up

ip netns exec fgsoak1 "$flowgauge" live -i far --format ndjson --fields packet_count \
    > >(wc -l > "$work/flows") 2> "$work/messages" &
live=$!
children+=("$live")
sleep 1
# --unique-ip changes the addresses with each loop.
ip netns exec fgsoak0 timeout $((minutes * 60)) \
    tcpreplay --intf1=near --timer=nano --pps="$rate" --loop=0 --unique-ip --preload-pcap --quiet "$capture" > "$work/replay" 2>&1 &
replay=$!
children+=("$replay")

: > "$work/memory"
for ((second = 0; second < minutes * 60 - 10; second += 10)); do
    sleep 10
    awk '/VmRSS/ {print $2}' "/proc/$live/status" >> "$work/memory"
done
wait "$replay" || true
sleep 2
kill -INT "$live"
wait "$live" || true
children=()
cat "$work/messages"
sleep 1
python3 - "$work" "$minutes" <<'PY'
import sys
work, minutes = sys.argv[1], int(sys.argv[2])
memory = [int(line) / 1024 for line in open(f"{work}/memory")]
flows = int(open(f"{work}/flows").read())
for minute in sorted({1, 2, 5, 10, 15, *range(30, minutes + 1, 30), minutes}):
    place = min(minute * 6, len(memory)) - 1
    if minute <= minutes:
        print(f"after {minute:3} min: {memory[place]:6.1f} MiB")
half = len(memory) // 2
first, last = max(memory[:half]), max(memory[half:])
print(f"{flows} flows written; maximum of the first half {first:.1f} MiB, of the last half {last:.1f} MiB")
sys.exit(0 if flows and last <= first + 2 else "the memory grew")
PY
