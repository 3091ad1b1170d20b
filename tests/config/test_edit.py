"""One value, one server or one key less in the text of a file: exactly there, and nothing else moves."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.edit import add_server, put, remove
from pactgate.config.problems import ConfigFindings, EditError
from pactgate.config.reader import Format, read

JSONC = """\
// ours
{
  "limits": { "maxArraySize": 100 /* small */, "maxObjectDepth": 10 }, // bounds
  "mcpServers": {
    "files": {
      "command": "x", // a program
    }, // "limits": 5
  } /* the end */
}
"""
YAML = """\
# ours
limits:
  maxArraySize:   100  # small
  maxObjectDepth: 10
mcpServers:
    files:
        command: "x: #y"  # a program
        # args: [z]
    web: {url: "http://x"}
# the end
"""
TOML = """\
# ours
[limits]
maxArraySize = 100 # small
maxObjectDepth  =  10

[mcpServers.files]
command = "x # y" # a program
"""
Case = tuple[Format, str, tuple[str, ...], Any, str, str]
PUT: list[Case] = [
    (Format.JSON, JSONC, ("limits", "maxArraySize"), 5, '"maxArraySize": 100', '"maxArraySize": 5'),
    (Format.JSON, JSONC, ("limits", "maxStringLength"), 5, ": 10 }", ': 10, "maxStringLength": 5 }'),
    (
        Format.JSON,
        JSONC,
        ("mcpServers", "files", "enabled"),
        False,
        '"x", // a program\n',
        '"x", // a program\n      "enabled": false\n',
    ),
    (
        Format.JSON,
        JSONC,
        ("rateLimits", "read", "rpm"),
        400,
        "  } /* the end */\n",
        '  }, /* the end */\n  "rateLimits": {\n    "read": {\n      "rpm": 400\n    }\n  }\n',
    ),
    (Format.YAML, YAML, ("limits", "maxArraySize"), 5, "100  # small", "5  # small"),
    (Format.YAML, YAML, ("limits", "tools"), {"a b": 1}, "Depth: 10", 'Depth: 10\n  tools:\n    "a b": 1'),
    (
        Format.YAML,
        YAML,
        ("mcpServers", "files", "enabled"),
        False,
        "        # args: [z]\n",
        "        # args: [z]\n        enabled: false\n",
    ),
    (Format.YAML, YAML, ("mcpServers", "web", "enabled"), True, '"http://x"}', '"http://x", enabled: true}'),
    (
        Format.YAML,
        YAML,
        ("rateLimits", "read", "rpm"),
        400,
        '{url: "http://x"}\n',
        '{url: "http://x"}\nrateLimits:\n  read:\n    rpm: 400\n',
    ),
    (Format.YAML, "a:\n  b:\nc: 1\n", ("a", "b", "no"), "x", "  b:\n", '  b:\n    no: "x"\n'),
    (Format.YAML, "a: ~\n", ("a", "true"), 1, "~", '{"true": 1}'),
    (Format.YAML, "a: 1 # b\r\nc: 2\r\n", ("d",), {"e": 1}, "2\r\n", "2\r\nd:\r\n  e: 1\r\n"),
    (Format.TOML, TOML, ("limits", "maxArraySize"), 5, "100 # small", "5 # small"),
    (Format.TOML, TOML, ("limits", "maxStringLength"), 5, "=  10\n", "=  10\nmaxStringLength = 5\n"),
    (Format.TOML, TOML, ("mcpServers", "files", "command"), "z", '"x # y" # a', '"z" # a'),
    (
        Format.TOML,
        TOML,
        ("rateLimits", "tools", "files.*"),
        {"rpm": 4, "burst": 1},
        "# a program\n",
        '# a program\n\n[rateLimits.tools."files.*"]\nrpm = 4\nburst = 1\n',
    ),
    (Format.TOML, "a = 1\n", ("naming", "exposed"), "dot", "a = 1\n", 'a = 1\n\n[naming]\nexposed = "dot"\n'),
    (Format.TOML, "a = { b = 1 } # c\n", ("a", "b"), 2, "b = 1", "b = 2"),
    (Format.TOML, "a = { b = 1 } # c\n", ("a", "c", "d"), 2, "b = 1 }", "b = 1, c = {d = 2}}"),
    (Format.TOML, "a.b = 1\n", ("a", "b"), 2, "= 1", "= 2"),
]
REMOVED: list[Case] = [
    (Format.JSON, JSONC, ("limits", "maxArraySize"), None, '"maxArraySize": 100 /* small */, ', ""),
    (Format.JSON, JSONC, ("limits", "maxObjectDepth"), None, ', "maxObjectDepth": 10', ""),
    (Format.JSON, JSONC, ("mcpServers", "files", "command"), None, '      "command": "x", // a program\n', ""),
    (
        Format.JSON,
        JSONC,
        ("limits",),
        None,
        '  "limits": { "maxArraySize": 100 /* small */, "maxObjectDepth": 10 }, // bounds\n',
        "",
    ),
    (Format.JSON, '{\n  "a": 1, // x\n  "b": 2\n}\n', ("b",), None, ', // x\n  "b": 2\n', " // x\n"),
    (Format.JSON, '{"a": 1}', ("a",), None, '"a": 1', ""),
    (Format.YAML, YAML, ("limits", "maxArraySize"), None, "  maxArraySize:   100  # small\n", ""),
    (
        Format.YAML,
        YAML,
        ("mcpServers", "files"),
        None,
        '    files:\n        command: "x: #y"  # a program\n        # args: [z]\n',
        "",
    ),
    (Format.YAML, YAML, ("mcpServers", "web", "url"), None, 'url: "http://x"', ""),
    (Format.YAML, "a:\n  b: 1\nc: 2", ("c",), None, "c: 2", ""),
    (Format.YAML, "a:\n  b: 1\nc: 2\n", ("a", "b"), None, "b: 1", "{}"),
    (Format.TOML, TOML, ("limits", "maxArraySize"), None, "maxArraySize = 100 # small\n", ""),
    (
        Format.TOML,
        TOML,
        ("mcpServers", "files"),
        None,
        '[mcpServers.files]\ncommand = "x # y" # a program\n',
        "[mcpServers]\n",
    ),
    (Format.TOML, "a = { b = { c = 1 } }\n", ("a", "b", "c"), None, "{ c = 1 }", "{}"),
]


def values(text: str, form: Format) -> Any:
    found = ConfigFindings("")
    value = read(text, form, found)
    assert not found.problems
    return value


@pytest.mark.parametrize(("form", "text", "path", "value", "old", "new"), PUT)
def test_a_value_is_put_in_place_and_every_other_letter_stays(
    form: Format, text: str, path: tuple[str, ...], value: Any, old: str, new: str
) -> None:
    assert text.count(old) == 1
    assert put(text, form, path, value) == text.replace(old, new)


@pytest.mark.parametrize(("form", "text", "path", "value", "old", "new"), REMOVED)
def test_a_key_is_removed_with_its_value_and_every_other_letter_stays(
    form: Format, text: str, path: tuple[str, ...], value: Any, old: str, new: str
) -> None:
    assert text.count(old) == 1
    assert remove(text, form, path) == text.replace(old, new)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Format.JSON, ""),
        (Format.JSON, "{}"),
        (Format.JSON, "{\n}\n"),
        (Format.JSON, "{ /* x */ }"),
        (Format.YAML, ""),
        (Format.YAML, "# x\n"),
        (Format.YAML, "{}\n"),
        (Format.TOML, ""),
        (Format.TOML, "# x\n"),
    ],
)
def test_an_empty_file_gets_its_first_setting(form: Format, text: str) -> None:
    assert values(put(text, form, ("limits", "maxArraySize"), 5), form) == {"limits": {"maxArraySize": 5}}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Format.JSON, '{"limits": 5}'),
        (Format.YAML, "limits: 5\n"),
        (Format.TOML, "limits = 5\n"),
        (Format.TOML, "limits.maxArraySize = 1\n[a]\n[a.b.c]\n[a.b]\n[b]\n[a.b.d]\n"),  # tomlkit refuses it
        (Format.JSON, "[]"),
        (Format.JSON, '{"limits": ['),
        (Format.JSON, '{"a": 1, "a": 2}'),
        (Format.YAML, "a: &x {b: 1}\nlimits: *x\n"),
        (Format.YAML, "limits: &x {b: 1}\na: *x\n"),
    ],
)
def test_where_there_is_no_safe_place_nothing_is_edited(form: Format, text: str) -> None:
    with pytest.raises(EditError):
        put(text, form, ("limits", "maxArraySize"), 5)
    with pytest.raises(EditError):
        remove(text, form, ("limits", "maxArraySize"))


def test_toml_has_no_null() -> None:
    with pytest.raises(EditError):
        put(TOML, Format.TOML, ("limits", "x"), None)


ENTRY = {"openapi": "w.yaml", "args": ["a", "b"]}
LINES = '"w": {\n      "openapi": "w.yaml",\n      "args": ["a", "b"]\n    }'


@pytest.mark.parametrize(
    ("form", "before", "after"),
    [
        (Format.JSON, "", f'{{\n  "mcpServers": {{\n    {LINES}\n  }}\n}}\n'),
        (Format.JSON, '{"mcpServers": {}}', '{"mcpServers": {"w": {"openapi": "w.yaml", "args": ["a", "b"]}}}'),
        (
            Format.JSON,
            '{"servers": {"a": {}, }}',
            '{"servers": {"a": {}, "w": {"openapi": "w.yaml", "args": ["a", "b"]} }}',
        ),
        (
            Format.JSON,
            '{\n  "mcpServers": {\n    "a": { "x": "}" } // the first\n  },\n  "listen": {}\n}\n',
            f'{{\n  "mcpServers": {{\n    "a": {{ "x": "}}" }}, // the first\n    {LINES}\n  }},\n  "listen": {{}}\n}}\n',
        ),
        (
            Format.JSON,
            '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}',
            '{\n\t"mcpServers": {\n\t\t"a": {},\n\t\t"w": {\n\t\t\t"openapi": "w.yaml",\n\t\t\t"args": ["a", "b"]\n\t\t}\n\t}\n}',
        ),
        (Format.YAML, "", 'mcpServers:\n  w:\n    openapi: "w.yaml"\n    args: ["a", "b"]\n'),
        (Format.YAML, "mcpServers:\n", 'mcpServers:\n  w:\n    openapi: "w.yaml"\n    args: ["a", "b"]\n'),
        (
            Format.YAML,
            "mcpServers:\n  a:\n    command: x # first\n\n# ports\nlisten:\n  port: 1\n",
            "mcpServers:\n  a:\n    command: x # first\n"
            '  w:\n    openapi: "w.yaml"\n    args: ["a", "b"]\n\n# ports\nlisten:\n  port: 1\n',
        ),
        (Format.YAML, "mcpServers: {}\n", 'mcpServers: {w: {"openapi": "w.yaml", "args": ["a", "b"]}}\n'),
        (Format.TOML, "", '[mcpServers.w]\nopenapi = "w.yaml"\nargs = ["a", "b"]\n'),
    ],
)
def test_a_server_is_added_in_the_style_of_the_file(form: Format, before: str, after: str) -> None:
    assert add_server(before, form, "w", ENTRY) == after


def test_a_server_with_tables_is_added_to_toml() -> None:
    entry = {**ENTRY, "credentials": {"key": "${K}", "my key": "v"}}
    after = add_server('# mine\n[mcpServers.a]\ncommand = "x"\n[listen]\nport = 1\n', Format.TOML, "w", entry)
    assert tomllib.loads(after)["mcpServers"] == {"a": {"command": "x"}, "w": entry}


def test_a_server_that_cant_be_added_is_shown_to_be_pasted() -> None:
    with pytest.raises(EditError) as raised:
        add_server("mcpServers: &s {a: {}}\nservers: *s\n", Format.YAML, "w", ENTRY)
    assert values(raised.value.lines, Format.YAML) == {"mcpServers": {"w": ENTRY}}


@pytest.mark.parametrize(
    ("before", "why"),
    [('{"mcpServers": {"w": {}}}', "already"), ('{"servers": {"w": {}}}', "already"), ("{", "can't be read")],
)
def test_a_name_that_is_taken_and_a_file_that_is_broken_are_refused(before: str, why: str) -> None:
    with pytest.raises(EditError, match=why):
        add_server(before, Format.JSON, "w", ENTRY)


_KEYS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=6)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(_KEYS, JSON_VALUES, max_size=4)
INDENTS = st.sampled_from([None, 0, 1, 2, "\t"])


@given(TABLES, _KEYS, JSON_VALUES, INDENTS)
def test_any_value_finds_its_place_in_any_json_and_can_be_removed(
    table: dict[str, Any], key: str, value: Any, indent: Any
) -> None:
    text = put(json.dumps(table, indent=indent, ensure_ascii=False), Format.JSON, (key,), value)
    assert json.loads(text) == {**table, key: value}
    table.pop(key, None)
    assert json.loads(remove(text, Format.JSON, (key,))) == table


@given(TABLES, _KEYS, JSON_VALUES)
def test_any_setting_added_to_a_block_of_yaml_can_be_removed_again(table: dict[str, Any], key: str, value: Any) -> None:
    before = put("# mine\n", Format.YAML, ("top",), {"first": 1})
    text = put(before, Format.YAML, ("top", key), value)
    assert values(text, Format.YAML) == {"top": {"first": 1, key: value}}
    assert key == "first" or remove(text, Format.YAML, ("top", key)) == before
