//! An invalid configuration is rejected before anything is read, with the names of the layer and the field; memory that
//! was charged for layers created before is released.

use std::error::Error as _;
use std::time::Duration;

use flowgauge::base::FrameBatch;
use flowgauge::decode::fragment::{Pool, PoolConfig};
use flowgauge::dedup::Window;
use flowgauge::reassembler::Reassembler;
use flowgauge::source;
use flowgauge::tracker::{Timeouts, Tracker, USER_CLASS_COUNT_MAX};
use flowgauge::{
    Budget, Builder, ConfigError, ConfigProblem, Decapsulation, DedupConfig, DriverConfig, Error, FileSource,
    Flows, FragmentHandling, KeyPolicy, Limits, Next, Parser, Pipeline, Protocol, ReassemblerConfig, Records,
    Resources, RunOptions, Sessions, Sink, SourceConfig, Stage, StopHandle, Streams, TrackerConfig,
};

use crate::fn_source::FnSource;

/// A parser that stops immediately.
#[derive(Debug, Default)]
struct GivesUp;

impl Parser for GivesUp {
    type Message<'m> = ();
}

static PROTOCOL: Protocol = Protocol::new("nothing").over_streams(&[9], None);

flowgauge::protocols! {
    /// A set without messages, which requires no feature.
    #[derive(Debug)]
    enum Nothing;
    /// Its messages.
    #[derive(Debug)]
    enum NoMessage;
    parsers { GivesUp: GivesUp = &PROTOCOL }
}

/// Ignores everything that a stage delivers.
struct Ignore<G>(std::marker::PhantomData<fn() -> G>);

impl<G: Stage> Ignore<G> {
    const NEW: Self = Self(std::marker::PhantomData);
}

impl<G: Stage> Sink for Ignore<G> {
    type State = ();
    type Stage = G;
}

/// Checks the error of a builder, wherever it is used, and that all memory is released.
fn rejected<G: Stage>(builder: &Builder) -> ConfigError {
    let error = builder.build(Ignore::<G>::NEW).err().expect("a wrong configuration");
    assert_eq!(builder.budget().held(), 0, "{error}: memory charged before is released");

    let options = RunOptions::default();
    let mut source = FnSource(|_: &mut FrameBatch| panic!("the source is not read"));
    let mut sinks = [Ignore::<G>::NEW, Ignore::<G>::NEW];
    let of_shards = builder.run_shards(&mut sinks, &mut source, &options).expect_err("a wrong configuration");
    let deliver = |_| panic!("no record");
    let of_records = builder.run_records::<G>(2, &mut source, &options, |_| true, deliver);
    for of_run in [of_shards, of_records.expect_err("a wrong configuration")] {
        assert!(matches!(of_run, Error::Config(of_run) if of_run == error), "{of_run}, {error}");
        assert_eq!(of_run.to_string(), error.to_string());
        assert!(of_run.source().is_none());
    }
    assert_eq!(builder.budget().held(), 0);
    error
}

fn limited(set: impl FnOnce(&mut Limits)) -> Builder {
    let mut limits = Limits::DEFAULT;
    set(&mut limits);
    Pipeline::builder().limits(limits)
}

fn check(error: ConfigError, layer: &str, field: &str, problem: ConfigProblem) {
    assert_eq!((error.layer, error.field, error.problem), (layer, field, problem));
    // The message is one line with both names.
    let text = error.to_string();
    assert!(text.starts_with(&format!("{layer}: {field} ")) && !text.contains('\n'), "{text}");
}

#[test]
fn values_out_of_range_are_rejected() {
    use ConfigProblem::OutOfRange;
    for count in [0, (1 << 31) + 1] {
        let error = rejected::<Flows>(&limited(|limits| limits.flow_count_max = count));
        check(error, "tracker", "flow_count_max", OutOfRange { min: 1, max: 1 << 31 });
    }

    let error = rejected::<Flows>(&limited(|limits| limits.fragment_datagram_count_max = 0));
    let max = u32::MAX.into();
    check(error, "fragment", "fragment_datagram_count_max", OutOfRange { min: 1, max });
    let error = rejected::<Streams>(&limited(|limits| limits.fragment_per_datagram_count_max = 1));
    check(error, "fragment", "fragment_per_datagram_count_max", OutOfRange { min: 2, max });

    for count in [0, (1 << 30) + 1] {
        let builder = limited(|limits| limits.dedup_frame_count_max = count).dedup(DedupConfig::default());
        let error = rejected::<Flows>(&builder);
        check(error, "dedup", "dedup_frame_count_max", OutOfRange { min: 1, max: 1 << 30 });
    }

    let mut config = ReassemblerConfig::default();
    config.compared_len = ReassemblerConfig::COMPARED_LEN_MAX + 1;
    let builder = Pipeline::builder().streams(config);
    for error in [rejected::<Streams>(&builder), rejected::<Sessions<Nothing>>(&builder)] {
        check(error, "reassembler", "compared_len", OutOfRange { min: 0, max: 16 << 20 });
    }

    let mut config = TrackerConfig::default();
    for _ in 0..USER_CLASS_COUNT_MAX {
        config.add_class(None).expect("fewer classes than the maximum");
    }
    let error = config.add_class(None).expect_err("one class too many");
    check(error, "tracker", "class count", OutOfRange { min: 0, max: USER_CLASS_COUNT_MAX as u64 });
}

#[test]
fn limits_at_the_bounds_of_their_range_are_accepted() {
    let builder = limited(|limits| {
        limits.flow_count_max = 1;
        limits.fragment_datagram_count_max = 1;
        limits.fragment_per_datagram_count_max = 2;
        limits.dedup_frame_count_max = 1;
        (limits.stream_bytes_max, limits.stream_side_bytes_max) = (0, 0);
        limits.stream_side_segment_count_max = 0;
        (limits.session_bytes_max, limits.session_side_bytes_max) = (0, 0);
    });
    assert!(builder.clone().dedup(DedupConfig::default()).build(Ignore::<Sessions<Nothing>>::NEW).is_ok());
    let builder = limited(|limits| {
        limits.flow_count_max = 1 << 31;
        limits.dedup_frame_count_max = 1 << 30;
    });
    assert!(builder.dedup(DedupConfig::default()).build(()).is_ok());
}

#[test]
fn limits_of_unused_layers_are_not_checked() {
    let builder = limited(|limits| {
        limits.dedup_frame_count_max = 0;
        (limits.fragment_datagram_count_max, limits.fragment_bytes_max) = (0, 0);
    });
    assert!(builder.fragments(FragmentHandling::AsTheyCome).build(()).is_ok());
}

fn needed(error: ConfigError) -> u64 {
    match error.problem {
        ConfigProblem::TooSmall { needed_bytes } => needed_bytes,
        problem => panic!("{problem:?}"),
    }
}

/// The smallest budget with which something can be created.
fn smallest(is_created: impl Fn(&Resources) -> bool) -> u64 {
    let is_enough = |bytes| is_created(&Resources::default().with_budget(Budget::new(bytes)));
    let (mut rejected, mut accepted) = (0, 1 << 30);
    assert!(!is_enough(rejected) && is_enough(accepted));
    while accepted - rejected > 1 {
        let middle = rejected + (accepted - rejected) / 2;
        *if is_enough(middle) { &mut accepted } else { &mut rejected } = middle;
    }
    accepted
}

#[test]
fn a_budget_that_is_too_small_reports_the_layer_and_the_memory_that_it_needs() {
    let small = Resources::default().with_budget(Budget::new(1000));
    let tracker = Tracker::<()>::new(TrackerConfig::default(), &small).expect_err("not enough memory");
    check(tracker, "tracker", "budget", tracker.problem);
    let pool = Pool::<()>::new(PoolConfig::default(), &small).expect_err("not enough memory");
    check(pool, "fragment", "budget", pool.problem);
    let window = Window::new(DedupConfig::default(), &small).expect_err("not enough memory");
    check(window, "dedup", "budget", window.problem);
    assert_eq!(small.budget.held(), 0);

    // A smaller budget is never enough. A layer that may use only a part of the budget needs slightly more.
    let exact = smallest(|resources| Tracker::<()>::new(TrackerConfig::default(), resources).is_ok());
    assert_eq!(exact, needed(tracker));
    let pool_bytes = smallest(|resources| Pool::<()>::new(PoolConfig::default(), resources).is_ok());
    assert!((needed(pool)..=needed(pool) * 16 / 14 + 1).contains(&pool_bytes), "{pool_bytes}, {pool}");
    let window_bytes = smallest(|resources| Window::new(DedupConfig::default(), resources).is_ok());
    assert!(
        (needed(window)..=needed(window) * 16 / 13 + 1).contains(&window_bytes),
        "{window_bytes}, {window}"
    );

    // In a pipeline, the error names the first layer without enough memory; the tracker's slots include the state of
    // the stage.
    let error = rejected::<Flows>(&Pipeline::builder().memory(1000));
    check(error, "tracker", "budget", tracker.problem);
    let error = rejected::<Streams>(&Pipeline::builder().memory(1000));
    assert!(error.layer == "tracker" && needed(error) > needed(tracker), "{error}");
    let error = rejected::<Flows>(&Pipeline::builder().memory(exact + 1000));
    check(error, "fragment", "budget", pool.problem);
    let sufficient = exact + 2 * needed(pool) + 2 * needed(window);
    assert!(Pipeline::builder().memory(sufficient).dedup(DedupConfig::default()).build(()).is_ok());
}

#[test]
fn a_memory_limit_that_is_too_small_is_reported_instead_of_the_budget() {
    let error = rejected::<Flows>(&limited(|limits| limits.fragment_bytes_max = 1000));
    check(error, "fragment", "fragment_bytes_max", error.problem);
    let exact = needed(error);
    assert!(limited(|limits| limits.fragment_bytes_max = exact).build(()).is_ok());
    assert!(limited(|limits| limits.fragment_bytes_max = exact - 1).build(()).is_err());
}

#[test]
fn a_setting_for_a_layer_that_the_stage_lacks_is_rejected() {
    let streams = Pipeline::builder().streams(ReassemblerConfig::default());
    check(rejected::<Flows>(&streams), "reassembler", "streams", ConfigProblem::StageAbsent);
    let sessions = Pipeline::builder().sessions(DriverConfig::default());
    check(rejected::<Flows>(&sessions), "session", "sessions", ConfigProblem::StageAbsent);
    check(rejected::<Streams>(&sessions), "session", "sessions", ConfigProblem::StageAbsent);
    let source = || FileSource::open("examples/data/dns.pcap").expect("a capture");
    for builder in [&streams, &sessions] {
        assert_eq!(
            builder.records(source()).err().map(|error| error.problem),
            Some(ConfigProblem::StageAbsent)
        );
        assert!(builder.build(Records::new(|_| {})).is_err());
    }

    // Stages with the layer accept the setting, also for another sink of the same builder.
    assert!(streams.build(Ignore::<Streams>::NEW).is_ok());
    let both = streams.sessions(DriverConfig::default());
    assert!(both.build(Ignore::<Sessions<Nothing>>::NEW).is_ok());
    assert!(both.build(Records::new(|_| {}).with_stage::<Sessions<Nothing>>()).is_ok());
    assert!(both.build(Ignore::<Streams>::NEW).is_err() && both.build(()).is_err());
}

#[test]
fn settings_that_shards_do_not_support_are_rejected() {
    let options = RunOptions::default();
    let run = |builder: &Builder, sinks: &mut [()]| {
        let mut source = FileSource::open("examples/data/dns.pcap").expect("a capture");
        builder.run_shards(sinks, &mut source, &options)
    };
    let of = |error: Option<Error>| match error {
        Some(Error::Config(error)) => error,
        other => panic!("{other:?}"),
    };
    let error = of(run(&Pipeline::builder(), &mut []).err());
    check(error, "shards", "shard count", ConfigProblem::OutOfRange { min: 1, max: u64::MAX });
    assert_eq!(error.to_string(), "shards: shard count must be at least 1");

    let mut policy = KeyPolicy::DEFAULT;
    policy.decapsulation = Decapsulation::Both;
    let builder = Pipeline::builder().key_policy(policy);
    let error = of(run(&builder, &mut [(), ()]).err());
    let problem = ConfigProblem::Conflict { with: "more than one shard" };
    check(error, "shards", "Decapsulation::Both", problem);
    assert!(run(&builder, &mut [()]).is_ok(), "one shard processes all flows");
}

#[test]
fn error_messages_state_the_valid_values() {
    let text = |builder: &Builder| builder.build(()).expect_err("a wrong configuration").to_string();
    assert_eq!(
        text(&limited(|limits| limits.flow_count_max = 0)),
        "tracker: flow_count_max must be from 1 to 2147483648"
    );
    assert_eq!(
        text(&limited(|limits| limits.fragment_bytes_max = 1)),
        "fragment: fragment_bytes_max must be at least 98304 bytes"
    );
    assert_eq!(
        text(&Pipeline::builder().sessions(DriverConfig::default())),
        "session: sessions is set, but the stage of the sink does not include this layer"
    );
}

#[test]
fn pipelines_of_one_builder_share_one_budget() {
    let builder = Pipeline::builder().memory(8 << 20);
    assert_eq!((builder.budget().limit(), builder.budget().held()), (8 << 20, 0));
    let one = builder.build(()).expect("a valid configuration");
    let held = builder.budget().held();
    assert!(held > 0);
    let other = builder.clone().build(()).expect("a valid configuration");
    assert_eq!((one.budget().held(), other.budget().held()), (2 * held, 2 * held));
    drop(one);
    assert_eq!(builder.budget().held(), held);
    drop(other);
    assert_eq!(builder.budget().held(), 0);

    // Resources shared with another user.
    let resources = Resources::default().with_budget(Budget::new(8 << 20));
    let _pipeline =
        Pipeline::builder().resources(resources.clone()).build(()).expect("a valid configuration");
    assert_eq!(resources.budget.held(), held);
    let _reassembler: Reassembler<u32> =
        Reassembler::new(ReassemblerConfig::default(), &resources).expect("a valid configuration");
}

#[test]
fn source_errors_and_configuration_errors_are_distinct() {
    let source_error = || source::Error::Empty { path: "network".into() };
    let mut source = FnSource(|_: &mut FrameBatch| -> Result<Next, source::Error> { Err(source_error()) });
    let mut pipeline = Pipeline::builder().build(()).expect("a valid configuration");
    let error = pipeline.run(&mut source, &RunOptions::default()).expect_err("the source fails");
    assert!(matches!(error, Error::Source(_)));
    assert_eq!(error.to_string(), source_error().to_string());
}

#[test]
fn limits_are_changed_one_by_one() {
    let builder = Pipeline::builder().memory(32 << 20).limit(|limits| limits.flow_count_max = 10);
    let pipeline = builder.build(()).unwrap();
    assert_eq!(pipeline.budget().limit(), 32 << 20);
    let builder = Pipeline::builder().limit(|limits| limits.total_bytes_max = 64 << 20);
    assert_eq!(builder.build(()).unwrap().budget().limit(), 64 << 20);
    let error = Pipeline::builder().limit(|limits| limits.flow_count_max = 0).build(()).unwrap_err();
    assert!(error.to_string().contains("flow_count_max"), "{error}");
}

#[test]
fn configurations_have_setters() {
    let stop = StopHandle::new();
    let config = SourceConfig::default().stop(stop.clone());
    stop.stop();
    assert!(config.stop.is_some_and(|handle| handle.is_stopped()));
    let timeouts = Timeouts::default().linger(Duration::from_secs(1)).udp(None);
    let config = TrackerConfig::default().timeouts(timeouts).huge_pages(true);
    assert_eq!((config.timeouts.linger, config.timeouts.udp), (Some(Duration::from_secs(1)), None));
    assert_eq!(config.timeouts.established, Timeouts::default().established);
    assert!(config.huge_pages);
}
