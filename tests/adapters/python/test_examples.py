"""Runs the examples that people read: those of docs/python.md, of the docstrings, and of README.md."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import stridedb

ROOT = Path(__file__).resolve().parents[3]
MODULES = ["stridedb"] + [
    f"stridedb.{module.name}" for module in pkgutil.iter_modules(stridedb.__path__) if module.name != "_core"
]


@pytest.fixture(autouse=True)
def empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(test: doctest.DocTest) -> None:
    told = []
    result = doctest.DocTestRunner().run(test, out=told.append)
    assert result.failed == 0, "".join(told)
    assert result.attempted > 0


def test_the_page():
    for name in ("polars", "pandas", "pyarrow"):
        pytest.importorskip(name)
    page = ROOT / "docs" / "python.md"
    # An example ends where its block does.
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    if name in ("stridedb.ray", "stridedb._ray_jobs"):
        pytest.importorskip("ray")
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder().find(module):
        if test.examples:
            run(test)


def test_docstrings_of_what_is_compiled():
    found = [stridedb._core]
    for value in vars(stridedb._core).values():
        if isinstance(value, type):
            found += [value, *vars(value).values()]
    for value in found:
        text = getattr(value, "__doc__", None) or ""
        if ">>>" in text:
            run(doctest.DocTestParser().get_doctest(text, {"sd": stridedb}, repr(value), None, 0))


def test_the_readme():
    pytest.importorskip("polars")
    blocks = re.findall(r"^```pycon\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    run(doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", "README.md", 0))
