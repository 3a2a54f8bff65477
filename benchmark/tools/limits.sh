#!/usr/bin/env bash
# Measures what a device does beside the limits of the machine, line by line of docs/results/limits.md,
# within 5 minutes.
#
#   benchmark/tools/limits.sh [DIRECTORY-OF-PROGRAMS [DIRECTORY-FOR-RESULTS]]
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${1:-build/release/bin}")
out=${2:-build/limits}
mkdir -p "$out"

# measure NAME WORKLOAD ARGUMENT...
measure() {
  local name=$1
  shift
  echo "== $name: stride-bench $*"
  timeout 120 "$bin/stride-bench" "$@" --backend cuda --json "$out/$name.json" 2>&1 |
    tee "$out/$name.txt" || echo "$name: failed or cut off"
}

finds="--keys u64 --n 100m --queries 10m --operations find --latency yes"
measure pinned tree $finds --where pinned
measure plain tree $finds --where host
records="--n 100m --value-bytes 44 --batch 100k,1m,8m --engines stride --durability none --repeat 1"
measure lookup lookup $records
measure lookup-device lookup $records --values device
measure numbers tree --keys u64 --n 1m,10m,100m --queries 50m --operations find
measure bytes tree --keys fixed:10,fixed:16,fixed:64,words,benchmark/data/urls_web_specs.txt.zst \
  --n 1m --queries 10m --operations find
measure match lpm --queries 30m --update-rate 0
measure scatter scatter --sources 400m --targets 1m --distribution uniform --memory pinned,host
measure sets dedup --n 50m --words 4 --form slots,dense --engine stride
measure compressed dedup --n 20m --words 8 --data states --form compressed --engine stride
