"""Writes stridedb/_core.pyi: what type checkers and editors know of the compiled part of the package.

    PYTHONPATH=build/NAME/python python adapters/python/make_stubs.py [FILE]

nanobind tells names, arguments and docstrings; the methods that _table.py and _database.py attach are
taken from their sources; and TYPES has the types that are narrower than C++ says. Run it when any of
these changes: tests/adapters/python/test_types.py compares the file with what this makes.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import List

STUB = Path(__file__).resolve().parent / "stridedb" / "_core.pyi"

HEADER = '''"""Made by adapters/python/make_stubs.py with nanobind VERSION. Changes belong there, or in its sources."""

import os
from types import TracebackType
from typing import Any, Callable, Dict, Final, Iterable, Iterator, List, Literal, Optional, Sequence, Tuple, Union, overload
from typing import Type as _Class

import numpy as np
from numpy.typing import NDArray

_Durability = Literal["sync", "flush", "none"]
_Progress = Callable[[float], object]
_Path = Union[str, bytes, "os.PathLike[str]"]

__version__: str
'''

BOOLEANS, NUMBERS, ARRAY = "NDArray[np.bool_]", "NDArray[np.uint64]", "NDArray[Any]"

# Results of functions, and properties.
RESULTS = {
    "Column.type": "Type",
    "Column.__getitem__": "Any",
    "Column.__array__": ARRAY,
    "Column.numpy": ARRAY,
    "Column.valid": BOOLEANS,
    "Column.to_list": "List[Any]",
    "Column.__arrow_c_array__": "Tuple[object, object]",
    "Rows.columns": "List[str]",
    "Rows.found": BOOLEANS,
    "Rows.__getitem__(int)": "Optional[Dict[str, Any]]",
    "Rows.__arrow_c_array__": "Tuple[object, object]",
    "Table.key_columns": "Dict[str, Type]",
    "Table.value_columns": "Dict[str, Type]",
    "Table.__getitem__": "Any",
    "Table.get": "Any",
    "Table.contains": BOOLEANS,
    "Table.counts": NUMBERS,
    "Table.segments": "List[Dict[str, Any]]",
    "Table.put_if_absent": BOOLEANS,
    "Table.match": "Any",
    "Table.match_all": "List[Dict[str, Any]]",
    "Database.options": "Dict[str, Any]",
    "Database.statistics": "List[Dict[str, Any]]",
    "Transaction.__enter__": "Transaction",
    "Transaction.was_new": BOOLEANS,
    "Transaction.get": "Any",
    "Transaction.contains": f"Union[bool, {BOOLEANS}]",
    "Transaction.counts": NUMBERS,
    "Cursor.key": "Any",
    "Cursor.value": "Any",
    "Cursor.__iter__": "Cursor",
    "Cursor.__next__": "Tuple[Any, Any]",
    "Cursor.__enter__": "Cursor",
    "Scan.__iter__": "Iterator[Rows]",
    "Dedup.find_or_put": f"Tuple[{NUMBERS}, {BOOLEANS}]",
    "Dedup.find": NUMBERS,
    "Dedup.get": "NDArray[np.uint32]",
    "VectorSet.find_or_put": f"Tuple[{NUMBERS}, {BOOLEANS}]",
    "VectorSet.find": NUMBERS,
    "VectorSet.get": "NDArray[np.uint32]",
    "RowSet.put": BOOLEANS,
    "KeyPartition.order": f"Tuple[{NUMBERS}, {NUMBERS}, {NUMBERS}]",
    "KeyPartition.sample": "List[bytes]",
    "Plan.map": ARRAY,
    "Plan.target_names": "List[Any]",
}

# Arguments, by their name.
ARGUMENTS = {
    "durability": "Optional[_Durability]",
    "progress": "Optional[_Progress]",
    "on_equal": 'Literal["last", "error"]',
    "form": 'Literal["dense", "slots", "compressed"]',
    "backend": 'Literal["automatic", "host", "cuda"]',
    "columns": "Optional[Sequence[str]]",
    "values": "Any",
    "value": "Any",
    "deltas": "Any",
    "key": "Any",
    "keys": "Any",
    "splitters": "Optional[List[bytes]]",
    "data": "Any",
    "addresses": "Any",
    "address": "Any",
    "vectors": "Any",
    "ids": "Any",
    "rows": "Any",
    "weights": "Any",
    "start": "Any",
    "stop": "Any",
    "starts": "Any",
    "stops": "Any",
    "prefix": "Any",
    "dtype": "Any",
    "fill": "Any",
    "into": f"Optional[{ARRAY}]",
    "copy": "Optional[bool]",
}

EXIT = """def __exit__(
    self, type: Optional[_Class[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]
) -> None: ..."""
WHOLE = {f"{owner}.__exit__": EXIT for owner in ("Cursor", "Database", "Transaction")}


def annotation(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def complete(function: ast.FunctionDef, owner: str) -> ast.FunctionDef:
    """The function with the types of the tables above."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for argument in arguments:
        if argument.arg in ARGUMENTS:
            argument.annotation = annotation(ARGUMENTS[argument.arg])
    name = f"{owner}.{function.name}"
    if name in WHOLE:
        return ast.parse(WHOLE[name]).body[0]  # type: ignore[return-value]
    first = arguments[1].annotation if len(arguments) > 1 else None
    overloaded = f"{name}({ast.unparse(first)})" if first is not None else name
    for key in (overloaded, name):
        if key in RESULTS:
            function.returns = annotation(RESULTS[key])
            break
    return function


def attached(owner: type) -> List[ast.stmt]:
    """The methods that the package's Python files attach to a class."""
    found: List[ast.stmt] = []
    for name, value in sorted(vars(owner).items()):
        if not inspect.isfunction(value):
            continue
        key = f"{owner.__name__}.{name}"
        if key in WHOLE:
            found += ast.parse(WHOLE[key]).body
            continue
        function = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
        assert isinstance(function, ast.FunctionDef)
        function.name = name
        function.args.args[0].annotation = None
        if not function.returns:
            raise SystemExit(f"{key} has no type for what it returns")
        text = ast.get_docstring(function)
        docstring: List[ast.stmt] = [ast.Expr(ast.Constant(textwrap.indent(text, " " * 8).strip()))] if text else []
        function.body = docstring or [ast.Expr(ast.Constant(...))]
        found.append(function)
    return found


def stub_of_core() -> str:
    import nanobind
    import stridedb
    from nanobind.stubgen import StubGen

    generator = StubGen(stridedb._core, quiet=True)
    generator.put(stridedb._core)
    module = ast.parse(generator.get())
    body: List[ast.stmt] = []
    for statement in module.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.AnnAssign)):
            continue
        if isinstance(statement, ast.FunctionDef):
            statement = complete(statement, "")
        if isinstance(statement, ast.ClassDef):
            statement.body = class_body(statement, getattr(stridedb._core, statement.name))
        body.append(statement)
    text = "\n\n".join(ast.unparse(statement) for statement in body)
    text = re.sub(r":\n +\.\.\.$", ": ...", text, flags=re.MULTILINE)
    return HEADER.replace("VERSION", nanobind.__version__) + "\n" + text + "\n"


def class_body(statement: ast.ClassDef, owner: type) -> List[ast.stmt]:
    methods: List[ast.stmt] = []
    for member in statement.body:
        if isinstance(member, ast.FunctionDef):
            if member.name == "__setstate__":
                continue
            member = complete(member, statement.name)
        if isinstance(member, ast.AnnAssign):
            member = ast.parse("absent: Final = 18446744073709551615").body[0]  # type: ignore[assignment]
        methods.append(member)
    return methods + attached(owner)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else STUB
    path.write_text(stub_of_core())


if __name__ == "__main__":
    sys.path.pop(0)  # this folder has the sources of the package, without what is compiled
    main()
