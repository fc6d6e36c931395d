#!/usr/bin/env bash
# Bit rates of `examples/tun_forward.rs` in its eight configurations, in the layout of the benchmark that tun-rs
# publishes: two TUN devices in two network namespaces, and iperf3 (TCP, one connection) from one to the other through
# the program. Beside them, in the same run: a pair of veth interfaces (no program), packets one by one with tun-rs
# (`bare`), super-packets passed by tun-rs (`whole`), its loop that splits and merges them (`split`), and each
# configuration without tracking.
#
# Usage: run.sh [--seconds N] [--rounds N] [--only REGEX]
# The default is 10 s and one round; with several rounds, the table has medians. --only selects rows by name.
# Needs root, iproute2, iperf3 and python3. Creates only the namespaces fgbench0 and fgbench1, and removes them.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=10 rounds=1 only=.
while (($#)); do
    case $1 in
        --seconds) seconds=$2; shift 2 ;;
        --rounds) rounds=$2; shift 2 ;;
        --only) only=$2; shift 2 ;;
        *) echo "usage: run.sh [--seconds N] [--rounds N] [--only REGEX]" >&2; exit 2 ;;
    esac
done
[[ $(id -u) == 0 ]] || { echo "run.sh: root is required" >&2; exit 1; }
[[ -e /dev/net/tun ]] || { echo "run.sh: /dev/net/tun does not exist" >&2; exit 1; }

cargo build --release --features tun-async --example tun_forward --example tun_split_loop
target=${CARGO_TARGET_DIR:-target}/release/examples
forward=$target/tun_forward
split=$target/tun_split_loop
work=$(mktemp -d)
ns=(fgbench0 fgbench1)
children=()

finish() {
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    for name in "${ns[@]}"; do ip netns del "$name" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
for name in "${ns[@]}"; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done

# Sums user and system time in ticks, and the resident memory in KiB, of a process.
usage() { awk '{print $14, $15}' "/proc/$1/stat"; awk '/VmRSS/ {print $2}' "/proc/$1/status"; }

# Prints a row: measure NAME PID; a PID of 0 stands for no program.
measure() {
    local name=$1 pid=$2
    ip netns exec "${ns[1]}" timeout $((seconds + 10)) iperf3 -s -1 > /dev/null 2>&1 &
    children+=($!)
    sleep 0.5
    # One line per half second: user and system time in ticks, memory in KiB.
    : > "$work/usage"
    if ((pid)); then
        (for ((i = 0; i <= 2 * seconds; i++)); do usage "$pid" | xargs || break; sleep 0.5; done) \
            > "$work/usage" 2> /dev/null &
        children+=($!)
    fi
    ip netns exec "${ns[0]}" timeout $((seconds + 8)) iperf3 -c 10.97.0.2 -t "$seconds" -J > "$work/iperf" || true
    python3 - "$name" "$work" "$(getconf CLK_TCK)" <<'PY'
import json, sys
name, work, ticks = sys.argv[1], sys.argv[2], int(sys.argv[3])
end = json.load(open(f"{work}/iperf")).get("end", {})
rate = end.get("sum_received", {}).get("bits_per_second", 0) / 1e9
retransmits = end.get("sum_sent", {}).get("retransmits", -1)
lines = [list(map(int, line.split())) for line in open(f"{work}/usage") if len(line.split()) == 3]
steps = [(b[0] + b[1] - a[0] - a[1]) / ticks / 0.5 * 100 for a, b in zip(lines, lines[1:])]
user = (lines[-1][0] - lines[0][0]) / ticks if lines else 0
rss = [line[2] / 1024 for line in lines] or [0]
steps = steps or [0]
values = [rate, retransmits, sum(steps) / len(steps), max(steps), user, sum(rss) / len(rss), max(rss)]
print(json.dumps({"name": name, "values": values}))
PY
}

# Starts a program, moves its devices into the namespaces, and measures it.
program() {
    local name=$1
    shift
    [[ $name =~ $only ]] || return 0
    "$@" --seconds $((seconds + 5)) > "$work/out" 2>&1 &
    local pid=$!
    children+=("$pid")
    for _ in $(seq 100); do grep -q ready "$work/out" && break; sleep 0.05; done
    for side in 0 1; do
        ip link set "fgbt$side" netns "${ns[side]}"
        ip -n "${ns[side]}" addr add "10.97.0.$((side + 1))/24" dev "fgbt$side"
        ip -n "${ns[side]}" link set "fgbt$side" up
    done
    measure "$name" "$pid"
    kill "$pid" 2> /dev/null || true
    wait "$pid" || true
}

veth() {
    ip -n "${ns[0]}" link add fgbv0 type veth peer name fgbv1 netns "${ns[1]}"
    for side in 0 1; do
        ip -n "${ns[side]}" addr add "10.97.0.$((side + 1))/24" dev "fgbv$side"
        ip -n "${ns[side]}" link set "fgbv$side" up
    done
    measure "veth" 0
    ip -n "${ns[0]}" link del fgbv0
}

for ((round = 1; round <= rounds; round++)); do
    echo "round $round of $rounds" >&2
    veth
    program "tun-rs bare" "$split" fgbt0 fgbt1
    program "tun-rs whole" "$split" fgbt0 fgbt1 --whole
    program "tun-rs split" "$split" fgbt0 fgbt1 --offload
    for mode in "" "--async"; do
        for options in "" "--channel" "--offload" "--offload --channel"; do
            # The order alternates, so that a slow phase of the machine does not favor one of the two.
            orders=("" "--no-tracking")
            ((round % 2)) || orders=("--no-tracking" "")
            for tracking in "${orders[@]}"; do
                name=$(echo "${mode:-sync} $options $tracking" | tr -s ' -' ' ')
                name=${name# } name=${name% }
                # shellcheck disable=SC2086
                program "$name" "$forward" fgbt0 fgbt1 $mode $options $tracking
            done
        done
    done
done > "$work/rows"

python3 - "$work/rows" <<'PY'
import json, statistics, sys
rows = {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    rows.setdefault(row["name"].strip(), []).append(row["values"])
print("| configuration | Gbit/s | retransmissions | CPU % avg | CPU % max | user s | MiB avg | MiB max |")
print("|---|---:|---:|---:|---:|---:|---:|---:|")
for name, values in rows.items():
    rate, again, average, peak, user, memory, memory_max = (statistics.median(column) for column in zip(*values))
    print(f"| {name} | {rate:.2f} | {again:.0f} | {average:.0f} | {peak:.0f} | {user:.2f} | {memory:.1f} | {memory_max:.1f} |")
PY
