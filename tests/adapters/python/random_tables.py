"""Strategies for types of columns, their cells, and tables, and what a table has as plain Python objects."""

import datetime
import itertools
import struct

import numpy as np
from hypothesis import strategies as st

import stridedb as sd

_EPOCH = datetime.datetime(1970, 1, 1)
_numbers = itertools.count()


def new_name():
    """A table's name that no other example has."""
    return f"t{next(_numbers)}"


def _integers(bits, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high, 0, 1])


def _times(microseconds):
    datetimes = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
    return datetimes.map(lambda t: t.replace(microsecond=t.microsecond // microseconds * microseconds, fold=0))


_nanoseconds = st.integers(-(2**62), 2**62).map(lambda n: np.datetime64(n, "ns"))

# The cells of each type, as Python has them.
CELLS = {
    sd.bool_: st.booleans(),
    **{getattr(sd, f"i{bits}"): _integers(bits, True) for bits in (8, 16, 32, 64)},
    **{getattr(sd, f"u{bits}"): _integers(bits, False) for bits in (8, 16, 32, 64)},
    sd.f32: st.floats(allow_nan=False, width=32),
    sd.f64: st.floats(allow_nan=False),
    sd.date: st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    sd.timestamp_s: _times(1_000_000),
    sd.timestamp_ms: _times(1000),
    sd.timestamp_us: _times(1),
    sd.timestamp_ns: _nanoseconds,
    sd.uuid: st.uuids(),
    sd.str_: st.text(max_size=20),
    sd.bytes_: st.binary(max_size=20),
    sd.fixed_bytes(5): st.binary(min_size=5, max_size=5),
    sd.fixed_bytes(16): st.binary(min_size=16, max_size=16),
}
KEY_TYPES = list(CELLS)
VECTORS = {
    sd.vector(element, count): st.tuples(*[CELLS[element]] * count)
    for element, count in [
        (sd.f32, 3), (sd.f64, 1), (sd.i8, 4), (sd.u16, 2), (sd.i64, 3), (sd.bool_, 5), (sd.u8, 16),
        (sd.timestamp_us, 2),
        (sd.date, 2),
    ]
}
ALL_CELLS = {**CELLS, **VECTORS}


def cells_of(type):
    """The cells of a type, None among them where it is nullable."""
    cells = ALL_CELLS[sd.Type(str(type).rstrip("?"))]
    return cells | st.none() if type.nullable else cells


def value_types():
    plain = st.sampled_from(list(ALL_CELLS))
    return plain | plain.map(sd.optional)


def plain(cell):
    """A cell as an object that can be compared and hashed."""
    if isinstance(cell, np.ndarray):
        return plain(tuple(cell.astype("M8[us]").tolist())) if cell.dtype.kind == "M" else tuple(cell.tolist())
    if isinstance(cell, (tuple, list)):
        return tuple(plain(c) for c in cell)
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime(cell.year, cell.month, cell.day)  # NumPy's dates in microseconds are these
    return cell


def given(cell):
    return list(cell) if isinstance(cell, tuple) else cell


def order(cell):
    """What sorts cells of one type as the table does: floats as IEEE 754's total order has them."""
    if isinstance(cell, tuple):
        return tuple(order(c) for c in cell)
    if isinstance(cell, float):
        bits = struct.unpack(">q", struct.pack(">d", cell))[0]
        return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF) - 1
    if isinstance(cell, str):
        return cell.encode()
    if isinstance(cell, np.datetime64):
        return int(cell.astype(np.int64))
    return cell.bytes if hasattr(cell, "bytes") else plain(cell)


class Model:
    """A table beside a dict of keys and rows, both of random columns."""

    def __init__(self, database, key, values):
        self.key, self.values = key, values
        self.key_names = [f"k{i}" for i in range(len(key))]
        self.value_names = [f"v{i}" for i in range(len(values))]
        self.table = database.table(
            new_name(), key=list(zip(self.key_names, key)), values=dict(zip(self.value_names, values))
        )
        self.rows = {}

    def keys(self):
        """A strategy for keys: those of one column are no tuples."""
        cells = [cells_of(type) for type in self.key]
        return cells[0] if len(cells) == 1 else st.tuples(*cells)

    def rows_strategy(self, max_size=12):
        row = st.tuples(self.keys(), st.tuples(*[cells_of(type) for type in self.values]))
        return st.lists(row, max_size=max_size)

    def frame(self, rows):
        """A dict of columns, as a caller gives one."""
        keys = [[k] if len(self.key) == 1 else list(k) for k, _ in rows]
        columns = {name: [k[i] for k in keys] for i, name in enumerate(self.key_names)}
        columns.update({name: [given(v[i]) for _, v in rows] for i, name in enumerate(self.value_names)})
        return columns

    def put(self, rows):
        self.table.put(self.frame(rows))
        self.rows.update({identity(k): (k, v) for k, v in rows})

    def columns_of(self, keys):
        """Keys as the table takes a column of them."""
        return list(keys)

    def sorted(self):
        return sorted(self.rows.values(), key=lambda row: order(row[0]))

    def rows_of(self, batches):
        """What Rows with key columns have, as pairs of key and row."""
        result = []
        for batch in batches:
            keys = [batch[name].to_list() for name in self.key_names]
            values = [batch[name].to_list() for name in self.value_names]
            for i in range(len(batch)):
                key = keys[0][i] if len(keys) == 1 else tuple(k[i] for k in keys)
                result.append((plain(key), tuple(plain(v[i]) for v in values)))
        return result

    def expected(self, rows):
        return [(plain(k), plain(v)) for k, v in rows]


def identity(key):
    """Keys are the same where their bytes are: 0.0 and -0.0 are two."""
    return repr(order(key))
