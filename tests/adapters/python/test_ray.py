"""Tables in shards in Ray Data, on two nodes of one machine: equal answers, workers that are killed, and bad input.

STRIDE_RAY_RUNS: how many jobs with killed workers and drivers there are (6; `make soak`: 1,000).
"""

import collections
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import ray_kills  # noqa: E402
import stridedb as sd  # noqa: E402
import stridedb.ray as sr  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from ray.data.expressions import col  # noqa: E402
from stridedb import _manifest, _shards  # noqa: E402

SEED = int(os.environ.get("STRIDE_TEST_SEED", random.SystemRandom().randrange(2**32)))
RUNS = int(os.environ.get("STRIDE_RAY_RUNS", "6"))


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return str(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module", autouse=True)
def cluster(plan):
    """Two nodes with a core each, whose workers die as the plan says."""
    print("seed", SEED)
    os.environ["STRIDE_KILL_PLAN"] = plan  # the nodes' workers have the environment of this process
    head = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    nodes.add_node(num_cpus=1, object_store_memory=200 << 20)
    ray.init(nodes.address, logging_level="ERROR", log_to_driver=False,
             runtime_env={"worker_process_setup_hook": "ray_kills.setup"})
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "place")


def whole(ds):
    return pa.concat_tables([ray.get(block) for block in ds.to_arrow_refs()]).combine_chunks()


def people(rng, rows, blocks=4):
    keys = rng.permutation(rows).astype(np.int64)
    table = pa.table({"id": keys, "name": [f"n{k}" for k in keys], "score": keys * 0.5})
    return table, ray.data.from_arrow([table.slice(i * rows // blocks, rows // blocks) for i in range(blocks)])


def test_answers_are_those_of_one_database_for_any_number_of_shards(place, tmp_path):
    rng = np.random.default_rng(SEED)
    table, ds = people(rng, 20_000)
    asked = pa.table({"user": rng.integers(-5000, 30_000, 9_000), "score": np.arange(9_000)})
    queries = ray.data.from_arrow([asked.slice(0, 4_000), asked.slice(0, 0), asked.slice(4_000)])
    with sd.open(str(tmp_path / "one")) as db:
        one = db.table("users", key=("id", sd.i64), values={"name": sd.str_, "score": sd.f64})
        one.put(table)
        expected = {how: pa.table(one.join(asked, on="user", how=how)) for how in ("left", "inner")}
    assert expected["left"].num_rows == 9_000 > expected["inner"].num_rows > 0
    for shards, partition in ((1, "range"), (2, "hash"), (5, "range"), (16, "hash"), (16, "range")):
        name = f"users-{shards}-{partition}"
        entry = sr.write(ds, place, name, key="id", shards=shards, partition=partition, num_cpus=0.5)
        assert entry["rows"] == 20_000 and len(entry["shards"]) == shards
        rows = [shard["rows"] for shard in entry["shards"]]
        assert max(rows) <= 1.1 * sum(rows) / len(rows) or partition == "hash"
        assert sorted(sr.read(place, name, columns=["name"]).take_all(), key=lambda row: row["id"]) == [
            {"id": i, "name": f"n{i}"} for i in range(20_000)
        ]
        for placement in ("replicate", "partition")[: 2 if shards != 16 or partition == "hash" else 1]:
            for how in ("left", "inner")[: 2 if shards == 2 else 1]:
                got = whole(sr.lookup(queries, place, name, on="user", how=how, placement=placement, num_cpus=0.2))
                assert got.column_names == ["user", "score", "name", "score_right"]
                assert got.to_pydict() == expected[how].rename_columns(got.column_names).to_pydict()


def test_an_actor_that_dies_answers_alike_afterwards(place, plan):
    rng = np.random.default_rng(SEED)
    table, ds = people(rng, 5_000)
    sr.write(ds, place, "users", key="id", shards=2)
    first = {k: f"n{k}" for k in range(5_000)}
    queries = ray.data.from_arrow([pa.table({"id": rng.integers(0, 6_000, 2_000)}) for _ in range(3)])
    for when in ("before", "after"):
        for placement in ("replicate", "partition"):
            open(os.path.join(plan, f"answer.{when}"), "x").close()
            answers = sr.lookup(queries, place, "users", columns=["name"], placement=placement, num_cpus=0.2)
            # Another version comes between: the lookup is of the one before.
            sr.write(ray.data.from_arrow([pa.table({"id": [1], "name": ["new"], "score": [0.0]})]), place, "users",
                     key="id", mode="replace", shards=1)
            got = whole(answers)
            assert got["name"].to_pylist() == [first.get(k) for k in got["id"].to_pylist()]
            assert len(got) == 6_000 and os.listdir(plan) == []
            sr.write(ds, place, "users", key="id", mode="replace", shards=2)


def test_predicates_on_keys_tell_which_shards_are_read(place):
    table, ds = people(np.random.default_rng(SEED), 4_000)
    sr.write(ds, place, "users", key="id", shards=8)
    table = table.sort_by("id")
    for expression, expected in (
        (col("id") >= 3_990, range(3_990, 4_000)),
        ((col("id") > 10) & (col("id") < 13), range(11, 13)),
        ((col("id") == 17) | (col("id") == 3_000), (17, 3_000)),
        ((col("id") <= 20) & (col("score") > 8), range(17, 21)),
        (col("id") > 9_999, ()),
    ):
        read = sr.read(place, "users").filter(expr=expression)
        assert sorted(row["id"] for row in read.take_all()) == list(expected)
    source = sr._Source(place, "users", _manifest.table_entry(place, "users"), None)
    assert len(source.get_read_tasks(2)) == 8
    narrow = source.apply_predicate((col("id") > 10) & (col("id") < 13))
    assert len(narrow.get_read_tasks(2)) == 1


def test_counters_prefixes_and_sets(place):
    rng = np.random.default_rng(SEED)
    words = [f"w{i}" for i in rng.zipf(1.5, 3_000) % 50]
    numbers = rng.integers(-9, 9, 3_000)
    table = pa.table({"word": words, "n": numbers})
    counts = collections.Counter()
    for word, n in zip(words, numbers.tolist()):
        counts[word] += n
    for times in (1, 2):
        sr.accumulate(ray.data.from_arrow([table.slice(0, 1_000), table.slice(1_000)]), place, "counts", "word", "n")
        got = {row["word"]: row["value"] for row in sr.read(place, "counts").take_all()}
        assert got == {word: n * times for word, n in counts.items()}

    sr.write(ray.data.from_arrow([pa.table({"net": ["10.0.0.0/8", "10.1.0.0/16"], "asn": [1, 2]})]), place, "routes",
             "net", bits=32)
    ips = ray.data.from_arrow([pa.table({"ip": ["10.1.1.1", "9.9.9.9", "10.9.0.1"]})])
    assert sr.match(ips, place, "routes", "ip").take_all() == [
        {"ip": "10.1.1.1", "length": 16, "asn": 2}, {"ip": "9.9.9.9", "length": None, "asn": None},
        {"ip": "10.9.0.1", "length": 8, "asn": 1},
    ]

    vectors = rng.integers(0, 12, (2_000, 2)).astype(np.uint32)
    blocks = [pa.table({"a": part[:, 0], "b": part[:, 1]}) for part in np.array_split(vectors, 3)]
    ids, seen = {}, set()
    for shards in (3, None):
        got = whole(sr.dedup(ray.data.from_arrow(blocks), place, "states", ["a", "b"], shards=shards))
        for a, b, id, new in zip(*(got[name].to_pylist() for name in ("a", "b", "id", "new"))):
            assert new == ((a, b) not in seen) and ids.setdefault((a, b), id) == id
            seen.add((a, b))
    assert len(set(ids.values())) == len(ids) == len({tuple(v) for v in vectors.tolist()})


def test_the_last_of_equal_keys_is_that_of_the_dataset_and_not_of_the_clock(place):
    def slow_first(batch):
        time.sleep(0.0 if batch["v"][0] else 1.5)
        return batch

    blocks = [pa.table({"k": [1, 2], "v": [i, i]}) for i in range(3)]
    for _ in range(2):  # the workers are there already when it is done again
        ds = ray.data.from_arrow(blocks).map_batches(slow_first, batch_size=None, num_cpus=0.5)
        sr.write(ds, place, "t", key="k", shards=2, mode="replace")
        assert [row["v"] for row in sr.read(place, "t").take_all()] == [2, 2]
        assert not ds.context.execution_options.preserve_order


def test_lookups_behind_other_tasks_and_beside_results_that_are_kept_go_on(place):
    _, ds = people(np.random.default_rng(SEED), 1_000)
    sr.write(ds, place, "users", key="id", shards=3)
    kept = []
    for i in range(3):
        queries = ray.data.range(200, override_num_blocks=4).map_batches(lambda batch: batch, num_cpus=1)
        kept.append(sr.lookup(queries, place, "users", on="id", columns=["name"], placement="partition"))
        assert sorted(row["name"] for row in kept[i].take_all()) == sorted(f"n{k}" for k in range(200))


def test_nulls_names_that_are_taken_and_tables_without_rows(place):
    _, ds = people(np.random.default_rng(SEED), 100)
    sr.write(ds, place, "users", key="id", shards=2)
    asked = ray.data.from_arrow([pa.table({"id": pa.array([5, None, 700, 3], pa.int64()), "name": ["a"] * 4})])
    for placement in ("replicate", "partition"):
        found = sr.lookup(asked, place, "users", placement=placement, num_cpus=0.2, columns=["name"]).take_all()
        assert [row["name_right"] for row in found] == ["n5", None, None, "n3"]
    taken = ray.data.from_arrow([pa.table({"id": [1], "name": ["a"], "name_right": ["b"]})])
    with pytest.raises(sd.InvalidArgument, match="'name_right', too"), sr.errors_as_they_are():
        sr.lookup(taken, place, "users", num_cpus=0.5).take_all()
    for columns, text in ((["x"], "no column 'x'"), ("name", "give a list"), (["name", "name"], "a name twice")):
        with pytest.raises(sd.InvalidArgument, match=text):
            sr.read(place, "users", columns=columns)
        with pytest.raises(sd.InvalidArgument, match=text):
            sr.lookup(asked, place, "users", columns=columns)
    assert sr.read(place, "users", columns=["id", "score"]).schema().names == ["id", "score"]
    nothing = sr.read(place, "users").filter(expr=col("id") > 9_999)
    assert nothing.count() == 0 and nothing.schema().names == ["id", "name", "score"]
    with pytest.raises(sd.InvalidArgument, match="the columns read are: id, score"), sr.errors_as_they_are():
        sr.read(place, "users", columns=["score"]).filter(expr=col("name") == "n5").take_all()
    # Only keys.
    sr.write(ray.data.from_arrow([pa.table({"k": ["b", "a"]})]), place, "words", key="k", shards=2)
    assert sr.read(place, "words").take_all() == [{"k": "a"}, {"k": "b"}]
    inner = sr.lookup(ray.data.from_arrow([pa.table({"k": ["a", "c"]})]), place, "words", how="inner", num_cpus=0.5)
    assert inner.take_all() == [{"k": "a"}]


def test_many_small_blocks_and_blocks_that_differ_in_types(place):
    blocks = [pa.table({"k": pa.array([i], pa.int32() if i % 2 else pa.int64()),
                        "v": pa.array([None], pa.null()) if i % 3 == 0 else pa.array([f"x{i}"])}) for i in range(40)]
    entry = sr.write(ray.data.from_arrow(blocks), place, "t", key="k", shards=3)
    assert entry["key"] == [["k", "i64"]]
    assert [row["v"] for row in sr.read(place, "t").take_all()] == [None if i % 3 == 0 else f"x{i}" for i in range(40)]
    with pytest.raises(sd.InvalidArgument, match="blocks of the dataset differ"):
        sr.write(ray.data.from_arrow([pa.table({"k": [1]}), pa.table({"k": ["a"]})]), place, "u", key="k")


def test_a_task_that_kills_each_of_its_workers_is_given_up(place, plan, monkeypatch):
    from stridedb import _ray_jobs

    monkeypatch.setattr(_ray_jobs, "RETRIES", 2)
    open(os.path.join(plan, "always.build"), "x").close()
    try:
        with pytest.raises(sd.Unavailable, match="died"):
            sr.write(ray.data.from_arrow([pa.table({"k": [1]})]), place, "t", key="k", shards=1)
    finally:
        os.unlink(os.path.join(plan, "always.build"))
    assert sr.tables(place) == {}
    sr.write(ray.data.from_arrow([pa.table({"k": [1]})]), place, "t", key="k", shards=1)


def test_a_full_disk_in_one_worker_is_told_and_changes_nothing(place, plan):
    _, ds = people(np.random.default_rng(SEED), 20_000)
    sr.write(ds, place, "users", key="id", shards=2)
    before = sorted(os.listdir(os.path.join(place, "shards")))
    open(os.path.join(plan, "full"), "x").close()
    with pytest.raises(sd.StrideError, match="File too large"):
        sr.write(ds, place, "users", key="id", shards=2, mode="replace", job="full")
    assert os.listdir(plan) == []
    assert sr.tables(place)["users"]["version"] == 1
    assert sr.read(place, "users").count() == 20_000
    # There is room again, and the same job goes on.
    assert sr.write(ds, place, "users", key="id", shards=2, mode="replace", job="full")["version"] == 2
    assert sr.read(place, "users").count() == 20_000
    assert sorted(os.listdir(os.path.join(place, "shards"))) == sorted([*before, "full"])


def plan_kills(rng, plan, names):
    for name in set(names):
        open(os.path.join(plan, name), "x").close()


def random_job(rng, number, before):
    kind = rng.choice(["rows", "counters"])
    mode = "update" if kind == "counters" else rng.choice(["update", "replace"])
    keys = rng.integers(0, 400, int(rng.integers(1, 600))).tolist()
    goes_on = mode == "update" and before[kind] is not None
    return {
        "name": f"job{number}", "table": str(kind), "kind": str(kind), "mode": str(mode), "keys": keys,
        "values": rng.integers(-99, 99, len(keys)).tolist(), "shards": None if goes_on else int(rng.integers(1, 4)),
        "partition": str(rng.choice(["range", "hash"])),
    }


def model_after(job, before):
    after = dict(before or {}) if job["mode"] == "update" else {}
    for key, value in zip(job["keys"], job["values"]):
        after[key] = after.get(key, 0) + value if job["kind"] == "counters" else value
    return after


def rows_of(path, table):
    """The table's rows as its shards have them, without Ray; None: there is no such table."""
    manifest = _manifest.read_manifest(path)
    if table not in manifest["tables"]:
        return None
    entry, rows = manifest["tables"][table], []
    for i in range(len(entry["shards"])):
        for batch in _shards.scan_shard(path, table, entry, i, None, None, (None, None)):
            rows += zip(*(column.to_pylist() for column in batch.columns))
    assert len(rows) == len(dict(rows)) == entry["rows"], "a key is in two shards, or rows are missing"
    return dict(rows)


class Reader:
    """Looks at a table again and again while a job is at work: it has all of the old rows, or all of the new ones."""

    def __init__(self, path, table, allowed):
        self.path, self.table, self.allowed = path, table, allowed
        self.stop, self.wrong, self.looks = threading.Event(), [], 0
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.stop.wait(0.02):
            rows = rows_of(self.path, self.table)
            self.looks += 1
            if rows not in self.allowed:
                self.wrong.append(rows)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def test_nothing_is_lost_or_doubled_whoever_is_killed(place, plan, cluster):
    """Jobs of random rows; workers, and in each fourth one the driver, are killed at random steps. A driver that died
    is started again with the same job."""
    rng = np.random.default_rng(SEED)
    os.makedirs(place)
    models = {"rows": None, "counters": None}
    kills = looks = 0
    for number in range(RUNS):
        job = random_job(rng, number, models)
        kind, before = job["kind"], models[job["kind"]]
        after = model_after(job, before)
        steps = [s for s in ray_kills.STEPS if s not in ("answer", "number")]
        names = [f"{rng.choice(steps)}.{rng.choice(['before', 'after'])}" for _ in range(int(rng.integers(1, 4)))]
        names += [f"timer.{int(rng.integers(0, 40))}"] if rng.random() < 0.5 else []
        drivers = number % 4 == 3
        if drivers:
            names = names[:1] + [f"{rng.choice(ray_kills.DRIVER_STEPS)}.{rng.choice(['before', 'after'])}"]
        plan_kills(rng, plan, names)
        with Reader(place, kind, (before, after)) as reader:
            if drivers:
                kills += run_driver(cluster, place, job, plan)
            else:
                assert ray_kills.run(place, job)["job"] == job["name"]
        left = os.listdir(plan)
        kills += 0 if drivers else len(set(names)) - len(left)
        for name in left:
            os.unlink(os.path.join(plan, name))
        context = f"seed {SEED}, run {number}, kills {names}"
        assert reader.wrong == [], context
        looks += reader.looks
        assert rows_of(place, kind) == after, context
        # Once more: it is there, and nothing is added.
        ray_kills.run(place, job)
        assert rows_of(place, kind) == after, context
        models[kind] = after
    print(f"{RUNS} jobs, {kills} kills, {looks} looks by readers meanwhile: nothing lost, nothing doubled")
    assert kills >= RUNS // 2 and looks > 0


def run_driver(cluster, place, job, plan):
    killed = 0
    while True:
        done = subprocess.run(
            [sys.executable, ray_kills.__file__, cluster.address, place, json.dumps(job), plan],
            capture_output=True, text=True, timeout=300,
        )
        if done.returncode == 0:
            return killed
        assert done.returncode == -9, done.stderr[-3000:]
        killed += 1


def test_what_cannot_be_written_is_told_and_leaves_nothing(place):
    one, two = pa.table({"k": [1, 2], "v": [1, 2]}), pa.table({"k": [3], "w": [1]})
    good = ray.data.from_arrow([one])
    for ds, given, error, text in (
        (ray.data.from_arrow([one, two]), {}, sd.InvalidArgument, "block 1 of the dataset has the columns k, w"),
        (ray.data.from_arrow([one, one]), {"on_equal": "error"}, sd.AlreadyExists, "comes twice"),
        (good, {"mode": "append"}, sd.InvalidArgument, "mode is 'append'"),
        (good, {"partition": "list"}, sd.InvalidArgument, "partition is 'list'"),
        (good, {"on_equal": "first"}, sd.InvalidArgument, "on_equal is 'first'"),
        (good, {"shards": 0}, sd.InvalidArgument, "0 shards"),
        (good, {"shards": 2.5}, sd.InvalidArgument, "2.5 shards"),
        (good, {"num_cpus": 0}, sd.InvalidArgument, "num_cpus is 0"),
        (good, {"job": "../x"}, sd.InvalidArgument, "job is"),
        (good, {"job": 5}, sd.InvalidArgument, "job is 5"),
        (good, {"job": "j" * 300}, sd.InvalidArgument, "200 bytes"),
        (good, {"key": ["k", "k"]}, sd.InvalidArgument, "a name twice"),
        (good, {"bits": 32, "key": ["k", "v"]}, sd.InvalidArgument, "column of prefixes"),
        (good, {"key": "z"}, sd.InvalidArgument, "z"),
        (good, {"types": {"z": sd.i64}}, sd.InvalidArgument, "there is no column 'z'"),
        (ray.data.from_arrow([pa.table({"k": [1, None], "v": [1, 2]})]), {}, sd.StrideError, "null"),
    ):
        with pytest.raises(error, match=text):
            sr.write(ds, place, "t", **{"key": "k", "shards": 1, **given})
        assert sr.tables(place) == {}
        assert [f for _, _, files in os.walk(place) for f in files] == []
    sr.write(good, place, "t", key="k", shards=3)  # more shards than keys: some are empty
    assert sorted(row["k"] for row in sr.read(place, "t").take_all()) == [1, 2]
    with pytest.raises(sd.AlreadyExists, match="table 't' is there"):
        sr.write(good, place, "t", key="k")
    with pytest.raises(sd.InvalidArgument, match="3 shards"):
        sr.write(good, place, "t", key="k", mode="update", shards=4)
    with pytest.raises(sd.InvalidArgument, match="the columns"):
        sr.write(ray.data.from_arrow([two]), place, "t", key="k", mode="update")
    for keys, value in (("value", "v"), ("k", "k")):
        with pytest.raises(sd.InvalidArgument, match="called 'value', or is the one to add"):
            sr.accumulate(good, place, "c", keys, value)
    vectors = ray.data.from_arrow([pa.table({"id": [1], "v": [2]})])
    with pytest.raises(sd.InvalidArgument, match="a column 'id' or 'new'"):
        sr.dedup(vectors, place, "d", "v")
    with pytest.raises(sd.InvalidArgument, match="has no rows"):
        sr.dedup(ray.data.from_arrow([pa.table({"v": pa.array([], pa.int64())})]), place, "d", "v")
    sr.dedup(ray.data.from_arrow([pa.table({"v": [1.5]})]), place, "d", "v", shards=1)
    with pytest.raises(sd.InvalidArgument, match="of kind 'dedup'"):
        sr.dedup(ray.data.from_arrow([pa.table({"v": [1]})]), place, "d", "v")
    for call in (sr.lookup, sr.read):
        with pytest.raises(sd.InvalidArgument, match="a set of vectors"):
            call(*([good] if call is sr.lookup else []), place, "d")
    with pytest.raises(sd.NotFound, match="the tables are: d, t"):
        sr.lookup(good, place, "none")
    with pytest.raises(sd.InvalidArgument, match="placement is"):
        sr.lookup(good, place, "t", placement="here")


def test_a_shard_that_is_gone_or_another_one_is_told(place):
    _, ds = people(np.random.default_rng(SEED), 400)
    entry = sr.write(ds, place, "users", key="id", shards=2)
    lost = os.path.join(place, entry["shards"][1]["directory"])
    other = os.path.join(place, entry["shards"][0]["directory"])
    os.rename(lost, lost + ".away")
    queries = ray.data.from_arrow([pa.table({"id": [1, 399]})])
    with pytest.raises(Exception, match="shard 1 of table 'users' is not there"):
        sr.read(place, "users").take_all()
    shutil.copytree(other, lost)
    with pytest.raises(Exception, match="not the one that job"):
        sr.lookup(queries, place, "users", num_cpus=0.5).take_all()
