"""Executes the notebooks of docs/examples again, in a process of their own, and leaves them as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import stridedb

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path, monkeypatch):
    for name in ("ipykernel", "matplotlib", "polars", "pyarrow"):
        pytest.importorskip(name)
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    package = str(Path(stridedb.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")
    resources = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small(path):
    assert path.stat().st_size < 400_000
