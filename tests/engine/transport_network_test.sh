#!/usr/bin/env bash
# Runs the example of weights mapping on a small network, twice: a second time over what is there.
#
#   transport_network_test.sh PROGRAM
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for days in 2 3; do
  "$1" "$directory/db" 20000 700 "$days" | tail -n 1 | diff - <(echo "all sums are right")
done
