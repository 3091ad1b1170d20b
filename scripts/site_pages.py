"""What MkDocs calls while it builds the site: pages from beside docs/, and links that are right there as in the repository.

A link of a page is relative to its place in the repository. On the site it leads to the page that was made of that file; to the repository
where it is no page. Must not: change what a page says.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parent.parent
REPOSITORY: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
BESIDE: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages that are not in docs/, and where they are on the site."""
_LOGGER: Final = get_plugin_logger("site_pages")  # what it warns of counts for `strict`
_PART: Final = re.compile(
    r"^```.*?^```|(?P<code>`[^`\n]+`)|(?<=\]\()(?![a-z]+:)(?P<target>[^)#\s]+)", re.MULTILINE | re.DOTALL
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in BESIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = next((name for name, made in BESIDE.items() if made == page.file.src_uri), f"docs/{page.file.src_uri}")
    return _PART.sub(lambda part: _spelled(source, part), markdown)


def _spelled(source: str, part: re.Match[str]) -> str:
    if part["target"]:
        return _on_site(source, part["target"])
    # In the code of a table, GitHub wants a bar escaped; here that would show two letters.
    return part[0].replace("\\|", "|") if part["code"] else part[0]


def _on_site(source: str, target: str) -> str:
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if file in BESIDE:
        return BESIDE[file]
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if not (ROOT / file).exists():
        _LOGGER.warning("%s links to %s, which does not exist", source, target)
    kind = "tree" if (ROOT / file).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{file}"
