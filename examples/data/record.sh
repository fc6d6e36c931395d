#!/usr/bin/env bash
# Records the sample captures of this folder: traffic of real programs between
# network namespaces of one machine.
#
#   sudo ./record.sh [OUTPUT_FOLDER]        (default: the folder of the script)
#
# Debian 12 packages:
#   iproute2 util-linux procps ethtool openssl iputils-ping traceroute tcpdump
#   wireshark-common nginx curl dnsmasq-base bind9-dnsutils openssh-server
#   openssh-client exim4-daemon-light swaks libnet-ssleay-perl
#   libio-socket-inet6-perl dovecot-imapd dovecot-pop3d vde2 openvswitch-switch
#   socat vsftpd
#
# The script uses private mount, UTS, network and process namespaces. The
# addresses, the servers and their files are removed when it ends. It does not
# use or change any interface, address or service of the machine.

# shellcheck source=../namespaces.sh
. "$(dirname "$0")/../namespaces.sh"
enter 300 "$@"
mkdir www www/upload
hosts <<'END'
127.0.0.1        localhost
10.77.0.1        web.example mail.example
2001:db8:77::1   web6.example mail6.example
END

# ------------------------------------------------------ network of most captures
#
#   cl eth0 ------------- eth0 sv eth1 ------------- eth0 far
#   10.77.0.2     10.77.0.1       10.77.1.1     10.77.1.9
#   2001:db8:77::2      ::1   2001:db8:78::1           ::9    (MTU 1400)
netns cl sv far
cable cl eth0 02:00:00:77:00:02 sv eth0 02:00:00:77:00:01
cable sv eth1 02:00:00:77:01:01 far eth0 02:00:00:77:01:09
addr cl eth0 10.77.0.2/24 2001:db8:77::2/64
addr sv eth0 10.77.0.1/24 2001:db8:77::1/64
addr sv eth1 10.77.1.1/24 2001:db8:78::1/64
addr far eth0 10.77.1.9/24 2001:db8:78::9/64
ip -n sv link set eth1 mtu 1400
ip -n far link set eth0 mtu 1400
ip -n cl route add 10.77.1.0/24 via 10.77.0.1
ip -n cl route add 2001:db8:78::/64 via 2001:db8:77::1
ip -n far route add default via 10.77.1.1
ip -n far route add default via 2001:db8:78::1

# --------------------------------------------------------- keys and web pages
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=web.example -keyout tls.key -out tls.crt \
    -addext subjectAltName=DNS:web.example,DNS:web6.example,DNS:mail.example,DNS:mail6.example \
    2>/dev/null
chmod 644 tls.key
openssl rand -out www/picture.bin 150000
openssl rand -out www/large.bin 400000
openssl rand -out upload.bin 60000
{
    echo '<!doctype html><title>A page</title>'
    for i in {1..400}; do echo "<p>Paragraph $i of a page made for a capture.</p>"; done
} >www/page.html
echo '<!doctype html><title>Start</title><p>It works.' >www/index.html
chown www-data www/upload

# web_server NAME NETNS
web_server() {
    cat >"$1.conf" <<END
daemon off;
user www-data;
worker_processes 1;
pid $T/$1.pid;
error_log $T/log/$1.error;
events { worker_connections 64; }
http {
    access_log off;
    default_type text/html;
    client_body_temp_path $T/$1.body;
    proxy_temp_path $T/$1.proxy;
    fastcgi_temp_path $T/$1.fastcgi;
    uwsgi_temp_path $T/$1.uwsgi;
    scgi_temp_path $T/$1.scgi;
    ssl_certificate $T/tls.crt;
    ssl_certificate_key $T/tls.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    server {
        listen 80;
        listen [::]:80;
        listen 443 ssl http2;
        listen [::]:443 ssl http2;
        root $T/www;
        location /upload/ { dav_methods PUT; }
        location /slow/ { alias $T/www/; limit_rate 100k; }
    }
}
END
    start "$1" "$2" nginx -e "$T/log/$1.error" -c "$T/$1.conf"
    until_ok 5 listens "$2" 443
}

# ------------------------------------------------------------------- web.pcap
web_server web sv
record web.pcap cl -i eth0 --time-stamp-precision=nano

# Plain HTTP/1.1, several requests on one connection (the last one: 404).
# shellcheck disable=SC2046
request cl $(drop 4) http://web.example/{,page.html,picture.bin,missing}
# shellcheck disable=SC2046
request cl $(drop 2) http://web6.example/{,page.html}
# Three connections at the same time.
# shellcheck disable=SC2046
request cl -Z --parallel-immediate --http1.1 $(drop 3) http://web6.example/{,page.html,picture.bin}
# An upload with PUT, announced by "Expect: 100-continue".
request cl -o /dev/null -H 'Expect: 100-continue' -T upload.bin \
    http://web.example/upload/file.bin
# TLS 1.3 and TLS 1.2 with HTTP/1.1, TLS 1.3 with HTTP/2.
# shellcheck disable=SC2046
request cl --http1.1 --tlsv1.3 $(drop 2) https://web.example/{page.html,picture.bin}
request cl --http1.1 --tlsv1.3 -o /dev/null https://web6.example/
request cl --http1.1 --tls-max 1.2 -o /dev/null https://web.example/page.html
# shellcheck disable=SC2046
request cl --http1.1 --tls-max 1.2 $(drop 2) https://web6.example/{,picture.bin}
# shellcheck disable=SC2046
request cl --http2 -Z $(drop 4) https://web.example/{,page.html,picture.bin,missing}
# shellcheck disable=SC2046
request cl --http2 -Z $(drop 2) https://web6.example/{,page.html}
# A client that does not trust the certificate: TLS alert, no data transferred.
in_ns cl curl -q -sS -o /dev/null https://web.example/
# A slow download: 100 kB a second.
request cl -o /dev/null http://web6.example/slow/picture.bin
# A download whose client is killed while data waits unread: RST.
start victim cl curl -q -s --limit-rate 5k -o /dev/null http://web.example/slow/large.bin
sleep 0.5
kill -KILL "${pid[victim]}"
stop victim
sleep 0.5
# A port without a server: RST in response to the SYN.
request cl http://web.example:8080/
request cl http://web6.example:8080/
# No response: the frames are sent to the MAC address of the server, which does
# not forward them.
ip -n cl neigh replace 10.77.0.66 lladdr 02:00:00:77:00:01 dev eth0
request cl --connect-timeout 4 http://10.77.0.66/
finish web.pcap

# ------------------------------------------------------------------- dns.pcap
many=$(printf 'twenty characters.. %.0s' {1..12})
start dns sv dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root \
    --pid-file= --no-resolv --no-hosts --port=53 --log-facility="$T/log/dns.queries" \
    --local=/lab.example/ --auth-ttl=300 --local-ttl=300 \
    --host-record=www.lab.example,10.77.0.1,2001:db8:77::1 \
    --host-record=mail.lab.example,10.77.0.1 \
    --cname=alias.lab.example,www.lab.example \
    --mx-host=lab.example,mail.lab.example,10 \
    --txt-record=lab.example,'a short text' \
    --txt-record=long.lab.example,"1 $many" \
    --txt-record=long.lab.example,"2 $many" \
    --txt-record=long.lab.example,"3 $many"
until_ok 5 listens sv 53
q() { in_ns cl dig +tries=1 +time=2 "$@"; }

ip netns exec sv sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
ip -n cl neigh flush dev eth0 # so that ARP and neighbor discovery are captured
record dns.pcap cl -i eth0
for server in 10.77.0.1 2001:db8:77::1; do
    for question in "www A" "www AAAA" "alias A" "nowhere A" "mail AAAA"; do
        # shellcheck disable=SC2086
        set -- $question
        q @$server "$1.lab.example" "$2"
    done
    q @$server lab.example MX
    q @$server lab.example TXT
    q @$server +tcp www.lab.example A
    q @$server +tcp +keepopen www.lab.example A www.lab.example AAAA long.lab.example TXT
    # A response of over 512 octets is truncated over UDP; dig repeats the query
    # over TCP.
    q @$server +noedns long.lab.example TXT
    # A closed port: ICMP port unreachable.
    q @$server -p 5300 www.lab.example A
done
in_ns cl ping -n -c 3 -i 0.3 10.77.0.1
in_ns cl ping -n -c 3 -i 0.3 2001:db8:77::1
# Three fragments each, IPv4 and IPv6.
in_ns cl ping -n -c 2 -i 0.3 -s 4000 10.77.0.1
in_ns cl ping -n -c 2 -i 0.3 -s 4000 2001:db8:77::1
# Time exceeded from the first hop, port unreachable from the second hop.
in_ns cl traceroute -n -q 2 -N 4 -w 1 10.77.1.9
in_ns cl traceroute -n -q 2 -N 4 -w 1 2001:db8:78::9
# Larger than the MTU of the second link: fragmentation needed, packet too big.
in_ns cl ping -n -c 1 -W 1 -M 'do' -s 1450 10.77.1.9
in_ns cl ping -n -c 1 -W 1 -M 'do' -s 1440 2001:db8:78::9
# A host that does not exist on the link behind the router: host unreachable.
in_ns cl ping -n -c 1 -W 4 10.77.1.200
finish dns.pcap
ip netns exec sv sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0

# ------------------------------------------------------------------- ssh.pcap
ssh-keygen -q -t ed25519 -N '' -C server -f host_key
ssh-keygen -q -t ed25519 -N '' -C client -f user_key
ssh-keygen -q -t ed25519 -N '' -C stranger -f other_key
mkdir ssh
cp user_key.pub ssh/authorized_keys
{
    echo "[10.77.0.1]:22,10.77.0.1,2001:db8:77::1 $(cut -d' ' -f1,2 host_key.pub)"
} >ssh/known_hosts
cat >sshd.conf <<END
ListenAddress 0.0.0.0
ListenAddress ::
HostKey $T/host_key
AuthorizedKeysFile $T/ssh/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PrintMotd no
PrintLastLog no
PidFile none
Subsystem sftp internal-sftp
END
start ssh sv /usr/sbin/sshd -D -e -f sshd.conf
until_ok 5 listens sv 22
options=(-F /dev/null -o BatchMode=yes -o UserKnownHostsFile="$T/ssh/known_hosts"
    -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes -o ConnectTimeout=5)
openssl rand -out small.bin 40000

record ssh.pcap cl -i eth0
must cl ssh "${options[@]}" -i user_key root@10.77.0.1 echo hello from the server
must cl scp "${options[@]}" -i user_key small.bin "root@10.77.0.1:$T/received.bin"
must cl scp "${options[@]}" -i user_key "root@[2001:db8:77::1]:$T/received.bin" back.bin
# A key that the server does not accept: the login fails.
in_ns cl ssh "${options[@]}" -i other_key root@10.77.0.1 true
finish ssh.pcap
cmp small.bin back.bin || fail "the copied file differs"
stop ssh

# ------------------------------------------------------------------ mail.pcap
mkdir mail spool
chown Debian-exim mail spool
cat >exim.conf <<END
primary_hostname = mail.example
spool_directory = $T/spool
log_file_path = $T/spool/%slog
pid_file_path = $T/spool/pid
daemon_smtp_ports = 25 : 465
tls_on_connect_ports = 465
tls_advertise_hosts = *
tls_certificate = $T/tls.crt
tls_privatekey = $T/tls.key
keep_environment =
host_lookup =
rfc1413_hosts =
deliver_drop_privilege = true
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  accept domains = mail.example
         local_parts = alice
  deny   message = relay not permitted
data:
  accept
begin routers
box:
  driver = accept
  transport = maildir
begin transports
maildir:
  driver = appendfile
  directory = $T/mail/alice
  maildir_format
  create_directory
  user = Debian-exim
END
cat >dovecot.conf <<END
base_dir = $T/dovecot
state_dir = $T/dovecot
log_path = $T/log/dovecot.server
protocols = imap pop3
listen = *, ::
ssl = yes
ssl_cert = <$T/tls.crt
ssl_key = <$T/tls.key
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:$T/mail/%n
passdb {
  driver = static
  args = password=example
}
userdb {
  driver = static
  args = uid=Debian-exim gid=Debian-exim home=$T/mail/%n
}
END
start exim sv exim4 -C "$T/exim.conf" -bdf
start dovecot sv dovecot -F -c "$T/dovecot.conf"
until_ok 5 listens sv 25
until_ok 5 listens sv 143
until_ok 5 listens sv 995
for i in {1..60}; do echo "Line $i of a message that nobody has to read."; done >body.txt
send() {
    in_ns cl swaks --helo client.example --from bob@client.example \
        --header 'Subject: A message' --header 'Message-Id: <1@client.example>' \
        --header-X-Mailer swaks "$@"
}
delivered() { (($(find mail/alice/new -type f 2>/dev/null | wc -l) >= $1)); }

record mail.pcap cl -i eth0
send --server 10.77.0.1 --to alice@mail.example --body "One line."
send --server 10.77.0.1 --to alice@mail.example --body @body.txt --tls
send --server 2001:db8:77::1 --to alice@mail.example --body @body.txt
send --server 10.77.0.1 --port 465 --to alice@mail.example --tls-on-connect
# Rejected recipient: 550, no mail sent.
send --server 10.77.0.1 --to carol@elsewhere.example
until_ok 10 delivered 4
# POP3: list, one message, over TLS after STLS, and over TLS from the start.
request cl --user alice:example pop3://mail.example/
request cl --user alice:example pop3://mail.example/2
request cl --user alice:example --ssl-reqd pop3://mail.example/1
request cl --user alice:example pop3s://mail6.example/3
# IMAP: a listing, one message, STARTTLS, TLS from the start.
request cl --user alice:example imap://mail.example/
request cl --user alice:example 'imap://mail.example/INBOX;MAILINDEX=2'
request cl --user alice:example --ssl-reqd 'imap://mail.example/INBOX;MAILINDEX=1'
request cl --user alice:example 'imaps://mail6.example/INBOX;MAILINDEX=3'
finish mail.pcap
stop exim dovecot

# -------------------------------------------------------------- transfer.pcap
mkdir -p ftp/upload ftp/docs empty /run/tftp
openssl rand -out ftp/random.bin 30000
for i in {1..200}; do echo "Line $i of a file that nobody has to read."; done >ftp/docs/lines.txt
cp ftp/docs/lines.txt /run/tftp/
chmod 555 empty
chmod 733 ftp/upload
cat >vsftpd.conf <<END
listen=NO
listen_ipv6=YES
background=NO
anonymous_enable=YES
anon_root=$T/ftp
anon_upload_enable=YES
write_enable=YES
anon_umask=022
secure_chroot_dir=$T/empty
connect_from_port_20=YES
seccomp_sandbox=NO
END
start vsftpd sv vsftpd "$T/vsftpd.conf"
start tftp sv dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --user=root \
    --enable-tftp --tftp-root=/run/tftp
until_ok 5 listens sv 21
until_ok 5 listens sv 69

record transfer.pcap cl -i eth0
login=(--user anonymous:example)
request cl "${login[@]}" --disable-epsv -o fetched.bin ftp://10.77.0.1/random.bin
# EPSV, with a change of the folder; then a listing and a second file in one session.
request cl "${login[@]}" -o lines.txt 'ftp://[2001:db8:77::1]/docs/lines.txt'
request cl "${login[@]}" -o list.txt ftp://10.77.0.1/docs/ -o lines2.txt ftp://10.77.0.1/docs/lines.txt
# The server opens the data connection from port 20: a part of a file, and an upload.
request cl "${login[@]}" --ftp-port - --disable-eprt -C 20000 -o part.bin ftp://10.77.0.1/random.bin
request cl "${login[@]}" --ftp-port - -T tls.crt 'ftp://[2001:db8:77::1]/upload/tls.crt'
request cl "${login[@]}" -T small.bin ftp://10.77.0.1/upload/small.bin
# There is no such file: 550.
request cl "${login[@]}" ftp://10.77.0.1/none.txt
request cl -o tftp.txt tftp://10.77.0.1/lines.txt
request cl -o none.txt tftp://10.77.0.1/none.txt
finish transfer.pcap
cmp ftp/random.bin fetched.bin || fail "the fetched file differs"
cmp small.bin ftp/upload/small.bin || fail "the sent file differs"
cmp /run/tftp/lines.txt tftp.txt || fail "the file over TFTP differs"
stop vsftpd tftp

# ------------------------------------------------------------------- any.pcap
# Default offloading: large frames, checksums not computed.
offload cl eth0
offload sv eth0
record any.pcap sv -i any
# shellcheck disable=SC2046
request cl $(drop 2) http://web.example/{,page.html}
request cl -o /dev/null http://web6.example/page.html
q @10.77.0.1 www.lab.example A
q @2001:db8:77::1 www.lab.example AAAA
q @10.77.0.1 +tcp lab.example MX
# The server sends requests to itself over the loopback interface.
request sv -o /dev/null http://127.0.0.1/
in_ns sv dig +tries=1 +time=2 @127.0.0.1 nowhere.lab.example A
in_ns cl ping -n -c 2 -i 0.3 10.77.0.1
finish any.pcap
no_offload cl eth0
no_offload sv eth0

# --------------------------------------------------------------- raw-tun.pcap
# socat carries IP packets of a TUN interface in UDP datagrams.
start tun-sv sv socat TUN:10.77.9.1/30,tun-name=tun0,iff-no-pi,up UDP-LISTEN:7777,reuseaddr
until_ok 5 listens sv 7777
start tun-cl cl socat TUN:10.77.9.2/30,tun-name=tun0,iff-no-pi,up UDP:10.77.0.1:7777,sourceport=7778
until_ok 5 ip -n cl link show tun0
until_ok 5 ip -n sv link show tun0
for ns in cl sv; do ip -n $ns link set tun0 mtu 1400; done
addr cl tun0 2001:db8:79::2/64
addr sv tun0 2001:db8:79::1/64

record raw-tun.pcap cl -i tun0
in_ns cl ping -n -c 3 -i 0.3 10.77.9.1
in_ns cl ping -n -c 3 -i 0.3 2001:db8:79::1
# shellcheck disable=SC2046
request cl $(drop 2) http://10.77.9.1/{,page.html}
request cl -o /dev/null 'http://[2001:db8:79::1]/page.html'
q @10.77.9.1 www.lab.example A
q @2001:db8:79::1 www.lab.example AAAA
q @10.77.9.1 -p 5300 www.lab.example A
request cl http://10.77.9.1:8080/
finish raw-tun.pcap
stop tun-cl tun-sv web dns

# ----------------------------------------------------------------- lossy.pcap
# Two VDE switches with a TAP interface each. The wirefilter of VDE emulates a
# lossy cable between them.
netns lc ls
vde lc switch-c vde_switch -s "$T/switch-c" -tap tap0
vde ls switch-s vde_switch -s "$T/switch-s" -tap tap0
ip -n lc link set tap0 address 02:00:00:77:06:02 up
ip -n ls link set tap0 address 02:00:00:77:06:01 up
addr lc tap0 10.77.6.2/24
addr ls tap0 10.77.6.1/24
# Loss 3 %, duplicates 1 %, 10 ms +- 3 ms per direction, reordering, 400 KiB/s.
vde lc wire wirefilter -v "$T/switch-c:$T/switch-s" -l 3 -D 1 -d 10+3 -b 400K -N
until_ok 10 ip netns exec lc ping -n -c 1 -W 1 10.77.6.1
web_server web2 ls

record lossy.pcap lc -i tap0 -s 128
request lc -o download.bin http://10.77.6.1/large.bin
finish lossy.pcap
cmp www/large.bin download.bin || fail "the downloaded file differs"
stop web2 wire switch-c switch-s

# ---------------------------------------------------------------- vlan.pcapng
# Open vSwitch with its user space datapath as the VLAN switches of two customer
# sites and of the provider between them:
#
#   h1 --VLAN 10--\                                            /--VLAN 10-- h3
#                  site1 ==customer== prov1 ==provider== prov2 == site2
#   h2 --VLAN 20--/                                            \--VLAN 20-- h4
#
# Frames have an 802.1Q tag on "customer", and also an outer 802.1ad tag (100) on
# "provider". h1/h3 and h2/h4 use the same addresses and ports and differ only in
# the VLAN.
netns ovs h1 h2 h3 h4
# Without IPv6, the interfaces of the switches send no packets of their own.
ip netns exec ovs sysctl -qw net.ipv6.conf.default.disable_ipv6=1
export OVS_RUNDIR=$T/ovs OVS_LOGDIR=$T/ovs OVS_DBDIR=$T/ovs
mkdir ovs
ovsdb-tool create ovs/conf.db /usr/share/openvswitch/vswitch.ovsschema
start ovsdb ovs ovsdb-server "$T/ovs/conf.db" --remote="punix:$T/ovs/db.sock" \
    --unixctl="$T/ovs/ovsdb.ctl"
until_ok 5 test -S ovs/db.sock
vs() { timeout 20 ovs-vsctl --db="unix:$T/ovs/db.sock" "$@"; }
vs --no-wait init
vs --no-wait set Open_vSwitch . other_config:vlan-limit=2
start vswitchd ovs ovs-vswitchd "unix:$T/ovs/db.sock" --unixctl="$T/ovs/vswitchd.ctl"
for n in 1 2 3 4; do
    cable "h$n" eth0 "02:00:00:77:04:0$n" ovs "p$n" "02:00:00:77:05:0$n"
done
cable ovs customer 02:00:00:77:05:11 ovs customer-p 02:00:00:77:05:12
cable ovs customer2 02:00:00:77:05:13 ovs customer2-p 02:00:00:77:05:14
cable ovs provider 02:00:00:77:05:15 ovs provider-p 02:00:00:77:05:16
for dev in customer customer-p customer2 customer2-p provider provider-p; do
    ip -n ovs link set $dev mtu 1600
done
for bridge in site1 site2 prov1 prov2; do
    vs add-br $bridge -- set Bridge $bridge datapath_type=netdev
done
tunnel=(vlan_mode=dot1q-tunnel tag=100 other_config:qinq-ethtype=802.1ad)
vs add-port site1 p1 tag=10 -- add-port site1 p2 tag=20 -- add-port site1 customer \
    -- add-port site2 p3 tag=10 -- add-port site2 p4 tag=20 -- add-port site2 customer2 \
    -- add-port prov1 customer-p -- set Port customer-p "${tunnel[@]}" \
    -- add-port prov2 customer2-p -- set Port customer2-p "${tunnel[@]}" \
    -- add-port prov1 provider -- add-port prov2 provider-p
for n in 1 2 3 4; do
    host=$((n > 2 ? 1 : 2)) # h3 and h4 are the servers
    addr "h$n" eth0 "10.77.40.$host/24" "2001:db8:7a::$host/64"
done
until_ok 10 ip netns exec h1 ping -n -c 1 -W 1 10.77.40.1
until_ok 10 ip netns exec h2 ping -n -c 1 -W 1 10.77.40.1
web_server web3 h3
web_server web4 h4
sleep 3 # until neighbor discovery of the hosts has finished

report "recording vlan.pcapng"
start vlan ovs dumpcap -q -n -i customer -i provider -w "$T/vlan.pcapng"
until_ok 5 grep -q '^File: ' log/vlan
sleep 0.5
for h in h1 h2; do
    in_ns $h ping -n -c 2 -i 0.3 10.77.40.1
    # shellcheck disable=SC2046
    request $h --local-port 40000 $(drop 2) http://10.77.40.1/{,page.html}
    request $h --local-port 40001 -o /dev/null 'http://[2001:db8:7a::1]/page.html'
done
sleep 1
stop vlan
# dumpcap writes the names of the processor and of the kernel to the headers.
# The script below removes them: options 2 and 3 of the section, option 12 of
# the interfaces.
perl -e '
    local $/; binmode STDIN; binmode STDOUT;
    my ($in, $at) = (<STDIN>, 0);
    my %fixed = (0x0A0D0D0A, 16, 1, 8);
    my %leave = (0x0A0D0D0A, { 2, 1, 3, 1 }, 1, { 12, 1 });
    while ($at < length $in) {
        my ($type, $length) = unpack "V2", substr $in, $at, 8;
        my $body = substr $in, $at + 8, $length - 12;
        if (my $o = $fixed{$type}) {
            my $kept = substr $body, 0, $o;
            while ($o + 4 <= length $body) {
                my ($code, $size) = unpack "v2", substr $body, $o, 4;
                $size = 4 + ($size + 3 & ~3);
                $kept .= substr $body, $o, $size unless $leave{$type}{$code};
                $o += $size;
            }
            $body = $kept;
        }
        my $new = 12 + length $body;
        print pack("V2", $type, $new), $body, pack("V", $new);
        $at += $length;
    }' <vlan.pcapng >out/vlan.pcapng
stop web3 web4 vswitchd ovsdb

report "done"
