"""What the README and the pages beside it say is so: configurations load, commands exist, links lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pactgate.cli.commands import COMMANDS
from pactgate.config.load import load
from tests.support.each import each

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"
COMMANDS_PAGE = (DOCS / "commands.md").read_text(encoding="utf-8")
CONFIGURATION_PAGE = (DOCS / "configuration.md").read_text(encoding="utf-8")
REST_PAGE = (DOCS / "rest.md").read_text(encoding="utf-8")
TOKENS = {
    "CRM_TOKEN": "token",
    "BILLING_TOKEN": "token",
    "OLD_TOKEN": "old-token-of-the-page",
    "NEW_TOKEN": "new-token-of-the-page",
    "PACTGATE_ADMIN_TOKEN": "admin-token-of-the-page",
}
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")] + sorted(
    DOCS.glob("*.md")
)


def test_the_readme_stays_short() -> None:
    assert README.count("\n") <= 150


def test_every_command_of_the_table_exists_and_every_command_is_in_the_table() -> None:
    in_table = set(re.findall(r"^\| `pactgate (\w+)", COMMANDS_PAGE, re.MULTILINE))
    assert in_table == set(COMMANDS)


@pytest.mark.parametrize("block", re.findall(r"```jsonc\n(.*?)```", README + CONFIGURATION_PAGE + REST_PAGE, re.DOTALL))
def test_every_configuration_of_ours_loads(block: str, tmp_path: Path) -> None:
    path = tmp_path / "pactgate.jsonc"
    path.write_text(block, encoding="utf-8")
    assert load(path, environ=TOKENS).servers


@each("page", PAGES)
def test_every_link_into_the_project_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)(#[^)]*)?\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target + anchor


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_exists(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make ([a-z-]+)(?:`|\n| ARGS)", (ROOT / page).read_text(encoding="utf-8")))
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_map_names_only_files_that_exist_and_every_package() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "pactgate"
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*/(?:[a-z_]+\.py)?|[a-z_]+\.py)`", page))
    missing = {name for name in named if not (package / name).exists() and not (ROOT / name).exists()}
    assert missing == set()
    packages = {folder.name for folder in package.iterdir() if (folder / "__init__.py").exists()}
    assert {name for name in packages if f"`{name}" not in page} == set()


def test_every_decision_that_is_cited_is_explained() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    cited = {found for text in sources for found in re.findall(r"\bD[0-9]{1,2}\b", text)}
    explained = set(re.findall(r"^\*\*(D[0-9]+) ", (DOCS / "decisions.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited <= explained


def test_the_demo_snippet_of_the_readme_is_the_one_that_is_printed() -> None:
    snippets = [
        json.loads(block) for block in re.findall(r"^ *(\{.*\"url\".*\})$", README, re.MULTILINE) if "crm" not in block
    ]
    assert snippets
    assert all(snippet == snippets[0] for snippet in snippets)
