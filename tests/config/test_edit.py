"""One value put into the text of a file: exactly there, and nothing else moves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.edit import EditError, put
from pactgate.config.problems import ConfigFindings
from pactgate.config.reader import Format, read
from tests.config.writing import plain

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
  maxArraySize: 100  # small
  maxObjectDepth: 10
mcpServers:
  files:
    command: "x: #y"  # a program
  web: {url: "http://x"}
# the end
"""
TOML = """\
# ours
[limits]
maxArraySize = 100 # small
maxObjectDepth = 10

[mcpServers.files]
command = "x # y" # a program
"""
CASES: list[tuple[Format, str, tuple[str, ...], Any, str, str]] = [
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
        '  }, /* the end */\n  "rateLimits": {"read": {"rpm": 400}}\n',
    ),
    (Format.YAML, YAML, ("limits", "maxArraySize"), 5, "100  # small", "5  # small"),
    (
        Format.YAML,
        YAML,
        ("limits", "toolArrayLimits"),
        {"a.b": 1},
        "Depth: 10",
        'Depth: 10\n  toolArrayLimits: {"a.b": 1}',
    ),
    (
        Format.YAML,
        YAML,
        ("mcpServers", "files", "enabled"),
        False,
        "# a program",
        "# a program\n    enabled: false",
    ),
    (Format.YAML, YAML, ("mcpServers", "web", "enabled"), True, '"http://x"}', '"http://x", enabled: true}'),
    (
        Format.YAML,
        YAML,
        ("rateLimits", "read", "rpm"),
        400,
        '{url: "http://x"}',
        '{url: "http://x"}\nrateLimits: {"read": {"rpm": 400}}',
    ),
    (Format.TOML, TOML, ("limits", "maxArraySize"), 5, "100 # small", "5 # small"),
    (Format.TOML, TOML, ("limits", "maxStringLength"), 5, "Depth = 10\n", "Depth = 10\nmaxStringLength = 5\n"),
    (Format.TOML, TOML, ("mcpServers", "files", "command"), "z", '"x # y" # a', '"z" # a'),
    (
        Format.TOML,
        TOML,
        ("rateLimits", "tools", "files.*"),
        {"rpm": 4, "burst": 1},
        "# a program\n",
        '# a program\n\n[rateLimits.tools]\n"files.*" = { rpm = 4, burst = 1 }\n',
    ),
    (Format.TOML, "a = 1\n", ("naming", "exposed"), "dot", "a = 1\n", 'a = 1\n\n[naming]\nexposed = "dot"\n'),
]


def values(text: str, form: Format) -> Any:
    found = ConfigFindings("")
    root = read(text, form, found)
    assert root is not None, found.problems
    return plain(root)


@pytest.mark.parametrize(("form", "text", "path", "value", "old", "new"), CASES)
def test_the_value_is_put_in_place_and_every_other_letter_stays(
    form: Format, text: str, path: tuple[str, ...], value: Any, old: str, new: str
) -> None:
    assert text.count(old) == 1
    assert put(text, form, path, value) == text.replace(old, new)


@pytest.mark.parametrize(
    ("form", "text"),
    [(Format.JSON, "{}"), (Format.JSON, "{\n}\n"), (Format.YAML, ""), (Format.YAML, "{}\n"), (Format.TOML, "")],
)
def test_an_empty_file_gets_its_first_setting(form: Format, text: str) -> None:
    assert values(put(text, form, ("limits", "maxArraySize"), 5), form) == {"limits": {"maxArraySize": 5}}


@pytest.mark.parametrize(
    ("form", "text"),
    [(Format.JSON, '{"limits": 5}'), (Format.YAML, "limits: 5\n"), (Format.JSON, "[]"), (Format.JSON, '{"limits": [')],
)
def test_where_there_is_no_table_there_is_no_place(form: Format, text: str) -> None:
    with pytest.raises(EditError):
        put(text, form, ("limits", "maxArraySize"), 5)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
TABLES = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=6), JSON_VALUES, max_size=4)


@given(TABLES, st.text(st.characters(codec="utf-8"), max_size=6), JSON_VALUES, st.sampled_from([None, 1, "\t"]))
def test_any_value_finds_its_place_in_any_json(table: dict[str, Any], key: str, value: Any, indent: Any) -> None:
    text = json.dumps(table, indent=indent, ensure_ascii=False)
    assert json.loads(put(text, Format.JSON, (key,), value)) == {**table, key: value}
