"""Tables in shards, as far as Ray has no part in them: parts of keys, manifests, and what a killed driver leaves."""

import hashlib
import json
import os
import random
import shutil
import signal
import time
import uuid

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

import stridedb as sd  # noqa: E402
from stridedb import _manifest, _shards  # noqa: E402

SEED = int(os.environ.get("STRIDE_TEST_SEED", random.SystemRandom().randrange(2**32)))
KINDS = [
    ([("k", sd.i64)], lambda r, n: {"k": r.integers(-(2**62), 2**62, n)}),
    ([("k", sd.u8)], lambda r, n: {"k": r.integers(0, 256, n).astype(np.uint8)}),
    ([("k", sd.str_)], lambda r, n: {"k": ["x" * int(r.integers(0, 12)) + str(i) for i in r.integers(0, 99, n)]}),
    ([("a", sd.i16), ("b", sd.str_)], lambda r, n: {"a": r.integers(-9, 9, n), "b": [str(i) for i in r.integers(0, 9, n)]}),
]


@pytest.mark.parametrize("key, draw", KINDS)
def test_keys_are_parted_in_their_order_or_by_their_hash(key, draw):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for parts in (1, 2, 3, 40):
        frame = draw(rng, 500)
        encoded = sd.KeyPartition(key, 1).sample(frame)
        assert len(encoded) == 500
        splitters = sorted(encoded[int(i)] for i in rng.integers(0, 500, parts - 1))
        partition = sd.KeyPartition(key, parts, splitters)
        part = [sum(s <= k for s in splitters) for k in encoded]
        order, ends, places = partition.order(frame)
        assert order.tolist() == sorted(range(500), key=lambda i: part[i])
        assert order[places].tolist() == list(range(500))
        assert ends.tolist() == [sum(p <= i for p in part) for i in range(parts)]
        # By hash: equal keys are together, and which part they are of does not depend on the others.
        order, ends, places = sd.KeyPartition(key, parts).order(frame)
        assert order[places].tolist() == list(range(500))
        where = np.searchsorted(ends, places, side="right")
        assert all(where[i] == where[encoded.index(encoded[i])] for i in range(500))


def test_a_hash_of_a_key_is_for_ever():
    # Shards that are there were parted by it.
    order, ends, _ = sd.KeyPartition(sd.i64, 5).order(np.arange(20))
    assert (order.tolist(), ends.tolist()) == EXPECTED_PARTS


EXPECTED_PARTS = ([8, 12, 13, 7, 4, 11, 15, 16, 19, 0, 2, 3, 6, 10, 17, 1, 5, 9, 14, 18], [3, 4, 9, 15, 20])


def test_what_is_no_partition_is_refused():
    for splitters in ([], [b"b", b"a"], [b"a"] * 3):
        with pytest.raises(sd.InvalidArgument, match="splitters"):
            sd.KeyPartition(sd.i64, 3, splitters)
    for parts in (0, 65_537):
        with pytest.raises(sd.InvalidArgument, match="parts are asked for"):
            sd.KeyPartition(sd.i64, parts)
    with pytest.raises(sd.InvalidType):
        sd.KeyPartition(sd.i64, 2).order(["a"])


def spec_of(values=(("v", "i64"),)):
    return {"kind": "rows", "key": [["k", "i64"]], "values": [list(v) for v in values]}


def split(table, entry):
    return _shards.split(entry, table.schema, False, table)


def build(path, job, keys, shards=2, add=0):
    """An entry with shards that have the keys, and keys + add as values."""
    splitters = sd.KeyPartition(sd.i64, 1).sample([len(keys) * i // shards for i in range(1, shards)])
    entry = {"job": job, **spec_of(), "splitters": [s.hex() for s in splitters], "shards": [None] * shards}
    keys = np.asarray(keys)
    parts = split(pa.table({"k": keys, "v": keys + add}), entry)
    made = []
    for i, part in enumerate(parts):
        with _shards.Attempt(path, job, i) as attempt:
            made.append(_shards.build(attempt, "t", entry, [p for p in [part] if p is not None], None, "last"))
    return {**entry, "shards": made, "rows": sum(s["rows"] for s in made)}


def rows_of(path, version=None):
    entry = _manifest.table_entry(path, "t", version)
    found = {}
    for i in range(len(entry["shards"])):
        for batch in _shards.scan_shard(path, "t", entry, i, None, None, (None, None)):
            found.update(zip(batch["k"].to_pylist(), batch["v"].to_pylist()))
    return found


@pytest.fixture
def place(tmp_path):
    path = str(tmp_path / "place")
    os.makedirs(path)
    return path


def test_a_table_is_that_of_the_newest_manifest(place):
    assert _manifest.read_manifest(place)["version"] == 0
    with pytest.raises(sd.NotFound, match="the tables are: none"):
        _manifest.table_entry(place, "t")
    first = _manifest.commit(place, "t", build(place, "one", range(100)), None)
    assert first["version"] == 1 and first["rows"] == 100
    assert rows_of(place) == {i: i for i in range(100)}
    # A job that was committed is not again, whatever its attempts have made.
    assert _manifest.commit(place, "t", build(place, "one", range(5)), None)["rows"] == 100
    with pytest.raises(sd.Conflict, match="changed by job 'one'"):
        _manifest.commit(place, "t", build(place, "two", range(5)), None)
    second = _manifest.commit(place, "t", build(place, "two", range(50), add=1), "one")
    assert second["version"] == 2
    assert rows_of(place) == {i: i + 1 for i in range(50)}
    assert rows_of(place, 1) == {i: i for i in range(100)}
    with pytest.raises(sd.NotFound, match="version 7"):
        _manifest.read_manifest(place, 7)


def test_shards_that_are_not_what_was_committed_are_told(place):
    entry = _manifest.commit(place, "t", build(place, "one", range(1000)), None)
    directories = [os.path.join(place, shard["directory"]) for shard in entry["shards"]]
    os.rename(directories[1], directories[1] + ".away")
    with pytest.raises(sd.NotFound, match="shard 1 of table 't' is not there"):
        rows_of(place)
    shutil.copytree(directories[0], directories[1])  # another shard
    with pytest.raises(sd.Corruption, match="shard 1 of table 't' is not the one that job 'one' has built"):
        rows_of(place)
    shutil.rmtree(directories[1])
    os.rename(directories[1] + ".away", directories[1])
    assert len(rows_of(place)) == 1000
    with sd.open(directories[1], "w") as db:
        db["t"].put({"k": [7], "v": [7]})
    with pytest.raises(sd.Corruption):
        rows_of(place)


def test_a_manifest_that_is_damaged_or_newer_is_told(place):
    _manifest.commit(place, "t", build(place, "one", range(10)), None)
    file = os.path.join(place, "manifest-000001.json")
    good = open(file, "rb").read()
    for bad in (good[:-10], good.replace(b"one", b"two"), b"", b"\n\n"):
        open(file, "wb").write(bad)
        with pytest.raises(sd.Corruption, match="checksum does not match"):
            _manifest.read_manifest(place)
    manifest = json.loads(good.split(b"\n")[0])
    write_manifest(file, {**manifest, "format": 2})
    with pytest.raises(sd.UnsupportedVersion, match="format 2"):
        _manifest.read_manifest(place)
    for version in (0, -1, "1", 1.5, True):
        with pytest.raises(sd.InvalidArgument, match="version is"):
            _manifest.read_manifest(place, version)
    with pytest.raises(sd.InvalidArgument, match="no directory"):
        _manifest.read_manifest(file)


def write_manifest(file, manifest):
    body = json.dumps(manifest).encode()
    open(file, "wb").write(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")


def places_in(node, path=()):
    """The paths of all nodes of a JSON value."""
    yield path
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places_in(child, (*path, key))


def test_a_manifest_of_a_stranger_with_a_right_checksum_is_read_or_told(place):
    _manifest.commit(place, "t", build(place, "one", range(10)), None)
    file = os.path.join(place, "manifest-000001.json")
    manifest = json.loads(open(file, "rb").read().split(b"\n")[0])
    told = 0
    for path in list(places_in(manifest)):
        for value in (None, 7, -1, "x", "../..", [], {}, True, [[]]):
            changed = json.loads(json.dumps(manifest))
            if not path:
                changed = value
            else:
                node = changed
                for step in path[:-1]:
                    node = node[step]
                node[path[-1]] = value
            write_manifest(file, changed)
            try:
                _manifest.table_entry(place, "t")
                _shards.bounds_of(None, "k")
                rows_of(place)
            except sd.StrideError:
                told += 1
    assert told > 100


def test_what_is_of_no_use_is_swept_by_age(place):
    _manifest.commit(place, "t", build(place, "one", range(10)), None)
    build(place, "dead", range(10))
    _manifest.commit(place, "t", build(place, "two", range(20)), "one")
    open(os.path.join(place, ".manifest-x.tmp"), "w").close()
    assert _manifest.sweep(place) == []
    removed = _manifest.sweep(place, age=-1)
    assert "manifest-000001.json" in removed and ".manifest-x.tmp" in removed
    assert sorted(os.listdir(os.path.join(place, "shards"))) == ["two"]
    assert rows_of(place) == {i: i for i in range(20)}


def age_all(place, names, seconds):
    """Makes files look as if they had changed so long ago."""
    then = time.time() - seconds
    for name in names:
        for directory, _, files in os.walk(os.path.join(place, name)):
            for file in (directory, *(os.path.join(directory, f) for f in files)):
                os.utime(file, (then, then))
        if os.path.isfile(os.path.join(place, name)):
            os.utime(os.path.join(place, name), (then, then))


def test_a_version_goes_so_long_after_it_was_followed(place):
    _manifest.commit(place, "t", build(place, "one", range(10)), None)
    age_all(place, ["manifest-000001.json", "shards/one"], 1000)
    _manifest.commit(place, "t", build(place, "two", range(20)), "one")
    # It is old, but was the newest one until now: who reads it goes on.
    assert _manifest.sweep(place, age=100) == []
    assert len(rows_of(place, 1)) == 10
    age_all(place, ["manifest-000002.json", "shards/two"], 200)
    assert _manifest.sweep(place, age=100) == ["manifest-000001.json"]  # who opens a shard leaves a trace of that
    age_all(place, ["shards/one"], 200)
    removed = _manifest.sweep(place, age=100)
    assert len(removed) == 2 and all(name.startswith("shards/one/") for name in removed)
    assert len(rows_of(place)) == 20
    assert _manifest.sweep(place, age=-1) == []


def test_what_a_job_has_built_stays_while_it_goes_on_building(place):
    entry = build(place, "slow", range(10))
    age_all(place, ["shards/slow"], 1000)
    with _shards.Attempt(place, "slow", 9) as attempt:  # another of its shards is being built
        os.makedirs(attempt.directory)
        assert _manifest.sweep(place, age=100) == []
    assert _manifest.commit(place, "t", entry, None)["rows"] == 10
    assert len(rows_of(place)) == 10


def test_shards_that_went_before_the_commit_are_not_committed(place):
    entry = build(place, "one", range(10))
    age_all(place, ["shards/one"], 1000)
    assert len(_manifest.sweep(place, age=100)) == 2
    os.makedirs(os.path.join(place, "shards", "one"), exist_ok=True)
    with pytest.raises(sd.NotFound, match="shard 0 of table 't' is not there"):
        _manifest.commit(place, "t", entry, None)
    assert _manifest.read_manifest(place)["version"] == 0


def test_a_driver_that_stood_still_does_not_commit_below_others(place, monkeypatch):
    """It has read version 1, and meanwhile others commit 2 and 3, and 2 is swept: its version 2 would be seen by no
    one."""
    _manifest.commit(place, "t", build(place, "one", range(10)), None)
    late = build(place, "late", range(5))
    publish = _manifest._publish

    def stand_still(path, version, text):
        monkeypatch.setattr(_manifest, "_publish", publish)
        _manifest.commit(place, "t", build(place, "two", range(20)), "one")
        _manifest.commit(place, "t", build(place, "three", range(30)), "two")
        os.unlink(os.path.join(place, "manifest-000002.json"))
        return publish(path, version, text)

    monkeypatch.setattr(_manifest, "_publish", stand_still)
    assert _manifest.commit(place, "u", late, None)["version"] == 4
    assert not os.path.exists(os.path.join(place, "manifest-000002.json"))
    assert sorted(_manifest.read_manifest(place)["tables"]) == ["t", "u"]
    assert len(rows_of(place)) == 30


def test_a_driver_killed_anywhere_in_the_commit_leaves_the_old_or_the_new_table(place, monkeypatch):
    """The n-th call to the operating system is its last one, before or after it is done; then the job is run again."""
    old = build(place, "old", range(30))
    _manifest.commit(place, "t", old, None)
    new = build(place, "new", range(60), add=5)
    outcomes, n = set(), 0
    while True:
        for when in ("before", "after"):
            copy = f"{place}-{n}-{when}"
            shutil.copytree(place, copy)
            child = os.fork()
            if child == 0:
                kill_at(n, when)
                _manifest.commit(copy, "t", new, "old")
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            killed = os.WIFSIGNALED(status)
            assert killed or status == 0
            found = rows_of(copy)
            outcomes.add(len(found))
            assert found in ({i: i for i in range(30)}, {i: i + 5 for i in range(60)})
            assert killed or len(found) == 60
            # The same job, once more: it is there exactly once.
            assert _manifest.commit(copy, "t", new, "old")["job"] == "new"
            assert rows_of(copy) == {i: i + 5 for i in range(60)}
            assert _manifest.read_manifest(copy)["version"] == 2
            shutil.rmtree(copy)
        if not killed:
            break
        n += 1
    assert n >= 6 and outcomes == {30, 60}


def kill_at(n, when):
    calls = [0]

    def counted(function):
        def call(*arguments, **options):
            mine, calls[0] = calls[0], calls[0] + 1
            if mine == n and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments, **options)
            if mine == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    for name in ("open", "fsync", "link", "unlink", "listdir", "close"):
        setattr(os, name, counted(getattr(os, name)))


def test_drivers_that_commit_at_once_take_turns(place):
    children = []
    for i in range(6):
        entry = build(place, f"job{i}", range(10), shards=1)
        child = os.fork()
        if child == 0:
            try:
                _manifest.commit(place, f"t{i % 3}", entry, None)
            except sd.Conflict:
                os._exit(3)
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0, 0, 0, 3, 3, 3]  # two for each table, one of which is the first
    manifest = _manifest.read_manifest(place)
    assert manifest["version"] == 3 and sorted(manifest["tables"]) == ["t0", "t1", "t2"]


def test_bounds_of_expressions():
    class Op:
        def __init__(self, value):
            self.value = value

    class Node:
        def __init__(self, **parts):
            self.__dict__.update(parts)

    def compare(op, value, turned=False):
        sides = [Node(name="k"), Node(value=value)]
        left, right = reversed(sides) if turned else sides
        return Node(op=Op(op), left=left, right=right)

    def both(a, b):
        return Node(op=Op("and"), left=a, right=b)

    assert _shards.bounds_of(None, "k") == (None, None)
    assert _shards.bounds_of(compare("ge", 5), "k") == (5, None)
    assert _shards.bounds_of(compare("ge", 5, turned=True), "k") == (None, 5)
    assert _shards.bounds_of(compare("eq", 5), "k") == (5, 5)
    assert _shards.bounds_of(compare("ne", 5), "k") == (None, None)
    assert _shards.bounds_of(compare("ge", 5), "other") == (None, None)
    assert _shards.bounds_of(both(compare("gt", 5), both(compare("lt", 9), compare("ge", 7))), "k") == (7, 9)
    # A zero has two signs, which are equal and differ in the order of keys.
    for zero in (0.0, -0.0):
        assert [str(b) for b in _shards.bounds_of(compare("ge", zero), "k")] == ["-0.0", "None"]
        assert [str(b) for b in _shards.bounds_of(compare("le", zero), "k")] == ["None", "0.0"]
        assert [str(b) for b in _shards.bounds_of(compare("eq", zero), "k")] == ["-0.0", "0.0"]
    assert _shards.bounds_of(compare("ge", float("nan")), "k") == (None, None)
    assert _shards.bounds_of(both(compare("ge", 5), compare("ge", "a")), "k") == (None, None)
    assert _shards.bounds_of(Node(op=Op("or"), left=compare("gt", 5), right=compare("lt", 2)), "k") == (None, None)


def test_answers_do_not_depend_on_the_number_of_shards(place):
    rng = np.random.default_rng(SEED)
    keys = rng.permutation(2000)
    asked = pa.table({"k": rng.integers(-100, 2500, 3000)})
    answers = []
    for shards in (1, 2, 7, 16):
        splitters = sd.KeyPartition(sd.i64, 1).sample([2000 * i // shards for i in range(1, shards)])
        entry = {"job": f"j{shards}", **spec_of(), "splitters": [s.hex() for s in splitters], "shards": [None] * shards}
        made = []
        for i, part in enumerate(split(pa.table({"k": keys, "v": keys * 3}), entry)):
            with _shards.Attempt(place, entry["job"], i) as attempt:
                made.append(_shards.build(attempt, "t", entry, [part], None, "error"))
        entry["shards"] = made
        assert [bytes.fromhex(s["first"]) >= bytes.fromhex(b) for s, b in zip(made[1:], entry["splitters"])] == [True] * (
            shards - 1
        )
        open_ones = [_shards.open_shard(place, "t", entry, i) for i in range(shards)]
        ask = lambda asked: [_shards.answer_of(open_ones[i], k, None) for i, k in asked]  # noqa: E731
        table, found = _shards.ask_shards(_shards.partition_of(entry), asked, ask)
        answers.append((table, found))
    expected = [3 * k if 0 <= k < 2000 else None for k in asked["k"].to_pylist()]
    for table, found in answers:
        assert table["v"].to_pylist() == expected
        assert found.tolist() == [v is not None for v in expected]
        assert table.combine_chunks().equals(answers[0][0].combine_chunks())


def test_a_null_finds_nothing_and_no_rows_have_the_columns_of_rows(place):
    for shards in (1, 3):
        entry = build(place, f"j{shards}", range(10), shards)
        tables = [_shards.open_shard(place, "t", entry, i) for i in range(shards)]
        ask = lambda asked: [_shards.answer_of(tables[i], k, None) for i, k in asked]  # noqa: E731
        partition = _shards.partition_of(entry)
        for keys in ([None], [], [3, None, 99, 0, None], [None, 9]):
            table, found = _shards.ask_shards(partition, pa.table({"k": pa.array(keys, pa.int64())}), ask)
            expected = [k if k is not None and k < 10 else None for k in keys]
            assert table["v"].to_pylist() == expected
            assert found.tolist() == [v is not None for v in expected]


VALUES = [sd.bool_, sd.i8, sd.u64, sd.f32, sd.date, sd.timestamp_ms, sd.uuid, sd.str_, sd.bytes_, sd.vector(sd.f32, 3)]


@pytest.mark.parametrize("key", [sd.i16, sd.f64, sd.str_, sd.fixed_bytes(5), sd.uuid, sd.timestamp_ns, sd.date])
def test_an_empty_batch_has_the_columns_of_a_scan(place, key):
    with sd.open(os.path.join(place, "db")) as db:
        table = db.table("t", key=[("a", sd.i8), ("k", key)], values={f"v{i}": t for i, t in enumerate(VALUES)})
        cells = {"i16": 1, "f64": 1.5, "string": "x", "bytes[5]": b"abcde"}
        cell = cells.get(str(key)) or (uuid.UUID(int=5) if key == sd.uuid else np.datetime64("2020-01-01"))
        values = {"v0": True, "v1": 1, "v2": 1, "v3": 1, "v4": np.datetime64("2020-01-01"),
                  "v5": np.datetime64("2020-01-01"), "v6": uuid.UUID(int=1), "v7": "", "v8": b"", "v9": [1, 2, 3]}
        table[(1, cell)] = values
        scan = table.scan()
        empty = pa.table(scan._empty())
        (rows,) = scan
        assert len(empty) == 0 and _shards._nullable(empty).schema == _shards._nullable(pa.table(rows)).schema
        assert pa.table(table.scan(columns=["v7"])._empty()).column_names == ["a", "k", "v7"]


def test_blocks_become_one_schema():
    def unified(*fields):
        schemas = [pa.schema([("k", pa.int64()), ("v", field)]) for field in fields]
        return _shards.unify(schemas, [1] * len(fields)).field("v").type

    assert unified(pa.null(), pa.string()) == pa.string()
    assert unified(pa.int32(), pa.int64()) == pa.int64()
    assert unified(pa.dictionary(pa.int8(), pa.string()), pa.string()) == pa.string()
    keys, other = pa.schema([("k", pa.int8())]), pa.schema([("w", pa.string())])
    assert _shards.unify([pa.schema([]), other, keys], [0, 0, 5]).names == ["k"]
    assert _shards.unify([pa.schema([]), keys], [0, 0]).names == ["k"]
    with pytest.raises(sd.InvalidArgument, match="blocks of the dataset differ"):
        unified(pa.int64(), pa.string())
    with pytest.raises(sd.InvalidArgument, match="block 2 of the dataset has the columns w, and block 0 has k"):
        _shards.unify([keys, pa.schema([]), other], [1, 0, 1])
    with pytest.raises(sd.InvalidArgument, match="a name twice: k, k"):
        _shards.unify([pa.schema([("k", pa.int8()), ("k", pa.int8())])], [1])
    for schemas in ((), (pa.schema([]),)):
        with pytest.raises(sd.InvalidArgument, match="no columns"):
            _shards.unify(schemas, [0] * len(schemas))
    entry = {**spec_of((("v", "string"),)), "splitters": None, "shards": [None]}
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    blocks = [pa.table({"v": pa.array([None]), "k": [1]}), pa.table({}), pa.table({"k": [2], "v": ["x"]})]
    (part,) = _shards.split(entry, schema, False, *blocks)
    assert part.to_pydict() == {"k": [1, 2], "v": [None, "x"]}


def test_of_keys_that_come_often_the_last_rows_are_split():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    a, b = rng.zipf(1.3, 6_000) % 99, [f"k{i % 3}" for i in rng.integers(0, 9, 6_000)]
    table = pa.table({"v": range(6_000), "b": b, "a": a})
    entry = {"key": [["a", "i64"], ["b", "string"]], "values": [["v", "i64"]], "splitters": None, "shards": [None] * 4}
    parts = _shards.split(entry, table.schema, True, table.slice(0, 1_000), table.slice(1_000))
    expected = {}
    for v, b, a in zip(*table.to_pydict().values()):
        expected.pop((a, b), None)
        expected[a, b] = v  # in the order of the last rows
    got = [list(zip(part["a"].to_pylist(), part["b"].to_pylist(), part["v"].to_pylist())) for part in parts if part]
    assert sorted(row for rows in got for row in rows) == sorted((a, b, v) for (a, b), v in expected.items())
    assert all([v for *_, v in rows] == sorted(v for *_, v in rows) for rows in got)
    assert sum(len(part) for part in _shards.split(entry, table.schema, False, table) if part) == 6_000


def test_vectors_are_of_one_shape():
    block = pa.table({"a": pa.array([1, 2], pa.int32()), "b": [[1.0, 2.0], [3.0, 4.0]]})
    vectors, parts = _shards.vectors_of(block, {"a": np.array([1, 2], np.int32), "b": np.array([[1.0, 2], [3, 4]])})
    assert parts == ["i32[1]", "f64[2]"] and vectors.shape == (2, 5)
    ragged = np.array([[1], [1, 2]], dtype=object)
    with pytest.raises(sd.InvalidArgument, match="lists of 1 and of 2"):
        _shards.vectors_of(block, {"b": ragged})


def test_a_key_that_comes_twice_and_a_failure_leave_no_attempt(place):
    entry = {"job": "j", **spec_of(), "splitters": None, "shards": [None]}
    table = pa.table({"k": [1, 2, 1], "v": [1, 2, 3]})
    with pytest.raises(sd.AlreadyExists, match="shard 0: a key of table 't' comes twice"):
        with _shards.Attempt(place, "j", 0) as attempt:
            _shards.build(attempt, "t", entry, [table], None, "error")
    with pytest.raises(RuntimeError):
        with _shards.Attempt(place, "j", 0) as attempt:
            _shards.build(attempt, "t", entry, iter_and_fail(table), None, "last")
    assert os.listdir(os.path.join(place, "shards", "j")) == []
    with _shards.Attempt(place, "j", 0) as attempt:
        made = _shards.build(attempt, "t", entry, [table], None, "last")
    assert made["rows"] == 2 and made["given"] == 3


def iter_and_fail(table):
    yield table
    raise RuntimeError("no more")


def test_an_update_begins_as_the_shard_was_and_leaves_that_alone(place):
    entry = {"job": "a", **spec_of(), "splitters": None, "shards": [None]}
    with _shards.Attempt(place, "a", 0) as attempt:
        first = _shards.build(attempt, "t", entry, [pa.table({"k": [1, 2], "v": [1, 2]})], None, "last")
    with _shards.Attempt(place, "b", 0) as attempt:
        second = _shards.build(attempt, "t", entry, [pa.table({"k": [2, 3], "v": [20, 30]})], first, "last")
    assert (first["rows"], second["rows"]) == (2, 3)
    for shard, expected in ((first, {1: 1, 2: 2}), (second, {1: 1, 2: 20, 3: 30})):
        table = _shards.open_shard(place, "t", {**entry, "shards": [shard]}, 0)
        assert {k: v["v"] for k, v in table.items()} == expected


def test_time_is_of_the_newest_file(place):
    os.makedirs(place + "/d")
    open(place + "/d/f", "w").close()
    os.utime(place + "/d", (1, 1))
    assert _manifest._last_change(place + "/d") > time.time() - 60
