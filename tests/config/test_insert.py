"""One more server in a file: nothing else of it changes, and what can't be done safely is said."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.insert import InsertError, insert_server, new_file
from pactgate.config.problems import ConfigFindings
from pactgate.config.reader import Format, read
from tests.config.writing import plain

ENTRY = {"openapi": "w.yaml", "baseUrl": "https://w.example"}
WRITTEN = '"w": { "openapi": "w.yaml", "baseUrl": "https://w.example" }'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", f'{{ "mcpServers": {{ {WRITTEN} }} }}'),
        ('{"mcpServers": {}}', f'{{"mcpServers": {{ {WRITTEN} }}}}'),
        ('{"mcpServers": {"a": {}}}', f'{{"mcpServers": {{"a": {{}}, {WRITTEN}}}}}'),
        ('{"servers": {"a": {}, }}', f'{{"servers": {{"a": {{}}, {WRITTEN} }}}}'),
        (
            '{\n  // mine\n  "mcpServers": {\n    "a": { "x": "}" } // the first\n  },\n  "listen": {}\n}\n',
            f'{{\n  // mine\n  "mcpServers": {{\n    "a": {{ "x": "}}" }}, // the first\n    {WRITTEN}\n  }},\n  "listen": {{}}\n}}\n',
        ),
        (
            '{\n  "listen": {} /* { */\n}\n',
            f'{{\n  "listen": {{}}, /* {{ */\n  "mcpServers": {{ {WRITTEN} }}\n}}\n',
        ),
        ('{\n\t"mcpServers": {\n\t}\n}', f'{{\n\t"mcpServers": {{\n\t  {WRITTEN}\n\t}}\n}}'),
    ],
)
def test_json_keeps_its_comments_and_its_shape(before: str, after: str) -> None:
    assert insert_server(before, Format.JSON, "w", ENTRY) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# mine\nmcpServers:\n  a:\n    command: x # first\n\n# ports\nlisten:\n  port: 1\n",
            "# mine\nmcpServers:\n  a:\n    command: x # first\n"
            '  w:\n    openapi: "w.yaml"\n    baseUrl: "https://w.example"\n\n# ports\nlisten:\n  port: 1\n',
        ),
        (
            "mcpServers:\n    a: {command: x}",
            'mcpServers:\n    a: {command: x}\n    w:\n      openapi: "w.yaml"\n      baseUrl: "https://w.example"\n',
        ),
        (
            "listen: {port: 1}\n",
            'listen: {port: 1}\nmcpServers:\n  w:\n    openapi: "w.yaml"\n    baseUrl: "https://w.example"\n',
        ),
    ],
)
def test_yaml_keeps_its_comments_and_its_shape(before: str, after: str) -> None:
    assert insert_server(before, Format.YAML, "w", ENTRY) == after


def test_toml_gets_a_table_at_its_end() -> None:
    before = '# mine\n[mcpServers.a]\ncommand = "x"\n[listen]\nport = 1\n'
    entry = {**ENTRY, "credentials": {"key": "${K}", "my key": "v"}, "args": ["a", "b"]}
    after = insert_server(before, Format.TOML, "w", entry)
    assert after.startswith(before)
    assert tomllib.loads(after)["mcpServers"]["w"] == entry


@pytest.mark.parametrize(
    ("before", "form"),
    [
        ("mcpServers: {}\n", Format.YAML),
        ("mcpServers: {a: {command: x}}\nlisten: {}\n", Format.YAML),
        ('mcpServers = { a = { command = "x" } }\n', Format.TOML),
    ],
)
def test_what_cant_be_added_to_safely_is_left_alone_and_says_what_to_paste(before: str, form: Format) -> None:
    with pytest.raises(InsertError) as refusal:
        insert_server(before, form, "w", ENTRY)
    assert "w.yaml" in refusal.value.lines


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ('{"mcpServers": {"w": {}}}', "already"),
        ('{"servers": {"w": {}}}', "already"),
        ("{", "can't be read"),
        ("[]", "can't be read"),
        ('{"a": 1, "a": 2}', "can't be read"),
    ],
)
def test_a_name_that_is_taken_and_a_file_that_is_broken_are_refused(before: str, why: str) -> None:
    with pytest.raises(InsertError, match=why):
        insert_server(before, Format.JSON, "w", ENTRY)


@pytest.mark.parametrize("form", list(Format))
def test_a_new_file_is_a_configuration(form: Format) -> None:
    root = read(new_file(form, "w", ENTRY), form, ConfigFindings(""))
    assert root is not None
    assert plain(root) == {"mcpServers": {"w": ENTRY}}


_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 99) | st.text('ab"\\/{}[],:#\n', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abw/{", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["mcpServers", "servers", "x"]), _values, max_size=3),
    st.sampled_from([None, 0, 1, 2, "\t"]),
)
def test_whatever_the_file_says_it_says_it_afterwards_too(settings: dict[str, Any], indent: Any) -> None:
    try:
        after = insert_server(json.dumps(settings, indent=indent), Format.JSON, "w", ENTRY)
    except InsertError:
        return
    read = json.loads(after)
    key = next((key for key in ("mcpServers", "servers") if key in settings), "mcpServers")
    assert read[key].pop("w") == ENTRY
    assert read == settings or (key not in settings and read == {**settings, key: {}})
