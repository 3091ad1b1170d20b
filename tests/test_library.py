"""The package as programs import it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pactgate
from pactgate.config.model import Config
from tests.support.servers import UPSTREAM, scripted


async def test_the_example_of_the_readme_works(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": [str(UPSTREAM), "{}"]}
    file = tmp_path / "pactgate.json"
    file.write_text(json.dumps({"mcpServers": {"files": entry}}))
    file.chmod(0o600)
    async with pactgate.Gateway.open(file) as gateway:
        report = await gateway.discover()
        envelope = await gateway.invoke("files.echo", {"text": "a"})
    assert [row.status for row in report.server_results] == ["success"]
    assert envelope["success"] is True
    assert envelope["data"]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.requirement("S1/RESP-001")
@pytest.mark.parametrize("arguments", [{"text": object()}, {"text": 1j}, ["a"], "a"])
async def test_arguments_that_are_no_json_object_are_an_envelope_too(arguments: Any) -> None:
    async with pactgate.Gateway.open(Config(servers={"files": scripted()})) as gateway:
        envelope = await gateway.invoke("files.echo", arguments)
    assert envelope["success"] is False
    assert envelope["error"]["code"] == "INVALID_INPUT"
    assert envelope["error"]["context"]["dispatched"] is False


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, pactgate; print([name for name in sys.modules if name.startswith('pactgate.')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_public_names_are_listed_and_others_do_not_exist() -> None:
    assert {"Gateway", "check_capture"} <= set(dir(pactgate))
    with pytest.raises(AttributeError):
        pactgate.nonsense  # type: ignore[attr-defined] # noqa: B018 - asking is the test
