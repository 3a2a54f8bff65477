"""A plugin of pytest that ends its output with the line of counts that tests/run adds up."""

import pytest


def pytest_sessionfinish(session, exitstatus):
    # A file whose packages are not installed is skipped as a whole, and that is no failure.
    skipped = session.config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped")
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and skipped:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    passed = len(stats.get("passed", [])) + len(stats.get("xfailed", []))
    print(f"\ncases: {passed} passed, {failed} failed, {len(stats.get('skipped', []))} skipped")
