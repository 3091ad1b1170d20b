"""`pactgate add` as people run it, and what `check` says of documents."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import run, run_on_terminal, run_program
from tests.support.openapi import document, operation
from tests.support.rest_api import serving
from tests.support.scripted_http import answer

PATHS = {
    "/now": {"get": operation("now", summary="Weather now")},
    "/old": {"get": operation("old", deprecated=True)},
    "/admin": {"post": operation("admin", security=[{"token": []}])},
}


def written(folder: Path, **more: Any) -> Path:
    file = folder / "weather.json"
    schemes = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    file.write_text(json.dumps(document(PATHS, components=schemes, **more)))
    return file


def settings(folder: Path) -> Any:
    return json.loads((folder / "pactgate.json").read_text())["mcpServers"]


def test_a_document_is_added_and_what_it_becomes_is_shown(tmp_path: Path) -> None:
    written(tmp_path)
    done = run_program(tmp_path, "add", "weather", "--openapi", "weather.json")
    assert done.returncode == 0, done.stderr
    assert settings(tmp_path) == {"weather": {"openapi": "weather.json"}}
    assert "Calls go to https://api.example/v1." in done.stdout
    assert "now   GET     /now  Weather now" in done.stdout
    assert "GET /old: it is deprecated" in done.stdout
    assert "POST /admin: it needs the credential token (http bearer)" in done.stdout
    assert "Example 1: 1 tool, 2 skipped." in done.stdout
    assert '"credentials": { "token": "${WEATHER_TOKEN}" }' in done.stdout


def test_a_credential_is_written_as_a_variable_and_not_looked_up(tmp_path: Path) -> None:
    written(tmp_path)
    done = run(tmp_path, "add", "w", "--openapi", "weather.json", "--credential", "token=${NOT_SET_YET}", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert settings(tmp_path)["w"]["credentials"] == {"token": "${NOT_SET_YET}"}
    assert [tool["name"] for tool in report["document"]["tools"]] == ["now", "admin"]
    assert report["document"]["leftOut"] == [
        {"operation": "GET /old", "reason": "it is deprecated (set include.deprecated to keep it)"}
    ]


def test_nothing_is_written_on_a_dry_run(tmp_path: Path) -> None:
    written(tmp_path)
    done = run(tmp_path, "add", "w", "--openapi", "weather.json", "--dry-run")
    assert (done.returncode, "Would be added" in done.stdout) == (0, True)
    assert not (tmp_path / "pactgate.json").exists()


def test_programs_and_addresses_are_added_too_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "pactgate.jsonc"
    file.write_text('{\n  // mine\n  "mcpServers": {\n    "a": { "command": "x" }, // first\n  },\n}\n')
    file.chmod(0o600)
    assert run(tmp_path, "add", "files", "--", "npx", "-y", "server", "--flag").returncode == 0
    assert run(tmp_path, "add", "crm", "--url", "https://crm.example/mcp").returncode == 0
    assert file.read_text() == (
        '{\n  // mine\n  "mcpServers": {\n    "a": { "command": "x" }, // first\n'
        '    "files": {\n      "command": "npx",\n      "args": ["-y", "server", "--flag"]\n    },\n'
        '    "crm": {\n      "url": "https://crm.example/mcp"\n    }\n  },\n}\n'
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["pactgate.jsonc"]
    assert run(tmp_path, "check").returncode == 0


def test_a_problem_of_another_server_does_not_stop_the_addition(tmp_path: Path) -> None:
    file = tmp_path / "pactgate.json"
    file.write_text('{"mcpServers": {"other-mcp": {"command": 5}}}')
    for name in ("mcp", "s", "other"):
        assert run(tmp_path, "add", name, "--url", "https://crm.example/mcp").returncode == 0
    assert run(tmp_path, "add", "fine", "--url", "no address").returncode == 2
    assert list(json.loads(file.read_text())["mcpServers"]) == ["other-mcp", "mcp", "s", "other"]


def test_a_credential_is_not_for_other_users_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "pactgate.json"
    words = ("--url", "https://crm.example/mcp", "--header", "Authorization: Bearer 5e1c7b2aa90d4f3386e17f0b")
    done = run(tmp_path, "add", "crm", *words)
    assert (stat.S_IMODE(file.stat().st_mode), done.stderr) == (0o600, "")
    file.chmod(0o644)
    done = run(tmp_path, "add", "shop", *words)
    assert "headers.Authorization: Every user may read this file, and this is a secret." in " ".join(
        done.stderr.split()
    )


def test_a_new_yaml_and_toml_file_can_be_named(tmp_path: Path) -> None:
    for name in ("c.yaml", "c.toml", "c.json"):
        assert run(tmp_path, "add", "crm", "--url", "https://crm.example/mcp", "--config", name).returncode == 0
        assert run(tmp_path, "check", "--config", name).returncode == 0


def test_a_document_beside_the_configuration_is_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    written(tmp_path / "conf")
    words = ("add", "w", "--openapi", "conf/weather.json", "--config", "conf/pactgate.json")
    assert run(tmp_path, *words).returncode == 0
    assert settings(tmp_path / "conf")["w"]["openapi"] == "weather.json"
    written(tmp_path)
    assert run(tmp_path / "conf", "add", "above", "--openapi", "../weather.json").returncode == 0
    assert settings(tmp_path / "conf")["above"]["openapi"] == str(tmp_path / "weather.json")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "w"), 2, "exactly one of"),
        (("add", "w", "--url", "https://a.example", "--openapi", "weather.json"), 2, "exactly one of"),
        (("add", "w", "--url", "https://a.example", "--base-url", "https://b.example"), 2, "need --openapi"),
        (("add", "W W", "--url", "https://a.example"), 2, 'Call it "w-w"'),
        (("add", "w", "--url", "ftp://a.example"), 2, "neither http nor https"),
        (("add", "w", "--openapi", "missing.yaml"), 1, "can't be read: No such file"),
        (("add", "w", "--openapi", "old.json"), 1, "swagger2openapi"),
        (("add", "w", "--openapi", "http://127.0.0.1:1/x.yaml"), 1, "can't be reached"),
        (("add", "w", "--openapi", "weather.json", "--credential", "token"), 2, "SCHEME=VALUE"),
        (("add", "w", "--openapi", "weather.json", "--base-url", "nonsense"), 2, "neither http nor https"),
        (("add", "w", "--url", "https://a.example", "--config", "x.ini"), 2, "must end with"),
    ],
)
def test_what_cant_be_added_says_why_and_changes_nothing(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    written(tmp_path)
    (tmp_path / "old.json").write_text('{"swagger": "2.0"}')
    before = sorted(os.listdir(tmp_path))
    done = run(tmp_path, *words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_file_that_cant_be_added_to_safely_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "pactgate.yaml"
    file.write_text("mcpServers: &all {a: {command: x}}\nservers: *all\n")
    done = run(tmp_path, "add", "crm", "--url", "https://crm.example/mcp")
    assert done.returncode == 2
    assert 'url: "https://crm.example/mcp"' in done.stderr
    assert file.read_text() == "mcpServers: &all {a: {command: x}}\nservers: *all\n"


def test_a_document_without_a_server_asks_for_one(tmp_path: Path) -> None:
    written(tmp_path, servers=[{"url": "/v1"}])
    done = run(tmp_path, "add", "w", "--openapi", "weather.json")
    assert (done.returncode, "Give --base-url." in done.stderr) == (1, True)
    assert run(tmp_path, "add", "w", "--openapi", "weather.json", "--base-url", "https://a.example/v1").returncode == 0
    assert settings(tmp_path)["w"]["baseUrl"] == "https://a.example/v1"


async def test_a_document_is_fetched_and_its_base_url_written_down(tmp_path: Path) -> None:
    root = {**document(PATHS), "servers": [{"url": "v1"}]}
    async with serving(answer(root)) as api:
        url = f"{api.origin}/docs/openapi.json"
        done = await asyncio.to_thread(run, tmp_path, "add", "w", "--openapi", url)
        assert done.returncode == 0, done.stderr
        assert settings(tmp_path)["w"] == {"openapi": url, "baseUrl": f"{api.origin}/docs/v1"}


@pytest.mark.parametrize(
    "address", ["http://169.254.169.254/latest", "http://127.0.0.1:7691", "https://10.0.0.5", "http://api.example"]
)
def test_a_private_or_unencrypted_address_is_called_only_when_the_operator_writes_it(
    address: str, tmp_path: Path
) -> None:
    written(tmp_path, servers=[{"url": address}])
    done = run(tmp_path, "add", "w", "--openapi", "weather.json")
    assert (done.returncode, "Give --base-url." in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "pactgate.json").exists()
    assert run(tmp_path, "add", "w", "--openapi", "weather.json", "--base-url", address).returncode == 0
    assert settings(tmp_path)["w"]["baseUrl"] == address


async def test_a_fetched_document_cant_send_calls_to_another_place_than_it_comes_from(tmp_path: Path) -> None:
    root = {**document(PATHS), "servers": [{"url": "https://elsewhere.example/v1"}]}
    async with serving(answer(root)) as api:
        words = ("add", "w", "--openapi", f"{api.origin}/openapi.json")
        done = await asyncio.to_thread(run, tmp_path, *words)
        assert (done.returncode, "--base-url https://elsewhere.example/v1" in done.stderr) == (1, True), done.stderr
        assert not (tmp_path / "pactgate.json").exists()


def test_text_of_a_document_cant_move_the_cursor(tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07"
    paths = {f"/x{evil}": {"get": operation(f"id{evil}", summary=f"s{evil}")}, "/y": {"get": operation(summary=evil)}}
    root = document(paths, info={"title": evil, "version": evil})
    (tmp_path / "weather.json").write_text(json.dumps(root))
    code, shown = run_on_terminal(tmp_path, "add", "w", "--openapi", "weather.json")
    assert code == 0
    assert b"\x1b[2J" not in shown
    assert b"\x1b]0" not in shown


def test_check_says_what_of_a_document_is_left_out_and_why(tmp_path: Path) -> None:
    written(tmp_path)
    run(tmp_path, "add", "weather", "--openapi", "weather.json")
    done = run(tmp_path, "check")
    assert done.returncode == 0
    assert "weather: Example 1: 1 tool, 2 skipped." in done.stdout
    assert "POST /admin: it needs the credential token (http bearer)" in done.stdout
    report = json.loads(run(tmp_path, "check", "--json").stdout)
    assert len(report["documents"][0]["leftOut"]) == 2


def test_check_finds_a_document_that_cant_be_used(tmp_path: Path) -> None:
    written(tmp_path)
    run(tmp_path, "add", "weather", "--openapi", "weather.json")
    (tmp_path / "weather.json").write_text("<html>")
    done = run(tmp_path, "check")
    assert (done.returncode, "is a web page" in done.stdout) == (1, True)
    report = json.loads(run(tmp_path, "check", "--json").stdout)
    assert (report["ok"], "is a web page" in report["documents"][0]["problem"]) == (False, True)


def test_a_document_without_a_usable_operation_is_not_added_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(document({"/old": {"get": operation("old", deprecated=True)}})))
    done = run(tmp_path, "add", "w", "--openapi", "old.json")
    assert done.returncode == 1
    assert "no operation that can be a tool" in done.stderr
    assert "GET /old: it is deprecated" in done.stderr
    assert not (tmp_path / "pactgate.json").exists()


def test_variables_folder_and_headers_are_written_as_given(tmp_path: Path) -> None:
    words = ("add", "crm", "--env", "TOKEN=${CRM}", "--env", "A=b=c", "--cwd", "/srv", "--", "npx", "crm@1")
    assert run(tmp_path, *words).returncode == 0
    entry = {"command": "npx", "args": ["crm@1"], "env": {"TOKEN": "${CRM}", "A": "b=c"}, "cwd": "/srv"}
    assert settings(tmp_path) == {"crm": entry}
    header = ("--header", "Authorization: Bearer ${CRM}")
    assert run(tmp_path, "add", "far", "--url", "https://far.example/mcp", *header).returncode == 0
    assert settings(tmp_path)["far"]["headers"] == {"Authorization": "Bearer ${CRM}"}
    for wrong in (("--url", "https://x.example", "--env", "A=b"), (*header, "--", "npx"), ("--env", "A", "--", "npx")):
        assert run(tmp_path, "add", "no", *wrong).returncode == 2


def test_a_file_of_python_tools_is_added_relative_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text("")
    assert run(tmp_path, "add", "notes", "--tools", "notes.py", "--env", "NOTES=1").returncode == 0
    written = json.loads((tmp_path / "pactgate.json").read_text())
    assert written == {"mcpServers": {"notes": {"tools": "notes.py", "env": {"NOTES": "1"}}}}
    assert run(tmp_path, "add", "more", "--tools", "absent.py").returncode == 2
