#!/bin/sh
# Starts a scheduler and two executors on this machine, and ends them at Ctrl-C. The programs are found in PATH, or in the
# folder of the first argument, such as target/release.
set -eu
[ $# -eq 0 ] || PATH="$(cd "$1" && pwd):$PATH"
pids=
trap 'kill $pids 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM
flowgauge-scheduler & pids="$!"
flowgauge-executor --threads 2 & pids="$pids $!"
flowgauge-executor --threads 2 --port 0 --control-port 0 & pids="$pids $!"
wait
