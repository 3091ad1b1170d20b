"""What every test run shares: the count of proved and deferred requirements at its end, and the Hypothesis profiles."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.requirements import ALL
from tests.support.sdk_http import official_servers

# A deadline per example measures how busy the machine is; pytest's own timeout catches what hangs.
hypothesis.settings.register_profile("house", deadline=None, max_examples=50)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


@pytest.fixture(autouse=True, scope="session")
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a gateway of a test keeps for the next run is nothing to whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def official() -> Iterator[dict[str, str]]:
    """The origins of servers of the official SDK, by their kind. They end with the module: others count the children of this process."""
    with official_servers() as origins:
        yield origins


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Ten thousand collected tests live to the end: no garbage collection need look at them, neither meanwhile nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    deferred = sum(entry.deferred is not None for entry in ALL)
    terminalreporter.write_line(f"requirements: {len(ALL) - deferred} proved, {deferred} deferred")
