#!/usr/bin/env bash
# Records the captures of this folder: traffic of real programs between network
# namespaces of one machine, with known answers for `flowgauge summary`.
#
#   sudo ./record.sh [OUTPUT_FOLDER]        (default: the folder of the script)
#
# Debian 12 packages:
#   iproute2 util-linux procps ethtool openssl tcpdump wireshark-common zstd perl
#   nginx curl dnsmasq-base bind9-dnsutils unbound nmap openssh-server
#   openssh-client exim4-daemon-light swaks libnet-ssleay-perl dovecot-imapd
#   dovecot-pop3d vsftpd python3-pyftpdlib atftpd iperf3 chrony vde2 iputils-ping
#
# The script uses private mount, UTS, network and process namespaces. It does not
# use or change any interface, address or service of the machine.

here=$(realpath "$(dirname "$0")")
# shellcheck source=../namespaces.sh
. "$here/../namespaces.sh"
enter 600 "$@"

# ---------------------------------------------------------------- network
#
#   cl eth0 ---- p1 sw p2 ---- eth0 sv tap0 ---- wire ---- tap0 far
#   10.78.0.2                10.78.0.1    10.78.1.1      10.78.1.9
#   2001:db8:88::2                 ::1
#
# sw is a bridge; the wire is wirefilter of VDE, which delays and drops frames.
# The server discards packets to 10.78.8.0/24.
netns cl sw sv far
ip netns exec sw sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
cable cl eth0 02:00:00:78:00:02 sw p1 02:00:00:78:00:12
cable sv eth0 02:00:00:78:00:01 sw p2 02:00:00:78:00:11
ip -n sw link add br0 type bridge
ip -n sw link set p1 master br0
ip -n sw link set p2 master br0
ip -n sw link set br0 up
addr cl eth0 10.78.0.2/24 2001:db8:88::2/64
addr sv eth0 10.78.0.1/24 2001:db8:88::1/64
for n in {11..13} {21..50}; do addr sv eth0 "10.78.0.$n/24"; done
vde sv switch-a vde_switch -s "$T/switch-a" -tap tap0
vde far switch-b vde_switch -s "$T/switch-b" -tap tap0
ip -n sv link set tap0 address 02:00:00:78:01:01 up
ip -n far link set tap0 address 02:00:00:78:01:09 up
addr sv tap0 10.78.1.1/24
addr far tap0 10.78.1.9/24
ip -n far route add default via 10.78.1.1
ip -n cl route add 10.78.0.0/16 via 10.78.0.1
ip -n sv route add blackhole 10.78.8.0/24
ip netns exec sv sysctl -qw net.ipv4.ip_forward=1
hosts <<'END'
127.0.0.1        localhost
10.78.0.1        web.example mail.example
10.78.0.11       old.example
10.78.0.12       own.example
2001:db8:88::1   web6.example
END
resolver=10.78.0.1

# ------------------------------------------------------ certificates and pages
# certificate NAME COMMON_NAME DAYS: one that the authority has signed, followed by
# that of the authority.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj '/O=Example/CN=Example Authority' -keyout ca.key -out tls.crt 2>/dev/null
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
        -keyout "$1.key" -out "$1.csr" 2>/dev/null
    printf 'subjectAltName=DNS:%s,DNS:web6.example,DNS:mail.example' "$2" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA tls.crt -CAkey ca.key -CAcreateserial \
        -days "$3" -extfile "$1.ext" -out "$1.crt" 2>/dev/null
    cat tls.crt >>"$1.crt"
    chmod 644 "$1.key"
}
certificate web web.example 30
certificate old old.example -1 # expired yesterday
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=own.example -keyout own.key -out own.crt 2>/dev/null
chmod 644 own.key

# Contents that compress well keep the captures small.
mkdir www www/upload
paragraphs() { for ((i = 1; i <= $1; i++)); do echo "<p>Paragraph $i of a page made for a capture.</p>"; done; }
paragraphs 100 >www/page.html
paragraphs 3000 >www/large.html
echo '<!doctype html><title>Start</title><p>It works.' >www/index.html
paragraphs 26000 >upload.txt
for package in editor compiler library; do paragraphs 4000 >"www/$package.deb"; done
chown www-data www/upload

cat >web.conf <<END
daemon off;
user www-data;
worker_processes 1;
pid $T/web.pid;
error_log $T/log/web.error;
events { worker_connections 64; }
http {
    access_log off;
    default_type text/html;
    client_body_temp_path $T/web.body;
    proxy_temp_path $T/web.proxy;
    fastcgi_temp_path $T/web.fastcgi;
    uwsgi_temp_path $T/web.uwsgi;
    scgi_temp_path $T/web.scgi;
    client_max_body_size 4m;
    ssl_certificate $T/web.crt;
    ssl_certificate_key $T/web.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    server {
        listen 80;
        listen [::]:80;
        listen 10.78.0.1:443 ssl http2;
        listen [2001:db8:88::1]:443 ssl http2;
        root $T/www;
        location /upload/ { dav_methods PUT; }
        location /slow/ { alias $T/www/; limit_rate 100k; }
        location /private/ {
            alias $T/www/;
            auth_basic private;
            auth_basic_user_file $T/users;
        }
    }
    server {
        listen 10.78.0.11:443 ssl;
        ssl_certificate $T/old.crt;
        ssl_certificate_key $T/old.key;
        ssl_protocols TLSv1.2;
        root $T/www;
    }
    server {
        listen 10.78.0.12:443 ssl;
        ssl_certificate $T/own.crt;
        ssl_certificate_key $T/own.key;
        ssl_protocols TLSv1.2;
        root $T/www;
    }
}
END
echo "alice:$(openssl passwd -apr1 example)" >users
start web sv nginx -e "$T/log/web.error" -c "$T/web.conf"
until_ok 5 listens sv 443

start dns sv dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root \
    --pid-file= --no-resolv --no-hosts --port=53 --listen-address="$resolver" --bind-interfaces \
    --log-facility="$T/log/dns.queries" \
    --local=/lab.example/ --auth-ttl=300 --local-ttl=300 \
    --host-record=www.lab.example,10.78.0.1,2001:db8:88::1 \
    --host-record=mail.lab.example,10.78.0.1 \
    --cname=alias.lab.example,www.lab.example \
    --mx-host=lab.example,mail.lab.example,10 \
    --txt-record=lab.example,'a short text' \
    --address=/hosted.example/10.78.0.1 --address=/co.uk/10.78.0.1 \
    --synth-domain=lab.example,10.78.9.0/24
until_ok 5 listens sv 53

# q ARGUMENTS...: a query without a second attempt.
q() { in_ns cl dig +tries=1 +time=1 @$resolver "$@"; }

# ordinary: a little of the traffic that other captures consist of.
ordinary() {
    q www.lab.example A
    request cl -o /dev/null http://web.example/page.html
    sleep 0.4
    request cl -o /dev/null https://web.example/page.html
}

# pack FILE: compresses a capture.
pack() { zstd -q -19 --rm "out/$1"; }

# capture NAME TCPDUMP_ARGUMENTS...: records at the client; end NAME ends it.
capture() {
    local name=$1
    shift
    record "$name.pcap" cl -i eth0 "$@"
}
end() {
    finish "$1.pcap"
    pack "$1.pcap"
}

# wire NETWORK_OPTIONS...: connects the far host.
wire() {
    vde sv wire wirefilter -v "$T/switch-a:$T/switch-b" "$@" -N
    until_ok 10 ip netns exec sv ping -n -c 1 -W 1 10.78.1.9
}

# scale FILE FACTOR: multiplies the times since the first packet of a capture.
scale() {
    perl -e '
        my ($name, $factor) = @ARGV;
        open my $file, "<:raw", $name or die; local $/; my $in = <$file>;
        my ($at, $first, $out) = (24, undef, substr $in, 0, 24);
        while ($at < length $in) {
            my ($seconds, $micros, $kept, $length) = unpack "V4", substr $in, $at, 16;
            my $time = $seconds * 1_000_000 + $micros;
            $first //= $time;
            $time = $first + ($time - $first) * $factor;
            $out .= pack("V4", int($time / 1_000_000), $time % 1_000_000, $kept, $length);
            $out .= substr $in, $at + 16, $kept;
            $at += 16 + $kept;
        }
        open $file, ">:raw", $name or die; print $file $out;' "out/$1" "$2"
}

# ================================================================== findings
# -------------------------------------------------------------------- scan
capture scan-ports
ordinary
must cl nmap -n -Pn -sS -p 1-200 --max-retries 0 10.78.0.1
end scan-ports

capture scan-ports-filtered
ordinary
must cl nmap -n -Pn -sT -p 8000-8059 --max-retries 0 --max-rtt-timeout 300ms 10.78.8.7
end scan-ports-filtered

capture scan-hosts
ordinary
must cl nmap -n -Pn -sS -p 22 --max-retries 0 --max-rtt-timeout 300ms 10.78.8.1-40
end scan-hosts

capture scan-hosts-refused
ordinary
must cl nmap -n -Pn -sT -p 23 --max-retries 0 10.78.0.21-50
end scan-hosts-refused

capture scan-ports-ipv6
must cl nmap -n -Pn -6 -sS -p 1-60 --max-retries 0 2001:db8:88::1
end scan-ports-ipv6

# The port is open: nmap resets each connection before it is established.
capture scan-hosts-open
ordinary
must cl nmap -n -Pn -sS -p 80 --max-retries 0 10.78.0.21-50
end scan-hosts-open

capture scan-ports-udp
ordinary
must cl nmap -n -Pn -sU -p 1-60 --max-retries 0 10.78.0.1
end scan-ports-udp

# ------------------------------------------------------------------ beacon
capture beacon-connections
ordinary
for _ in {1..8}; do
    in_ns cl curl -q -sS -o /dev/null -A agent http://web.example/
    sleep 2
done
end beacon-connections

capture beacon-jitter
ordinary
for pause in 1.85 2.1 1.95 2.15 1.9 2.05 2.2 1.8 2; do
    in_ns cl curl -q -sS -k -o /dev/null https://web.example/
    sleep "$pause"
done
end beacon-jitter

# One connection, on which curl sends a request every two seconds.
capture beacon-keep-alive
# shellcheck disable=SC2046
must cl curl -q -sS --rate 30/m $(drop 8) 'http://web.example/index.html?[1-8]'
ordinary
end beacon-keep-alive

# ------------------------------------------------------------------ upload
capture upload
ordinary
must cl curl -q -sS -o /dev/null -T upload.txt http://web.example/upload/file.txt
end upload

# -------------------------------------------------------- logins in clear text
capture login-http
ordinary
request cl -u alice:example -o /dev/null http://web.example/private/page.html
end login-http

start ftp sv python3 -m pyftpdlib -i 10.78.0.1 -p 21 -u alice -P example -d "$T/www" -r 40000-40100
until_ok 5 listens sv 21
capture login-ftp
request cl -u alice:example -o /dev/null ftp://10.78.0.1/page.html
ordinary
end login-ftp
stop ftp

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
tls_certificate = $T/web.crt
tls_privatekey = $T/web.key
keep_environment =
host_lookup =
rfc1413_hosts =
deliver_drop_privilege = true
auth_advertise_hosts = *
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
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if and{{eq{\$auth2}{alice}}{eq{\$auth3}{example}}}}
  server_set_id = \$auth2
END
cat >dovecot.conf <<END
base_dir = $T/dovecot
state_dir = $T/dovecot
log_path = $T/log/dovecot.server
protocols = imap pop3
listen = *, ::
ssl = yes
ssl_cert = <$T/web.crt
ssl_key = <$T/web.key
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
until_ok 5 listens sv 995
send() {
    must cl swaks --helo client.example --from bob@client.example --to alice@mail.example \
        --header 'Subject: A message' --header 'Message-Id: <1@client.example>' \
        --header-X-Mailer swaks --server 10.78.0.1 "$@"
}
login=(--auth PLAIN --auth-user alice --auth-password example)
capture login-smtp
send "${login[@]}"
ordinary
end login-smtp

capture login-mailboxes
request cl --user alice:example pop3://mail.example/1
request cl --user alice:example imap://mail.example/
ordinary
end login-mailboxes

# ------------------------------------------------- certificates and versions of TLS
capture certificate-expired
ordinary
request cl -k -o /dev/null https://old.example/page.html
end certificate-expired

capture certificate-self-signed
ordinary
request cl -k -o /dev/null https://own.example/page.html
end certificate-self-signed

# tls_server VERSION: a server on port 443 of another address, with the versions and
# signatures that a current library permits only at security level 0.
tls_server() {
    start s_server sv openssl s_server -accept 10.78.0.13:443 -cert web.crt -key web.key \
        -cipher DEFAULT:@SECLEVEL=0 -www "-$1"
    until_ok 5 ip netns exec sv sh -c 'ss -Hlnt src 10.78.0.13:443 | grep -q .'
}
for version in 1 1_1; do
    tls_server tls$version
    name=tls-${version/#1_1/1.1}
    name=${name/%-1/-1.0}
    capture "$name"
    ordinary
    for _ in 1 2 3; do
        must cl sh -c "printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -connect 10.78.0.13:443 \
            -tls$version -cipher DEFAULT:@SECLEVEL=0 -ign_eof"
    done
    end "$name"
    stop s_server
done

# ------------------------------------------------------------ foreign ports
start http sv python3 -m http.server -d www 4444
until_ok 5 listens sv 4444
capture foreign-http
ordinary
request cl -o /dev/null http://web.example:4444/page.html
request cl -o /dev/null http://web.example:4444/index.html
end foreign-http
stop http

ssh-keygen -q -t ed25519 -N '' -C server -f host_key
ssh-keygen -q -t ed25519 -N '' -C client -f user_key
mkdir ssh
cp user_key.pub ssh/authorized_keys
cat >sshd.conf <<END
ListenAddress 10.78.0.13:443
ListenAddress 10.78.0.1:22
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
options=(-F /dev/null -o BatchMode=yes -o UserKnownHostsFile=/dev/null -i user_key
    -o StrictHostKeyChecking=no -o IdentitiesOnly=yes -o ConnectTimeout=5)
capture foreign-ssh
ordinary
must cl ssh "${options[@]}" -p 443 root@10.78.0.13 echo hello
end foreign-ssh

# --------------------------------------------------------------------- DNS
capture dns-nxdomain
for n in {1..12}; do q "missing$n.lab.example" A; done
ordinary
end dns-nxdomain

# unbound forwards to a port on which nobody listens.
cat >unbound.conf <<END
server:
  interface: 10.78.0.13
  access-control: 10.78.0.0/16 allow
  do-not-query-localhost: no
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "$T"
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@5399
END
start unbound sv unbound -d -c "$T/unbound.conf"
until_ok 30 ip netns exec sv sh -c 'dig +tries=1 +time=1 @10.78.0.13 first.example | grep -q SERVFAIL'
capture dns-servfail
for n in {1..12}; do in_ns cl dig +tries=1 +time=5 @10.78.0.13 "www$n.elsewhere.example" A; done
ordinary
end dns-servfail
stop unbound

# Queries at irregular times to an address that never responds.
capture dns-unanswered
ordinary
in_ns cl sh -c 'for pause in 0.1 0.5 0.2 0.9 0.05 0.7 0.3 0.15; do
    dig +tries=1 +time=1 @10.78.8.53 www.lab.example A &
    sleep $pause
done; wait'
end dns-unanswered

capture names-once
for _ in {1..40}; do q "$(openssl rand -hex 12).t.hosted.example" A; done
ordinary
end names-once

# --------------------------------------------------------- long connection
# A session of 12 s whose times are multiplied by 60.
capture long-connection
must cl ssh "${options[@]}" -o ServerAliveInterval=1 root@10.78.0.1 \
    'for pause in 1 0.3 2 0.7 1.5 0.2 1.8 0.9 1.1 0.4 1.6 0.8; do sleep $pause; date; done'
finish long-connection.pcap
scale long-connection.pcap 60
pack long-connection.pcap

# --------------------------------------------------------------------- TCP
# Eight of 100 frames are lost behind the interface on which the sender is recorded.
wire -l 8
start iperf far iperf3 -s
until_ok 5 listens far 5201
capture retransmissions
must cl iperf3 -c 10.78.1.9 -n 400K --repeating-payload
end retransmissions
stop iperf wire

# Frames to and from the far host take 60 ms.
wire -d 60
start far-web far python3 -m http.server -d www 80
until_ok 5 listens far 80
capture round-trip
for n in 1 2 3 4; do
    ordinary
    request cl -o /dev/null http://10.78.1.9/index.html
    request cl -k -o /dev/null https://old.example/ --connect-to old.example:443:10.78.0.1:443
done
request cl -o /dev/null http://10.78.0.11/ -o /dev/null http://10.78.0.12/
end round-trip
stop far-web wire

# A reader with a small buffer is stopped for two seconds.
small='4096 16384 16384'
buffers=$(ip netns exec cl sysctl -n net.ipv4.tcp_rmem)
ip netns exec cl sysctl -qw net.ipv4.tcp_rmem="$small"
capture zero-window
start reader cl curl -q -sS -o /dev/null http://web.example/slow/large.html
sleep 0.3
kill -STOP "${pid[reader]}"
sleep 2
kill -CONT "${pid[reader]}"
until_ok 5 gone "${pid[reader]}"
end zero-window
unset 'pid[reader]'
ip netns exec cl sysctl -qw net.ipv4.tcp_rmem="$buffers"

# Clients that are killed while data waits unread.
capture resets
for _ in {1..14}; do
    in_ns cl timeout -s KILL 0.6 \
        curl -q -s --limit-rate 5k -o /dev/null http://web.example/slow/large.html
done
ordinary
end resets

# ------------------------------------------------------------- the capture
# Both ports of the bridge, merged as a mirror of both would deliver them.
record duplicates-1.pcap sw -i p1
record duplicates-2.pcap sw -i p2
ordinary
request cl -o /dev/null http://web.example/large.html
for type in A AAAA MX TXT; do q lab.example $type; done
finish duplicates-1.pcap
finish duplicates-2.pcap
mergecap -F pcap -w out/duplicates.pcap out/duplicates-1.pcap out/duplicates-2.pcap
rm out/duplicates-?.pcap
pack duplicates.pcap

# The filter of tcpdump discards every sixteenth packet of the web server.
capture gaps 'not (tcp src port 80 and ip[5] & 15 = 3)'
request cl -o /dev/null http://web.example/large.html
ordinary
end gaps

capture truncated -s 96
ordinary
request cl -o /dev/null http://web.example/large.html
end truncated

# The clock is set back by ten minutes between two recordings, or forward by ten
# years: editcap moves the times of the second one.
record clock-1.pcap cl -i eth0
ordinary
finish clock-1.pcap
record clock-2.pcap cl -i eth0
ordinary
request cl -o /dev/null http://web6.example/page.html
finish clock-2.pcap
for step in back:-600 forward:315360000; do
    editcap -F pcap -t "${step#*:}" out/clock-2.pcap moved.pcap
    mergecap -F pcap -a -w "out/clock-${step%:*}.pcap" out/clock-1.pcap moved.pcap
    pack "clock-${step%:*}.pcap"
done
rm out/clock-?.pcap

# ========================================================== ordinary traffic
capture ordinary-web
# shellcheck disable=SC2046
request cl $(drop 4) http://web.example/{,page.html,large.html,missing}
# shellcheck disable=SC2046
request cl -Z --parallel-immediate --http1.1 $(drop 3) http://web6.example/{,page.html,large.html}
# shellcheck disable=SC2046
request cl --http2 -Z $(drop 3) https://web.example/{,page.html,large.html}
# shellcheck disable=SC2046
request cl --http1.1 --tls-max 1.2 $(drop 2) https://web6.example/{,page.html}
request cl http://web.example:8080/
end ordinary-web

# A reader: pauses of different lengths between the pages.
capture ordinary-reading
for pause in 0.3 2.5 0.8 1.4 3.1 0.2 1.9 0.6 2.2; do
    request cl -o /dev/null http://web.example/page.html
    sleep "$pause"
done
end ordinary-reading

# A forged segment in the same traffic.
zstd -q -d out/ordinary-reading.pcap.zst -o reading.pcap
python3 "$here/contradict.py" reading.pcap out/conflicts.pcap
pack conflicts.pcap

capture ordinary-dns
for question in "www A" "www AAAA" "alias A" "nowhere A" "mail AAAA" "mail A" "www A"; do
    # shellcheck disable=SC2086
    set -- $question
    q "$1.lab.example" "$2"
done
q lab.example MX
q +tcp lab.example TXT
end ordinary-dns

# Shops in one country, and the names of a network's addresses.
capture ordinary-shops
for n in {1..30}; do q "www.shop$n.co.uk" A; done
end ordinary-shops

capture ordinary-reverse
for n in {1..30}; do q -x "10.78.9.$n"; done
end ordinary-reverse

capture ordinary-ssh
must cl ssh "${options[@]}" root@10.78.0.1 'for pause in 0.4 1.1 0.2 0.9; do sleep $pause; date; done'
must cl scp "${options[@]}" www/large.html "root@10.78.0.1:$T/received"
end ordinary-ssh
stop ssh

capture ordinary-mail
send --body 'One line.'
send --tls "${login[@]}"
send --port 465 --tls-on-connect "${login[@]}"
request cl --user alice:example --ssl-reqd pop3://mail.example/1
request cl --user alice:example pop3s://mail.example/2
request cl --user alice:example --ssl-reqd imap://mail.example/
request cl --user alice:example imaps://mail.example/
end ordinary-mail
stop exim dovecot

mkdir -p ftp empty
cp www/page.html www/large.html ftp/
chmod 555 empty
cat >vsftpd.conf <<END
listen=YES
background=NO
anonymous_enable=YES
anon_root=$T/ftp
secure_chroot_dir=$T/empty
seccomp_sandbox=NO
END
start vsftpd sv vsftpd "$T/vsftpd.conf"
until_ok 5 listens sv 21
capture ordinary-ftp
request cl -o /dev/null ftp://10.78.0.1/page.html
request cl -o /dev/null ftp://10.78.0.1/ -o /dev/null ftp://10.78.0.1/large.html
end ordinary-ftp
stop vsftpd

# The same traffic with the client's direction 20 ms late: editcap moves its times.
unzstd -q out/ordinary-ftp.pcap.zst -o both.pcap
tcpdump -q -r both.pcap -w client.pcap src host 10.78.0.2
tcpdump -q -r both.pcap -w server.pcap not src host 10.78.0.2
editcap -F pcap -t 0.02 client.pcap late.pcap
mergecap -F pcap -w out/skew.pcap late.pcap server.pcap
pack skew.pcap
rm both.pcap client.pcap server.pcap late.pcap

# One connection for a list of packages, and 1.5 MB from the server.
capture ordinary-packages
must cl curl -q -sS -o /dev/null -z '2030-01-01' http://web.example/page.html
# shellcheck disable=SC2046
must cl curl -q -sS $(drop 6) http://web.example/{editor,compiler,library,large,editor,compiler}.deb
end ordinary-packages

# A server of NTP, polled every two seconds.
cat >ntp.conf <<END
local stratum 3
allow 10.78.0.0/16
cmdport 0
bindaddress 10.78.0.1
pidfile $T/ntp.pid
END
cat >ntp-client.conf <<END
server 10.78.0.1 iburst minpoll 1 maxpoll 1
cmdport 0
port 0
pidfile $T/ntp-client.pid
END
start ntp sv chronyd -d -x -u root -f "$T/ntp.conf"
until_ok 5 listens sv 123
capture ordinary-ntp
start ntp-client cl chronyd -d -x -u root -f "$T/ntp-client.conf"
ordinary
sleep 30
end ordinary-ntp
stop ntp-client ntp

mkdir tftp
cp www/large.html www/page.html tftp/
chmod -R a+rX tftp
start tftp sv atftpd --daemon --no-fork --user root --group root --bind-address 10.78.0.1 "$T/tftp"
until_ok 5 listens sv 69
capture ordinary-tftp
must cl curl -q -sS -o /dev/null tftp://10.78.0.1/large.html
must cl curl -q -sS -o /dev/null tftp://10.78.0.1/page.html
in_ns cl curl -q -sS -o /dev/null tftp://10.78.0.1/none.html
end ordinary-tftp
stop tftp

ip -n cl link add vx0 type vxlan id 78 remote 10.78.0.1 local 10.78.0.2 dstport 4789 dev eth0
ip -n sv link add vx0 type vxlan id 78 remote 10.78.0.2 local 10.78.0.1 dstport 4789 dev eth0
for ns in cl sv; do
    no_offload $ns vx0
    ip -n $ns link set vx0 mtu 1400 up
done
addr cl vx0 192.168.78.2/24
addr sv vx0 192.168.78.1/24
capture ordinary-vxlan
request cl -o /dev/null http://192.168.78.1/page.html
request cl -o /dev/null http://192.168.78.1/large.html
in_ns cl ping -n -c 3 -i 0.3 192.168.78.1
in_ns cl dig +tries=1 +time=1 -b 192.168.78.2 @10.78.0.1 www.lab.example A
end ordinary-vxlan

capture ordinary-ping
must cl ping -n -c 6 10.78.0.1
must cl ping -n -c 6 2001:db8:88::1
request cl http://web.example:8080/
request cl http://web.example:8443/
ordinary
end ordinary-ping

report "done"
