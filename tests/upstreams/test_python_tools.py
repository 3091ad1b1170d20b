"""Python tools as an upstream: a child like any other, held to what its entry says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.effects import Effects
from pactgate.config.server_settings import ServerConfig
from pactgate.upstreams.python_tools import python_tools, runner_options
from pactgate.upstreams.tool_interpreter import PACKAGE_FOLDER
from tests.support.children import guarded
from tests.support.python_tools import kit
from tests.upstreams.test_dialer import dialed


def test_the_runner_is_told_what_its_entry_says() -> None:
    words = runner_options("/srv/kit.py", "refuse", 4096)
    assert words[-1] == "/srv/kit.py"
    assert words[words.index("--undeclared") + 1] == "refuse"
    assert words[words.index("--max-result-bytes") + 1] == "4096"


async def test_it_runs_in_the_folder_of_its_file_and_may_always_read_the_runner(tmp_path: Path) -> None:
    config = kit(tmp_path, effects=Effects(read=("/data",)))
    async with guarded() as child_reaper:
        channel = python_tools(config, lambda event: None, child_reaper, 4096)
    assert channel._launch.cwd == str(tmp_path)
    assert channel._launch.argv[0] == sys.executable
    assert channel._effects == Effects(read=("/data", PACKAGE_FOLDER))


@pytest.mark.parametrize(("settings", "level"), [({}, "observed"), ({"effects": Effects(enforce=False)}, "observed")])
async def test_what_it_says_of_its_tools_is_believed_and_it_is_observed(
    tmp_path: Path, settings: dict[str, Any], level: str
) -> None:
    async with asyncio.timeout(10), dialed(kit(tmp_path, **settings)) as session:
        assert (session.is_ours, session.effects_level, session.identity.era) == (True, level, "legacy")
        assert session.pid is not None


async def test_a_working_directory_of_its_own_is_respected(tmp_path: Path) -> None:
    file = kit(tmp_path).tools
    config = ServerConfig(id="kit", tools=file, cwd="/")
    async with guarded() as child_reaper:
        assert python_tools(config, lambda event: None, child_reaper, 4096)._launch.cwd == "/"
