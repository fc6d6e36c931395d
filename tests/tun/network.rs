//! Two network namespaces with one device each, and the programs that run in them. Everything that a test creates has a
//! name of its own and is removed at its end; every program has a time limit.

use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::pipeline::{ForwardHandler, Forwarder};
use flowgauge::source::{Error, TunConfig, TunDevice};
use flowgauge::{FlowRecord, Flows, Pipeline, Records, Sink, StopHandle};
use serde_json::Value;

/// Maximum duration of a program in seconds.
const PROGRAM_TIME: u32 = 20;

/// Returns whether the tests can create devices and namespaces. If not, the test is skipped with a message, or fails if
/// `FLOWGAUGE_ROOT_TESTS` is `required`.
pub(crate) fn is_available() -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let missing = ["ip", "iperf3", "ping", "ss"].into_iter().find(|program| {
        !Command::new("which").arg(program).output().is_ok_and(|output| output.status.success())
    });
    let reason = match missing {
        _ if !is_root => "root is required".to_owned(),
        _ if !std::path::Path::new("/dev/net/tun").exists() => "/dev/net/tun does not exist".to_owned(),
        Some(program) => format!("the program {program} is missing"),
        None => return true,
    };
    assert!(std::env::var("FLOWGAUGE_ROOT_TESTS").as_deref() != Ok("required"), "{reason}");
    println!("skipped: {reason}");
    false
}

/// Two namespaces, and the name of the device in each of them.
pub(crate) struct Network {
    pub(crate) spaces: [String; 2],
    pub(crate) devices: [String; 2],
    /// The third octet of the addresses in each namespace.
    nets: [u8; 2],
}

impl Network {
    /// Creates two namespaces. Both devices are in one subnet; `is_routed` gives each its own.
    pub(crate) fn new(is_routed: bool) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{:x}x{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let network = Self {
            spaces: [0, 1].map(|side| format!("fgtest{id}n{side}")),
            devices: [0, 1].map(|side| format!("fg{id}d{side}")),
            nets: if is_routed { [1, 2] } else { [1, 1] },
        };
        for space in &network.spaces {
            run("ip", &["netns", "add", space]);
            run("ip", &["-n", space, "link", "set", "lo", "up"]);
        }
        network
    }

    pub(crate) fn open(&self, side: usize, config: TunConfig) -> TunDevice {
        TunDevice::open(&self.devices[side], config).expect("a new device")
    }

    /// IPv4 and IPv6 address of the namespace on one side.
    pub(crate) fn addresses(&self, side: usize) -> [String; 2] {
        let net = self.nets[side];
        [format!("10.96.{net}.{}", side + 1), format!("fd96:{net}::{}", side + 1)]
    }

    /// Moves the device of one side to its namespace, gives it addresses, and sets it up.
    pub(crate) fn attach(&self, side: usize) {
        let (space, device) = (&self.spaces[side], &self.devices[side]);
        run("ip", &["link", "set", device, "netns", space]);
        for (address, prefix) in self.addresses(side).iter().zip([24, 64]) {
            run("ip", &["-n", space, "addr", "add", &format!("{address}/{prefix}"), "dev", device, "nodad"]);
        }
        run("ip", &["-n", space, "link", "set", device, "up"]);
    }

    pub(crate) fn attach_both(&self) {
        self.attach(0);
        self.attach(1);
    }

    /// Runs a program in the namespace of one side.
    pub(crate) fn execute(&self, side: usize, program: &[&str]) -> Output {
        self.command(side, program).output().expect("a program")
    }

    fn command(&self, side: usize, program: &[&str]) -> Command {
        let mut command = Command::new("ip");
        let limit = PROGRAM_TIME.to_string();
        command.args(["netns", "exec", &self.spaces[side], "timeout", &limit]).args(program);
        command
    }

    /// Sends data from the left side to the right side with iperf3, and returns its report.
    pub(crate) fn iperf(&self, is_ipv6: bool, options: &[&str]) -> Value {
        let server = self.command(1, &["iperf3", "-s", "-1"]).stdout(Stdio::null()).spawn();
        let mut server = Program(server.expect("a server"));
        let start = Instant::now();
        while self.execute(1, &["ss", "-ltnH", "sport", "=", ":5201"]).stdout.is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "the server does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        let address = &self.addresses(1)[usize::from(is_ipv6)];
        let client = [&["iperf3", "-J", "-c", address], options].concat();
        let output = self.execute(0, &client);
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report in JSON");
        assert!(report["error"].is_null(), "{}", report["error"]);
        server.0.wait().expect("the end of the server");
        report["end"].clone()
    }

    /// Packets and octets that the kernel sent to, and received from, the program through the device of one side.
    pub(crate) fn counters(&self, side: usize) -> [[u64; 2]; 2] {
        let output = run("ip", &["-n", &self.spaces[side], "-s", "-j", "link", "show", &self.devices[side]]);
        let links: Value = serde_json::from_slice(&output.stdout).expect("counters in JSON");
        ["tx", "rx"].map(|direction| {
            ["packets", "bytes"].map(|unit| links[0]["stats64"][direction][unit].as_u64().expect("a counter"))
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in &self.spaces {
            let _ = Command::new("ip").args(["netns", "del", space]).output();
        }
    }
}

/// A program that is ended with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().expect("a program");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {message}", arguments.join(" "));
    output
}

/// Records of all flows that ended.
pub(crate) type RecordList = Arc<Mutex<Vec<FlowRecord>>>;

/// Returns a pipeline, and the list to which it adds records.
pub(crate) fn pipeline() -> (Pipeline<impl Sink<State = (), Stage = Flows> + Send + 'static>, RecordList) {
    let list = RecordList::default();
    let records = Arc::clone(&list);
    let sink = Records::new(move |record| records.lock().expect("no panic").push(record));
    (Pipeline::builder().build(sink).expect("valid settings"), list)
}

/// Runs a forwarder while `work` runs, and returns its result.
pub(crate) fn during<K, H>(
    forwarder: &mut Forwarder<K, H>,
    is_asynchronous: bool,
    work: impl FnOnce(),
) -> Result<(), Error>
where
    K: Sink + Send + 'static,
    H: ForwardHandler<K> + 'static,
    Pipeline<K>: Send,
{
    let stop = StopHandle::new();
    thread::scope(|scope| {
        let handle = stop.clone();
        let runner = scope.spawn(move || {
            if !is_asynchronous {
                return forwarder.run(&handle);
            }
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
            runtime.block_on(forwarder.run_async(&handle))
        });
        // Ends the forwarder if `work` panics, too.
        struct Stop(StopHandle);
        impl Drop for Stop {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let stop = Stop(stop.clone());
        work();
        // The last packets, such as those that close a connection.
        thread::sleep(Duration::from_millis(300));
        drop(stop);
        runner.join().expect("no panic")
    })
}
