"""A plugin of pytest that ends its output with the line of counts that tests/run adds up."""


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    passed = len(stats.get("passed", [])) + len(stats.get("xfailed", []))
    print(f"\ncases: {passed} passed, {failed} failed, {len(stats.get('skipped', []))} skipped")
