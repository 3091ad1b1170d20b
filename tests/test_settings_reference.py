"""The settings page and the JSON Schema say what the loader does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from pactgate.config.clients.foreign import adapt
from pactgate.config.load import load
from pactgate.config.model import Sections
from pactgate.config.problems import ConfigFindings, ConfigurationError
from pactgate.config.sections.limits import ToolTimeouts
from pactgate.config.sections.permissions import CallerClass, PermissionRule
from pactgate.config.sections.rate_limits import ExecutionRate, MutationRate, ReadRate, ToolRate
from pactgate.config.sections.views import ViewSection
from pactgate.config.server_settings import ServerEntry
from scripts import settings_reference as reference
from tests.config.test_load import CLAUDE_CODE, CLAUDE_DESKTOP, CLINE, CURSOR, SAME
from tests.config.test_validate import BAD
from tests.config.writing import TOKEN, remote, server, written

SCHEMA = jsonschema_rs.validator_for(reference.json_schema())
ENVIRON = {
    "API_KEY": "from-the-environment",
    "CRM": "crm-token",
    "CRM_TOKEN": "crm-token",
    "PACTGATE_ADMIN_TOKEN": TOKEN,
}


def loads(folder: Path, value: Any) -> bool:
    try:
        load(written(folder, json.dumps(value)), environ=ENVIRON)
    except ConfigurationError:
        return False
    return True


def test_the_schema_is_one_of_draft_2020_12() -> None:
    schema = reference.json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(schema)


def test_the_schema_closes_every_table_and_describes_every_setting() -> None:
    for name, table in reference.json_schema()["$defs"].items():
        assert table["additionalProperties"] is False, name
        assert table["description"], name
        for key, setting in table["properties"].items():
            assert setting.get("description") or "$ref" in setting, f"{name}.{key}"


def test_the_schema_carries_defaults_and_ranges() -> None:
    retries = reference.json_schema()["$defs"]["ServerEntry"]["properties"]["maxRetries"]
    assert (retries["default"], retries["minimum"], retries["maximum"]) == (3, 0, 10)


@pytest.mark.parametrize("text", [CLAUDE_DESKTOP, CLAUDE_CODE, CURSOR, CLINE, SAME[".json"]])
def test_the_schema_accepts_what_loads(text: str, tmp_path: Path) -> None:
    value = json.loads(text)
    assert loads(tmp_path, value)
    assert SCHEMA.is_valid(value)


def test_most_of_what_the_loader_refuses_an_editor_shows_already() -> None:
    refused = [not SCHEMA.is_valid(settings) for settings, _ in BAD]
    assert sum(refused) >= len(BAD) * 0.7


VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-2, 70_000)
    | st.sampled_from(
        ["", "auto", "stdio", "http", "sse", "x", "dot", "${CRM}", "https://crm.example/mcp", TOKEN, "x" * 600]
    )
    | st.lists(st.sampled_from(["x", "", 5, "admin", "https://a.example"]), max_size=22)
    | st.dictionaries(st.sampled_from(["A", "X-Key", "", "a b"]), st.sampled_from(["x", 5, "", "${CRM}"]), max_size=3)
)


def table(struct: type[Struct], *more: str) -> st.SearchStrategy[dict[str, Any]]:
    names = [*struct.__struct_encode_fields__, *more]
    return st.dictionaries(st.sampled_from(names), VALUES, max_size=3)


SERVERS = st.dictionaries(
    st.sampled_from(["files", "My_Server", "", "crm", "files\n"]),
    table(ServerEntry, "comand").flatmap(
        lambda entry: st.sampled_from([entry, {"command": "x"} | entry, {"url": "https://crm.example"} | entry])
    ),
    max_size=2,
)
TOKENS = st.dictionaries(
    st.sampled_from(["ops", "a b"]), st.fixed_dictionaries({}, optional={"token": VALUES, "roles": VALUES}), max_size=2
)
SECTIONS = {
    name: table(type(getattr(Sections(), name)), "unknown") | VALUES
    for name in Sections.__struct_fields__
    if name not in ("auth", "categories", "callers", "permissions", "views")
}
CALLERS = st.dictionaries(st.sampled_from(["finance", "", "a b"]), table(CallerClass, "roles"), max_size=2)
VIEWS = st.dictionaries(st.sampled_from(["review", "", "A"]), table(ViewSection, "toolz"), max_size=2)
RULES = st.lists(table(PermissionRule, "alow"), max_size=2)
CATEGORIES = st.dictionaries(st.sampled_from(["files.*", "", "x" * 400]), st.sampled_from(["query", "read", 5]))
FILES = st.fixed_dictionaries(
    {},
    optional={
        **SECTIONS,
        "categories": CATEGORIES | VALUES,
        "callers": CALLERS | VALUES,
        "permissions": RULES | VALUES,
        "views": VIEWS | VALUES,
        "auth": st.fixed_dictionaries({}, optional={"anonymous": VALUES, "tokens": TOKENS | VALUES}),
        "mcpServers": SERVERS | VALUES,
        "servers": SERVERS,
        "$schema": VALUES,
        "unknown": VALUES,
    },
)


@pytest.mark.requirement("S4/UNDECIDED-2")
@given(value=FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_what_the_schema_refuses_the_loader_refuses(value: dict[str, Any], tmp_path: Path) -> None:
    value = adapt(value, ConfigFindings("pactgate.json"), frozenset())
    if not SCHEMA.is_valid(value):
        assert not loads(tmp_path, value)


@given(
    key=st.sampled_from(sorted(ServerEntry.__struct_encode_fields__)),
    value=VALUES,
    make=st.sampled_from([server, remote]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_changed_setting_is_refused_by_both_or_by_the_loader(
    key: str, value: Any, make: Any, tmp_path: Path
) -> None:
    # The schema describes our own spelling; that of other clients becomes ours before anything is validated.
    changed = adapt(make(**{key: value}), ConfigFindings("pactgate.json"), frozenset())
    if not SCHEMA.is_valid(changed):
        assert not loads(tmp_path, changed)


def test_the_example_of_the_page_loads_and_is_in_the_page(tmp_path: Path) -> None:
    (example,) = re.findall(r"```jsonc\n(.*?)```", reference.settings_page(), re.DOTALL)
    config = load(written(tmp_path, example, ".jsonc"), environ=ENVIRON)
    assert list(config.servers) == ["files", "crm"]
    assert config.warnings == ()


def test_the_page_has_a_row_for_every_setting_with_default_range_and_sentence() -> None:
    page = reference.settings_page()
    assert (
        "| `maxRetries` | number | `3` | 0 to 10 | Attempts to connect after the first has failed. Calls are never repeated. |"
        in page
    )
    assert "| `token` | string | required | up to 500 characters |" in page
    rates = [ExecutionRate(), MutationRate(), ReadRate(), ToolRate(rpm=1, burst=1)]
    sections = [getattr(Sections(), name) for name in Sections.__struct_fields__]
    for struct in [ServerEntry(), ToolTimeouts(), *rates, *(one for one in sections if isinstance(one, Struct))]:
        for field, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
            row = rf"^\| `(?:mcpServers\.<id>\.)?{name}` \|.*\S \|$"
            table = rf"^## `(?:\w+|mcpServers\.<id>)\.{name}`$"
            is_table = isinstance(getattr(struct, field), Struct)
            assert re.search(table if is_table else row, page, re.MULTILINE), name
    assert all(f"## `{name}`" in page for name in Sections.__struct_encode_fields__)


def test_every_key_that_is_accepted_and_ignored_is_listed() -> None:
    _, _, listed = reference.settings_page().partition("## Accepted and ignored")
    keys = re.findall(r"^\| `(?:mcpServers\.<id>\.)?([^`]+)` \|", listed, re.MULTILINE)
    tables = reference.json_schema()["$defs"]
    untyped = [
        key
        for name in ("ConfigFile", "ServerEntry")
        for key, setting in tables[name]["properties"].items()
        if set(setting) <= {"description", "default"}
    ]
    assert sorted(keys) == sorted(untyped)
    assert {"autoApprove", "alwaysAllow", "timeout", "inputs", "$schema"} <= set(keys)
