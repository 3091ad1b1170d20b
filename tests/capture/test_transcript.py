"""From what passed to exchanges."""

from __future__ import annotations

import json
from typing import Any

from pactgate.capture.format import read
from pactgate.capture.redaction import Redaction
from pactgate.capture.transcript import MAX_HELD, Transcript
from pactgate.protocol.framing import encode_event

PV = "io.modelcontextprotocol/protocolVersion"


def text(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def written(transcript: Transcript) -> list[dict[str, Any]]:
    return [json.loads(each) for each in (*transcript.ready(), *transcript.held())]


def talk(*messages: tuple[str, dict[str, Any]]) -> Transcript:
    transcript = Transcript(Redaction())
    for at_ms, (sender, message) in enumerate(messages):
        transcript.message(float(at_ms), text(**message), from_client=sender == "client")
    return transcript


def test_an_answer_goes_to_its_request_and_the_order_of_requests_stays() -> None:
    found = written(
        talk(
            ("client", {"id": 1, "method": "a"}),
            ("client", {"id": 2, "method": "b"}),
            ("server", {"id": 2, "result": {}}),
            ("server", {"id": 1, "result": {}}),
        )
    )
    assert [(each["request"]["id"], each["response"]["id"]) for each in found] == [(1, 1), (2, 2)]
    assert [(each["seq"], each["response_seq"]) for each in found] == [(1, 4), (2, 3)]
    assert [each["response_at_ms"] for each in found] == [3.0, 2.0]


def test_an_exchange_is_given_out_once_and_only_when_all_before_it_are_complete() -> None:
    transcript = talk(("client", {"id": 1, "method": "a"}), ("client", {"method": "notifications/x"}))
    assert transcript.ready() == []
    assert len(transcript.held()) == 2
    transcript.message(9.0, text(id=1, result={}), from_client=False)
    assert len(transcript.ready()) == 2
    assert transcript.ready() == []


def test_ids_of_the_two_sides_and_of_different_types_are_different() -> None:
    found = written(
        talk(
            ("client", {"id": 1, "method": "a"}),
            ("server", {"id": 1, "method": "ping"}),
            ("client", {"id": 1, "result": {}}),
            ("server", {"id": "1", "result": {}}),
        )
    )
    assert found[0]["request"]["method"] == "a"
    assert "response" not in found[0]
    assert found[1]["direction"] == "server_to_client"
    assert found[1]["response"] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "request" not in found[2]


def test_an_answer_that_comes_after_its_request_was_given_out_stands_on_its_own() -> None:
    transcript = talk(("client", {"id": "slow", "method": "a"}))
    for number in range(MAX_HELD + 1):
        transcript.message(1.0, text(method=f"notifications/{number}"), from_client=True)
    first = json.loads(transcript.ready()[0])
    assert "response" not in first
    transcript.message(2.0, text(id="slow", result={}), from_client=False)
    late = written(transcript)[-1]
    assert late["response"]["id"] == "slow"
    assert "request" not in late


def test_what_is_no_message_is_counted_and_not_written() -> None:
    transcript = Transcript(Redaction())
    for line in (b"hello", b"", b"[]", b'{"a": \xff}', b"[" * 1000, b"3"):
        transcript.message(0.0, line, from_client=False)
    assert written(transcript) == []
    assert transcript.facts()["noise"] == 6


def test_the_handshake_tells_version_and_capabilities() -> None:
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    transcript = talk(("client", {"id": 1, "method": "initialize"}), ("server", {"id": 1, "result": result}))
    facts = transcript.facts()
    assert (facts["protocol_version"], facts["era"]) == ("2025-06-18", "legacy")
    assert json.loads(bytes(facts["server_capabilities"])) == {"tools": {}}


def test_a_refused_handshake_tells_nothing() -> None:
    transcript = talk(("client", {"id": 1, "method": "initialize"}), ("server", {"id": 1, "error": {"code": 1}}))
    assert transcript.facts() == {"server_capabilities": None}


def test_a_request_with_an_envelope_makes_the_session_modern() -> None:
    assert (
        talk(("client", {"id": 1, "method": "a", "params": {"_meta": {PV: "2026-07-28"}}})).facts()["era"] == "modern"
    )


def test_a_batch_and_its_answers_are_one_exchange() -> None:
    transcript = Transcript(Redaction())
    transcript.message(0.0, b'[{"id":1,"method":"a"},{"id":2,"method":"b"}]', from_client=True)
    transcript.message(1.0, b'[{"id":1,"result":{}},{"id":2,"result":{}}]', from_client=False)
    (only,) = written(transcript)
    assert [len(only["request"]), len(only["response"])] == [2, 2]


# HTTP.


def posted(transcript: Transcript, number: int, **message: Any) -> None:
    transcript.requested(0.0, number, "POST", "", {"authorization": ["Bearer xyz12345"]}, text(**message))


def test_a_posted_request_with_a_json_answer_keeps_status_and_headers() -> None:
    transcript = Transcript(Redaction())
    posted(transcript, 1, id=1, method="a")
    transcript.answered(2.0, 1, 200, b"Content-Type: application/json\r\n", text(id=1, result={}))
    (only,) = written(transcript)
    assert only["response"]["id"] == 1
    assert only["http"]["status"] == 200
    assert only["http"]["request_headers"] == {"authorization": ["Bearer ***"]}
    assert only["http"]["response_bytes"] == len(text(id=1, result={}))
    assert len(only["auth"]) == 12


def test_what_travels_on_the_stream_of_an_answer_stands_beside_it() -> None:
    transcript = Transcript(Redaction())
    posted(transcript, 1, id=1, method="a")
    transcript.streaming(1, 200, b"Content-Type: text/event-stream\r\n")
    stream = encode_event(text(method="notifications/progress"), id="e1") + encode_event(text(id=1, result={}), id="e2")
    transcript.events(2.0, 1, stream[:30])
    transcript.events(3.0, 1, stream[30:])
    transcript.ended(1, by_client=False)
    (only,) = written(transcript)
    assert [frame["event_id"] for frame in only["notifications"]] == ["e1"]
    assert (only["event_id"], only["stream"]) == ("e2", "s1")
    assert "closed_by" not in only


def test_a_stream_that_ends_without_an_answer_says_who_closed_it() -> None:
    for by_client, closer in ((True, "client"), (False, "server")):
        transcript = Transcript(Redaction())
        posted(transcript, 1, id=1, method="a")
        transcript.streaming(1, 200, b"")
        transcript.ended(1, by_client=by_client)
        (only,) = written(transcript)
        assert only["closed_by"] == closer


def test_a_standing_stream_holds_nothing_back() -> None:
    transcript = Transcript(Redaction())
    transcript.requested(0.0, 1, "GET", "", {}, b"")
    transcript.streaming(1, 200, b"")
    posted(transcript, 2, id=1, method="a")
    transcript.answered(1.0, 2, 200, b"Content-Type: application/json\r\n", text(id=1, result={}))
    transcript.events(2.0, 1, encode_event(text(method="notifications/x"), id="e"))
    found = [json.loads(each) for each in transcript.ready()]
    assert [each["http"]["verb"] for each in found] == ["GET", "POST", "GET"]
    assert found[2]["notifications"][0]["message"]["method"] == "notifications/x"
    assert found[2]["stream"] == found[0]["stream"]


def test_the_clients_answer_to_a_server_is_an_answer_of_the_other_direction() -> None:
    transcript = Transcript(Redaction())
    posted(transcript, 1, id=7, result={})
    transcript.answered(1.0, 1, 202, b"", b"")
    (only,) = written(transcript)
    assert only["direction"] == "server_to_client"
    assert only["response"]["id"] == 7
    assert "request" not in only


def test_everything_it_writes_can_be_read_back() -> None:
    transcript = talk(("client", {"id": 1, "method": "a"}), ("server", {"id": 9, "result": {}}))
    transcript.requested(3.0, 1, "DELETE", "", {}, b"")
    transcript.answered(4.0, 1, 200, b"", b"")
    capture = json.dumps({"exchanges": written(transcript)}).encode()
    assert [len(list(session.exchanges)) for session in read([capture])] == [3]


def test_a_message_is_written_byte_for_byte() -> None:
    data = b'{ "id":1 , "n": 12345678901234567890123.0e1, "x":"\\u00fc" , "method": "a" }'
    transcript = Transcript(Redaction())
    transcript.message(0.0, data, from_client=True)
    assert data in transcript.held()[0]


def test_a_request_without_an_answer_has_no_status() -> None:
    transcript = Transcript(Redaction())
    transcript.requested(0.123, 1, "GET", "", {}, b"")
    assert written(transcript) == [{"seq": 1, "at_ms": 0.123, "http": {"verb": "GET", "request_headers": {}}}]


def test_two_exchanges_share_no_stream_messages() -> None:
    transcript = Transcript(Redaction())
    for number in (1, 2):
        posted(transcript, number, id=number, method="a")
        transcript.streaming(number, 200, b"")
    transcript.events(2.0, 1, encode_event(text(method="notifications/progress")))
    first, second = written(transcript)
    assert len(first["notifications"]) == 1
    assert "notifications" not in second
