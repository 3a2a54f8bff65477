"""What type checkers know of the package: the stubs are up to date, and suffice for the whole interface."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stridedb

HERE = Path(__file__).resolve().parent
ADAPTER = HERE.parents[2] / "adapters" / "python"


def test_the_stubs_are_those_of_the_sources(tmp_path):
    nanobind = pytest.importorskip("nanobind")
    kept = (ADAPTER / "stridedb" / "_core.pyi").read_text()
    if f"with nanobind {nanobind.__version__}." not in kept or sys.version_info < (3, 11):
        pytest.skip("another nanobind or Python writes them otherwise")
    made = tmp_path / "_core.pyi"
    folder = str(Path(stridedb.__file__).resolve().parents[1])
    subprocess.run(
        [sys.executable, str(ADAPTER / "make_stubs.py"), str(made)], check=True, env={**os.environ, "PYTHONPATH": folder}
    )
    assert made.read_text() == kept, "run adapters/python/make_stubs.py"


def test_every_name_is_in_the_stubs():
    text = (Path(stridedb.__file__).parent / "_core.pyi").read_text()
    for kind in (
        "Column", "Cursor", "Database", "Dedup", "Plan", "RowSet", "Rows", "Scan", "Snapshot", "Table", "Transaction",
    ):
        body = text.split(f"\nclass {kind}:")[1].split("\nclass ")[0]
        for name in vars(getattr(stridedb, kind)):
            if not name.startswith("_"):
                assert f"def {name}(" in body or f"    {name}: " in body, f"{kind}.{name}"


def test_a_type_checker_accepts_the_whole_interface(tmp_path):
    if importlib.util.find_spec("mypy"):
        mypy = [sys.executable, "-m", "mypy"]
    elif shutil.which("mypy"):
        mypy = ["mypy", "--python-executable", sys.executable]
    else:
        pytest.skip("mypy is not installed")
    folder = Path(stridedb.__file__).resolve().parents[1]
    environment = {**os.environ, "MYPYPATH": str(folder)}
    if folder.name == "site-packages":  # mypy finds what is installed by itself
        del environment["MYPYPATH"]
    run = subprocess.run(
        [*mypy, "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), str(HERE / "typed_program.py")],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_typed_program_runs(tmp_path):
    spec = importlib.util.spec_from_file_location("typed_program", HERE / "typed_program.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main(tmp_path / "typed.db")
