#!/usr/bin/env bash
# Records the captures of this folder with calls between two phones (sipp), one of them through a relay that loses packets.
#
#   sudo ./record-call.sh [OUTPUT_FOLDER]        (default: the folder of the script)
#
# Debian 12 packages:
#   iproute2 util-linux procps ethtool openssl tcpdump zstd sip-tester python3
#
# The script uses private mount, UTS, network and process namespaces. It does not
# use or change any interface, address or service of the machine.

# shellcheck source=../namespaces.sh
. "$(dirname "$0")/../namespaces.sh"
enter 120 "$@"

# cl 10.78.0.2, sv 10.78.0.1
netns cl sv
cable cl eth0 02:00:00:78:00:02 sv eth0 02:00:00:78:00:01
addr cl eth0 10.78.0.2/24
addr sv eth0 10.78.0.1/24
# The relay is at another address of the callee's host.
ip -n sv addr add 10.78.0.3/24 dev eth0
cat >relay.py <<'END'
# Passes what the callee sends to 10.78.0.3 on to the caller, without each eighth packet.
import socket
relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
relay.bind(("10.78.0.3", 7100))
count = 0
while True:
    packet = relay.recv(2048)
    count += 1
    if count % 8:
        relay.sendto(packet, ("10.78.0.2", 6030))
END

# Sound in the encoding of telephony, without a head.
openssl rand -out sound.alaw 8000

media() {
    cat <<'END'
      Content-Type: application/sdp
      Content-Length: [len]

      v=0
      o=phone 1 1 IN IP4 [local_ip]
      s=-
      c=IN IP4 [media_ip]
      t=0 0
      m=audio [rtpstream_audio_port] RTP/AVP 8
      a=rtpmap:8 PCMA/8000
END
}
head_of() {
    cat <<END
      Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
      From: "Alice" <sip:alice@[local_ip]:[local_port]>;tag=[call_number]
      To: <sip:bob@[remote_ip]:[remote_port]>$2
      Call-ID: [call_id]
      CSeq: $1
      Contact: <sip:alice@[local_ip]:[local_port]>
      Max-Forwards: 70
END
}
copied() {
    printf '      [last_%s:]\n' Via: From: | sed 's/:]$/]/'
}

{
    echo '<?xml version="1.0" encoding="us-ascii"?><scenario name="caller">'
    echo '<send retrans="500"><![CDATA['
    echo '      INVITE sip:bob@[remote_ip]:[remote_port] SIP/2.0'
    head_of '1 INVITE' ''
    media
    echo ']]></send>'
    echo '<recv response="100" optional="true"/><recv response="180" optional="true"/><recv response="200" rtd="true"/>'
    echo '<send><![CDATA['
    echo '      ACK sip:bob@[remote_ip]:[remote_port] SIP/2.0'
    head_of '1 ACK' '[peer_tag_param]'
    printf '      Content-Length: 0\n\n]]></send>\n'
    echo '<nop><action><exec rtp_stream="sound.alaw,1,8,PCMA/8000"/></action></nop><pause milliseconds="1200"/>'
    echo '<send retrans="500"><![CDATA['
    echo '      BYE sip:bob@[remote_ip]:[remote_port] SIP/2.0'
    head_of '2 BYE' '[peer_tag_param]'
    printf '      Content-Length: 0\n\n]]></send>\n'
    echo '<recv response="200"/></scenario>'
} >caller.xml

reply() {
    printf '<send><![CDATA[\n      SIP/2.0 %s\n      [last_Via:]\n      [last_From:]\n      [last_To:]%s\n      [last_Call-ID:]\n      [last_CSeq:]\n' "$1" "$2"
    printf '      Contact: <sip:bob@[local_ip]:[local_port]>\n      Server: phone/1\n'
}
{
    echo '<?xml version="1.0" encoding="us-ascii"?><scenario name="callee">'
    echo '<recv request="INVITE"/>'
    reply '180 Ringing' ';tag=b[call_number]'
    printf '      Content-Length: 0\n\n]]></send>\n<pause milliseconds="200"/>\n'
    reply '200 OK' ';tag=b[call_number]'
    media
    echo ']]></send><recv request="ACK"/>'
    echo '<nop><action><exec rtp_stream="sound.alaw,1,8,PCMA/8000"/></action></nop>'
    echo '<recv request="BYE"/>'
    reply '200 OK' ''
    printf '      Content-Length: 0\n\n]]></send>\n</scenario>\n'
} >callee.xml

{
    echo '<?xml version="1.0" encoding="us-ascii"?><scenario name="busy"><recv request="INVITE"/>'
    reply '486 Busy Here' ';tag=c[call_number]'
    printf '      Content-Length: 0\n\n]]></send><recv request="ACK"/></scenario>\n'
} >busy.xml
{
    echo '<?xml version="1.0" encoding="us-ascii"?><scenario name="refused">'
    echo '<send retrans="500"><![CDATA['
    echo '      INVITE sip:carol@[remote_ip]:[remote_port] SIP/2.0'
    head_of '1 INVITE' ''
    media
    echo ']]></send><recv response="486"/>'
    echo '<send><![CDATA['
    echo '      ACK sip:carol@[remote_ip]:[remote_port] SIP/2.0'
    head_of '1 ACK' '[peer_tag_param]'
    printf '      Content-Length: 0\n\n]]></send></scenario>\n'
} >refused.xml

record ordinary-call.pcap cl -i eth0
# callee NAME SCENARIO [OPTION]...
callee() {
    local name=$1 scenario=$2
    shift 2
    start "$name" sv sipp -nostdin -m 1 -timeout 20 -sf "$scenario" -i 10.78.0.1 -mi 10.78.0.1 -p 5060 \
        -mp 7000 "$@"
    sleep 1
}
callee callee callee.xml
in_ns cl sipp -nostdin -m 1 -timeout 20 -sf caller.xml -i 10.78.0.2 -mi 10.78.0.2 -p 5060 -mp 6000 10.78.0.1:5060
stop callee
callee busy busy.xml
in_ns cl sipp -nostdin -m 1 -timeout 20 -sf refused.xml -i 10.78.0.2 -mi 10.78.0.2 -p 5062 -mp 6010 10.78.0.1:5060
stop busy
# The same refusal over TCP.
callee stream busy.xml -t t1
in_ns cl sipp -nostdin -m 1 -timeout 20 -t t1 -sf refused.xml -i 10.78.0.2 -mi 10.78.0.2 -p 5064 -mp 6020 10.78.0.1:5060
stop stream
finish ordinary-call.pcap

# The caller receives from the relay.
record poor-media.pcap cl -i eth0
sed 's/\[media_ip\]/10.78.0.3/; s/\[rtpstream_audio_port\]/7100/' caller.xml >lossy.xml
start relay sv python3 relay.py
callee lossy callee.xml
in_ns cl sipp -nostdin -m 1 -timeout 20 -sf lossy.xml -i 10.78.0.2 -mi 10.78.0.2 -p 5066 -mp 6030 10.78.0.1:5060
stop lossy relay
finish poor-media.pcap
zstd -q -19 --rm out/ordinary-call.pcap out/poor-media.pcap
