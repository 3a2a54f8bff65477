"""What a call costs: batches of one key and of none, and one key at a time beside lmdb."""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Dict, List, Tuple

from data import NAMES, Rows
from lookups import TABLE
from timing import Comparison, Contender, compare

GOAL_MICROSECONDS = 10.0


def overhead(table: Any, rows: Rows, repeat: int) -> List[Tuple[str, float, float]]:
    """What is called, its microseconds, and the goal."""
    one, none = rows.keys[:1].copy(), rows.keys[:0].copy()
    calls: Dict[str, Callable[[], Any]] = {
        "get of a batch of 1 key": lambda: table.get(one),
        "get of a batch of 0 keys": lambda: table.get(none),
    }
    results = []
    for name, call in calls.items():
        taken = []
        for _ in range(max(repeat, 5)):
            begin = time.perf_counter()
            for _ in range(20_000):
                call()
            taken.append((time.perf_counter() - begin) / 20_000 * 1e6)
        results.append((name, statistics.median(taken), GOAL_MICROSECONDS))
    return results


def compare_singles(opened: Dict[str, Any], rows: Rows, repeat: int) -> List[Comparison]:
    """A loop of single lookups, of rows as dicts and of rows as bytes."""
    if "lmdb" not in opened:
        return []
    count = min(200_000, len(rows.batches[0]))
    numbers = [batch[:count].tolist() for batch in rows.batches]
    texts = [rows.key_bytes(batch[:count]) for batch in rows.batches]
    transaction = opened["lmdb"].begin()

    def peer(i: int) -> Any:
        get = transaction.get
        for key in texts[i % len(texts)]:
            get(key)

    def loop(table: Any) -> Callable[[int], None]:
        def each(i: int) -> None:
            for key in numbers[i % len(numbers)]:
                table[key]

        return each

    table, cells = opened["stride"][TABLE], opened["stride"]["cells"]
    for key, place in zip(numbers[0][:1000], rows.places[0]):
        record = rows.records[place]
        if cells[key] != record.tobytes() or table[key] != {name: int(record[name]) for name in NAMES}:
            raise SystemExit("wrong answer: one row")
    theirs = Contender("lmdb txn.get", peer, goal=0.8)
    return compare("t[k], a row as bytes", count, Contender("StrideDB", loop(cells)), [theirs], 3 * repeat) + compare(
        "t[k], a row as a dict of six", count, Contender("StrideDB", loop(table)), [theirs], 3 * repeat
    )
