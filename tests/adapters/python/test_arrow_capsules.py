"""Arrow data that are malformed, made by hand: an exception, whatever can be seen without the buffers' sizes."""

import ctypes
import struct

import numpy as np
import pyarrow as pa
import pytest

import stridedb as sd

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


_release_schema = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
_release_array = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.POINTER(Schema)),
    ("release", _release_schema), ("private", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)), ("release", _release_array), ("private", ctypes.c_void_p),
]
released = []


@_release_schema
def release_schema(schema):
    released.append("schema")
    schema.contents.release = ctypes.cast(None, _release_schema)


@_release_array
def release_array(array):
    released.append("array")
    array.contents.release = ctypes.cast(None, _release_array)


def _pointers(type, structures):
    return (ctypes.POINTER(type) * max(len(structures), 1))(*[ctypes.pointer(s) if s is not None else None for s in structures])


class Data:
    """An object with Arrow's interface and whatever in it."""

    def __init__(self, format, buffers, length, *, offset=0, nulls=0, children=(), dictionary=None, name=b"c", **changed):
        if format == b"+s":
            self.columns = []  # frames have some
        self.keep = [buffers, children, dictionary]
        raw = [None if b is None else ctypes.create_string_buffer(bytes(b), max(len(bytes(b)), 1)) for b in buffers]
        addresses = [None if b is None else ctypes.cast(b, ctypes.c_void_p).value for b in raw]
        self.buffers = (ctypes.c_void_p * max(len(raw), 1))(*addresses)
        self.keep.append(raw)
        self.schema = Schema(
            format, name, None, 2, len(children), _pointers(Schema, [c and c.schema for c in children]),
            ctypes.pointer(dictionary.schema) if dictionary else None, release_schema, None,
        )
        self.array = Array(
            length, nulls, offset, len(raw), len(children), self.buffers, _pointers(Array, [c and c.array for c in children]),
            ctypes.pointer(dictionary.array) if dictionary else None, release_array, None,
        )
        for field, value in changed.items():
            target, field = field.split("_", 1)
            setattr(getattr(self, target), field, value)

    def __arrow_c_array__(self, requested_schema=None):
        return (
            _new(ctypes.addressof(self.schema), b"arrow_schema", None),
            _new(ctypes.addressof(self.array), b"arrow_array", None),
        )


def i32(*numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


def i64(*numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


def view(length, buffer=0, offset=0, inlined=b"abcd"):
    return struct.pack("<i4sii", length, inlined, buffer, offset)


def ints(*numbers):
    return Data(b"l", [None, i64(*numbers)], len(numbers))


MALFORMED = {
    "no format": lambda: Data(None, [None, i64(1)], 1),
    "negative length": lambda: Data(b"l", [None, i64(1)], -1),
    "negative offset": lambda: Data(b"l", [None, i64(1)], 1, offset=-1),
    "huge offset": lambda: Data(b"l", [None, i64(1)], 1, offset=2**62),
    "huge length": lambda: Data(b"l", [None, i64(1)], 2**62),
    "no buffer": lambda: Data(b"l", [None, None], 1),
    "too few buffers": lambda: Data(b"l", [], 1),
    "no buffers": lambda: Data(b"l", [None, i64(1)], 1, array_buffers=None),
    "negative buffers": lambda: Data(b"l", [None, i64(1)], 1, array_n_buffers=-5),
    "no bits": lambda: Data(b"b", [None, None], 1),
    "strings: no offsets": lambda: Data(b"u", [None, None, b"abc"], 1),
    "strings: no data": lambda: Data(b"u", [None, i32(0, 3), None], 1),
    "strings: descending": lambda: Data(b"u", [None, i32(0, 3, 1), b"abc"], 2),
    "strings: negative": lambda: Data(b"u", [None, i32(-5, 3), b"abc"], 1),
    "large strings: descending": lambda: Data(b"U", [None, i64(5, 3), b"abc"], 1),
    "large strings: negative": lambda: Data(b"U", [None, i64(-1, 3), b"abc"], 1),
    "bytes: descending": lambda: Data(b"z", [None, i32(0, -3), b"abc"], 1),
    "strings: no UTF-8": lambda: Data(b"u", [None, i32(0, 2), b"\xff\xfe"], 1),
    "strings: half a character": lambda: Data(b"u", [None, i32(0, 1, 2), "é".encode()], 2),
    "strings: surrogates": lambda: Data(b"U", [None, i64(0, 3), b"\xed\xa0\x80"], 1),
    "views: no views": lambda: Data(b"vu", [None, None, i64()], 1),
    "views: negative": lambda: Data(b"vu", [None, view(-1), i64()], 1),
    "views: no buffer": lambda: Data(b"vu", [None, view(20, 0), i64()], 1),
    "views: wrong buffer": lambda: Data(b"vu", [None, view(20, 3), b"x" * 20, i64(20)], 1),
    "views: negative buffer": lambda: Data(b"vu", [None, view(20, -1), b"x" * 20, i64(20)], 1),
    "views: negative offset": lambda: Data(b"vu", [None, view(20, 0, -4), b"x" * 20, i64(20)], 1),
    "views: past the end": lambda: Data(b"vu", [None, view(20, 0, 1), b"x" * 20, i64(20)], 1),
    "views: no UTF-8": lambda: Data(b"vu", [None, view(2, inlined=b"\xff\xfe\0\0"), i64()], 1),
    "no dictionary": lambda: Data(b"i", [None, i32(0)], 1, dictionary=ints(1), array_dictionary=None),
    "dictionary: no entry": lambda: Data(b"i", [None, i32(5)], 1, dictionary=ints(1)),
    "dictionary: negative": lambda: Data(b"i", [None, i32(-1)], 1, dictionary=ints(1)),
    "dictionary: floats": lambda: Data(b"f", [None, i32(0)], 1, dictionary=ints(1)),
    "vectors: no child": lambda: Data(b"+w:2", [None], 1),
    "vectors: null child": lambda: Data(b"+w:2", [None], 1, children=[None]),
    "vectors: short child": lambda: Data(b"+w:2", [None], 2, children=[ints(1, 2, 3)]),
    "vectors: negative child": lambda: Data(b"+w:1", [None], 1, children=[Data(b"l", [None, i64(1)], -1)]),
    "vectors: none": lambda: Data(b"+w:0", [None], 1, children=[ints(1)]),
    "vectors: huge": lambda: Data(b"+w:99999999999", [None], 1, children=[ints(1)]),
    "vectors: of 2**32 bytes": lambda: Data(b"+w:536870912", [None], 1, children=[ints(1)]),
    "bytes: of 2**32": lambda: Data(b"w:4294967300", [None, b"abcd"], 1),
    "bytes: of none": lambda: Data(b"w:0", [None, b"abcd"], 1),
    "bytes: of -1": lambda: Data(b"w:-1", [None, b"abcd"], 1),
    "struct: too few columns": lambda: Data(b"+s", [None], 1, children=[ints(1)], array_n_children=0),
    "struct: null column": lambda: Data(b"+s", [None], 1, children=[ints(1), None]),
    "struct: short column": lambda: Data(b"+s", [None], 2, children=[ints(1)]),
    "struct: sliced past the end": lambda: Data(b"+s", [None], 1, offset=1, children=[ints(1)]),
    "struct: negative length": lambda: Data(b"+s", [None], -1, children=[ints(1)]),
    "struct: null rows": lambda: Data(b"+s", [b"\x01"], 2, nulls=1, children=[ints(1, 2)]),
    "unknown type": lambda: Data(b"?!", [None, i64(1)], 1),
    "empty type": lambda: Data(b"", [None, i64(1)], 1),
}


@pytest.mark.parametrize("make", MALFORMED.values(), ids=MALFORMED)
def test_malformed_data(db, make):
    released.clear()
    for type in (sd.i64, sd.str_, sd.vector(sd.i64, 2)):
        table = db.table(str(type), key=sd.i64, values={"c": sd.optional(type)})
        with pytest.raises(sd.InvalidArgument) as caught:
            table.put([1], {"c": make()})
        assert caught.value.message
        with pytest.raises(sd.InvalidArgument):
            table.put(make())
        assert len(table) == 0
    for use in (db.prefixes("p", bits=32).match, db["i64"].get, db["i64"].contains, lambda d: sd.RowSet().put(d, text=True)):
        with pytest.raises(sd.InvalidArgument):
            use(make())
    assert released.count("array") == released.count("schema") > 0


def test_the_same_by_hand_is_taken(db):
    table = db.table("t", key=sd.i64, values={"c": sd.optional(sd.str_)})
    frame = Data(b"+s", [None], 2, offset=1, children=[
        Data(b"l", [None, i64(9, 9, 1, 2)], 3, offset=1, name=b"key"),
        Data(b"u", [b"\x0f", i32(0, 0, 0, 3, 5), "éxyz".encode()], 3, offset=1),
    ])
    table.put(frame)
    assert dict(table.items()) == {1: {"c": "éx"}, 2: {"c": "yz"}}
    # Empty data may lack their buffers.
    for format in (b"u", b"U", b"vu", b"z", b"Z", b"vz"):
        table.put([], {"c": Data(format, [None, None, None], 0)}) if format in (b"u", b"U", b"vu") else None
        db.table("b", key=sd.i64, values=sd.optional(sd.bytes_)).put([], Data(format.replace(b"u", b"z").replace(b"U", b"Z"), [None, None, None], 0, offset=3))
    # Garbage below nulls is not looked at.
    table.put([3, 4], {"c": Data(b"u", [b"\x02", i32(0, 2, 3), b"\xff\xffz"], 2, nulls=1)})
    assert table.get([3, 4])["c"].to_list() == [None, "z"]


def test_data_that_were_read_before(db):
    table = db.table("t", key=sd.i64, values={"c": sd.i64})
    data = Data(b"+s", [None], 1, children=[Data(b"l", [None, i64(7)], 1, name=b"key"), ints(8)])
    table.put(data)
    with pytest.raises(sd.InvalidArgument, match="read before"):
        table.put(data)
    stream = pa.table({"key": [1], "c": [2]}).__arrow_c_stream__()

    class Once:
        def __arrow_c_stream__(self, requested_schema=None):
            return stream

    table.put(Once())
    with pytest.raises(sd.InvalidArgument, match="read before"):
        table.put(Once())
    reader = pa.RecordBatchReader.from_batches(pa.schema([("key", pa.int64()), ("c", pa.int64())]), iter([pa.record_batch({"key": [3], "c": [4]})]))
    table.put(reader)
    try:
        table.put(reader)  # a stream without batches, or one that is closed
    except Exception as error:
        assert "released" in str(error) or "closed" in str(error)
    assert dict(table.items()) == {7: {"c": 8}, 1: {"c": 2}, 3: {"c": 4}}


def test_streams_that_fail(db):
    table = db.table("t", key=sd.i64, values={"c": sd.i64})

    def batches(error):
        yield pa.record_batch({"key": [1], "c": [2]})
        raise error

    for error in (ValueError("the producer's"), KeyboardInterrupt("the producer's")):
        reader = pa.RecordBatchReader.from_batches(pa.schema([("key", pa.int64()), ("c", pa.int64())]), batches(error))
        with pytest.raises(BaseException) as caught:
            table.put(reader)
        assert isinstance(caught.value, (sd.InvalidArgument, type(error))) and "producer" in str(caught.value)
    assert len(table) == 0
    for wrong in (None, 5, (1,), (1, 2), (1, 2, 3), [1, 2]):
        odd = type("Odd", (), {"__arrow_c_array__": lambda self, schema=None: wrong})()
        with pytest.raises((sd.InvalidType, ValueError, TypeError)):
            table.get(odd)
        odd = type("Odd", (), {"__arrow_c_stream__": lambda self, schema=None: wrong, "__len__": lambda self: 1})()
        with pytest.raises((sd.InvalidType, ValueError, TypeError)):
            table.put(odd)


def test_exports_are_released(db):
    """Also where the consumer takes a schema alone, or nothing of it."""
    table = db.table("t", key=sd.i64, values={"c": sd.str_, "v": sd.vector(sd.f32, 2)})
    table.put({"key": [1], "c": ["x"], "v": [[1, 2]]})
    for _ in range(200):
        rows = table.get([1, 2])
        rows.__arrow_c_stream__(), rows.__arrow_c_array__(), rows.__arrow_c_schema__(), rows["v"].__arrow_c_array__(None)
        stream = pa.RecordBatchReader.from_stream(rows)
        assert stream.read_all().num_rows == 2
        with pytest.raises(StopIteration):
            stream.read_next_batch()
    array = pa.array(rows["c"])
    del rows, stream
    assert array.to_pylist() == ["x", None] and np.asarray(table.get([1])["v"]).tolist() == [[1, 2]]
