"""Types of columns, and those cells that Python has classes for: times and UUIDs."""

from __future__ import annotations

import datetime as _datetime
import uuid as _uuid
from typing import Optional, Union

import numpy as np

from ._core import Type, fixed_bytes, optional, vector

bool_ = Type("bool")
i8, i16, i32, i64 = (Type(f"i{bits}") for bits in (8, 16, 32, 64))
u8, u16, u32, u64 = (Type(f"u{bits}") for bits in (8, 16, 32, 64))
f32, f64 = Type("f32"), Type("f64")
date = Type("date")
timestamp_s = Type("timestamp[s]")
timestamp_ms = Type("timestamp[ms]")
timestamp_us = Type("timestamp[us]")
timestamp_ns = Type("timestamp[ns]")
timestamp = timestamp_us
uuid = Type("uuid")
str_ = Type("string")
bytes_ = Type("bytes")

# What Python's own types stand for where a type is asked for.
PYTHON_TYPES = {
    bool: bool_,
    int: i64,
    float: f64,
    str: str_,
    bytes: bytes_,
    _datetime.date: date,
    _datetime.datetime: timestamp_us,
    _uuid.UUID: uuid,
}

_EPOCH = _datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = _datetime.timedelta(microseconds=1)
_MICROSECONDS = {"timestamp[s]": 1_000_000, "timestamp[ms]": 1_000, "timestamp[us]": 1}
_NUMPY_UNITS = {
    "date": "D",
    "timestamp[s]": "s",
    "timestamp[ms]": "ms",
    "timestamp[us]": "us",
    "timestamp[ns]": "ns",
}
_NUMPY_NUMBERS = {
    "bool": "?",
    **{f"{kind}{bits}": f"<{kind}{bits // 8}" for kind in "iu" for bits in (8, 16, 32, 64)},
    "f32": "<f4",
    "f64": "<f8",
}


def time_number(value: object, type: str) -> Optional[int]:
    """The number that a date or a timestamp of the type ``type`` is stored as, or ``None``."""
    if isinstance(value, np.datetime64):
        try:
            exact = value.astype(f"datetime64[{_NUMPY_UNITS[type]}]")
            # NumPy before 2.5 lets numbers that are too large for the unit wrap around.
            return int(exact.astype(np.int64)) if exact.astype(value.dtype) == value else None
        except OverflowError:
            return None
    if type == "date":
        if isinstance(value, _datetime.datetime) or not isinstance(value, _datetime.date):
            return None
        return value.toordinal() - _EPOCH_DAY
    if not isinstance(value, _datetime.datetime):
        return None
    nanoseconds = getattr(value, "nanosecond", 0)  # of a pandas.Timestamp
    offset = None if value.tzinfo is None else value.utcoffset()
    elapsed = value.replace(tzinfo=None) - _EPOCH
    if not isinstance(elapsed, _datetime.timedelta) or elapsed != elapsed:  # pandas.NaT
        return None
    if offset is not None:
        elapsed -= offset  # which may lead out of the years that a datetime can have
    microseconds = elapsed // _MICROSECOND
    if type == "timestamp[ns]":
        return microseconds * 1000 + nanoseconds
    unit = _MICROSECONDS[type]
    return None if microseconds % unit or nanoseconds else microseconds // unit


def time_of(number: int, type: str) -> Union[_datetime.date, _datetime.datetime, np.datetime64]:
    """A date, a naive datetime in UTC, or a NumPy datetime64 where these can't have it."""
    try:
        if type == "date":
            return _datetime.date.fromordinal(number + _EPOCH_DAY)
        if type != "timestamp[ns]":
            return _EPOCH + _datetime.timedelta(microseconds=number * _MICROSECONDS[type])
    except (OverflowError, ValueError):
        pass
    return np.datetime64(number, _NUMPY_UNITS[type])


def uuid_bytes(value: object) -> Optional[bytes]:
    """The 16 bytes of a UUID, also of its text, or ``None``."""
    if isinstance(value, _uuid.UUID):
        return value.bytes
    if isinstance(value, str):
        try:
            return _uuid.UUID(value).bytes
        except ValueError:
            return None
    return bytes(value) if isinstance(value, (bytes, bytearray)) and len(value) == 16 else None


def uuid_of(value: bytes) -> _uuid.UUID:
    return _uuid.UUID(bytes=value)


def vector_of(value: bytes, type: str) -> np.ndarray:
    """A vector's elements as an array that can be written to."""
    if type == "date":  # of 4 bytes
        return np.frombuffer(value, dtype="<i4").astype("M8[D]")
    return np.frombuffer(value, dtype=numpy_type(type)).copy()


def numpy_type(type: str) -> Optional[str]:
    """How NumPy calls the type of a number or a time, or ``None``."""
    if type in _NUMPY_NUMBERS:
        return _NUMPY_NUMBERS[type]
    unit = _NUMPY_UNITS.get(type)
    return f"<M8[{unit}]" if unit else None


__all__ = [
    "Type", "bool_", "bytes_", "date", "f32", "f64", "fixed_bytes", "i16", "i32", "i64", "i8", "optional",
    "str_", "timestamp", "timestamp_ms", "timestamp_ns", "timestamp_s", "timestamp_us", "u16", "u32", "u64",
    "u8", "uuid", "vector",
]
