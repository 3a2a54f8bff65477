"""StrideDB: an ordered, durable key-value store for bulk work.

>>> import stridedb as sd
>>> db = sd.open("app.db")
>>> users = db.table("users", key=("id", sd.i64), values={"name": sd.str_, "score": sd.f64})
>>> users.put({"id": [17, 4], "name": ["Ada", "Max"], "score": [1.5, 2.5]})
>>> users[17]
{'name': 'Ada', 'score': 1.5}
>>> rows = users.get([4, 5, 17], columns=["score"])
>>> rows.found.tolist()
[True, False, True]
>>> rows["score"].numpy(fill=0).tolist()
[2.5, 0.0, 1.5]
>>> db.close()
"""

from ._core import (
    Column,
    Cursor,
    Database,
    Dedup,
    KeyPartition,
    Plan,
    RowSet,
    Rows,
    Scan,
    Snapshot,
    Table,
    Transaction,
    VectorSet,
    __version__,
)
from ._database import diagnose, open, restore, salvage, verify
from ._types import (
    Type,
    bool_,
    bytes_,
    date,
    f32,
    f64,
    fixed_bytes,
    i8,
    i16,
    i32,
    i64,
    optional,
    str_,
    timestamp,
    timestamp_ms,
    timestamp_ns,
    timestamp_s,
    timestamp_us,
    u8,
    u16,
    u32,
    u64,
    uuid,
    vector,
)
from .errors import (
    AlreadyExists,
    Cancelled,
    Closed,
    Conflict,
    Corruption,
    InvalidArgument,
    InvalidType,
    KeyNotFound,
    Locked,
    NoSpace,
    NotFound,
    PermissionDenied,
    Poisoned,
    ReadOnly,
    ResourceExhausted,
    StorageError,
    StrideError,
    Unavailable,
    UnsupportedVersion,
)

__all__ = [
    "AlreadyExists", "Cancelled", "Closed", "Column", "Conflict", "Corruption", "Cursor", "Database", "Dedup",
    "InvalidArgument", "InvalidType", "KeyNotFound", "KeyPartition", "Locked", "NoSpace", "NotFound", "PermissionDenied", "Plan", "Poisoned",
    "ReadOnly", "ResourceExhausted", "RowSet", "Rows", "Scan", "Snapshot", "StorageError", "StrideError",
    "Table", "Transaction", "Type", "Unavailable", "UnsupportedVersion", "VectorSet", "__version__", "bool_",
    "bytes_", "date", "diagnose", "f32", "f64", "fixed_bytes", "i16", "i32", "i64", "i8", "open", "optional", "restore", "salvage", "str_",
    "timestamp", "timestamp_ms", "timestamp_ns", "timestamp_s", "timestamp_us", "u16", "u32", "u64", "u8",
    "uuid", "vector", "verify",
]
