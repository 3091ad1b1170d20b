"""Seven servers people use, probed by `pactgate compliance invariants --live`.

Every finding was compared with the specification by hand, and stands here with the reason why it is right. Any other finding is a false
alarm, or news about a server.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from tests.interop.pairings import PREPARE
from tests.interop.processes import GATEWAY, NODE, NODE_FOLDER, Program, free_port, listens
from tests.interop.test_real_servers import IDS, Page, Real, make_repository, real_servers

LIMIT_S = 60
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

CURSOR: Final = {("GW-047", "should", "The server did not give out this cursor, and serves it.")}
"""Pagination, Error Handling: invalid cursors SHOULD result in an error with the code -32602."""
PROMPT: Final = {
    (
        "GW-052",
        "should",
        'prompts/get of "pactgate-probe-unknown", which does not exist, gets the code -32603, not -32602.',
    )
}
"""Prompts, Error Handling: servers SHOULD return -32602 for an invalid prompt name."""
TOOL: Final = {
    (
        "GW-052",
        "should",
        'tools/call of "pactgate-probe-unknown", which does not exist, is answered with a result that says isError.',
    )
}
"""Tools, Error Handling: unknown tools are protocol errors; schema, CallToolResult.isError: errors in finding the tool should be
reported as an error response."""
RESOURCE: Final = {
    (
        "GW-052",
        "should",
        'resources/read of "pactgate-probe://unknown/resource", which does not exist, gets the code -32602, not -32002.',
    )
}
"""Resources, Error Handling, 2025-11-25: servers SHOULD return -32002 for a resource that is not found."""


def invalid_params(*requests: str) -> set[tuple[str, str, str]]:
    """JSON-RPC 2.0, section 5.1: -32602 is the code for invalid method parameters, -32603 for an internal error. Logging, Error
    Handling: servers SHOULD return -32602 for an invalid log level."""
    return {("GW-053", "should", f"{request} gets the code -32603, not -32602.") for request in requests}


CALL, LIST = "tools/call with an invalid name", "tools/list with an invalid cursor"
READ, PROMPT_NAME = "resources/read with an invalid uri", "prompts/get with an invalid name"
LEVEL = "logging/setLevel with an invalid level"
EVERYTHING: Final = CURSOR | TOOL | RESOURCE | invalid_params(CALL, LIST, READ, PROMPT_NAME, LEVEL)
FOUND: Final = {
    "time": CURSOR | PROMPT,
    "git": CURSOR | PROMPT,
    "fetch": CURSOR,
    "everything": EVERYTHING,
    "filesystem": CURSOR | TOOL | invalid_params(CALL, LIST),
    "memory": CURSOR | TOOL | RESOURCE | invalid_params(CALL, LIST, READ),
    "sequential-thinking": CURSOR
    | TOOL
    | invalid_params(CALL, LIST)
    # The chat API of OpenAI refuses descriptions of more than 1,024 characters; this very one is reported by users of several clients.
    | {("LINT-004", "advice", 'The description of "sequentialthinking" has 2781 characters, more than 1024.')},
}
OVER_HTTP: Final = EVERYTHING | {
    # Transports, Security Warning: servers MUST validate Origin, and MUST respond with 403 where it is invalid.
    ("GW-054", "must", 'A request with the Origin "https://pactgate-probe.invalid" is served.'),
    # Transports, Session Management: after the session ended, the server MUST respond with 404 to requests with its id.
    ("GW-016", "must", "The session had ended, but the status is 400."),
    ("GW-055", "should", "A request with an unknown session id gets the status 400, not 404."),
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Real]]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "files").mkdir()
    (folder / "files" / "a.txt").write_text("a file")
    make_repository(str(folder / "repository"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        thread = Thread(target=page.serve_forever, args=(0.05,))
        thread.start()
        yield real_servers(folder, f"http://127.0.0.1:{page.server_address[1]}/page")
        page.shutdown()
        thread.join()


def judged(real: Real, *target: str) -> dict[str, Any]:
    call = f"{real.tool}={json.dumps(real.arguments)}"
    words = [*GATEWAY, "compliance", "invariants", "--live", "--format", "json", "--call", call, *target]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    (session,) = json.loads(done.stdout)["sessions"]
    results: dict[str, Any] = {result["id"]: result for result in session["results"] + session["advisory"]}
    return results


def findings(results: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (code, evidence["level"], evidence["message"])
        for code, result in results.items()
        for evidence in result["evidence"]
    }


def share_not_applicable(results: dict[str, Any]) -> float:
    return [result["status"] for result in results.values()].count("not_applicable") / len(results)


@pytest.mark.parametrize("id_", IDS)
def test_a_real_server_is_checked_in_depth_and_every_finding_is_true(id_: str, servers: dict[str, Real]) -> None:
    real = servers[id_]
    missing = real.why_not_here()
    if missing is not None:
        pytest.skip(missing)
    results = judged(real, "--", *real.command())
    assert findings(results) == FOUND[id_]
    assert share_not_applicable(results) <= 1 / 3
    assert "INV-007" in results
    assert results["INV-005"]["status"] == "pass", "the tool that was named was called"


def test_a_real_server_is_checked_over_http_too(servers: dict[str, Real], tmp_path: Path) -> None:
    real = servers["everything"]
    if real.why_not_here() is not None:
        pytest.skip(f"NOT RUN: {PREPARE}")
    port = free_port()
    script = NODE_FOLDER / "node_modules" / real.package / "dist" / "index.js"
    server = Program(["env", f"PORT={port}", NODE, script, "streamableHttp"], tmp_path / "server.log")
    try:
        server.wait_until(lambda: listens(port), "it listens")
        results = judged(real, f"http://127.0.0.1:{port}/mcp")
    finally:
        server.stop()
    assert findings(results) == OVER_HTTP
    assert share_not_applicable(results) <= 1 / 3
