"""The documentation site as `make site` builds it: strictly, whole, every page reachable from the first, and searched in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.interop.pairings import PREPARE
from tests.interop.processes import HERE, ROOT, TOOLS

MKDOCS = TOOLS / "site" / "bin" / "mkdocs"
BROWSER = TOOLS / "identity"
LIMIT_S = 60
WIDE = ["index.html", "commands.html", "settings.html", "rules.html", "performance.html"]
REPOSITORY = "https://github.com/pactgate/pactgate/"
BESIDE = {"README": "index", "CONTRIBUTING": "contributing", "SECURITY": "security", "CHANGELOG": "changelog"}

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(3 * LIMIT_S),
    pytest.mark.skipif(not MKDOCS.exists(), reason=f"NOT RUN: what builds the site is not installed: {PREPARE}"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [MKDOCS, "build", "--site-dir", folder],  # `--quiet` would hide from `strict` what is wrong
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def links(page: Path) -> list[str]:
    return [unescape(found) for found in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8"))]


def test_every_page_is_built_and_reachable_from_the_first(site: Path) -> None:
    expected = {path.stem for path in (ROOT / "docs").glob("*.md")} | set(BESIDE.values())
    reached, waiting = set[str](), ["index.html"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [link.partition("#")[0] for link in links(site / name) if re.match(r"[\w-]+\.html", link)]
    assert {name.removesuffix(".html") for name in reached} == expected


def test_every_link_leads_to_a_file_of_the_site_or_of_the_repository(site: Path) -> None:
    for page in site.glob("*.html"):
        for link in links(page):
            if link.startswith(REPOSITORY) and (
                inside := re.match(r"(?:blob|tree)/main/(.*)", link[len(REPOSITORY) :])
            ):
                assert (ROOT / inside[1]).exists(), f"{page.name}: {link}"
            elif not re.match(r"[a-z]+:|#", link) and page.name != "404.html":
                assert (site / link.partition("#")[0].partition("?")[0]).exists(), f"{page.name}: {link}"


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        assert not re.findall(r'src="(?:https?:)?//[^"]*|rel="stylesheet" href="(?:https?:)?//[^"]*', page.read_text())


def test_a_page_says_on_the_site_what_it_says_in_the_repository(site: Path) -> None:
    """The words of every table and heading of the generated pages, and the figures."""
    for name in (
        "settings",
        "failures",
        "gates",
        "events",
        "rules",
        "clients",
        "invariants",
        "performance",
        "commands",
    ):
        text = unescape(re.sub(r"<[^>]+>", "", (site / f"{name}.html").read_text(encoding="utf-8")))
        page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\|.*", page, re.MULTILINE)
        cells = [cell.replace("\\|", "|").strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
        assert len(cells) > 20
        for cell in cells:
            plain = re.sub(r"`|\*\*|<br>", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell))
            assert plain in text or not plain.strip("-:"), f"{name}: {cell}"


def test_a_reader_finds_a_setting_by_its_name_and_wide_pages_fit_a_phone(site: Path) -> None:
    if not (BROWSER / ".installed").is_file() or shutil.which("chromium") is None:
        pytest.skip(f"NOT RUN: there is no browser: {PREPARE}")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        given = {"packages": str(BROWSER), "origin": f"http://127.0.0.1:{server.server_port}", "pages": WIDE}
        done = subprocess.run(
            ["node", HERE / "clients" / "site_reader.mjs", json.dumps({**given, "words": "maxArraySize"})],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["found"][0].startswith("settings.html")
    assert (seen["faults"], seen["foreign"], seen["too_wide"]) == ([], [], [])
