"""`pactgate policy`: who may call what and by which rule, from a file of tools and from a running gateway."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Served, demo, run, run_on_terminal, write_config

TOKEN = "9c1e7b52d04f8a63-ops-token"
AUTH: dict[str, Any] = {"anonymous": True, "tokens": {"ops": {"token": TOKEN, "roles": ["admin"]}}}
CALLERS = {"finance": {"groups": ["finance"]}, "ci": {"keys": ["ci"]}}
RULES: list[dict[str, Any]] = [
    {"allow": ["crm.get_*", "category:query"], "to": "finance"},
    {"allow": "crm.refund", "to": "finance", "when": "arguments.amount < 500", "say": "Ask Ann."},
    {"deny": "crm.get_secret", "to": "*"},
]
TOOLS = [
    {"fullName": f"crm.{name}", "serverId": "crm", "annotations": {"readOnlyHint": name == "list"}}
    for name in ("get_order", "get_secret", "list", "refund", "drop")
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_config(tmp_path, {"crm": {"url": "http://127.0.0.1:1/mcp"}}, callers=CALLERS, permissions=RULES)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return tmp_path


def verdict(folder: Path, *words: str) -> dict[str, Any]:
    done = run(folder, "policy", "test", "--tools", "tools.json", "--json", *words)
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if said["allowed"] else 1)
    return said


@pytest.mark.parametrize(
    ("who", "words", "allowed", "listed", "rule"),
    [
        ("groups=finance", ["crm.get_order"], True, True, 1),
        ("groups=finance+dev", ["crm.list"], True, True, 1),
        ("groups=finance", ["crm.refund", "amount:=499"], True, True, 2),
        ("groups=finance", ["crm.refund", "amount:=900"], False, True, 2),
        ("groups=finance", ["crm.get_secret"], False, False, 3),
        ("groups=dev", ["crm.get_order"], False, False, None),
        ("key=ci", ["crm.get_order"], False, False, None),
        ("", ["crm.drop"], False, False, None),
    ],
)
def test_a_test_names_verdict_and_rule(
    who: str, words: list[str], allowed: bool, listed: bool, rule: int | None, folder: Path
) -> None:
    said = verdict(folder, "--as", who, *words)
    assert (said["allowed"], said["listed"], said["rule"]) == (allowed, listed, rule)
    assert bool(said["place"]) is (rule is not None)


def test_a_test_for_people_says_what_the_client_is_told(folder: Path) -> None:
    done = run(folder, "policy", "test", "--tools", "tools.json", "--as", "groups=finance", "crm.refund", "amount:=900")
    assert done.returncode == 1
    assert "crm.refund: denied" in done.stdout
    assert "Ask Ann." in done.stdout
    assert "rule 2 (pactgate.json:" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["--as", "group=x", "crm.list"],
        ["--as", "groups=a,groups=b", "crm.list"],
        ["--as", "key=ci,token=ops", "crm.list"],
        ["--as", "key=ci,subject=ann", "crm.list"],
        ["crm.nothing"],
        ["nothing"],
    ],
)
def test_an_unknown_or_impossible_client_or_tool_is_refused(words: list[str], folder: Path) -> None:
    assert run(folder, "policy", "test", "--tools", "tools.json", *words).returncode != 0


def test_the_matrix_has_a_column_per_class_and_one_for_all_others(folder: Path) -> None:
    said = json.loads(run(folder, "policy", "matrix", "--tools", "tools.json", "--json").stdout)
    assert said["classes"] == ["finance", "ci", "(others)"]
    answers = {tool: cells["finance"]["answer"] for tool, cells in said["tools"].items()}
    assert answers == {
        "crm.get_order": "yes",
        "crm.get_secret": "no",
        "crm.list": "yes",
        "crm.refund": "if",
        "crm.drop": "no",
    }
    assert said["tools"]["crm.refund"]["finance"]["conditions"] == ["allow when arguments.amount < 500"]


def test_a_matrix_of_more_classes_than_a_terminal_has_room_for_names_them(tmp_path: Path) -> None:
    names = [f"team-{number}-of-the-company" for number in range(6)]
    callers = {name: {"groups": [name]} for name in names}
    rules = [{"allow": "crm.list", "to": names[:5]}, {"allow": "crm.drop", "to": names[5], "when": "arguments.x == 1"}]
    write_config(tmp_path, {"crm": {"url": "http://127.0.0.1:1/mcp"}}, callers=callers, permissions=rules)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    code, shown = run_on_terminal(tmp_path, "policy", "matrix", "--tools", "tools.json")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()
    assert (code, lines[0].split()) == (0, ["TOOL", "YES", "IF"])
    assert all(name in " ".join(lines) for name in names)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("rules", "changes", "is_wider"),
    [
        (RULES, [], False),
        ([*RULES, {"allow": "crm.drop", "to": "ci"}], [("ci", "gains", "crm.drop")], True),
        (RULES[:2], [("finance", "gains", "crm.get_secret")], True),
        (RULES[1:], [("finance", "loses", "crm.get_order"), ("finance", "loses", "crm.list")], False),
        (
            [RULES[0], {**dict(RULES[1]), "when": "arguments.amount < 900"}, RULES[2]],
            [("finance", "differs", "crm.refund")],
            True,
        ),
        ([RULES[0], {"allow": "crm.refund", "to": "finance"}, RULES[2]], [("finance", "gains", "crm.refund")], True),
    ],
)
def test_a_diff_says_who_gains_and_loses_what(
    rules: list[dict[str, Any]], changes: list[tuple[str, str, str]], is_wider: bool, folder: Path
) -> None:
    (folder / "new").mkdir()
    write_config(folder / "new", {"crm": {"url": "http://127.0.0.1:1/mcp"}}, callers=CALLERS, permissions=rules)
    words = ("policy", "diff", "pactgate.json", "new/pactgate.json", "--tools", "tools.json")
    done = run(folder, *words, "--forbid-widening", "--json")
    said = json.loads(done.stdout)
    assert [(one["class"], one["change"], one["name"]) for one in said["changes"]] == changes
    assert (said["widens"], done.returncode) == (is_wider, int(is_wider))
    assert run(folder, *words).returncode == 0


def test_a_diff_says_who_comes_into_a_class_and_what_is_about_more_than_tools(folder: Path) -> None:
    (folder / "new").mkdir()
    callers = {**CALLERS, "finance": {"groups": ["finance", "sales"]}}
    rules = [*RULES, {"allow": "crm+file:///*", "to": "ci"}]
    write_config(folder / "new", {"crm": {"url": "http://127.0.0.1:1/mcp"}}, callers=callers, permissions=rules)
    done = run(folder, "policy", "diff", "pactgate.json", "new/pactgate.json", "--tools", "tools.json", "--json")
    gained = [(one["class"], one["name"], one["after"]) for one in json.loads(done.stdout)["changes"]]
    assert ("(others) -> finance", "crm.refund", "if") in gained
    assert ("ci", "crm+file:///*", "yes") in gained
    assert not any(name == "finance" for name, _, _ in gained)


def test_an_api_key_has_the_issuer_of_keys(tmp_path: Path) -> None:
    callers = {"ci": {"issuer": "keys", "keys": ["ci"]}, "rest": {}}
    write_config(
        tmp_path,
        {"crm": {"url": "http://127.0.0.1:1/mcp"}},
        callers=callers,
        permissions=[{"allow": "crm.list", "to": "ci"}],
    )
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    assert verdict(tmp_path, "--as", "key=ci", "crm.list")["class"] == "ci"


def test_the_tools_of_a_running_gateway_and_of_its_servers_are_used(tmp_path: Path) -> None:
    rules = [{"allow": "category:query", "to": "*"}]
    write_config(tmp_path, {"almanac": demo("almanac")}, auth=AUTH, permissions=rules)
    with Served(tmp_path) as served:
        served.wait_for("ok +almanac ")
        asked = run(tmp_path, "policy", "matrix", "--json", PACTGATE_TOKEN=TOKEN)
        live = run(tmp_path, "policy", "matrix", "--json", "--live")
        tools = json.loads(asked.stdout)["tools"]
        assert tools == json.loads(live.stdout)["tools"]
        assert len(tools) > 1
        listed = json.loads(run(tmp_path, "tools", "--json").stdout)
        assert {row["fullName"] for row in listed} == {
            name for name, row in tools.items() if row["(others)"]["answer"] == "yes"
        }
