#!/usr/bin/env bash
# Measures `stride load` and `stride join` beside sqlite3 and a Python dict, and checks that all joins
# give the same rows. Needs sqlite3 and python3; a table of medians goes to the standard output.
#
#   benchmark/tools/cli_goals.sh [DIRECTORY-OF-PROGRAMS [ROWS [REPEATS [SCRATCH-DIRECTORY]]]]
set -euo pipefail
bin=$(realpath "${1:-build/release/bin}")
rows=${2:-10000000}
repeats=${3:-3}
work=$(mktemp -d "${4:-.}/cli-goals-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# rows.tsv: random 63-bit keys in decimal, 44 bytes of value. queries.tsv: the same keys in another order.
python3 - "$rows" <<'PY'
import random, sys
n, r = int(sys.argv[1]), random.Random(1)
pool = "".join(r.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(1 << 16))
keys = []
with open("rows.tsv", "w") as f:
    for first in range(0, n, 100000):
        part = [r.getrandbits(63) for _ in range(min(100000, n - first))]
        places = [r.getrandbits(15) for _ in part]
        f.write("".join(f"{k}\t{pool[p:p + 44]}\n" for k, p in zip(part, places)))
        keys += part
r.shuffle(keys)
with open("queries.tsv", "w") as f:
    for first in range(0, n, 100000):
        f.write("".join(f"{k}\t{i}\n" for i, k in enumerate(keys[first:first + 100000], first)))
PY
cat >dict_join.py <<'PY'
import sys, time
start = time.monotonic()
table = {}
with open("rows.tsv", "rb") as f:
    for line in f:
        key, value = line.split(b"\t", 1)
        table[key] = value
print(time.monotonic() - start, file=sys.stderr)
with open("queries.tsv", "rb") as f, open("dict.tsv", "wb") as out:
    for line in f:
        key = line[:line.index(b"\t")]
        out.write(line[:-1] + b"\t" + table[key])
PY

seconds() { # runs a command and prints its wall time
  local start end
  start=$(date +%s.%N)
  "$@" >out.txt 2>err.txt || { cat err.txt >&2; exit 1; }
  end=$(date +%s.%N)
  awk "BEGIN { printf \"%.3f\n\", $end - $start }"
}
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
repeated() { # NAME PREPARE COMMAND...: prints the median, and keeps it in the variable NAME
  local name=$1 prepare=$2 i times=""
  shift 2
  for ((i = 0; i < repeats; ++i)); do
    sync
    $prepare
    times+="$(seconds "$@")"$'\n'
  done
  printf -v "$name" '%s' "$(printf '%s' "$times" | median)"
  printf '%-28s %8s s   (%s)\n' "$name" "${!name}" "$(printf '%s' "$times" | tr '\n' ' ')"
}

no_stride() { rm -rf db; }
no_sqlite() { rm -f sqlite.db*; }
sqlite_load() {
  sqlite3 sqlite.db "create table t(k integer primary key, v text)" ".mode tabs" ".import rows.tsv t"
}
sqlite_join() {
  sqlite3 sqlite.db "create temp table q(k integer, i integer)" ".mode tabs" ".import queries.tsv q" \
    ".output sqlite.tsv" "select q.k, q.i, t.v from q left join t on t.k = q.k order by q.rowid"
}
stride_join() { "$bin/stride" join db t queries.tsv >stride.tsv; }
dict_join() { python3 dict_join.py; }

echo "$rows rows, $(nproc) cores, medians of $repeats; sqlite and dict once"
"$bin/stride" load db t rows.tsv --key-type u64 2>/dev/null  # once, unmeasured: files and memory are warm
repeated load no_stride "$bin/stride" load db t rows.tsv --key-type u64
repeated parse : "$bin/stride" load db t rows.tsv --key-type u64 --dry-run
"$bin/stride-bench" sts --engines stride --records "$rows" --flows 1 --randomness 0 --batches 1 \
  --repeat "$repeats" --json sts.json >/dev/null
sorted=$(python3 -c "
import json
rates = [r['records_per_second'] for r in json.load(open('sts.json')) if r['phase'] == 'write']
print('%.3f' % ($rows / rates[0]))")
printf '%-28s %8s s\n' 'sorted write (stride-bench)' "$sorted"
repeated join : stride_join
repeats=1  # the others take minutes
repeated sqlite_import no_sqlite sqlite_load
repeated sqlite_join : sqlite_join
repeated dict_join : dict_join
dict_build=$(cat err.txt)

cmp stride.tsv dict.tsv
cmp stride.tsv sqlite.tsv
awk "BEGIN {
  printf \"load: %.1f x sqlite import; %.0f %% of the speed of parsing plus a sorted write\n\",
    $sqlite_import / $load, 100 * ($parse + $sorted) / $load
  printf \"join: %.1f x a dict, %.1f x without building it; %.1f x sqlite; %.1f x a dict with load and join\n\",
    $dict_join / $join, ($dict_join - $dict_build) / $join, $sqlite_join / $join,
    $dict_join / ($load + $join)
}"
