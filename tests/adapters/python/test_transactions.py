"""Transactions: all or nothing, and what may not be done with them."""

import threading

import numpy as np
import pytest

import stridedb as sd


@pytest.fixture
def table(db):
    return db.table("t", key=sd.i64, values=sd.i64)


def test_all_or_nothing(db, table):
    other = db.counters("c", sd.i64)
    with db.transaction() as t:
        t.put(table, [1, 2], [10, 20])
        t.add(other, [b"a", b"a"], 3)
        t.delete(table, 2)
        assert t.staged_rows == 5 and len(table) == 0
    assert dict(table.items()) == {1: 10} and dict(other.items()) == {b"a": 6}
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as t:
            t.put(table, [5], [5])
            1 / 0
    t = db.transaction()
    t.put(table, [5], [5])
    t.abort()
    t.abort()
    del t
    t = db.transaction()
    t.put(table, [5], [5])
    del t
    with db.transaction() as t:
        t.delete_range(table, 0, 5)
        t.put(table, [7], [7])
    assert dict(table.items()) == {7: 7}


def test_rows_that_were_new(db, table):
    table.put([1], [1])
    with db.transaction() as t:
        t.put_if_absent(table, [1, 2], [5, 5])
        with pytest.raises(sd.InvalidArgument, match="once the transaction is committed"):
            t.was_new()
        t.put_if_absent(table, {"key": [2, 3], "value": [6, 6]})
    assert t.was_new().tolist() == [False, True, False, True]
    t = db.transaction()
    t.abort()
    with pytest.raises(sd.InvalidArgument):
        t.was_new()


def test_use_after_the_end(db, table):
    t = db.transaction()
    t.put(table, [1], [1])
    t.commit()
    aborted = db.transaction()
    aborted.abort()
    failed = db.transaction()
    with pytest.raises(sd.InvalidArgument):
        failed.put(table, ["x"], [1])
    for ended in (t, aborted, failed):
        for call in (
            lambda: ended.put(table, [2], [2]), lambda: ended.put_if_absent(table, [2], [2]),
            lambda: ended.delete(table, 1),
            lambda: ended.delete_range(table), lambda: ended.commit(), lambda: ended.staged_rows,
        ):
            with pytest.raises(sd.Closed, match="the transaction has ended"):
                call()
        with ended:
            pass
    assert dict(table.items()) == {1: 1}


def test_a_table_of_another_database(db, table, tmp_path):
    with sd.open(tmp_path / "other") as other:
        foreign = other.table("t", key=sd.i64, values=sd.i64)
        t = db.transaction()
        for call in (lambda: t.put(foreign, [1], [1]), lambda: t.delete(foreign, 1), lambda: t.delete_range(foreign)):
            with pytest.raises(sd.InvalidArgument, match="of another database"):
                call()
        with pytest.raises(sd.ReadOnly):
            t.put(db.snapshot()["t"], [1], [1])
        t.put(table, [1], [1])
        t.commit()
        assert len(foreign) == 0 and len(table) == 1


def test_a_table_that_is_dropped(db, table):
    t = db.transaction()
    t.put(table, [1], [1])
    db.drop("t")
    with pytest.raises(sd.StrideError):
        t.commit()
    for call in (lambda: table[1], lambda: table.put([1], [1]), table.segments, lambda: list(table.scan())):
        with pytest.raises(sd.StrideError):
            call()
    assert db.tables() == []


def test_calls_within_calls(db, table):
    """An object that is read may use the transaction that reads it: it is refused."""
    seen = []

    class Odd:
        def __init__(self, action):
            self.action = action

        def __array__(self, dtype=None, copy=None):
            try:
                self.action()
            except sd.StrideError as error:
                seen.append(str(error))
            return np.array([1, 2])

    t = db.transaction()
    for action in (
        t.abort, t.commit, lambda: t.put(table, [9], [9]), lambda: t.staged_rows, lambda: t.was_new(),
        lambda: t.__exit__(None, None, None)
    ):
        t.put(table, Odd(action), [1, 2])
    assert len(seen) == 6 and all("in use" in s for s in seen)
    # What does not touch it is fine: reads and writes of the same table.
    t.put(table, Odd(lambda: table.put([3], [table.get(1, 0)])), Odd(lambda: db.compact()))
    t.commit()
    assert dict(table.items()) == {1: 1, 2: 2, 3: 0}
    table.put(Odd(lambda: table.put(Odd(lambda: table.delete_range()), [5, 5])), [7, 7])
    assert dict(table.items()) == {1: 7, 2: 7}
    with pytest.raises(sd.Closed):
        table.put(Odd(db.close), [8, 8])
    with pytest.raises(sd.Closed):
        table.get(Odd(db.close))
    with sd.open(db.path) as again:
        assert dict(again["t"].items()) == {1: 7, 2: 7}


def test_lists_that_change_while_they_are_read(db):
    table = db.table("t", key=sd.i64, values=sd.f64)
    for shrink in (list.clear, list.pop, lambda l: l.__delitem__(slice(1, None)), lambda l: l.extend([5] * 1000)):
        keys = []

        class Odd:
            def __index__(self):
                shrink(keys)
                return 1

            __float__ = __index__

        keys[:] = [Odd() for _ in range(100)]
        try:
            table.put(keys, [1.0] * 100)
        except sd.InvalidArgument as error:
            assert "shorter" in str(error) or "rows" in str(error)
        values = keys = [Odd() for _ in range(100)]
        try:
            table.put(range(100), values)
        except (sd.InvalidArgument, TypeError) as error:
            assert str(error)


def test_a_transaction_of_many_threads(db, table):
    """One at a time has its way, the others are told; nothing is half there."""
    t = db.transaction()
    outcomes = []

    def work(i):
        for k in range(200):
            try:
                t.put(table, np.arange(i * 1000 + k * 4, i * 1000 + k * 4 + 4), np.full(4, i))
                outcomes.append((i * 1000 + k * 4, i))
            except sd.InvalidArgument as error:
                assert "in use" in str(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [x.start() for x in threads], [x.join() for x in threads]
    t.commit()
    assert len(table) == 4 * len(outcomes)
    assert all(table[first] == value for first, value in outcomes)


def test_progress(db, table):
    shares = []
    n = 200_000
    table.put(np.arange(n), np.arange(n), progress=shares.append)
    assert len(table) == n and all(0 <= s <= 1 for s in shares) and shares == sorted(shares)

    def raises(share):
        raise KeyError("from progress")

    for bad in (raises, 5, lambda: None):
        before = len(table)
        try:
            table.put(np.arange(n, 2 * n), np.arange(n), progress=bad)
        except (KeyError, TypeError):
            assert len(table) in (before, 2 * n)
    with pytest.raises(KeyError, match="from progress"):
        table.put(np.arange(3 * n, 5 * n), np.arange(2 * n), progress=raises)
    assert 3 * n not in table


def test_reads_its_own_changes(db, table):
    table.put([1, 2, 3], [10, 20, 30])
    with db.transaction(reads=True) as t:
        t.put(table, [2, 4], [21, 40])
        t.delete(table, 3)
        assert t.get(table, 1) == 10 and t.get(table, 2) == 21 and t.get(table, 3) is None
        assert t.get(table, 9, "none") == "none"
        rows = t.get(table, np.array([1, 2, 3, 4]))
        assert rows.found.tolist() == [True, True, False, True]
        assert rows["value"].to_list() == [10, 21, None, 40]
        assert t.contains(table, 4) is True and t.contains(table, 3) is False
        assert t.contains(table, [1, 3]).tolist() == [True, False]
        assert [row for rows in t.scan(table, 2) for row in rows["key"].to_list()] == [2, 4]
        assert [row for rows in t.scan(table, reverse=True) for row in rows["key"].to_list()] == [4, 2, 1]
        t.delete_range(table, None, 2)
        assert t.get(table, 1) is None
    assert dict(table.items()) == {2: 21, 4: 40}


def test_conflicts(db, table):
    table.put([1, 2], [10, 20])
    t = db.transaction(reads=True)
    assert t.get(table, 1) == 10
    t.put(table, [2], [t.get(table, 1)])
    table[1] = 11
    with pytest.raises(sd.Conflict, match="key 1 of table 't'") as caught:
        t.commit()
    assert caught.value.remedy and dict(table.items()) == {1: 11, 2: 20}
    with pytest.raises(sd.Closed):
        t.get(table, 1)
    # A key that comes into a range that was read.
    t = db.transaction(reads=True)
    scan = t.scan(table, 5, 9)
    assert list(scan) == []
    t.put(table, [2], [0])
    table[7] = 1
    with pytest.raises(sd.Conflict):
        t.commit()
    with pytest.raises(sd.Closed):
        next(t.scan(table))
    # What was not read is none.
    with db.transaction(reads=True) as t:
        assert t.get(table, 1) == 11
        t.put(table, [2], [12])
        table[7] = 2
    assert table[2] == 12


def test_retry(db, table):
    table[1] = 0
    calls = []

    def add(t):
        before = t.get(table, 1)
        calls.append(before)
        if len(calls) == 1:
            table[1] = 100
        t.put(table, [1], [before + 1])
        return before

    assert db.retry(add) == 100 and calls == [0, 100] and table[1] == 101

    def always(t):
        t.put(table, [1], [t.get(table, 1) + 1])
        table[1] = table[1]

    with pytest.raises(sd.Conflict):
        db.retry(always, limit=3)
    assert table[1] == 101
    with pytest.raises(ZeroDivisionError):
        db.retry(lambda t: (t.put(table, [1], [0]), 1 / 0))
    with pytest.raises(sd.InvalidArgument, match="limit"):
        db.retry(add, limit=0)
    assert table[1] == 101


def test_threads_count_together(db, table):
    table[1] = 0

    def count():
        for _ in range(100):
            db.retry(lambda t: t.put(table, [1], [t.get(table, 1) + 1]), limit=10_000)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table[1] == 400


def test_what_only_one_kind_does(db, table):
    counters = db.counters("c", sd.i64)
    with db.transaction() as t:
        for call in (lambda: t.get(table, 1), lambda: t.contains(table, 1), lambda: t.scan(table)):
            with pytest.raises(sd.InvalidArgument, match="does not read"):
                call()
    for call in (
        lambda t: t.put_if_absent(table, [1], [1]),
        lambda t: t.add(counters, [b"a"], 1),
    ):
        t = db.transaction(reads=True)
        with pytest.raises(sd.InvalidArgument, match="that reads"):
            call(t)
    t = db.transaction(reads=True)
    with pytest.raises(sd.InvalidArgument, match="snapshot"):
        t.get(db.snapshot()["t"], 1)
    with pytest.raises(sd.InvalidType):
        t.get(table, "x")
    t.abort()
