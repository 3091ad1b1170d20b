"""Seven real servers in the file of Claude Desktop, served as it is: a client that lists once, right after the start, sees every tool.

On the first start ever, and on later ones; with servers that start at once, and with lazy ones, which a later start does not start at all.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from tests.cli.program import environment
from tests.interop.pairings import PREPARE
from tests.interop.processes import GATEWAY, TOOLS
from tests.interop.test_real_servers import Real, client_of, make_repository, real_servers, tools_of
from tests.support.processes import children_of

IDS = {"sequential-thinking": "Sequential Thinking", "everything": "Everything"}
"""As people call them there."""
pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Real]:
    work = tmp_path_factory.mktemp("seven")
    (work / "files").mkdir()
    found = real_servers(work, "")
    missing = next((why for real in found.values() if (why := real.why_not_here())), None)
    if missing is None and not (TOOLS / "servers" / ".installed").is_file():
        missing = f"NOT RUN: the servers are not installed: {PREPARE}"
    if missing is not None:
        pytest.skip(missing)
    make_repository(str(work / "repository"))
    return found


@pytest.fixture(scope="module")
def expected(servers: dict[str, Real]) -> set[str]:
    """The tools that each server lists when it is asked directly."""

    async def ask_all() -> set[str]:
        asked = await asyncio.gather(*(listed(*real.command()) for real in servers.values()))
        return {f"{id_}__{name}" for id_, names in zip(servers, asked, strict=True) for name in names}

    return asyncio.run(ask_all())


async def listed(command: str, *words: str, **more: Any) -> list[str]:
    """What a client sees that lists once, as soon as it is connected."""
    async with client_of(StdioServerParameters(command=command, args=list(words), **more), "auto") as client:
        return [tool.name for tool in await tools_of(client)]


@pytest.mark.parametrize("start", ["eager", "lazy"])
def test_the_first_list_of_the_first_and_of_every_later_start_is_whole(
    start: str, servers: dict[str, Real], expected: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "claude_desktop_config.json"
    entries = {IDS.get(id_, id_): _entry(real, start) for id_, real in servers.items()}
    path.write_text(json.dumps({"mcpServers": entries, "globalShortcut": "Ctrl+Space"}))
    path.chmod(0o600)
    words = [*map(str, GATEWAY), "serve", "--stdio", "--config", str(path)]
    env = environment(tmp_path)
    for _ in range(3):
        assert expected - set(asyncio.run(listed(*words, env=env))) == set()
    assert children_of(os.getpid()) == []


def _entry(real: Real, start: str) -> dict[str, Any]:
    command, *args = real.command()
    return {"command": command, "args": args, **({"start": start} if start == "lazy" else {})}
