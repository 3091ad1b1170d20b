"""What the README says is so: its configurations load, its commands exist, its links lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pactgate.cli.commands import COMMANDS
from pactgate.config.load import load

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_of_the_table_exists_and_every_command_is_in_the_table() -> None:
    in_table = set(re.findall(r"^\| `pactgate (\w+)", README, re.MULTILINE))
    assert in_table == set(COMMANDS)


REST_PAGE = (ROOT / "docs" / "rest.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```jsonc\n(.*?)```", README + REST_PAGE, re.DOTALL))
def test_every_configuration_of_ours_loads(block: str, tmp_path: Path) -> None:
    path = tmp_path / "pactgate.jsonc"
    path.write_text(block, encoding="utf-8")
    assert load(path, environ={"CRM_TOKEN": "token", "BILLING_TOKEN": "token"}).servers


def test_every_link_into_the_project_leads_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_make_word_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in set(re.findall(r"make (\w+)(?:`|\n| ARGS)", README)):
        assert re.search(rf"^{word}:", makefile, re.MULTILINE), word


def test_the_demo_snippet_of_the_readme_is_the_one_that_is_printed() -> None:
    snippets = [
        json.loads(block) for block in re.findall(r"^ *(\{.*\"url\".*\})$", README, re.MULTILINE) if "crm" not in block
    ]
    assert snippets
    assert all(snippet == snippets[0] for snippet in snippets)
