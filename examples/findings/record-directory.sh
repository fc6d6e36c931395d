#!/usr/bin/env bash
# Records the captures of this folder with files, directory and tickets: Samba,
# OpenLDAP and MIT Kerberos, with known answers for `flowgauge summary`.
#
#   sudo ./record-directory.sh [OUTPUT_FOLDER]        (default: the folder of the script)
#
# Debian 12 packages:
#   iproute2 util-linux procps ethtool tcpdump zstd samba smbclient
#   samba-common-bin slapd ldap-utils krb5-kdc krb5-admin-server krb5-user
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
END
start kdc sv krb5kdc -n -P "$T/kdc.pid"
until_ok 10 listens sv 88
# ticket USER: logs on.
ticket() { echo example >password && timeout 20 ip netns exec cl kinit "$1" <password >>log/cl 2>&1; }

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

report "done"
