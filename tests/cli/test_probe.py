"""`pactgate probe`: twice the same call, twice the same answer? And only where trying does no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.cli.probe import ABSENT, differences
from tests.cli.program import Served, scripted, write_config
from tests.support.servers import logged

ANY = {"type": "object"}


def tool(name: str, **hints: bool) -> dict[str, Any]:
    return {"name": name, "inputSchema": ANY, "annotations": hints}


TOOLS = [
    tool("echo", readOnlyHint=True),
    tool("wire", readOnlyHint=False, idempotentHint=True, destructiveHint=False),
    tool("pid", idempotentHint=True),
    tool("slow", idempotentHint=False),
    tool("raw"),
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("probe")
    log = str(folder / "received.jsonl")
    write_config(
        folder, {"files": scripted(definitions=TOOLS[:2], log=log), "other": scripted(definitions=TOOLS[2:], log=log)}
    )
    with Served(folder) as served:
        served.wait_for("ok +files")
        served.wait_for("ok +other")
        yield served


def calls(gateway: Served) -> int:
    return sum(entry["method"] == "tools/call" for entry in logged(gateway.folder / "received.jsonl"))


@pytest.mark.requirement("S2/MCP-004")
def test_the_same_answer_twice_is_good(gateway: Served) -> None:
    before = calls(gateway)
    done = gateway.run_program("probe", "files.echo", "text=a")
    assert (done.returncode, done.stderr) == (0, "")
    assert calls(gateway) == before + 2


@pytest.mark.requirement("S2/MCP-004")
def test_two_answers_are_shown_where_they_differ(gateway: Served) -> None:
    """`wire` answers with the request it received, whose id is another each time."""
    done = gateway.run("probe", "files.wire")
    assert done.returncode == 1
    assert "/content/0/text" in done.stdout
    as_json = json.loads(gateway.run("probe", "wire", "--json").stdout)
    assert as_json["equal"] is False
    assert as_json["differences"][0]["path"] == "/content/0/text"


@pytest.mark.requirement("S2/MCP-004")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pid", "may be destructive"),
        ("slow", "declared not idempotent"),
        ("raw", "not declared idempotent"),
        ("nothing", "There is no tool"),
    ],
)
def test_what_may_do_harm_is_not_tried_without_yes(gateway: Served, name: str, reason: str) -> None:
    before = calls(gateway)
    done = gateway.run("probe", name)
    assert done.returncode == 2
    assert reason in done.stderr
    assert calls(gateway) == before


def test_yes_takes_the_responsibility_and_a_failed_call_is_no_success(gateway: Served) -> None:
    assert gateway.run("probe", "pid", "--yes").returncode == 0
    assert gateway.run("probe", "echo", "--args", "[]").returncode == 2


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_values_differ_somewhere_exactly_when_they_are_not_the_same(one: Any, other: Any) -> None:
    assert bool(list(differences(one, other))) is (json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))


def test_every_difference_has_its_place() -> None:
    found = list(differences({"a/b": [1, 2], "c": 1}, {"a/b": [1, 3, 4], "d": True}))
    assert found == [("/a~1b/1", 2, 3), ("/a~1b/2", ABSENT, 4), ("/c", 1, ABSENT), ("/d", ABSENT, True)]
