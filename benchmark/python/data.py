"""Rows of random keys, batches of keys to look up, and real routes."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Dict, List, Tuple

import numpy as np

VALUE_BYTES = 44
NAMES = ["v0", "v1", "v2", "v3", "v4", "w"]
_ROW = np.dtype([(name, "<i8" if name != "w" else "<i4") for name in NAMES])


class Rows:
    """Keys that differ, in random order, with values of 44 bytes: five integers of 64 bits and one of 32."""

    def __init__(self, rows: int, batch: int, batches: int = 8) -> None:
        rng = np.random.default_rng(20261125)
        keys = np.unique(rng.integers(-(2**63), 2**63 - 1, rows + rows // 1000 + 8, dtype=np.int64))
        rng.shuffle(keys)
        self.keys = keys[:rows].copy()
        self.records = np.empty(rows, _ROW)
        for name in NAMES:
            self.records[name] = rng.integers(-(2**31), 2**31 - 1, rows)
        self.records["v0"] = self.keys ^ 1
        self.columns: Dict[str, np.ndarray] = {name: self.records[name].copy() for name in NAMES}
        self.places = [rng.integers(0, rows, batch) for _ in range(batches)]
        self.batches = [self.keys[places] for places in self.places]
        self.sorted_places = np.argsort(self.keys)

    def key_bytes(self, keys: np.ndarray) -> List[bytes]:
        """Keys as other stores take them: their order is that of the numbers."""
        raw = (keys.view(np.uint64) ^ np.uint64(1 << 63)).astype(">u8").tobytes()
        return [raw[i : i + 8] for i in range(0, len(raw), 8)]

    def value_bytes(self) -> List[bytes]:
        raw = self.records.tobytes()
        return [raw[i : i + VALUE_BYTES] for i in range(0, len(raw), VALUE_BYTES)]

    def check_columns(self, columns, batch: int) -> None:
        """columns: a mapping of names to arrays, in the order of the batch's keys."""
        places = self.places[batch % len(self.places)]
        for name in NAMES:
            if not np.array_equal(np.asarray(columns[name]), self.columns[name][places]):
                raise SystemExit(f"wrong answer: column {name}")

    def check_any_order(self, keys, columns, batch: int) -> None:
        """The same of rows in an order that the engine chose."""
        keys, wanted = np.asarray(keys), self.batches[batch % len(self.batches)]
        mine, theirs = np.argsort(wanted, kind="stable"), np.argsort(keys, kind="stable")
        if not np.array_equal(wanted[mine], keys[theirs]):
            raise SystemExit("wrong answer: keys")
        places = self.places[batch % len(self.places)][mine]
        for name in NAMES:
            if not np.array_equal(np.asarray(columns[name])[theirs], self.columns[name][places]):
                raise SystemExit(f"wrong answer: column {name}")

    def check_records(self, values, batch: int) -> None:
        """values: the bytes of each row."""
        raw = b"".join(bytes(value) for value in values)
        if raw != self.records[self.places[batch % len(self.places)]].tobytes():
            raise SystemExit("wrong answer: values")


def routes() -> Tuple[List[str], np.ndarray]:
    """IPv4 prefixes of real networks, and the number of the autonomous system of each."""
    path = pathlib.Path(__file__).resolve().parents[1] / "data" / "prefixes_ipv4_asn.tsv.zst"
    text = subprocess.run(["zstd", "-dc", str(path)], check=True, capture_output=True, text=True).stdout
    lines = [line.split("\t") for line in text.splitlines()]
    return [line[0] for line in lines], np.array([int(line[1]) for line in lines], np.uint32)


def route_ranges(prefixes: List[str]) -> Tuple[np.ndarray, np.ndarray]:
    """The first address of each prefix, and how many it has."""
    first, size = [], []
    for prefix in prefixes:
        address, bits = prefix.split("/")
        a, b, c, d = address.split(".")
        first.append(int(a) << 24 | int(b) << 16 | int(c) << 8 | int(d))
        size.append(1 << (32 - int(bits)))
    return np.array(first, np.int64), np.array(size, np.int64)
