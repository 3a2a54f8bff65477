"""What all tests of the Python package share: databases that are temporary, and other processes."""

import os
import subprocess
import sys
import textwrap

import hypothesis
import pytest

import stridedb as sd

hypothesis.settings.register_profile(
    "stridedb",
    deadline=None,
    derandomize=False,
    max_examples=int(os.environ.get("STRIDE_EXAMPLES", "25")),
    print_blob=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("stridedb")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "db")


@pytest.fixture
def db(path):
    with sd.open(path, durability="none") as database:
        yield database


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A database for the examples of hypothesis, which each take a table of a new name."""
    with sd.open(str(tmp_path_factory.mktemp("shared") / "db"), durability="none") as database:
        yield database


@pytest.fixture
def python(tmp_path):
    """Runs code in another interpreter and checks that it ends well and has nothing to complain of."""

    def run(code, *arguments, timeout=120, check=True):
        file = tmp_path / "code.py"
        file.write_text(textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, str(file), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.path.dirname(os.path.dirname(sd.__file__)),
                # Python from 3.12 on warns of forks with threads, which is what some tests are about.
                "PYTHONWARNINGS": "ignore:This process:DeprecationWarning",
            },
        )
        if check:
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
        return done

    return run


def pytest_configure(config):
    # The tests are next to their helpers, which they import by name.
    sys.path.insert(0, os.path.dirname(__file__))
