"""The running gateway from a terminal: what is shown, what is printed for programs, and that no upstream reaches the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pactgate.cli.inspect import arguments_of
from tests.cli.program import Served, demo, evil, scripted, write_config
from tests.support.eventually import eventually_blocking

FORBIDDEN = ["\x07", "\x08", "\x7f", "\x9b", "\x9c", "\x9d", "\u202e", "\u2066", "\u200b", "\U000e0041"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gateway")
    servers = {
        "almanac": demo("almanac"),
        "scratchpad": demo("scratchpad"),
        "evil": evil(),
        "off": {"command": "nothing", "enabled": False},
    }
    write_config(folder, servers)
    with Served(folder) as served:
        for name in ("almanac", "scratchpad", "evil"):
            served.wait_for(f"ok +{name} ")
        yield served


def test_servers_piped_are_aligned_columns_without_colour(gateway: Served) -> None:
    done = gateway.run_program("servers")
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    facts = "SERVER STATUS PROTOCOL TRANSPORT TOOLS PROMPTS RESOURCES LATENCY SINCE NOTE"
    assert head.split() == facts.split()
    shown = r"almanac +connected +2025-11-25 +stdio +3 +0 +0 +\d+ ms +(\d+ min )?\d+ s +almanac 1\.0\.0"
    assert re.fullmatch(shown, rows[0])
    assert rows[3].split()[:2] == ["off", "disabled"]
    assert len({row.index("stdio") for row in rows}) == 1


def test_servers_as_json_are_what_the_gateway_said(gateway: Served) -> None:
    rows = json.loads(gateway.run("servers", "--json").stdout)
    assert [row["serverId"] for row in rows] == ["almanac", "scratchpad", "evil", "off"]
    assert rows[0]["status"] == "connected"


def test_servers_with_hidden_characters_are_marked_and_named(gateway: Served) -> None:
    evil = eventually_blocking(lambda: json.loads(gateway.run("servers", "--json").stdout)[2]["hazards"])
    assert any("evil.shout has the invisible character U+001B in title" in hazard for hazard in evil)
    shown = gateway.run("servers", "--verbose").stdout
    assert f"{len(evil)} conflicts (see below)" in shown
    assert "U+001B" in shown


def test_tools_can_be_narrowed_to_one_server(gateway: Served) -> None:
    everything = gateway.run_program("tools").stdout.splitlines()
    assert len(everything) == 1 + 3 + 3 + 7
    some = json.loads(gateway.run("tools", "--server", "almanac", "--json").stdout)
    assert {tool["serverId"] for tool in some} == {"almanac"}
    assert [tool["exposedName"] for tool in some] == sorted(tool["exposedName"] for tool in some)


def test_a_server_without_tools_and_one_that_is_not_there_are_different_things(gateway: Served) -> None:
    assert gateway.run("tools", "--server", "off").returncode == 0
    missing = gateway.run("tools", "--server", "nothing")
    assert missing.returncode == 1
    assert "almanac" in missing.stderr


def test_tools_show_their_category_with_the_reason(gateway: Served) -> None:
    head, first, *_ = gateway.run("tools", "--verbose").stdout.splitlines()
    assert head.split() == ["TOOL", "DESCRIPTION", "CATEGORY", "WHY", "TIMEOUT", "RATE", "EFFECTS", "OUTPUT"]
    row = json.loads(gateway.run("tools", "--json").stdout)[0]
    cells = re.split(" {2,}", first)
    assert cells[0] == "almanac__convert_units"
    assert cells[2:6] == [
        row.get("category") or "-",
        row.get("categoryReason") or "-",
        "60000 ms, requestTimeoutMs of the server",
        "200/min, burst 50",
    ]


def test_tools_show_name_and_description_first(gateway: Served) -> None:
    head, first, *_ = gateway.run("tools").stdout.splitlines()
    assert head.split() == ["TOOL", "DESCRIPTION", "CATEGORY"]
    assert first.startswith("almanac__convert_units  ")


def test_tools_can_be_searched_by_name(gateway: Served) -> None:
    assert [row["toolName"] for row in json.loads(gateway.run("tools", "date_facts", "--json").stdout)] == [
        "date_facts"
    ]
    missing = gateway.run("tools", "no-such-tool")
    assert (missing.returncode, "`pactgate tools` lists all" in missing.stderr) == (1, True)


def test_one_tool_is_shown_with_its_arguments_its_limits_and_who_set_them(gateway: Served) -> None:
    shown = gateway.run("tools", "almanac.convert_units").stdout
    assert "  argument     value: number. How many of the first unit." in shown
    assert "  category     query, the server says readOnlyHint" in shown
    assert "  timeout      60000 ms, requestTimeoutMs of the server" in shown
    assert "  rate limit   200/min, burst 50" in shown


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"properties": {"a": {"type": ["integer", "null"], "default": 3}}}, ["[a: integer | null = 3]"]),
        ({"properties": {"a": {"$ref": "#/$defs/S"}}, "$defs": {"S": {"enum": ["x", 1]}}}, ['[a: "x" | 1]']),
        ({"properties": {"a": {"anyOf": [{"type": "string"}, {}]}}, "required": ["a"]}, ["a: string | any"]),
        ({"properties": {"a": True, "b": {"description": 3}}, "required": 7}, ["[a: any]", "[b: any]"]),
        ({"properties": []}, []),
        (None, []),
    ],
)
def test_arguments_of_any_schema_are_shown(schema: object, shown: list[str]) -> None:
    assert list(arguments_of(schema)) == shown


def test_status_sums_it_up(gateway: Served) -> None:
    done = gateway.run_program("status")
    assert done.returncode == 0
    assert "3 connected, 1 disabled" in done.stdout
    assert json.loads(gateway.run("status", "--json").stdout)["name"] == "pactgate"


@pytest.mark.parametrize("name", ["almanac__date_facts", "almanac.date_facts", "date_facts"])
def test_a_call_works_under_every_name_of_the_tool(gateway: Served, name: str) -> None:
    done = gateway.run("call", name, "date=2026-11-16")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count('"isoWeek"') == 1
    assert '"Monday"' in done.stdout


def test_a_call_at_one_server_uses_its_own_names(gateway: Served) -> None:
    assert gateway.run("call", "date_facts", "--server", "almanac").returncode == 0
    assert gateway.run("call", "date_facts", "--server", "scratchpad").returncode == 1
    assert gateway.run("call", "date_facts", "--server", "nothing").returncode == 1


def test_arguments_follow_the_schema_of_the_tool(gateway: Served) -> None:
    done = gateway.run("call", "typed", "count=3", "flag=true", "names=[1]", "text=3", "either=3", "--json")
    seen = json.loads(json.loads(done.stdout)["content"][0]["text"].splitlines()[-1])
    assert seen == {"count": 3, "flag": True, "names": [1], "text": "3", "either": "3"}


def test_a_whole_object_of_arguments_can_be_given(gateway: Served) -> None:
    done = gateway.run_program("call", "convert_units", "--args", '{"value": 1, "from": "km", "to": "m"}', "--json")
    assert json.loads(done.stdout)["structuredContent"]["result"] == 1000


def test_arguments_the_schema_mirrors_into_headers_are_sent_there_too(gateway: Served) -> None:
    done = gateway.run("call", "routed", "region=Zürich", "--json")
    assert done.returncode == 0, done.stdout


def test_arguments_that_can_not_be_read_are_a_wrong_invocation(gateway: Served) -> None:
    done = gateway.run("call", "countdown", "steps=three")
    assert (done.returncode, done.stdout) == (2, "")
    assert "integer" in done.stderr


def test_a_tool_that_failed_is_exit_code_1_with_its_words_shown(gateway: Served) -> None:
    done = gateway.run("call", "convert_units", "value=1", "from=mi", "to=smoots")
    assert done.returncode == 1
    assert "smoots" in done.stdout
    assert "code: OPERATION_FAILED" in done.stderr
    assert re.search(r"request id: [0-9a-f-]{36}", done.stderr)
    assert gateway.run("call", "convert_units", "value=1", "from=mi", "to=smoots", "--json").returncode == 1


def test_an_unknown_tool_says_that_nothing_ran(gateway: Served) -> None:
    done = gateway.run("call", "nothing")
    assert done.returncode == 1
    assert "NOT_FOUND" in done.stderr
    assert "executed: no" in done.stderr
    assert "error" in json.loads(gateway.run("call", "nothing", "--json").stdout)


def test_giving_up_cancels_the_call_and_says_so(gateway: Served) -> None:
    done = gateway.run("call", "countdown", "intervalMs=5000", "--timeout-ms", "200")
    assert done.returncode == 1
    assert "within 200 ms" in done.stderr


def test_progress_is_shown_on_a_terminal_while_one_waits(gateway: Served) -> None:
    code, received = gateway.run_on_terminal("call", "countdown", "steps=4", "intervalMs=350")
    assert code == 0
    assert b"of 4" in received
    assert b'"steps": 4' in received


@pytest.mark.parametrize(
    "words",
    [
        ["servers"],
        ["tools"],
        ["status"],
        ["call", "shout", "text=x"],
        ["call", "fail"],
        ["call", "blocks"],
        ["call", "shout", "--json"],
        ["servers", "--json"],
        ["tools", "--json"],
    ],
    ids=" ".join,
)
def test_no_control_character_of_an_upstream_reaches_the_terminal(gateway: Served, words: list[str]) -> None:
    _, received = gateway.run_on_terminal(*words, NO_COLOR="1", COLUMNS="400")
    text = received.decode()
    assert not [mark for mark in FORBIDDEN if mark in text]
    assert "\r" not in text.replace("\r\n", "").replace("\r\x1b[K", "")
    # The spinner of a call that takes long is ours; the upstream's own sequences are not the one that clears a line.
    assert "\x1b" not in text.replace("\x1b[K", "")
    if "status" not in words:
        assert "owned" in text


def test_markup_in_foreign_text_stays_text(gateway: Served) -> None:
    text = gateway.run_on_terminal("tools", COLUMNS="400")[1].decode()
    assert "[bold]markup[/bold]:skull:" in text


def test_the_reason_why_a_server_is_down_is_shown_whole_on_a_narrow_terminal(tmp_path: Path) -> None:
    write_config(tmp_path, {"missing": {"command": "a-program-with-a-long-name-that-is-missing", "maxRetries": 0}})
    with Served(tmp_path) as gateway:
        gateway.wait_for("down +missing")
        narrow = gateway.run_on_terminal("servers", NO_COLOR="1", COLUMNS="80")[1].decode()
    lines = narrow.splitlines()
    column = next(line.index("NOTE") for line in lines if "NOTE" in line)
    assert "a-program-with-a-long-name-that-is-missing" in "".join(line[column:].strip() for line in lines)


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A healthy server, one that lists a tool nobody can call, and one that is not there."""
    folder = tmp_path_factory.mktemp("troubled")
    bad_tool = {"name": "shapeless\u001b[2J"}
    fine_tool = {"name": "fine", "inputSchema": {"type": "object"}}
    servers = {
        "off": {"command": "nothing", "enabled": False},
        "healthy": scripted(),
        "sloppy": scripted(definitions=[{"name": "shapeless"}, bad_tool, fine_tool]),
        "missing": {"command": "a-program-that-is-missing", "maxRetries": 0},
    }
    write_config(folder, servers)
    with Served(folder) as served:
        for line in ("ok +healthy ", "ok +sloppy ", "down +missing "):
            served.wait_for(line)
        yield served


def test_what_is_broken_comes_first_with_its_reason(troubled: Served) -> None:
    rows = [line.split() for line in troubled.run("servers").stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["missing", "sloppy", "healthy", "off"]
    assert "a-program-that-is-missing" in " ".join(rows[0])
    assert " ".join(rows[1]).endswith("2 skipped (--verbose shows why)")
    assert json.loads(troubled.run("servers", "--json").stdout)[0]["serverId"] == "off"


def test_why_something_is_left_out_is_told_on_request(troubled: Served) -> None:
    assert "it has no inputSchema" not in troubled.run("servers").stdout
    for flag in ("--verbose", "-v"):
        told = troubled.run("servers", flag).stdout
        assert "shapeless: it has no inputSchema" in told
        assert "\x1b" not in told


def test_broken_servers_are_in_colour_on_a_terminal(troubled: Served) -> None:
    received = troubled.run_on_terminal("servers", COLUMNS="200")[1].decode()
    assert "\x1b[31merror" in received
    assert "\x1b[31mcould not be started" in received
    assert "\x1b[33m2 skipped" in received


def test_tools_say_whose_are_missing(troubled: Served) -> None:
    done = troubled.run("tools")
    assert "sloppy__fine" in done.stdout
    assert "missing can't be used: could not be started" in done.stderr
    assert "missing" not in troubled.run("tools", "--server", "healthy").stderr


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.parametrize("words", [["servers"], ["tools"]], ids=" ".join)
def test_every_width_stays_readable(troubled: Served, words: list[str], columns: int) -> None:
    text = troubled.run_on_terminal(*words, NO_COLOR="1", COLUMNS=str(columns))[1].decode()
    table = text.partition("warning:")[0]
    assert max(map(len, table.splitlines())) <= columns
    for name in ("healthy", "sloppy"):
        assert name in table
    if words == ["servers"]:
        assert "error" in table
        assert "connected" in table
        assert "could not be" in " ".join(table.split())


def test_tables_on_a_terminal_fit_it_and_have_colour(gateway: Served) -> None:
    narrow = gateway.run_on_terminal("tools", NO_COLOR="1", COLUMNS="60")[1].decode()
    assert max(map(len, narrow.splitlines())) <= 60
    assert b"\x1b[32mconnected" in gateway.run_on_terminal("servers")[1]
    assert b"\x1b" not in gateway.run_on_terminal("servers", NO_COLOR="1")[1]
