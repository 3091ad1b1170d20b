"""The helper for authors: an honest tool passes, and every breach is named."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pactgate.testing import ContractBroken, assert_contract, serving
from tests.runner.driving import write_tools

KIT = """
import random

@tool(category="query", idempotent=True, effects=[], errors={"GONE": "Not there."})
def take(id: int) -> dict[str, int]:
    "Takes one."
    if id == 9:
        raise ToolError("GONE", "Not there.")
    if id == 8:
        raise ToolError("MADE_UP", "Odd.")
    return {"id": id}

@tool(**query)
def differ() -> float:
    "Is never the same."
    return random.random()

@tool(category="execution", idempotent=False, effects=[])
def roll() -> float:
    "May differ."
    return random.random()

@tool(**query)
def read(path: str) -> str:
    "Reads."
    return open(path).read()

@tool(**query)
def crash() -> None:
    "Crashes."
    raise KeyError("where")

@tool(**query)
def give() -> int:
    "Gives something else."
    return "x"
"""


async def broken(served: Any, *words: Any, **named: Any) -> str:
    with pytest.raises(ContractBroken) as found:
        await served.check_contract(*words, **named)
    return str(found.value)


async def test_honest_tools_pass_and_every_breach_is_named(tmp_path: Path) -> None:
    path = write_tools(tmp_path, KIT)
    async with asyncio.timeout(20), serving(path) as served:
        assert list(served.tools) == ["crash", "differ", "give", "read", "roll", "take"]
        assert (await served.check_contract("take", {"id": 1})).value == {"id": 1}
        assert (await served.check_contract("take", {"id": 9}, fails_with="GONE")).message == "Not there."
        assert isinstance((await served.check_contract("roll")).value, float)
        assert (await served.call("take", id=2)).text == '{"id":2}'
        assert (await served.check_contract("differ", repeats=False)).code is None
        assert "idempotent" in await broken(served, "differ")
        assert "MADE_UP" in await broken(served, "take", {"id": 8})
        assert "succeeded" in await broken(served, "take", {"id": 1}, fails_with="GONE")
        assert "INVALID_INPUT" in await broken(served, "take", {"id": "x"})
        assert "INVALID_OUTPUT" in await broken(served, "give")
        assert "filesystem.read /etc/hosts" in await broken(served, "read", {"path": "/etc/hosts"})
        assert "KeyError: 'where'" in await broken(served, "crash")


async def test_a_file_that_can_not_be_served_fails_with_its_problems(tmp_path: Path) -> None:
    path = write_tools(tmp_path, "@tool\ndef nothing():\n    pass\n")
    with pytest.raises(ContractBroken, match="description"):
        async with serving(path):
            pass


def test_one_plain_call_is_enough(tmp_path: Path) -> None:
    path = write_tools(tmp_path, KIT)
    assert assert_contract(path, "take", {"id": 3}).value == {"id": 3}
