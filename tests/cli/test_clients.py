"""`pactgate clients`, `import`, `connect` and `disconnect` as people run them, on files as clients write them."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from pactgate.cli import connect
from tests.cli.program import Served, demo, run, run_on_terminal, run_program, write_config
from tests.config.clients.client_files import WRITABLE, opened

FILES = Path(__file__).parents[1] / "config" / "clients" / "files"
CURSOR = ".cursor/mcp.json"
NOBODY = "http://127.0.0.1:1"
WITH_MARK = ("amp", "windsurf")
"""Their files begin with a byte order mark here, as some editors write it."""
PLACES = {"cursor.json": CURSOR, "codex.toml": ".codex/config.toml", "continue.yaml": ".continue/config.yaml"}
TOOLS = """\
from pactgate.tools import tool


@tool(effects=[], idempotent=True, category="query")
def hello() -> str:
    'Say hello.'
    return "hello"
"""
SECRETS = ("lin_api_0123456789abcdefghij", "abcdefghijklmnop1234")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of somebody with three clients."""
    folder = tmp_path / "home"
    for name, place in PLACES.items():
        (folder / place).parent.mkdir(parents=True)
        shutil.copy(FILES / name, folder / place)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_clients_lists_what_is_installed_and_who_uses_the_gateway(home: Path, project: Path) -> None:
    done = run(project, "clients", "--json", HOME=str(home))
    rows = json.loads(done.stdout)["clients"]
    assert [(row["client"], row["servers"], row["gateway"]) for row in rows] == [
        ("cursor", 2, []),
        ("codex", 2, []),
        ("continue", 2, []),
    ]


def test_an_import_writes_a_valid_configuration_and_the_credentials_apart(home: Path, project: Path) -> None:
    before = {place: (home / place).read_bytes() for place in PLACES.values()}
    done = run(project, "import", "--yes", HOME=str(home))
    assert done.returncode == 0, done.stderr
    text = (project / "pactgate.json").read_text()
    assert set(json.loads(text)["mcpServers"]) == {"filesystem", "linear", "figma", "off", "sqlite", "remote"}
    env = project / "pactgate.env"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    for secret in SECRETS:
        assert secret in env.read_text()
        assert secret not in text + done.stdout + done.stderr
    checked = run(project, "check", "--json", FIGMA_TOKEN="x", HOME=str(home))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert {place: (home / place).read_bytes() for place in PLACES.values()} == before
    again = run(project, "import", HOME=str(home))
    assert "nothing to do" in again.stdout
    assert (project / "pactgate.json").read_text() == text


def test_nothing_is_written_without_a_yes(home: Path, project: Path) -> None:
    done = run(project, "import", HOME=str(home))
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert run(project, "import", "--dry-run", HOME=str(home)).returncode == 0
    assert list(project.iterdir()) == []


def test_without_secrets_only_the_names_of_variables_are_written(home: Path, project: Path) -> None:
    assert run(project, "import", "--yes", "--without-secrets", HOME=str(home)).returncode == 0
    assert [path.name for path in project.iterdir()] == ["pactgate.json"]


@pytest.mark.parametrize(
    ("client", "place"), [("cursor", CURSOR), ("codex", ".codex/config.toml"), ("continue", ".continue/config.yaml")]
)
def test_a_connected_client_starts_the_gateway_and_disconnecting_restores_every_byte(
    client: str, place: str, home: Path, project: Path
) -> None:
    (project / "tools.py").write_text(TOOLS)
    (project / "pactgate.json").write_text('{"mcpServers": {"mine": {"tools": "tools.py"}}}')
    before = (home / place).read_bytes()
    done = run_program(project, "connect", client, "--stdio", "--json", HOME=str(home))
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["check"]["tools"] == 1
    assert "serve" in (home / place).read_text()
    once = (home / place).read_bytes()
    again = json.loads(run(project, "connect", client, "--stdio", "--json", HOME=str(home)).stdout)
    assert not again["changed"]
    assert (home / place).read_bytes() == once
    assert run(project, "disconnect", client, HOME=str(home)).returncode == 0
    assert (home / place).read_bytes() == before


@pytest.mark.parametrize("name", WRITABLE)
def test_connecting_any_client_adds_one_entry_once_and_disconnecting_restores_every_byte(
    name: str, tmp_path: Path, project: Path
) -> None:
    write_config(project, {})
    file = opened(name)
    assert file.data is not None
    path = file.client.user_files({"HOME": str(tmp_path)})[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xef\xbb\xbf" + file.data if name in WITH_MARK else file.data)
    before = path.read_bytes()
    words = ["connect", file.client.id, *(["--url", NOBODY] if file.client.url else ["--stdio"]), "--json"]
    assert json.loads(run(project, *words, HOME=str(tmp_path)).stdout)["changed"]
    connected = path.read_bytes()
    assert set(file.changed(connected.decode("utf-8-sig")).servers()) == {*file.servers(), "pactgate"}
    assert connected.startswith(before[:3])
    assert not json.loads(run(project, *words, HOME=str(tmp_path)).stdout)["changed"]
    assert path.read_bytes() == connected
    assert run(project, "disconnect", file.client.id, HOME=str(tmp_path)).returncode == 0
    assert path.read_bytes() == before


def test_a_file_that_was_changed_since_loses_only_the_entry(home: Path, project: Path) -> None:
    write_config(project, {})
    run(project, "connect", "cursor", "--stdio", HOME=str(home))
    file = home / CURSOR
    file.write_text(file.read_text().replace("Cursor allows comments", "changed since"))
    done = run(project, "disconnect", "cursor", HOME=str(home))
    assert "without pactgate" in done.stdout
    assert "changed since" in file.read_text()
    assert '"serve"' not in file.read_text()
    assert "linear" in file.read_text()


def test_an_address_of_any_port_is_removed_from_a_file_that_the_client_wrote_again(home: Path, project: Path) -> None:
    file = home / CURSOR
    names = set(run_servers(file))
    run(project, "connect", "cursor", "--url", NOBODY, HOME=str(home))
    text = file.read_text().replace("Cursor allows comments", "changed since")
    file.write_text(text)
    run(project, "connect", "cursor", "--url", "http://127.0.0.1:2", HOME=str(home))
    assert set(run_servers(file)) == {*names, "pactgate"}
    file.write_text(file.read_text().replace("changed since", "changed again"))
    done = run(project, "disconnect", "cursor", HOME=str(home))
    assert "without pactgate" in done.stdout
    assert set(run_servers(file)) == names


def test_a_file_that_was_changed_between_two_connections_is_given_back_without_any_entry(
    home: Path, project: Path
) -> None:
    file = home / CURSOR
    run(project, "connect", "cursor", "--url", NOBODY, HOME=str(home))
    changed = file.read_text().replace("Cursor allows comments", "changed since")
    file.write_text(changed)
    run(project, "connect", "cursor", "--url", "http://127.0.0.1:2", HOME=str(home))
    run(project, "disconnect", "cursor", HOME=str(home))
    assert "pactgate" not in run_servers(file)
    assert "changed since" in file.read_text()


def test_credentials_are_not_written_where_nothing_reads_them(home: Path, project: Path) -> None:
    (project / "pactgate.json").write_text('{"envFile": "own.env", "mcpServers": {}}')
    done = run(project, "import", "--env-file", "other.env", "--yes", HOME=str(home))
    assert done.returncode == 2
    assert "takes its variables from own.env" in done.stderr
    assert not (project / "other.env").exists()
    assert run(project, "import", "--env-file", "own.env", "--yes", HOME=str(home)).returncode == 0


def test_a_change_that_can_not_be_remembered_is_said(home: Path, project: Path) -> None:
    write_config(project, {})
    (home / "state").write_text("no folder")
    own = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    done = run(project, "connect", "cursor", "--stdio", **own)
    assert "only removes the entry" in done.stderr
    done = run(project, "disconnect", "cursor", **own)
    assert ("without pactgate" in done.stdout, done.stderr) == (True, "")


def test_a_link_that_a_project_puts_beside_its_file_leads_to_nothing(home: Path, project: Path) -> None:
    """It would have what stands in the file of the project written over any file of the user."""
    keys = home / "authorized_keys"
    keys.write_text("mine")
    (project / ".vscode").mkdir()
    file = project / ".vscode/mcp.json"
    file.write_text('/*\nssh-ed25519 theirs\n*/ {"servers": {}}')
    (project / ".vscode/mcp.json.before-pactgate").symlink_to(keys)
    run(project, "connect", "vscode", "--project", "--url", NOBODY, HOME=str(home))
    assert "pactgate" in file.read_text()
    assert keys.read_text() == "mine"
    run(project, "disconnect", "vscode", "--project", HOME=str(home))
    assert "theirs" in file.read_text()


def test_credentials_go_to_a_file_that_only_the_user_can_read_also_where_it_was_there(
    home: Path, project: Path
) -> None:
    env = project / "pactgate.env"
    env.write_text("A=1\n")
    env.chmod(0o644)
    assert run(project, "import", "--yes", HOME=str(home)).returncode == 0
    assert stat.S_IMODE(env.stat().st_mode) == 0o600


def test_a_client_without_a_file_gets_one_and_loses_it_again(home: Path, project: Path) -> None:
    write_config(project, {})
    assert run(project, "connect", "kiro", "--stdio", "--json", HOME=str(home)).returncode in (0, 1)
    file = home / ".kiro/settings/mcp.json"
    assert list(json.loads(file.read_text())["mcpServers"]) == ["pactgate"]
    run(project, "disconnect", "kiro", HOME=str(home))
    assert not file.exists()


def test_replacing_removes_what_the_gateway_has_itself(home: Path, project: Path) -> None:
    run(project, "import", "cursor", "--yes", HOME=str(home))
    before = (home / CURSOR).read_bytes()
    done = run(project, "connect", "cursor", "--url", NOBODY, "--replace", "--json", HOME=str(home))
    assert json.loads(done.stdout)["replaced"] == ["filesystem", "linear"]
    assert set(run_servers(home / CURSOR)) == {"pactgate"}
    run(project, "disconnect", "cursor", HOME=str(home))
    assert (home / CURSOR).read_bytes() == before


def run_servers(path: Path) -> list[str]:
    return [line.split('"')[1] for line in path.read_text().splitlines() if line.startswith('    "')]


def test_a_client_that_only_starts_programs_is_not_given_an_address(home: Path, project: Path) -> None:
    done = run(project, "connect", "claude-desktop", "--url", "http://127.0.0.1:7411", HOME=str(home))
    assert done.returncode == 2
    assert "takes no addresses" in done.stderr


def test_the_entry_is_printed_in_the_dialect_of_the_client_and_nothing_is_written(home: Path, project: Path) -> None:
    before = (home / PLACES["codex.toml"]).read_bytes()
    done = run(project, "connect", "codex", "--url", "http://127.0.0.1:7411", "--print", HOME=str(home))
    assert done.stdout == '[mcp_servers.pactgate]\nurl = "http://127.0.0.1:7411/mcp"\n'
    assert (home / PLACES["codex.toml"]).read_bytes() == before


def test_a_token_is_named_and_never_written_where_the_client_can_take_it_from_elsewhere(
    home: Path, project: Path
) -> None:
    settings = {"auth": {"tokens": {"ann": {"token": "a-token-of-sixteen"}}}}
    (project / "pactgate.json").write_text(json.dumps(settings))
    run(
        project,
        "connect",
        "cursor",
        "--url",
        "http://127.0.0.1:7411",
        PACTGATE_TOKEN="a-token-of-sixteen",
        HOME=str(home),
    )
    text = (home / CURSOR).read_text()
    assert "Bearer ${env:PACTGATE_TOKEN}" in text
    assert "a-token-of-sixteen" not in text


def test_the_plan_fits_a_terminal_of_80_columns(home: Path, project: Path) -> None:
    code, shown = run_on_terminal(project, "import", "--dry-run", HOME=str(home))
    assert code == 0
    assert b"filesystem" in shown


class Guarded(NamedTuple):
    """A gateway that wants a token, and the home folder of somebody with clients."""

    gateway: Served
    folder: Path

    def run(self, *words: str) -> CompletedProcess[str]:
        return self.gateway.run(*words, HOME=str(self.folder))


@pytest.fixture(scope="module")
def guarded_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded")
    write_config(folder, {"almanac": demo("almanac")}, auth={"tokens": {"ops": {"token": "a-token-of-sixteen"}}})
    with Served(folder) as gateway:
        gateway.wait_for("ok +almanac")
        yield gateway


@pytest.fixture
def guarded(guarded_gateway: Served, tmp_path: Path) -> Iterator[Guarded]:
    """It has no keys yet."""
    guarded = Guarded(guarded_gateway, tmp_path)
    yield guarded
    for name in key_names(guarded):
        guarded.run("keys", "revoke", name)


def key_names(gateway: Guarded) -> list[str]:
    return [row["name"] for row in json.loads(gateway.run("keys", "list", "--json").stdout)["keys"]]


def test_a_client_gets_a_key_of_its_own_that_works_at_once_and_ends_with_its_entry(guarded: Guarded) -> None:
    done = guarded.run("connect", "cursor")
    assert done.returncode == 0, done.stderr
    assert "listed 3 tools, read its status" in done.stdout
    key = re.search(r"^export PACTGATE_CURSOR_KEY=(pg_\w+)$", done.stdout, re.MULTILINE)
    assert key is not None
    text = (guarded.folder / CURSOR).read_text()
    assert "Bearer ${env:PACTGATE_CURSOR_KEY}" in text
    assert key[1] not in text
    assert key_names(guarded) == ["cursor"]
    again = guarded.run("connect", "cursor")
    assert "already" in again.stdout
    assert "export" not in again.stdout
    assert key_names(guarded) == ["cursor"]
    assert "its key is revoked" in guarded.run("disconnect", "cursor").stdout
    assert key_names(guarded) == []


def test_a_key_that_could_not_be_put_anywhere_is_not_kept(guarded: Guarded) -> None:
    (guarded.folder / ".kimi").write_text("no folder")
    done = guarded.run("connect", "kimi")
    assert done.returncode == 1
    assert "can't be written" in done.stderr
    assert key_names(guarded) == []


def test_a_key_is_in_the_file_only_of_a_client_that_can_have_it_nowhere_else(guarded: Guarded) -> None:
    done = guarded.run("connect", "kimi")
    assert done.returncode == 0, done.stderr
    file = guarded.folder / ".kimi/mcp.json"
    key = json.loads(file.read_text())["mcpServers"]["pactgate"]["headers"]["Authorization"].removeprefix("Bearer ")
    assert key.startswith("pg_")
    assert key not in done.stdout + done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    assert "already" in guarded.run("connect", "kimi").stdout
    said = guarded.run("connect", "kimi", "--json").stdout
    assert json.loads(said)["entry"]["headers"] == {"Authorization": "Bearer KEY"}
    assert key not in said
    assert file.read_bytes() == before
    guarded.run("disconnect", "kimi")
    assert (file.exists(), key_names(guarded)) == (False, [])


def test_a_file_that_everybody_could_read_is_the_users_alone_while_it_has_a_key(guarded: Guarded) -> None:
    file = guarded.folder / ".kimi/mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {}}')
    file.chmod(0o644)
    guarded.run("connect", "kimi")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    guarded.run("disconnect", "kimi")
    assert (stat.S_IMODE(file.stat().st_mode), file.read_text()) == (0o644, '{"mcpServers": {}}')
    refused = guarded.run("connect", "zed", "--project")
    assert (refused.returncode, "the file of a project is shared" in refused.stderr) == (2, True)
    assert key_names(guarded) == []


def test_an_editor_that_keeps_secrets_asks_for_its_key(guarded: Guarded) -> None:
    done = guarded.run("connect", "vscode", "--json")
    facts = json.loads(done.stdout)
    assert facts["check"]["ok"]
    assert facts["key"].startswith("pg_")
    text = (guarded.folder / ".config/Code/User/mcp.json").read_text()
    assert "${input:pactgate-token}" in text
    assert facts["key"] not in text


def test_printing_an_entry_makes_no_key(guarded: Guarded) -> None:
    assert "Bearer KEY" in guarded.run("connect", "kimi", "--print").stdout
    assert key_names(guarded) == []


GITHUB_TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
LINEAR_TOKEN = "lin_api_ABCDEFGHIJ0123456789"
SAME_SERVERS = {
    ".config/Claude/claude_desktop_config.json": """{"mcpServers": {
        "GitHub": {"command": "npx", "args": ["-y", "@x/github@1.2.3"], "env": {"GITHUB_TOKEN": "%(github)s"}},
        "files": {"command": "npx", "args": ["-y", "@x/files@2.0.0", "/data"]}}}""",
    ".cursor/mcp.json": """{ // comments too
        "mcpServers": {
        "github": {"command": "npx", "args": ["-y", "@x/github@1.2.3"], "env": {"GITHUB_TOKEN": "%(github)s"}},
        "linear": {"url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer %(linear)s"}}}}""",
    ".codex/config.toml": """
        [mcp_servers.github]
        command = "npx"
        args = ["-y", "@x/github@1.2.3"]
        env = { GITHUB_TOKEN = "%(github)s" }
        [mcp_servers.linear]
        url = "https://mcp.linear.app/mcp"
        http_headers = { Authorization = "Bearer %(linear)s" }""",
    ".config/goose/config.yaml": """
extensions:
  github: {type: stdio, enabled: true, timeout: 300, cmd: npx, args: [-y, "@x/github@1.2.3"], envs: {GITHUB_TOKEN: %(github)s}}
  linear: {type: streamable_http, enabled: true, uri: "https://mcp.linear.app/mcp", headers: {Authorization: Bearer %(linear)s}}""",
    ".config/opencode/opencode.json": """{"mcp": {
        "files": {"type": "local", "command": ["npx", "-y", "@x/files@2.0.0", "/data"], "enabled": true},
        "linear": {"type": "remote", "url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer %(linear)s"}}}}""",
}


def test_the_same_servers_of_five_clients_become_one_entry_each_without_a_secret(tmp_path: Path, project: Path) -> None:
    for place, text in SAME_SERVERS.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text % {"github": GITHUB_TOKEN, "linear": LINEAR_TOKEN})
    done = run(project, "import", "--yes", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (project / "pactgate.json").read_text()
    written = json.loads(text)
    assert set(written["mcpServers"]) == {"github", "files", "linear"}
    assert written["mcpServers"]["github"]["env"] == {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}
    assert "Claude Desktop, Cursor, Codex, Goose" in done.stdout
    again, checked = (run(project, *words, HOME=str(tmp_path)) for words in (["import", "--json"], ["check", "--json"]))
    assert (checked.returncode, json.loads(again.stdout)["written"]) == (0, False)
    shown = [text, done.stdout, done.stderr, again.stdout, checked.stdout, checked.stderr]
    for secret in (GITHUB_TOKEN, LINEAR_TOKEN):
        assert secret in (project / "pactgate.env").read_text()
        assert [part for part in shown if secret in part] == []


def test_connections_that_are_noted_at_the_same_moment_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    files = [str(tmp_path / f"{number}.json") for number in range(8)]

    def note(file: str) -> None:
        for digest in ("first", "last"):
            connect._note_change(file, connect._Change(file, digest, existed=True))

    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(note, files))
    assert sorted((one.file, one.digest) for one in connect._changes()) == [(file, "last") for file in files]
