"""Ordered reads beside a sorted list: rows next to keys, counts of ranges, and cursors."""

import bisect
import gc
import ipaddress
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import stridedb as sd
from random_tables import KEY_TYPES, Model, cells_of, identity, new_name, order, plain, value_types


@st.composite
def models(draw, database, key=None):
    key = key or draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=3))
    model = Model(database, key, draw(st.lists(value_types(), min_size=1, max_size=3)))
    for rows in draw(st.lists(model.rows_strategy(), min_size=1, max_size=3)):
        model.put(rows)
    for key in draw(st.lists(st.sampled_from([k for k, _ in model.sorted()] or [None]), max_size=2)):
        if key is not None:
            model.table.delete([key])
            model.rows.pop(identity(key), None)
    return model


class Sorted:
    """The rows of a model in a range, and a position among them as a cursor has one."""

    def __init__(self, rows, start=None, stop=None):
        self.rows = [
            row for row in rows
            if (start is None or order(row[0]) >= order(start)) and (stop is None or order(row[0]) < order(stop))
        ]
        self.orders = [order(key) for key, _ in self.rows]
        self.at = None

    def row(self, i):
        return self.rows[i] if 0 <= i < len(self.rows) else None

    def lower_bound(self, key):
        return self.row(bisect.bisect_left(self.orders, order(key)))

    def upper_bound(self, key):
        return self.row(bisect.bisect_right(self.orders, order(key)))

    def previous_of(self, key):
        return self.row(bisect.bisect_right(self.orders, order(key)) - 1)

    def move_to(self, i):
        self.at = i if 0 <= i < len(self.rows) else None
        return self.at is not None

    def seek(self, key):
        return self.move_to(bisect.bisect_left(self.orders, order(key)))

    def seek_for_previous(self, key):
        return self.move_to(bisect.bisect_right(self.orders, order(key)) - 1)

    def seek_to_first(self):
        return self.move_to(0)

    def seek_to_last(self):
        return self.move_to(len(self.rows) - 1)

    def next(self):
        return self.at is not None and self.move_to(self.at + 1)

    def previous(self):
        return self.at is not None and self.move_to(self.at - 1)


def keys_near(model):
    """Keys that are there, and others."""
    there = [key for key, _ in model.sorted()]
    return model.keys() | st.sampled_from(there) if there else model.keys()


def value_of(model, row):
    return dict(zip(model.value_names, plain(row[1])))


def check_rows(model, found, expected):
    assert found.found.tolist() == [row is not None for row in expected]
    got = model.rows_of([found])
    for i, row in enumerate(expected):
        if row is not None:
            assert got[i] == model.expected([row])[0]
        else:
            assert found[i] is None and all(found[name][i] is None for name in found.columns)


@given(data=st.data())
def test_rows_next_to_keys(shared, data):
    model = data.draw(models(shared))
    wanted, rows = data.draw(st.lists(keys_near(model), max_size=10)), Sorted(model.sorted())
    table = model.table
    with shared.transaction(reads=True) as t:
        for call in (table.lower_bound, lambda keys: t.lower_bound(table, keys)):
            check_rows(model, call(wanted), [rows.lower_bound(key) for key in wanted])
        for call in (table.upper_bound, lambda keys: t.upper_bound(table, keys)):
            check_rows(model, call(wanted), [rows.upper_bound(key) for key in wanted])
        for call in (table.previous, lambda keys: t.previous(table, keys)):
            check_rows(model, call(wanted), [rows.previous_of(key) for key in wanted])


@given(data=st.data())
def test_counts(shared, data):
    model = data.draw(models(shared))
    table, rows, bound = model.table, model.sorted(), st.none() | keys_near(model)
    start, stop = data.draw(bound), data.draw(bound)
    expected = len(Sorted(rows, start, stop).rows)
    ranges = data.draw(st.lists(st.tuples(keys_near(model), keys_near(model)), max_size=10))
    starts, stops = [r[0] for r in ranges], [r[1] for r in ranges]
    all_expected = [len(Sorted(rows, *r).rows) for r in ranges]
    with shared.transaction(reads=True) as t:
        assert table.count(start, stop) == t.count(table, start, stop) == expected
        assert table.count() == t.count(table) == len(table) == len(rows)
        for counts in (table.counts(starts, stops), t.counts(table, starts, stops)):
            assert counts.dtype == np.uint64 and counts.tolist() == all_expected


MOVES = ["seek", "seek_for_previous", "seek_to_first", "seek_to_last", "next", "previous", "next", "previous"]


def check_moves(data, model, cursor, rows, count=20):
    for _ in range(data.draw(st.integers(0, count))):
        move = data.draw(st.sampled_from(MOVES))
        arguments = [data.draw(keys_near(model))] if move.startswith("seek") and "_to_" not in move else []
        is_valid = getattr(rows, move)(*arguments)
        assert getattr(cursor, move)(*arguments) is is_valid and cursor.valid is is_valid
        if is_valid:
            row = rows.rows[rows.at]
            assert plain(cursor.key) == plain(row[0])
            assert {name: plain(cell) for name, cell in cursor.value.items()} == value_of(model, row)
    rest = rows.rows[rows.at or 0:] if rows.at is not None else []
    assert [plain(key) for key, _ in cursor] == [plain(key) for key, _ in rest] and not cursor.valid


@settings(max_examples=50)
@given(data=st.data())
def test_cursors(shared, data):
    model = data.draw(models(shared))
    bound = st.none() | keys_near(model)
    start, stop = data.draw(bound), data.draw(bound)
    rows = Sorted(model.sorted(), start, stop)
    with model.table.cursor(start, stop) as cursor:
        assert cursor.valid is False and cursor.next() is False and cursor.previous() is False
        assert cursor.seek_to_first() is rows.seek_to_first()
        check_moves(data, model, cursor, rows)
    cursor = model.table.cursor(start, stop)
    got = [(plain(key), tuple(plain(cell) for cell in value.values())) for key, value in cursor]
    assert got == model.expected(rows.rows)


@pytest.mark.parametrize("type", KEY_TYPES, ids=str)
@settings(max_examples=8)
@given(data=st.data())
def test_cursors_of_each_type(shared, type, data):
    model = data.draw(models(shared, [type]))
    cursor, rows = model.table.cursor(), Sorted(model.sorted())
    assert cursor.seek_to_last() is rows.seek_to_last()
    check_moves(data, model, cursor, rows)


@given(data=st.data())
def test_cursors_of_transactions(shared, data):
    """A cursor has the changes of before, and none that come later."""
    model = data.draw(models(shared))
    changed, gone = data.draw(model.rows_strategy()), data.draw(st.lists(keys_near(model), max_size=3))
    kept = dict(model.rows)
    t = shared.transaction(reads=True)
    t.put(model.table, model.frame(changed))
    t.delete(model.table, gone)
    kept.update({identity(key): (key, value) for key, value in changed})
    for key in gone:
        kept.pop(identity(key), None)
    rows = Sorted(sorted(kept.values(), key=lambda row: order(row[0])))
    cursor = t.cursor(model.table)
    t.delete_range(model.table)
    model.table.delete_range()
    assert cursor.seek_to_first() is rows.seek_to_first()
    check_moves(data, model, cursor, rows)
    t.abort()


def test_prefixes_and_parts_of_keys(db):
    table = db.table("t", key=[("a", sd.str_), ("b", sd.i32)], values=sd.i64)
    keys = [("x", 1), ("x", 5), ("y", -1), ("y", 2), ("z", 0)]
    table.put(keys, range(5))
    cursor = table.cursor(prefix=("y",))
    assert list(cursor) == [(("y", -1), 2), (("y", 2), 3)]
    cursor = table.cursor(("x", 5), ("z",))
    assert [key for key, _ in cursor] == keys[1:4]
    assert cursor.seek(("y",)) and cursor.key == ("y", -1) and cursor.value == 2
    assert cursor.seek_for_previous(("y",)) and cursor.key == ("x", 5)
    assert table.count(("y",)) == 3 and table.count(("x", 2), ("y", 0)) == 2
    assert table.counts([("x", 2), ("a", 0)], [("y", 0), ("zz", 0)]).tolist() == [2, 5]
    texts = db.table("texts", key=sd.str_, values={"n": sd.i64})
    texts.put(["a", "ab", "abc", "b"], {"n": range(4)})
    assert [key for key, _ in texts.cursor(prefix="ab")] == ["ab", "abc"]
    assert texts.cursor(prefix="ab", stop="abc").seek_to_last()
    with pytest.raises(sd.InvalidArgument, match="a prefix is asked for"):
        db.table("numbers", key=sd.i64, values=sd.i64).cursor(prefix=1)


def test_tables_of_prefixes_counters_and_bytes(db):
    routes = db.prefixes("routes", bits=32, values={"n": sd.i64})
    routes.put(["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"], {"n": [1, 2, 3]})
    cursor = routes.cursor()
    assert [key for key, _ in cursor] == list(routes) == ["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"]
    assert cursor.seek(ipaddress.ip_network("10.1.0.0/16")) and cursor.value == {"n": 2}
    assert cursor.seek_for_previous("10.255.0.0/16") and cursor.key == "10.1.0.0/16"
    assert [key for key, _ in routes.cursor(prefix="10.0.0.0/8")] == ["10.0.0.0/8", "10.1.0.0/16"]
    assert routes.upper_bound(["10.0.0.0/8"])["prefix"].to_list() == ["10.1.0.0/16"]
    assert routes.previous(["10.0.0.0/7"]).found.tolist() == [False]
    assert routes.count("10.1.0.0/16") == 2 and routes.counts(["10.0.0.0/8"], ["11.0.0.0/8"]).tolist() == [2]
    counters = db.counters("counters", key=sd.str_)
    counters.add(["a", "b", "a"], 1)
    assert list(counters.cursor()) == [("a", 2), ("b", 1)]
    plain_table = db.table("plain")
    plain_table.put([b"", b"\0", b"k"], [b"empty", b"", b"v"])
    assert list(plain_table.cursor()) == [(b"", b"empty"), (b"\0", b""), (b"k", b"v")]
    assert plain_table.cursor().seek_for_previous(b"") and plain_table.count(b"\0") == 2


def test_loops_go_on_where_the_cursor_is(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put(range(10), range(10))
    cursor = table.cursor(2, 8)
    for key, value in cursor:
        assert cursor.key == key == cursor.value == value
        if key == 4:
            break
    assert cursor.key == 4 and next(cursor) == (5, 5) and [key for key, _ in cursor] == [5, 6, 7]
    assert list(cursor) == [] and cursor.seek_to_last() and list(cursor) == [(7, 7)]
    jumps = []
    cursor.seek_to_first()
    for key, _ in cursor:
        jumps.append(key)
        cursor.seek(key + 2)
    assert jumps == [2, 4, 6]
    with pytest.raises(StopIteration):
        next(cursor)


@pytest.fixture
def table(db):
    table = db.table("t", key=sd.i64, values=sd.i64)
    table.put([1, 3, 5, 7], [10, 30, 50, 70])
    return table


def test_errors(db, table):
    cursor = table.cursor()
    for read in (lambda: cursor.key, lambda: cursor.value):
        for at_none in (lambda: None, lambda: cursor.seek(8), lambda: cursor.seek_for_previous(0)):
            at_none()
            with pytest.raises(sd.InvalidArgument, match="at no row") as caught:
                read()
            assert caught.value.remedy
    t = db.transaction(reads=True)
    for call in (
        cursor.seek, cursor.seek_for_previous, table.upper_bound, table.previous, lambda k: table.count(k),
        lambda k: table.counts([1], k),
        lambda k: table.cursor(k), lambda k: table.cursor(stop=k), lambda k: t.cursor(table, k),
        lambda k: t.count(table, stop=k),
        lambda k: t.counts(table, k, [1]), lambda k: t.upper_bound(table, k), lambda k: t.previous(table, k),
    ):
        for bad in ("x", b"x", 1.5, 2**63, ["x"], object()):
            with pytest.raises(sd.InvalidArgument):
                call(bad)
    for call in (cursor.seek, cursor.seek_for_previous, table.upper_bound, table.previous):
        with pytest.raises(sd.InvalidArgument):
            call(None)
    with pytest.raises(sd.InvalidArgument, match="2 starts and 1 stops"):
        table.counts([1, 2], [1])
    with pytest.raises(sd.InvalidArgument):
        table.counts([1, None], [1, 2])
    # What was refused has moved nothing.
    cursor.seek(3)
    with pytest.raises(sd.InvalidType):
        cursor.seek("x")
    assert cursor.key == 3 and cursor.value == 30


def test_closed_cursors(table):
    with table.cursor() as cursor:
        assert cursor.seek(3)
    cursor.close()
    assert not cursor.valid
    for call in (
        lambda: cursor.seek(3), lambda: cursor.seek_for_previous(3), cursor.seek_to_first, cursor.seek_to_last,
        cursor.next, cursor.previous, lambda: cursor.key, lambda: cursor.value, lambda: list(cursor),
    ):
        with pytest.raises(sd.Closed, match="the cursor is closed"):
            call()
    with pytest.raises(ZeroDivisionError):
        with table.cursor() as cursor:
            1 / 0
    with pytest.raises(sd.Closed):
        cursor.next()


def test_cursors_outlive_their_database(db, table):
    """They show the table as it was, and go on after close()."""
    cursor, before = table.cursor(3), db.snapshot()["t"]
    cursor.seek(5)
    table.delete_range()
    table.put([4], [40])
    db.compact()
    assert cursor.key == 5 and cursor.previous() and cursor.key == 3
    assert before.count() == 4 and before.counts([1], [6]).tolist() == [3] and list(before.cursor(5))[0] == (5, 50)
    db.close()
    for call in (
        table.cursor, table.count, lambda: table.counts([1], [2]), lambda: table.upper_bound([1]),
        lambda: table.previous([1]),
    ):
        with pytest.raises(sd.Closed):
            call()
    del table, db
    gc.collect()
    assert [key for key, _ in cursor] == [3, 5, 7] and cursor.seek_for_previous(6) and cursor.value == 50
    assert before.previous([6])["value"].to_list() == [50] and before.cursor().seek_to_last()


def test_a_conflict_through_a_cursor(db, table):
    t = db.transaction(reads=True)
    cursor = t.cursor(table)
    assert cursor.seek(2) and cursor.key == 3 and cursor.next() and cursor.key == 5
    t.put(table, [9], [0])
    table[4] = 40  # which it has passed over
    with pytest.raises(sd.Conflict, match="table 't'"):
        t.commit()
    assert 9 not in table
    with pytest.raises(sd.Closed):
        cursor.next()
    # What it has not come to is none.
    with db.transaction(reads=True) as t:
        cursor = t.cursor(table)
        assert cursor.seek_for_previous(2) and cursor.key == 1
        t.put(table, [9], [0])
        table[6] = 60
    assert table[9] == 0


@pytest.mark.parametrize(
    "read, other",
    [
        (lambda t, table: t.upper_bound(table, [3]), 4), (lambda t, table: t.previous(table, [6]), 6),
        (lambda t, table: t.lower_bound(table, [2]), 2),
        (lambda t, table: t.count(table, 4, 9), 8), (lambda t, table: t.counts(table, [0, 4], [1, 9]), 8),
        (lambda t, table: list(t.cursor(table, 6)), 100),
    ],
    ids=["upper_bound", "previous", "lower_bound", "count", "counts", "cursor"],
)
def test_what_counts_as_read(db, table, read, other):
    t = db.transaction(reads=True)
    read(t, table)
    t.put(table, [-1], [0])
    table[other] = 0
    with pytest.raises(sd.Conflict):
        t.commit()
    with db.transaction(reads=True) as t:
        read(t, table)
        t.put(table, [-1], [0])
        table[-5] = 0
    assert table[-1] == 0


def test_transactions_that_do_not_read(db, table):
    t = db.transaction()
    for call in (
        lambda: t.cursor(table), lambda: t.count(table), lambda: t.counts(table, [1], [2]),
        lambda: t.lower_bound(table, [1]), lambda: t.upper_bound(table, [1]), lambda: t.previous(table, [1]),
    ):
        with pytest.raises(sd.InvalidArgument, match="does not read"):
            call()
    t.abort()
    with pytest.raises(sd.Closed):
        t.cursor(table)
    with pytest.raises(sd.InvalidArgument, match="snapshot"):
        db.transaction(reads=True).cursor(db.snapshot()["t"])


def in_threads(*works):
    failed = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not any(t.is_alive() for t in threads)
    if failed:
        raise failed[0]


def test_a_cursor_of_many_threads(db):
    table = db.table("many", key=sd.i64, values=sd.str_)
    n = 5000
    table.put(range(n), [f"value {i}" for i in range(n)])
    cursor, seen = table.cursor(), []

    def iterate():
        for key, value in cursor:
            assert value == f"value {key}"
            seen.append(key)

    in_threads(*[lambda: seen.extend(next(cursor)[0] for _ in range(n // 4))] * 4)
    assert sorted(seen) == list(range(n))

    def move(i):
        for k in range(1000):
            cursor.seek((i * k) % n)
            cursor.next(), cursor.previous(), cursor.valid
            try:
                assert cursor.value.startswith("value") and 0 <= cursor.key < n
            except sd.InvalidArgument as error:  # another thread has moved it past an end
                assert "at no row" in str(error)

    in_threads(*[lambda i=i: move(i) for i in range(4)])
    cursor.seek_to_last()
    in_threads(iterate, lambda: [cursor.seek_to_first() for _ in range(20)], iterate)

    def until_closed():
        with pytest.raises(sd.Closed):
            while True:
                cursor.seek(5)

    in_threads(until_closed, until_closed, cursor.close)


def test_a_cursor_of_a_transaction_that_others_use(db, table):
    """Of two calls at once one is refused. A change that is refused so ends the transaction."""
    many = db.table("many", key=sd.i64, values=sd.i64)

    def refusable(call):
        try:
            call()
        except (sd.InvalidArgument, sd.Closed) as error:
            assert str(error)

    for _ in range(5):
        t = db.transaction(reads=True)
        cursor = t.cursor(table)

        def put():
            for k in range(50):
                refusable(lambda: t.put(many, np.arange(k * 1000, k * 1000 + 1000), np.arange(1000)))

        def check(keys):
            assert keys == sorted(keys) and set(keys) <= {1, 3, 5, 7}

        def move():
            for _ in range(200):
                refusable(lambda: check([key for key, _ in t.cursor(table)]))
                refusable(cursor.seek_to_first)
                refusable(cursor.next)

        in_threads(put, move, move)
        t.abort()
    assert len(many) == 0
