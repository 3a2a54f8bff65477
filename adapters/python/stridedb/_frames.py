"""Frames of other libraries, as far as a join needs them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from ._core import Column
from .errors import InvalidArgument, InvalidType, KeyNotFound


class _Polars:
    @staticmethod
    def names(frame: Any) -> List[str]:
        return frame.columns

    @staticmethod
    def column(frame: Any, name: str) -> Any:
        return frame[name]

    @staticmethod
    def beside(frame: Any, added: Dict[str, Column], kept: Optional[np.ndarray]) -> Any:
        import polars as pl

        joined = frame.with_columns([pl.Series(name, pl.Series(column)) for name, column in added.items()])
        return joined if kept is None else joined.filter(pl.Series(kept))


class _Pandas:
    @staticmethod
    def names(frame: Any) -> List[str]:
        return list(frame.columns)

    @staticmethod
    def column(frame: Any, name: str) -> Any:
        return frame[name]

    @staticmethod
    def beside(frame: Any, added: Dict[str, Column], kept: Optional[np.ndarray]) -> Any:
        joined = frame.copy(deep=False)
        for name, column in added.items():
            cells = pandas_column(column)
            if hasattr(cells, "index"):  # a Series, which goes beside the rows of the same index
                cells.index = joined.index
            joined[name] = cells
        return joined if kept is None else joined[kept]


class _Arrow:
    @staticmethod
    def names(frame: Any) -> List[str]:
        return frame.schema.names

    @staticmethod
    def column(frame: Any, name: str) -> Any:
        return frame.column(name)

    @staticmethod
    def beside(frame: Any, added: Dict[str, Column], kept: Optional[np.ndarray]) -> Any:
        import pyarrow as pa

        joined = frame if isinstance(frame, pa.Table) else pa.table(frame)
        for name, column in added.items():
            joined = joined.append_column(name, pa.array(column))
        return joined if kept is None else joined.filter(pa.array(kept))


class _Dict:
    @staticmethod
    def names(frame: Any) -> List[str]:
        return list(frame)

    @staticmethod
    def column(frame: Any, name: str) -> Any:
        return frame[name]

    @staticmethod
    def beside(frame: Any, added: Dict[str, Column], kept: Optional[np.ndarray]) -> Any:
        joined = {**frame, **added}
        if kept is None:
            return joined
        return {name: _kept_cells(name, column, kept) for name, column in joined.items()}


def _kept_cells(name: str, column: Any, kept: np.ndarray) -> Any:
    """Those of a column of a dict: of a list as they are, for an array would give them one type."""
    if len(column) != len(kept):
        raise InvalidArgument(f"column {name!r} has {len(column)} cells beside {len(kept)} rows")
    if isinstance(column, Column):
        column = column.numpy() if column.valid().all() else np.array(column.to_list(), dtype=object)
    if isinstance(column, (list, tuple)):
        return [cell for cell, is_kept in zip(column, kept) if is_kept]
    return np.asarray(column)[kept]


def frame_kind(frame: Any) -> Any:
    kinds = {"polars": _Polars, "pandas": _Pandas, "pyarrow": _Arrow}
    if isinstance(frame, dict):
        return _Dict
    for base in type(frame).__mro__:  # frames of other libraries, as GeoPandas', derive from these
        module = base.__module__.split(".")[0]
        if module in kinds and hasattr(frame, "columns"):
            return kinds[module]
    raise InvalidType(
        f"a frame is expected, and one {type(frame).__name__} is given",
        remedy="give a DataFrame of polars or pandas, a pyarrow.Table, or a dict of columns",
    )


def column_of(kind: Any, frame: Any, name: str) -> Any:
    names = kind.names(frame)
    if name not in names:
        raise KeyNotFound(
            f"the frame has no column {name!r}", remedy=f"its columns are: {', '.join(map(str, names))}"
        )
    return kind.column(frame, name)


def pandas_column(column: Column) -> Any:
    """The cells as pandas likes them: an array, or one of its nullable ones where cells are missing."""
    import pandas as pd

    text = str(column.type).rstrip("?")
    valid = column.valid()
    if text == "string":
        cells = column.to_list()
        try:
            return pd.array(cells, dtype="string")
        except UnicodeEncodeError:  # they are no UTF-8
            return pd.Series(cells, dtype=object)
    numbers = text in ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
    if numbers and not valid.all():
        values = column.numpy(fill=False if text == "bool" else 0)
        kind = pd.arrays.BooleanArray if text == "bool" else pd.arrays.IntegerArray
        return kind(np.ascontiguousarray(values), ~valid)
    of_many = text.endswith("]") and text[-2].isdigit()  # "f32[3]", "bytes[16]", and not "timestamp[ns]"
    if of_many or text in ("bytes", "uuid"):
        return pd.Series(column.to_list(), dtype=object)
    values = column.numpy()
    # pandas copies arrays with a stride of their own into its blocks anyway.
    return np.ascontiguousarray(values)
