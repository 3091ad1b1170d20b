"""What a scripted server answers, without a transport: byte for byte as in the script, as its era has it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from pactgate.conformance.gateway.script import ScriptedTool, ServerScript
from pactgate.conformance.gateway.server_answers import ScriptedServer

ENVELOPE = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'


def ask(folder: Path, era: str, method: str, params: str = "{}") -> tuple[str, int]:
    tools = (ScriptedTool("odd_@", result='"content":[],"n":1e400'),)
    server = ScriptedServer(ServerScript(tag="t", era=era, record=str(folder / "record"), tools=tools))
    found = server.take(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}', lambda data: None)
    server.log.close()
    assert found is not None
    return found


def test_a_modern_server_refuses_a_handshake_and_names_its_revision(tmp_path: Path) -> None:
    data, status = ask(tmp_path, "modern", "initialize", '{"protocolVersion":"2025-11-25"}')
    error = json.loads(data)["error"]
    assert (status, error["code"], error["data"]["supported"]) == (400, -32022, ["2026-07-28"])


@pytest.mark.parametrize("era", ["modern", "both"])
def test_a_modern_result_is_as_in_the_script_beside_what_its_era_adds(era: str, tmp_path: Path) -> None:
    data, status = ask(tmp_path, era, "tools/call", f'{{"name":"odd_t",{ENVELOPE}}}')
    assert status == 200
    assert '"result":{"content":[],"n":1e400,"resultType":"complete"' in data


def test_a_method_that_nobody_has_is_not_found_in_the_words_of_the_era(tmp_path: Path) -> None:
    assert ask(tmp_path, "modern", "no/such", f"{{{ENVELOPE}}}")[1] == 404
    assert ask(tmp_path, "legacy", "no/such")[1] == 200


def test_who_has_seen_his_stream_begin_hears_of_a_change_made_at_once(tmp_path: Path) -> None:
    server = ScriptedServer(ServerScript(tag="t", era="both", record=str(tmp_path / "record.t"), tools=()))
    change, heard = threading.Thread(target=server.changed), list[str]()

    def begin() -> None:
        change.start()
        change.join(0.1)

    assert server.listen(" 1", heard.append, begin)
    change.join()
    server.log.close()
    assert heard == ['{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}']
