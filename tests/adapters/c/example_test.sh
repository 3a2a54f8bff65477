#!/usr/bin/env bash
# Runs the C example and compares what it prints.
#
#   example_test.sh PROGRAM
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$1" "$directory/db" | tail -n +2 | diff - <(cat <<'EXPECTED'
at 7: 10507
at -500: 10000
at 12345: nothing
at 499: 10999
time -1
time -2
time -3
10.1.2.3: 10.1.0.0/16, 16 bits
10.200.0.1: 10.0.0.0/8, 8 bits
192.0.2.1: 0.0.0.0/0, 0 bits
not_found: no table 'tocks'; create it, or list the tables there are
EXPECTED
)
