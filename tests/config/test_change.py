"""One change of a running configuration: which paths there are, what is refused and why, and what may be seen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pactgate.config import change
from pactgate.config.model import Config
from pactgate.config.problems import Path, spell
from pactgate.config.sections.auth import Auth, Token
from pactgate.config.sections.limits import Limits
from pactgate.config.sections.listen import ListenSection
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind

SECRET = "hunter2-hunter2"
CONFIG = Config(
    servers={
        "files": ServerConfig(
            id="files", command="serve-files", args=("--key", SECRET), env={"KEY": SECRET}, description=f"key {SECRET}"
        ),
        "crm": ServerConfig(id="crm", url=f"https://crm.example/{SECRET}", headers={"Authorization": SECRET}),
    },
    auth=Auth(tokens={"ops": Token(token="0123456789-token", roles=("admin",))}),
    secrets=(SECRET,),
)


def refused(path: str, value: Any = 1) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as raised:
        change.plan(CONFIG, change.read_path(path), value)
    return raised.value


# Paths.


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5))
def test_a_path_is_read_as_problems_spell_it(keys: list[str]) -> None:
    path: Path = tuple(keys)
    assume_short = len(spell(path)) <= 500 and all(len(key) <= 20 for key in keys)
    if assume_short and "..." not in spell(path):
        assert change.read_path(spell(path)) == path


@pytest.mark.parametrize("text", ["", ".", ".limits", "limits.", "limits..x", "a b", "a[0]", 'a["x', "x" * 501, "ä"])
def test_what_is_no_path_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(GatewayFailure, match=r"limits\.maxArraySize") as raised:
        change.read_path(text)
    assert raised.value.code is ErrorCode.INVALID_INPUT


# What can be changed.


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("limits.maxArraySize", 5),
        ("limits", {"maxArraySize": 5, "toolArrayLimits": {"files.list": 9}}),
        ("timeouts.toolTimeouts.query", 500),
        ('timeouts.toolOverrides["files.index"]', 9000),
        ("rateLimits.enabled", False),
        ('rateLimits.tools["files.*"]', {"rpm": 5, "burst": 1}),
        ("cache.defaultTtlMs", 0),
        ("naming.exposed", "dot"),
        ("response.maxResponseBytes", 2048),
        ("wire.timeouts", "tool_result"),
        ('categories["*.run_*"]', "execution"),
        ("mcpServers.files.enabled", False),
        ("mcpServers.crm.requestTimeoutMs", 1000),
        ("mcpServers.crm.maxRetries", 0),
    ],
)
def test_what_can_be_changed_is_changed_and_nothing_else_is(path: str, value: Any) -> None:
    at = change.read_path(path)
    after = change.plan(CONFIG, at, value)
    held = change.value_at(after, at)
    assert held == value or value.items() <= held.items()
    assert change.revision(after) != change.revision(CONFIG)
    back = change.plan(after, (at[0],) if at[0] != "mcpServers" else at, None)
    assert change.shown(back) == change.shown(CONFIG)
    assert back.servers["files"].args == CONFIG.servers["files"].args


def test_nothing_takes_a_value_back_to_its_default() -> None:
    changed = replace(CONFIG, limits=Limits(max_array_size=3, max_object_depth=4))
    after = change.plan(changed, ("limits", "maxArraySize"), None)
    assert (after.limits.max_array_size, after.limits.max_object_depth) == (100, 4)


@pytest.mark.parametrize(
    "path",
    [
        "mcpServers.files.command",
        "mcpServers.files.args",
        "mcpServers.files.env.KEY",
        "mcpServers.crm.url",
        "mcpServers.crm.headers.Authorization",
        "mcpServers.files.effects",
        "mcpServers.files",
        "mcpServers",
        "listen.host",
        "auth.anonymous",
        "auth.tokens.ops.roles",
        "telemetry.endpoint",
        "sessions",
        "discovery",
    ],
)
def test_servers_addresses_and_tokens_stand_in_the_file_alone(path: str) -> None:
    failure = refused(path, {"command": "sh"})
    assert (failure.kind, failure.code) == (Kind.PERMISSION_DENIED, ErrorCode.PERMISSION_DENIED)
    assert "operator's file" in failure.message


def test_a_server_that_is_not_there_can_not_be_made() -> None:
    failure = refused("mcpServers.new.enabled", True)
    assert failure.kind is Kind.UNKNOWN_SERVER
    assert "files, crm" in failure.message


def test_every_problem_of_a_value_is_listed_and_the_configuration_is_what_it_was() -> None:
    before = change.shown(CONFIG)
    failure = refused("limits", {"maxArraySize": -1, "maxStringLenght": 5, "maxObjectDepth": "3"})
    assert failure.code is ErrorCode.INVALID_INPUT
    assert [problem["path"] for problem in failure.details["problems"]] == [
        "limits.maxArraySize",
        "limits.maxStringLenght",
        "limits.maxObjectDepth",
    ]
    assert 'Did you mean "maxStringLength"?' in failure.message
    assert change.shown(CONFIG) == before


def test_what_a_section_says_of_itself_as_a_whole_is_checked_too() -> None:
    failure = refused("cache.lowWaterMark", 0.9)
    assert "not below the high one" in failure.message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("limits.maxArraySize", "5"),
        ("limits.maxArraySize", True),
        ("limits.maxArraySize", 5.0),
        ("limits.maxArraySize.deeper", 5),
        ("limits", 5),
        ("naming.exposed", "Dot"),
        ('rateLimits.tools["files.*"].rpm', 5),
        ('categories["files.*"]', {"query": 1}),
        ("mcpServers.files.enabled", "yes"),
        ("mcpServers.files.requestTimeoutMs", 5),
    ],
)
def test_a_value_of_another_kind_is_refused_and_nothing_is_converted(path: str, value: Any) -> None:
    assert refused(path, value).code in (ErrorCode.INVALID_INPUT, ErrorCode.NOT_FOUND)


@pytest.mark.parametrize("path", ["limit.maxArraySize", "nothing", "servers.files.enabled"])
def test_a_section_that_does_not_exist_is_not_found(path: str) -> None:
    assert refused(path).code is ErrorCode.NOT_FOUND


def test_the_caller_of_a_change_keeps_its_value_to_itself() -> None:
    given_value = {"files.*": "query"}
    after = change.plan(CONFIG, ("categories",), given_value)
    given_value["files.*"] = "execution"
    assert after.categories == {"files.*": "query"}


# What is seen.


def test_no_secret_command_or_address_is_shown() -> None:
    text = repr(change.shown(CONFIG))
    for hidden in (SECRET, "0123456789-token", "serve-files", "crm.example", "--key"):
        assert hidden not in text
    ops = change.value_at(CONFIG, ("auth", "tokens", "ops"))
    assert ops == {"token": "***", "expires": None, "tokens": [], "roles": ["admin"]}
    assert change.value_at(CONFIG, ("mcpServers", "files", "description")) == "key ***"


@pytest.mark.parametrize("path", ["mcpServers.files.command", "mcpServers.files.env", "limits.nothing", "x"])
def test_what_is_not_shown_is_not_there(path: str) -> None:
    with pytest.raises(GatewayFailure) as raised:
        change.value_at(CONFIG, change.read_path(path))
    assert raised.value.code is ErrorCode.NOT_FOUND


def test_equal_configurations_have_equal_revisions_whatever_their_secrets() -> None:
    assert change.revision(CONFIG) == change.revision(replace(CONFIG, warnings=()))
    other = replace(CONFIG.servers["files"], env={"KEY": "something-else"})
    assert change.revision(replace(CONFIG, servers={**CONFIG.servers, "files": other})) == change.revision(CONFIG)


def test_what_only_a_start_takes_over_is_named() -> None:
    after = change.plan(CONFIG, ("limits", "maxInFlight"), 5)
    assert change.needs_restart(CONFIG, after) == ("limits",)
    assert change.needs_restart(CONFIG, change.plan(CONFIG, ("limits", "maxArraySize"), 5)) == ()
    assert change.needs_restart(CONFIG, change.plan(CONFIG, ("cache", "tools"), {"a.b": {}})) == ()
    assert change.needs_restart(CONFIG, change.plan(CONFIG, ("cache", "maxEntries"), 5)) == ("cache",)


def test_a_flag_of_the_command_line_does_not_make_it_another_file() -> None:
    assert change.is_same_file(CONFIG, replace(CONFIG, listen=ListenSection(port=0)))
    assert not change.is_same_file(CONFIG, replace(CONFIG, limits=Limits(max_array_size=1)))


@pytest.mark.parametrize(
    ("changed", "stuck"),
    [
        ({"listen": ListenSection(port=1)}, ("listen",)),
        ({"listen": ListenSection(max_connections_per_address=7)}, ("listen",)),
        ({"listen": ListenSection(allowed_hosts=("a.example",), allowed_origins=("https://a.example",))}, ()),
        ({"auth": Auth(tokens={"dev": Token(token="0123456789-other")})}, ()),
        ({"auth": Auth(anonymous=True)}, ()),
        ({"auth": Auth()}, ("auth",)),
    ],
)
def test_who_may_call_is_applied_while_running_and_where_is_not(
    changed: dict[str, Any], stuck: tuple[str, ...]
) -> None:
    before = replace(CONFIG, listen=ListenSection())
    assert change.needs_restart(before, replace(before, **changed)) == stuck
