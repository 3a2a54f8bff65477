#!/bin/sh
# benchmark/tools/everyday with little data: every answer is right, every mistake has a message, and a
# wrong answer is noticed.
#
#   everyday_test.sh STRIDE SOURCE-DIRECTORY
command -v python3 >/dev/null && command -v zstd >/dev/null || exit 77
stride=$1
everyday=$2/benchmark/tools/everyday/run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "everyday_test: $1" >&2
  exit 1
}

python3 "$everyday" --stride "$stride" --scale 0.003 --runs 1 --json "$work/results.json" ||
  fail "the jobs failed"
python3 - "$work/results.json" <<'PY' || fail "the results are not those of all jobs"
import json, sys
results = json.load(open(sys.argv[1]))
done = {job["job"]: job for job in results["jobs"]}
assert len(done) + len(results["left_out"]) == 17, results
assert set(results["left_out"]) <= {"parquet"}, results
assert not results["failures"], results
for job in done.values():
    assert job["answers_right"]["stride"] is True, job
    assert job["seconds"]["stride"] > 0, job
PY

python3 "$everyday" --stride "$stride" --mistakes >"$work/mistakes.txt" || {
  cat "$work/mistakes.txt"
  fail "a mistake was accepted, or had no message"
}
grep -q "^25 mistakes, of which 0 " "$work/mistakes.txt" || fail "there have to be 25 mistakes"
grep -q "no command 'laod'" "$work/mistakes.txt" || fail "messages have to be shown"

# A program whose dedup forgets a row.
printf '#!/bin/sh\ncase $1 in dedup) "%s" "$@" | sed 3d ;; *) exec "%s" "$@" ;; esac\n' \
  "$stride" "$stride" >"$work/forgets"
chmod +x "$work/forgets"
python3 "$everyday" --stride "$work/forgets" --scale 0.003 --runs 1 --jobs dedup \
  >"$work/wrong.txt" 2>&1
[ $? -eq 1 ] || fail "a wrong answer has to end with exit code 1"
grep -q "WRONG ANSWER in dedup: stride: .*1 are missing" "$work/wrong.txt" ||
  fail "a wrong answer has to be told"
