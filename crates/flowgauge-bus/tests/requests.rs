//! Requests about live flows, and pairs.

use std::io::Cursor;
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::base::FrameBatch;
use flowgauge::export::FixedRecord;
use flowgauge::record::SortKey;
use flowgauge::{FileSource, KeyPolicy, Next, Pipeline, Source, records};
use flowgauge_bus::{
    BusError, ClientSecurity, Encoding, PacketRing, Pair, Request, Requester, Router, RouterConfig, Topic,
};

const LIMIT: Duration = Duration::from_secs(20);
const CAPTURE: &str = "../../examples/data/web.pcap";

fn requester(router: &Router, identity: &str) -> Requester {
    Requester::connect(router.endpoint(), identity, LIMIT, &ClientSecurity::None).unwrap()
}

/// Answers requests on this thread while another thread sends them.
fn serve<R: Send>(
    router: &mut Router,
    pipeline: &Pipeline<()>,
    ring: Option<&PacketRing>,
    client: impl FnOnce() -> R + Send,
) -> R {
    thread::scope(|scope| {
        let client = scope.spawn(client);
        while !client.is_finished() {
            router.answer(pipeline, ring.map(|ring| (ring, &[][..])));
            thread::sleep(Duration::from_millis(1));
        }
        client.join().unwrap()
    })
}

#[test]
fn open_flows_are_found_by_key_and_community_id_and_sorted() {
    let mut source = FileSource::open(CAPTURE).unwrap();
    let mut pipeline = Pipeline::builder().build(()).unwrap();
    let mut ring = PacketRing::new(8 << 20, KeyPolicy::DEFAULT);
    let mut batch = FrameBatch::new();
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        let _ = pipeline.batch(&batch);
        ring.push_batch(&batch);
    }
    assert!(pipeline.flow_count() > 3);
    let views: Vec<_> = pipeline.flows().map(|(view, _)| view).collect();
    let mut octets: Vec<u64> = views.iter().map(|view| view.octet_count()).collect();
    octets.sort_unstable_by(|a, b| b.cmp(a));
    let flow = views.iter().max_by_key(|view| view.octet_count()).unwrap();
    let (key, id) = (*flow.key(), flow.key().community_id(0).as_str().to_owned());
    let packet_count = flow.packet_count();

    let ipc = format!(
        "ipc://{}",
        std::env::temp_dir().join(format!("flowgauge-router-{}", std::process::id())).display()
    );
    for endpoint in ["tcp://127.0.0.1:0", &ipc] {
        let mut router = Router::bind(endpoint).unwrap();
        let mut client = requester(&router, "analysis-1");
        let answers = serve(&mut router, &pipeline, Some(&ring), || {
            [
                Request::Key(key),
                Request::CommunityId(id.clone()),
                Request::Top { count: 3, key: SortKey::Octets },
                Request::Counters,
                Request::Slice(id.clone()),
                Request::CommunityId("1:absent".to_owned()),
            ]
            .map(|request| client.request(&request))
        });
        let [by_key, by_id, top, counters, slice, absent] = answers;
        let by_key = by_key.unwrap();
        let record = FixedRecord::new(by_key.as_ref().try_into().unwrap()).unwrap();
        assert_eq!(record.packet_count() + record.reverse_packet_count(), packet_count);
        assert_eq!(by_id.unwrap(), by_key);
        let top = top.unwrap();
        let top: Vec<u64> = FixedRecord::all(&top)
            .map(|record| record.map(|record| record.octet_count() + record.reverse_octet_count()).unwrap())
            .collect();
        assert_eq!(top, octets[..3]);
        let counters = String::from_utf8(counters.unwrap().to_vec()).unwrap();
        assert!(counters.contains(&format!("\"flow_count\":{},", octets.len())), "{counters}");
        // The slice is a capture with exactly the packets of the flow.
        let slice = FileSource::from_reader(Cursor::new(slice.unwrap().to_vec())).unwrap();
        let sliced: Vec<_> = records(slice).map(Result::unwrap).collect();
        assert_eq!(sliced.len(), 1);
        assert_eq!(sliced[0].packet_count(), packet_count);
        assert!(matches!(absent, Err(BusError::Rejected(_))));
        assert_eq!(router.peers(), ["analysis-1"]);
        let stats = router.stats();
        assert_eq!((stats.request_count, stats.answered_count), (6, 6));
    }
}

#[test]
fn requests_are_bounded_in_number_and_time() {
    let mut config = RouterConfig::default();
    config.request_count_max = 2;
    config.timeout = Duration::from_millis(300);
    let mut router = Router::bind_with("tcp://127.0.0.1:0", config).unwrap();
    let clients: Vec<_> = (0..5)
        .map(|number| {
            let mut client = requester(&router, &format!("client-{number}"));
            thread::spawn(move || client.request(&Request::Counters))
        })
        .collect();
    let outcomes: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let busy = |outcome: &&Result<_, _>| matches!(outcome, Err(BusError::Rejected(_)));
    let late = |outcome: &&Result<_, _>| matches!(outcome, Err(BusError::Timeout));
    assert_eq!((outcomes.iter().filter(busy).count(), outcomes.iter().filter(late).count()), (3, 2));
    // A late answer is discarded, and the next request is answered.
    let pipeline = Pipeline::builder().build(()).unwrap();
    assert_eq!(router.answer(&pipeline, None), 2);
    let mut client = requester(&router, "client");
    let answer = serve(&mut router, &pipeline, None, || client.request(&Request::Counters));
    assert!(answer.is_ok());
    let stats = router.stats();
    let counts = [stats.answered_count, stats.busy_count, stats.timeout_count];
    assert_eq!((stats.request_count, counts), (6, [1, 3, 2]));
}

#[test]
fn requests_are_parsed_as_they_are_written() {
    for text in [
        "key tcp 192.0.2.1:40000 198.51.100.7:443",
        "key udp [2001:db8::1]:53 [2001:db8::2]:5353",
        "community_id 1:LQU9qZlK+B5F3KDmev6m5PMibrg=",
        "top 10 octets",
        "counters",
        "slice 1:LQU9qZlK+B5F3KDmev6m5PMibrg=",
    ] {
        assert_eq!(text.parse::<Request>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "top",
        "top 0 octets",
        "top 10 size",
        "key sctp 1.1.1.1:1 1.1.1.2:2",
        "key tcp 1.1.1.1:1 [::1]:1",
    ] {
        assert!(text.parse::<Request>().is_err(), "{text}");
    }
}

#[test]
fn a_pair_delivers_every_message_in_order_and_refuses_more_than_the_queue_holds() {
    const COUNT: u32 = 20_000;
    let path = std::env::temp_dir().join(format!("flowgauge-pair-{}", std::process::id()));
    let endpoints =
        ["tcp://127.0.0.1:0".to_owned(), format!("ipc://{}", path.display()), "inproc://pair".to_owned()];
    for endpoint in endpoints {
        let config = {
            let mut config = flowgauge_bus::ServerConfig::default();
            config.high_water_mark = 64;
            config
        };
        let (mut first, endpoint) = Pair::bind_with(&endpoint, &config).unwrap();
        let mut second = Pair::connect(&endpoint, 64).unwrap();
        let topic = Topic::new("stage.frames").unwrap();
        let receiver = thread::spawn(move || {
            for number in 0..COUNT {
                let batch = second.recv(LIMIT).unwrap().expect("a message");
                assert_eq!(
                    (batch.topic(), batch.lines().next()),
                    ("stage.frames", Some(&*number.to_string()))
                );
            }
            // The other direction.
            second.send(&Topic::FLOW_END, Encoding::Ndjson, 1, "done\n").unwrap();
            second
        });
        let deadline = Instant::now() + LIMIT;
        let mut full_count = 0;
        for number in 0..COUNT {
            while let Err(error) = first.send(&topic, Encoding::Ndjson, 1, format!("{number}\n")) {
                assert!(matches!(error, BusError::Full) && Instant::now() < deadline);
                full_count += 1;
                thread::yield_now();
            }
        }
        assert_eq!(first.recv(LIMIT).unwrap().expect("an answer").lines().next(), Some("done"));
        assert!(full_count > 0, "{endpoint}");
        drop(receiver.join().unwrap());
    }
    assert!(matches!(Pair::connect("inproc://absent", 1), Err(BusError::NoPublisher { .. })));
}
