#!/usr/bin/env bash
# Measures one GPU, two, four and so on of this host beside one, within 9 minutes: copies of an index,
# an index in parts, matches, sums and sets. With one GPU, virtual devices share it. Answers are compared
# with the host's.
#
#   benchmark/tools/gpus.sh [DIRECTORY-OF-PROGRAMS [DIRECTORY-FOR-RESULTS [MOST-DEVICES]]]
#
# For each part there are a text, a file of JSON rows and a plot. MOST-DEVICES: so many virtual devices
# where there are fewer GPUs. KEYS: of an index in parts, of each device (100m).
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${1:-build/release/bin}")
out=${2:-build/gpus}
gpus=$(nvidia-smi -L | grep -c '^GPU')
most=${3:-$gpus}
keys=${KEYS:-100m}
mkdir -p "$out"

counts=1
for ((n = 2; n < most; n *= 2)); do counts+=,$n; done
[ "$most" -eq 1 ] || counts+=,$most
kind=gpus
[ "$most" -le "$gpus" ] || kind=one-gpu
nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
echo "devices: $counts ($kind)"

end=$((SECONDS + 530))
# measure NAME SECONDS ARGUMENT...: not where there is no time left for it.
measure() {
  local name=$1 least=$2
  shift 2
  if ((end - SECONDS < least)); then
    echo "$name: left out, $((end - SECONDS)) seconds are left"
    return
  fi
  echo "== $name"
  timeout "$((end - SECONDS))" "$bin/stride-bench" gpus --kind "$kind" "$@" --json "$out/$name.json" \
    --plot "$out/$name.svg" 2>&1 | tee "$out/$name.txt" || echo "$name: failed or cut off"
}

few="--scatter-sources 1m --set-vectors 1m"
measure copies 60 --devices "$counts" $few --rounds 2 --repeat 3
measure sums 60 --devices "$counts" --scatter-sources 400m --set-vectors 200m --queries 10m \
  --value-queries 1m --rounds 2 --repeat 3
# One device has all of the keys, too, to be compared with.
in_parts="--devices 1,$most --placement parts $few --rounds 1 --repeat 3"
all_keys=$((${keys%m} * most))m
measure parts 120 $in_parts --keys "$all_keys" --value-bytes 8
measure zipf 120 $in_parts --keys "$all_keys" --value-bytes 8 --zipf 1.1
measure values 60 $in_parts --keys "$((${keys%m} * most / 10))m" --value-bytes 128 --queries 40m \
  --value-queries 40m
