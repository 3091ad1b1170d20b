"""`pactgate prompts`, `prompt`, `resources` and `read` against a running gateway."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from tests.catalog.test_definition_pins import SERVER, STATE
from tests.cli.program import Served, write_config


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("entries")
    prompts = [
        {"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}
    ]
    (folder / "state.json").write_text(json.dumps({**STATE, "prompts": prompts}))
    crm = {"command": sys.executable, "args": [str(SERVER), "legacy", str(folder / "state.json")]}
    write_config(folder, {"crm": crm})
    with Served(folder) as served:
        served.wait_for("ok +crm ")
        yield served


def test_prompts_are_listed_with_their_arguments_and_got(gateway: Served) -> None:
    assert gateway.run("prompts").stdout.splitlines()[1].split() == ["crm__greet", "who", "[how]", "Greets."]
    assert [one["name"] for one in json.loads(gateway.run("prompts", "--json").stdout)] == ["crm__greet"]
    done = gateway.run("prompt", "crm__greet", "who=Ada")
    assert (done.returncode, done.stdout) == (0, "user:\nHello Ada\n"), done.stderr
    missing = gateway.run("prompt", "crm__nothing")
    assert (missing.returncode, "executed: no" in missing.stderr) == (1, True)
    assert gateway.run("prompt", "crm__greet", "who").returncode == 2


def test_resources_are_listed_with_templates_and_read(gateway: Served) -> None:
    uris = [line.split()[0] for line in gateway.run("resources", "--server", "crm").stdout.splitlines()[1:]]
    assert uris == ["crm+note://a", "crm+note://{id}"]
    assert gateway.run("read", "crm+note://a").stdout == "held\n"
    assert gateway.run("resources", "--server", "none").stdout.startswith("There are no resources")
    assert gateway.run("read", "nowhere://x").returncode == 1
