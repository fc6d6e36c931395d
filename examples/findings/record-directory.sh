#!/usr/bin/env bash
# Records the captures of this folder with files, directory and tickets: Samba,
# OpenLDAP and MIT Kerberos, with known answers for `flowgauge summary`.
#
#   sudo ./record-directory.sh [OUTPUT_FOLDER]        (default: the folder of the script)
#
# Debian 12 packages:
#   iproute2 util-linux procps ethtool tcpdump zstd samba smbclient
#   samba-common-bin slapd ldap-utils krb5-kdc krb5-admin-server krb5-user
#   curl python3
#
# The script uses private mount, UTS, network and process namespaces. It does not
# use or change any interface, address or service of the machine.

here=$(realpath "$(dirname "$0")")
# shellcheck source=../namespaces.sh
. "$here/../namespaces.sh"
enter 240 "$@"

# 10.78.0.2 cl eth0 ---- eth0 sv 10.78.0.1
netns cl sv
cable cl eth0 02:00:00:78:00:02 sv eth0 02:00:00:78:00:01
addr cl eth0 10.78.0.2/24
addr sv eth0 10.78.0.1/24
hosts <<'END'
127.0.0.1  localhost
10.78.0.1  files.lab.example kdc.lab.example
10.78.0.2  desk.lab.example
END

capture() { record "$1.pcap" cl -i eth0; }
end() {
    finish "$1.pcap"
    zstd -q -19 --rm "out/$1.pcap"
}

# ------------------------------------------------------------------ servers
# Samba maps its users to those of the system: alice exists in the namespace only.
sed '$a alice:x:1990:65534::/nonexistent:/usr/sbin/nologin' /etc/passwd >passwd
mount --bind passwd /etc/passwd
mkdir -p share samba /run/samba
chmod 777 share
for ((i = 1; i <= 400; i++)); do echo "Line $i of a file made for a capture."; done >share/report.txt
cat >smb.conf <<END
[global]
  workgroup = EXAMPLE
  netbios name = FILES
  server role = standalone server
  interfaces = 10.78.0.1
  bind interfaces only = yes
  smb ports = 445
  server min protocol = NT1
  ntlm auth = ntlmv1-permitted
  admin users = alice
  private dir = $T/samba
  state directory = $T/samba
  cache directory = $T/samba
  lock directory = $T/samba
  pid directory = $T/samba
  ncalrpc dir = $T/samba/ncalrpc
  log file = $T/log/smbd
  passdb backend = smbpasswd:$T/samba/users
  load printers = no
  disable spoolss = yes
[data]
  path = $T/share
  read only = no
[ADMIN\$]
  path = $T/share
  read only = no
END
printf 'example\nexample\n' | smbpasswd -c smb.conf -L -s -a alice >>log/smbpasswd 2>&1
start files sv smbd --foreground --no-process-group --configfile="$T/smb.conf"
until_ok 10 listens sv 445
# Clients are not to read the configuration of the machine.
cat >client.conf <<'END'
[global]
  workgroup = EXAMPLE
  netbios name = DESK-7
  client min protocol = NT1
END
# files SHARE COMMANDS OPTIONS...
files() { in_ns cl smbclient -s "$T/client.conf" "//10.78.0.1/$1" -U 'EXAMPLE\alice%example' -c "$2" "${@:3}"; }

mkdir directory
cat >slapd.conf <<END
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $T/directory.pid
database mdb
suffix dc=lab,dc=example
rootdn cn=admin,dc=lab,dc=example
rootpw example
directory $T/directory
END
slapadd -f slapd.conf >>log/directory 2>&1 <<'END'
dn: dc=lab,dc=example
objectClass: dcObject
objectClass: organization
dc: lab
o: Laboratory
END
start directory sv slapd -d 0 -f "$T/slapd.conf" -h ldap://10.78.0.1
until_ok 10 listens sv 389

mkdir kdc
cat >krb5.conf <<END
[libdefaults]
  default_realm = LAB.EXAMPLE
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  permitted_enctypes = aes256-cts-hmac-sha1-96 rc4-hmac
[realms]
  LAB.EXAMPLE = {
    kdc = 10.78.0.1
  }
END
cat >kdc.conf <<END
[kdcdefaults]
  kdc_listen = 10.78.0.1:88
  kdc_tcp_listen = 10.78.0.1:88
[realms]
  LAB.EXAMPLE = {
    database_name = $T/kdc/principal
    key_stash_file = $T/kdc/stash
    acl_file = $T/kdc/acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal rc4-hmac:normal
    max_life = 10h
  }
END
export KRB5_CONFIG=$T/krb5.conf KRB5_KDC_PROFILE=$T/kdc.conf KRB5CCNAME=$T/tickets
kdb5_util create -r LAB.EXAMPLE -s -P secret >>log/kdc 2>&1
kadmin.local -r LAB.EXAMPLE >>log/kdc 2>&1 <<'END'
addprinc -pw example +requires_preauth alice
addprinc -pw example -requires_preauth bob
addprinc -pw example host/files.lab.example
addprinc -pw example -e rc4-hmac:normal HTTP/old.lab.example
addprinc -pw example HTTP/files.lab.example
END
start kdc sv krb5kdc -n -P "$T/kdc.pid"
until_ok 10 listens sv 88
# ticket USER: logs on.
ticket() { echo example >password && timeout 20 ip netns exec cl kinit "$1" <password >>log/cl 2>&1; }

# A server that asks for NTLM at /ntlm, and for Kerberos elsewhere. It accepts whoever answers.
cat >intranet.py <<'END'
import base64, http.server, struct

class Intranet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        scheme = "NTLM" if self.path == "/ntlm" else "Negotiate"
        token = base64.b64decode(self.headers.get("Authorization", " ").split(" ")[1] or "")
        if token.startswith(b"NTLMSSP\0\1"):
            # MS-NLMP section 2.2.1.2: names in UTF-16, a challenge, and what is known of the target.
            name = "EXAMPLE".encode("utf-16-le")
            known = struct.pack("<HH", 2, len(name)) + name + struct.pack("<HH", 0, 0)
            head = b"NTLMSSP\0" + struct.pack("<IHHI", 2, len(name), len(name), 56) + struct.pack("<I", 0x00828201)
            head += bytes(range(8)) + bytes(8) + struct.pack("<HHI", len(known), len(known), 56 + len(name)) + bytes(8)
            self.answer(401, "NTLM " + base64.b64encode(head + name + known).decode())
        elif token:
            self.answer(200, None)
        else:
            self.answer(401, scheme)

    def answer(self, status, challenge):
        self.send_response(status)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

http.server.HTTPServer(("10.78.0.1", 80), Intranet).serve_forever()
END
start intranet sv python3 intranet.py
until_ok 10 listens sv 80

# ------------------------------------------------------------------ findings
capture smb-1
files data 'ls; get report.txt copy.txt' -m NT1
end smb-1

capture ntlm-v1
files data 'get report.txt copy.txt' -m SMB2 --option='client NTLMv2 auth = no'
end ntlm-v1

capture admin-share
files 'ADMIN$' 'put copy.txt tool.txt' -m SMB2
end admin-share

capture remote-service
in_ns cl net rpc service create updater Updater 'C:\tool.exe' -s "$T/client.conf" -S 10.78.0.1 -U 'EXAMPLE\alice%example'
end remote-service

capture login-ldap
in_ns cl ldapsearch -x -H ldap://10.78.0.1 -D cn=admin,dc=lab,dc=example -w example -b dc=lab,dc=example
end login-ldap

capture weak-ticket
ticket alice
in_ns cl kvno HTTP/old.lab.example
end weak-ticket

capture no-preauthentication
ticket bob
end no-preauthentication

# ------------------------------------------------------------------ ordinary
capture ordinary-files
files data 'ls; get report.txt copy.txt; put copy.txt other.txt; rename other.txt last.txt; del last.txt' -m SMB2
in_ns cl ldapsearch -x -H ldap://10.78.0.1 -b '' -s base namingContexts
ticket alice
in_ns cl kvno host/files.lab.example
end ordinary-files

capture login-intranet
in_ns cl curl -s --ntlm -u 'EXAMPLE\alice:example' http://files.lab.example/ntlm
in_ns cl curl -s --negotiate -u : http://files.lab.example/report
end login-intranet

report "done"
