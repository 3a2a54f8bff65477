#!/usr/bin/env bash
# Measures one GPU, two, four and so on of this host beside one, within 9 minutes: copies of an index,
# an index in parts, sums, and matches. With one GPU, virtual devices share it. Answers are compared
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

measure copies 60 --devices "$counts" --rounds 2 --repeat 3
measure sums 60 --devices "$counts" --scatter-sources 400m --queries 10m --value-queries 1m --rounds 2 --repeat 3
# One device has all of the keys, too, to be compared with.
measure parts 150 --devices "1,$most" --placement parts --keys "$((${keys%m} * most))m" --value-bytes 8 \
  --rounds 1 --repeat 3
