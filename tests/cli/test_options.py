"""The short way to `serve` and the full command line read the same words the same way."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pactgate.cli import commands, serve
from pactgate.cli.options import ServeOptions, parse

GOOD = [
    ([], ServeOptions()),
    (["--stdio"], ServeOptions(stdio=True)),
    (["--stdio", "--admin"], ServeOptions(stdio=True, admin=True)),
    (["--config", "a b.json", "--port", "0"], ServeOptions(config="a b.json", port=0)),
    (["-c", "x.toml", "--log-level=debug"], ServeOptions(config="x.toml", log_level="debug")),
    (["notes.py", "--stdio"], ServeOptions(stdio=True, file="notes.py")),
    (["--host=::1", "--port=8080", "--port", "9090"], ServeOptions(host="::1", port=9090)),
]
LEFT_TO_OTHERS = [
    ["--help"],
    ["-h"],
    ["--port"],
    ["--port", "x"],
    ["--port", "-1"],
    ["--port", "٣"],
    ["--config="],
    ["--stdio=yes"],
    ["--nothing"],
    ["word"],
    ["--", "--stdio"],
]


@pytest.mark.parametrize(("words", "options"), GOOD)
def test_both_readers_agree(words: list[str], options: ServeOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ServeOptions] = []
    monkeypatch.setattr(serve, "run", lambda given: seen.append(given) or 0)
    assert CliRunner().invoke(commands.app, ["serve", *words]).exit_code == 0
    assert [parse(words)] == seen == [options]


@pytest.mark.parametrize("words", LEFT_TO_OTHERS)
def test_what_is_not_plain_is_left_to_the_full_command_line(words: list[str]) -> None:
    assert parse(words) is None
