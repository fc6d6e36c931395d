# Functions of the scripts that record captures: programs run in network
# namespaces, and tcpdump records their traffic. A script reads this file and
# calls `enter` first.
#
# shellcheck shell=bash
set -Eeuo pipefail

# enter SECONDS [ARGUMENTS OF THE SCRIPT]...: runs the script again in private
# mount, UTS, network and process namespaces, for at most SECONDS, and installs
# the files of its folder `out` in the folder of the script or in the one that
# the first argument names. In the second run it only prepares the namespaces,
# with the working directory $T.
enter() {
    local limit=$1 out self tmp
    shift
    if [[ ${1-} == --inside ]]; then
        inside "$2"
        return
    fi
    [[ $EUID -eq 0 ]] || { echo "record.sh: must run as root" >&2; exit 1; }
    out=$(cd "${1:-$(dirname "$0")}" && pwd)
    self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
    tmp=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$tmp'" EXIT
    chmod 755 "$tmp" # the servers drop root privileges and still need access
    # A clean environment without proxies, locale and user settings. After the
    # timeout, or if the script is stopped, the kernel ends all inner processes.
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        LC_ALL=C HOME="$tmp" TMPDIR="$tmp" \
        timeout --foreground --kill-after=5 "$limit" \
        unshare --mount --uts --net --pid --fork --kill-child --mount-proc \
        bash "$self" --inside "$tmp"
    install -m 644 "$tmp"/out/* "$out"/
    exit 0
}

inside() {
    T=$1
    cd "$T"
    mkdir out log
    exec 3>&1
    trap 'fail "stopped in line $LINENO"' ERR
    hostname lab.example
    mount -t tmpfs tmpfs /run # hides the sockets and namespaces of the machine
    mkdir -p /run/netns /run/sshd
    : >resolv.conf
    mount --bind resolv.conf "$(readlink -f /etc/resolv.conf)"
}

report() { echo "record.sh: $*" >&3; }
fail() {
    report "$*"
    tail -n 5 log/* >&2 || true
    exit 1
}

# hosts: replaces /etc/hosts in the namespaces by standard input.
hosts() {
    cat >hosts
    mount --bind hosts /etc/hosts
}

# until_ok SECONDS COMMAND...: repeats COMMAND until it succeeds.
until_ok() {
    local tries=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        ((tries-- > 0)) || fail "timeout while waiting for: $*"
        sleep 0.1
    done
}

# start NAME NETNS COMMAND...: runs a program in the background and stores its
# process id in pid[NAME].
declare -A pid
start() {
    local name=$1 ns=$2
    shift 2
    ip netns exec "$ns" "$@" </dev/null >>"log/$name" 2>&1 &
    pid[$name]=$!
    disown # prevents the shell from reporting the end of the process
}

gone() { ! kill -0 "$1"; }

# stop NAME...: ends programs that start() has started, with KILL after 5 s.
stop() {
    local name id n
    for name; do
        id=${pid[$name]}
        kill -TERM "$id" 2>/dev/null || true
        for ((n = 0; n < 50; n++)); do
            gone "$id" 2>/dev/null && break
            sleep 0.1
        done
        kill -KILL "$id" 2>/dev/null || true
        unset "pid[$name]"
    done
}

# record FILE NETNS TCPDUMP_ARGUMENTS...: starts a capture; finish FILE ends it.
record() {
    local file=$1 ns=$2
    shift 2
    report "recording $file"
    start "$file" "$ns" tcpdump -n -Z root -B 16384 -w "out/$file" "$@"
    until_ok 5 grep -q 'listening on' "log/$file"
}
finish() {
    sleep 1.5 # the kernel delivers captured packets at least once a second
    stop "$1"
    grep -q '^0 packets dropped' "log/$1" || fail "$1: tcpdump dropped packets"
}

# in_ns NETNS COMMAND...: runs a command for at most 40 s with its output in a
# log. Some commands fail on purpose, so the status is only written to the log.
in_ns() {
    local ns=$1 status=0
    shift
    timeout 40 ip netns exec "$ns" "$@" </dev/null >>"log/$ns" 2>&1 || status=$?
    echo "[$status] $*" >>log/commands
}

# must: like in_ns, for commands that must succeed.
must() {
    in_ns "$@"
    [[ $(tail -n 1 log/commands) == "[0] "* ]] || fail "failed: $*"
}

listens() { [[ -n $(ip netns exec "$1" ss -Hlntu "sport = :$2") ]]; }

# Disables offloading, so that the kernel computes checksums and segments, and
# the captured frames are as on a wire.
no_offload() {
    ip netns exec "$1" ethtool -K "$2" \
        tx off rx off sg off tso off gso off gro off >/dev/null 2>&1 || true
}
offload() {
    ip netns exec "$1" ethtool -K "$2" tx on rx on sg on tso on gso on gro on \
        >/dev/null 2>&1 || true
}

netns() {
    local ns
    for ns; do
        ip netns add "$ns"
        ip -n "$ns" link set lo up
        ip netns exec "$ns" sysctl -qw net.ipv4.icmp_ratelimit=0 \
            net.ipv6.icmp.ratelimit=0
    done
}

# cable NS1 IF1 MAC1 NS2 IF2 MAC2
cable() {
    ip link add "$2" netns "$1" address "$3" type veth \
        peer name "$5" netns "$4" address "$6"
    no_offload "$1" "$2"
    no_offload "$4" "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}

# addr NETNS INTERFACE ADDRESS...
addr() {
    local ns=$1 dev=$2 a
    shift 2
    for a; do
        if [[ $a == *:* ]]; then
            ip -n "$ns" addr add "$a" dev "$dev" nodad
        else
            ip -n "$ns" addr add "$a" dev "$dev"
        fi
    done
}

# request NETNS CURL_ARGUMENTS...: runs curl without the settings of the user.
request() {
    local ns=$1
    shift
    in_ns "$ns" curl -q -sS --cacert "$T/tls.crt" \
        -w 'HTTP/%{http_version} %{http_code} %{url}\n' "$@"
    sleep 0.1
}
drop() { printf -- '-o /dev/null %.0s' $(seq "$1"); } # one per requested URL

# vde NETNS NAME COMMAND...: starts a VDE program, which daemonizes itself.
vde() {
    ip netns exec "$1" "${@:3}" --daemon --pidfile "$T/$2.pid" >>"log/$2" 2>&1
    until_ok 5 test -s "$2.pid"
    pid[$2]=$(<"$2.pid")
}
