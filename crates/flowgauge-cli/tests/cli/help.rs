//! Help texts: the short help of each command fits a screen, and the long help has examples.

use super::run;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["summary"],
    &["hosts"],
    &["report"],
    &["flows"],
    &["live"],
    &["interfaces"],
    &["slice"],
    &["streams"],
    &["sessions"],
    &["export-objects"],
    &["packets"],
    #[cfg(feature = "sql")]
    &["sql"],
    &["collect"],
    &["merge"],
    &["checkpoint"],
    &["checkpoint", "show"],
    #[cfg(feature = "bus")]
    &["publish"],
    #[cfg(feature = "bus")]
    &["subscribe"],
    #[cfg(all(feature = "tun", target_os = "linux"))]
    &["tun"],
    &["completions"],
    &["man"],
];

/// Lines and columns of a screen.
const SCREEN: (usize, usize) = (50, 100);

#[test]
fn the_short_help_of_each_command_fits_a_screen() {
    for &command in COMMANDS {
        let help = run(&[command, &["-h"]].concat());
        assert_eq!((help.status, help.err.as_str()), (0, ""), "{command:?}");
        assert!(help.out.contains("Usage: flowgauge"), "{command:?}: {}", help.out);
        assert!(help.out.lines().count() <= SCREEN.0, "{command:?}:\n{}", help.out);
        assert!(help.out.lines().all(|line| line.chars().count() <= SCREEN.1), "{command:?}:\n{}", help.out);
    }
}

#[test]
fn the_long_help_of_each_command_has_an_example_of_it() {
    for &command in COMMANDS {
        let help = run(&[command, &["--help"]].concat());
        assert_eq!((help.status, help.err.as_str()), (0, ""), "{command:?}");
        let (_, examples) = help.out.split_once("\nExamples:\n").expect("examples");
        let expected = [&["flowgauge"], command].concat().join(" ");
        assert!(examples.lines().any(|line| line.contains(&expected)), "{command:?}:\n{}", help.out);
        assert!(help.out.lines().all(|line| line.chars().count() <= SCREEN.1), "{command:?}:\n{}", help.out);
    }
}

#[test]
fn the_short_help_has_each_option_of_the_long_help() {
    let options = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let long = lines.filter_map(|line| line.split([' ', '[', ',']).find(|word| word.starts_with("--")));
        long.map(str::to_owned).collect()
    };
    // Not all would fit a screen: those of `live` for buffers and rotation are only in the long help, and so are these.
    const DETAILS: [&str; 22] = [
        "--shift-time",
        "--for",
        "--summary",
        "--at",
        "--by",
        "--names",
        "--rate",
        "--count-events",
        "--addresses",
        "--local-networks",
        "--nulls",
        "--dedup-between-interfaces",
        "--dedup-mode",
        "--dedup-verify",
        "--uniflow",
        "--milliseconds",
        "--enterprise-number",
        "--observation-domain",
        "--fragment-policy",
        "--zstd-window",
        "--checkpoint-interval",
        "--finish",
    ];
    for &command in COMMANDS.iter().filter(|command| **command != ["live"]) {
        let [short, mut long] = ["-h", "--help"].map(|help| options(&run(&[command, &[help]].concat()).out));
        long.retain(|option| !DETAILS.contains(&&**option));
        assert!(!short.is_empty(), "{command:?}");
        assert_eq!(short, long, "{command:?}");
    }
}

#[test]
fn invalid_values_are_reported_with_the_option_and_the_valid_values() {
    for (args, option, message) in [
        (&["--idle-timeout", "0s"][..], "--idle-timeout", "timeout must be greater than zero; use `none`"),
        (
            &["--idle-timeout", "soon"],
            "--idle-timeout",
            "must be a time with a unit, such as 500us, 30s or 5m",
        ),
        (&["--memory", "much"], "--memory", "must be a size greater than zero, such as 256MiB"),
        (&["--max-flows", "0"], "--max-flows", "must be a whole number greater than zero"),
        (&["--shards", "257"], "--shards", "must be at most 256"),
        (
            &["--fragment-policy", "amiga"],
            "--fragment-policy",
            "unknown overlap policy; the policies are discard, ",
        ),
    ] {
        let run = run(&[&["flows", "web.pcap"], args].concat());
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(option) && run.err.contains(message), "{args:?}: {}", run.err);
    }
}
