"""Times calls by turns, so that whatever else the machine does meets all of them."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional


@dataclass
class Contender:
    """Something that answers the batches that all contenders of a group answer.

    call: answers the batch of a number. check: raises where that is wrong. calls: so many batches in a row
    are timed. seconds: where a program measures itself, what it says of so many batches.
    """

    name: str
    call: Callable[[int], Any]
    check: Optional[Callable[[Any, int], None]] = None
    calls: int = 1
    seconds: Optional[Callable[[int], float]] = None
    goal: Optional[float] = None


@dataclass
class Comparison:
    """Seconds a batch of StrideDB and of a peer, in pairs that were measured one after the other."""

    what: str
    peer: str
    goal: Optional[float]
    rows: int
    stride: List[float] = field(default_factory=list)
    other: List[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return statistics.median(other / stride for stride, other in zip(self.stride, self.other))

    @property
    def reached(self) -> Optional[bool]:
        return None if self.goal is None else self.ratio >= self.goal


def _time(contender: Contender, first: int) -> float:
    if contender.seconds:
        return contender.seconds(contender.calls) / contender.calls
    begin = time.perf_counter()
    for i in range(contender.calls):
        result = contender.call(first + i)
        del result
    return (time.perf_counter() - begin) / contender.calls


def _check(contender: Contender) -> None:
    if contender.check:
        result = contender.call(0)
        contender.check(result, 0)


def compare(what: str, rows: int, stride: Contender, peers: List[Contender], repeat: int) -> List[Comparison]:
    """Pairs of StrideDB and each peer, `repeat` times. What each answers is checked before."""
    for contender in [stride] + peers:
        _check(contender)
    comparisons = [Comparison(what, peer.name, peer.goal, rows) for peer in peers]
    for turn in range(repeat):
        for comparison, peer in zip(comparisons, peers):
            comparison.stride.append(_time(stride, turn * 7))
            comparison.other.append(_time(peer, turn * 7))
    return comparisons
