//! mosquitto's broker and clients: MQTT is recognized by content on an unregistered port, and parsed.

use crate::lab::record;
use crate::observe::to_port;

const SERVER: &str = "
listener 11883 127.0.0.1
allow_anonymous true
user root
";

const SCRIPT: &str = r#"
mosquitto -c server >mosquitto.log 2>&1 &
waited listens 11883
common="-h 127.0.0.1 -p 11883 -t house/kitchen"
for version in mqttv311 mqttv5; do
    # The broker retains the message for later subscribers.
    mosquitto_pub $common -V $version -r -m 21.5
    mosquitto_sub $common -V $version -C 1 -W 10 >$version.txt
done
"#;

#[test]
fn mosquitto_connections_are_recognized_as_mqtt() {
    let programs = ["mosquitto", "mosquitto_sub", "mosquitto_pub"];
    let Some(recorded) = record("mqtt", &programs, &[("server", SERVER)], SCRIPT) else { return };
    let dialogues = to_port(&recorded.capture(), 11883);
    assert_eq!(dialogues.len(), 4, "a publisher and a subscriber of each version");
    for (dialogue, version) in dialogues.iter().zip(["3.1.1", "3.1.1", "5.0", "5.0"]) {
        assert_eq!(dialogue.recognized, [("mqtt", "content")]);
        let connect = dialogue.only("mqtt", "mqtt_connect");
        assert_eq!((&connect["version"], &connect["reason"]), (&version.into(), &"success".into()));
        let message = dialogue.only("mqtt", "mqtt_publish");
        assert_eq!((&message["topic"], &message["payload"]), (&"house/kitchen".into(), &"21.5".into()));
        assert_eq!(message["is_retained"], true);
        let wanted = dialogue.all("mqtt", "mqtt_subscribe");
        assert!(
            wanted.iter().all(|row| row["topics"][0] == "house/kitchen" && row["reasons"][0] == "success")
        );
        assert_eq!(wanted.len(), usize::from(message["from"] == "server"), "{dialogue:?}");
    }
    assert!(["mqttv311.txt", "mqttv5.txt"].iter().all(|name| recorded.file(name).trim() == "21.5"));
}
