"""Many threads at once, some of which close what others use."""

import threading
import time

import numpy as np
import pytest

import stridedb as sd


def run(*works, seconds=60):
    """Runs functions in threads, and raises what one of them has raised."""
    failed = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    [t.start() for t in threads]
    [t.join(seconds) for t in threads]
    assert not any(t.is_alive() for t in threads)
    if failed:
        raise failed[0]


def test_puts_and_reads(db):
    table = db.table("t", key=sd.i64, values={"a": sd.i64, "s": sd.str_})
    counters = db.counters("c")
    done = []

    def write(i):
        for k in range(40):
            keys = np.arange(i * 10_000, i * 10_000 + 50) + k * 50
            table.put({"key": keys, "a": keys * 2, "s": [str(x) for x in keys]})
            counters.add([b"sum"], 1)
        done.append(i)

    def read():
        while len(done) < 3:
            rows = table.get(np.arange(0, 40_000, 17))
            found = rows.found
            assert (rows["a"].numpy(fill=-1)[found] == np.arange(0, 40_000, 17)[found] * 2).all()
            for batch in table.scan():
                assert (batch["a"].numpy() == batch["key"].numpy() * 2).all()
            table.get(5), len(table), 5 in table

    run(*[lambda i=i: write(i) for i in range(3)], read, read)
    assert len(table) == 3 * 2000 and counters[b"sum"] == 120


@pytest.mark.parametrize("turn", range(8))
def test_two_close_while_others_read_and_write(path, turn):
    db = sd.open(path, durability="none")
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put(np.arange(5000), np.arange(5000))
    ended = []

    def until_closed(call):
        def work():
            try:
                while True:
                    call()
            except sd.Closed:
                ended.append(1)

        return work

    def close():
        time.sleep(0.01 * turn)
        db.close()

    def read():
        assert table.get(np.arange(5000))["value"].numpy().sum() == 5000 * 4999 // 2

    def scan():
        assert sum(len(rows) for rows in table.scan(stop=5000)) == 5000

    def transact():
        with db.transaction() as t:
            t.put(table, [7000], [1])

    run(
        until_closed(read), until_closed(scan), until_closed(transact), until_closed(lambda: table.put([6000], [1])),
        until_closed(lambda: table[5]), close, close,
    )
    assert len(ended) == 5
    with sd.open(path) as again:
        assert len(again["t"]) in (5000, 5001, 5002)


def test_a_scan_of_many_threads(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put(np.arange(50_000), np.arange(50_000))
    scan, seen = table.scan(batch_rows=100), []

    def work():
        for rows in scan:
            seen.append(rows["key"].numpy())

    run(*[work] * 4)
    assert np.sort(np.concatenate(seen)).tolist() == list(range(50_000))


def test_tables_are_made_and_dropped(db):
    def work(i):
        for k in range(10):
            table = db.table(f"shared{k}", key=sd.i64, values=sd.i64)
            try:
                table.put([i], [k])
                db.drop(f"shared{k}")
            except sd.StrideError:  # another thread has dropped it
                pass
            db.tables(), db.statistics()

    run(*[lambda i=i: work(i) for i in range(4)])
    assert set(db.tables()) <= {f"shared{k}" for k in range(10)}


def test_a_plan_of_many_threads(db):
    table = db.table("m", key=sd.u32, values=sd.u32)
    table.put(np.arange(1000), np.arange(1000) % 7)
    plan, weights = db.plan("m"), np.arange(1000)
    expected = plan.map(weights).tolist()

    def work():
        for _ in range(50):
            assert plan.map(weights).tolist() == expected

    run(*[work] * 4)


def test_one_array_is_read_while_another_thread_changes_it(db):
    """Whatever is put, it is numbers that the array had."""
    table = db.table("t", key=sd.i64, values=sd.i64)
    keys, values, done = np.arange(2000), np.zeros(2000, "i8"), []

    def write():
        for k in range(200):
            values[:] = k
        done.append(1)

    def put():
        table.put(keys, values)
        while not done:
            table.put(keys, values)

    run(write, put)
    got = table.get(keys)["value"].numpy()
    assert ((got >= 0) & (got < 200)).all()
