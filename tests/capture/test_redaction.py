"""What must not be in a capture."""

from __future__ import annotations

import html
import json
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.capture.redaction import Redaction, block_identity, header_values, secrets_of
from pactgate.core.recording import Headers
from pactgate.core.token_words import MASKED


def shown(redaction: Redaction, headers: Headers) -> dict[str, list[str]]:
    headers_shown: dict[str, list[str]] = json.loads(bytes(redaction.block(headers).shown(b"body")))
    return headers_shown


SECRET = 's3cr"et/\\ü-value'

ODD_SECRET = 'CANARY"quote\\back9'


def test_a_message_without_a_secret_is_not_touched() -> None:
    text = b'{ "jsonrpc":"2.0", "id": 1.0, "result": {"n": 12345678901234567890123, "x": "\\u00fc\\/"} }'
    assert Redaction([SECRET]).message(text) is text


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_a_known_secret_is_masked_however_it_is_escaped(ensure_ascii: bool) -> None:
    text = json.dumps({"id": 1, "result": {SECRET: ["x" + SECRET + "y"]}}, ensure_ascii=ensure_ascii).encode()
    assert json.loads(Redaction([SECRET]).message(text)) == {"id": 1, "result": {MASKED: [f"x{MASKED}y"]}}


def test_a_secret_spelt_with_needless_escapes_is_masked_too() -> None:
    text = '{"result": "' + "".join(f"\\u{ord(letter):04x}" for letter in "hidden-word") + '"}'
    assert json.loads(Redaction(["hidden-word"]).message(text.encode())) == {"result": MASKED}


def test_a_secret_that_looks_like_json_never_breaks_the_message() -> None:
    redaction = Redaction(["true", "1234", '":{"'])
    text = b'{"a":{"b":true,"c":1234,"d":"1234 true"}}'
    assert json.loads(redaction.message(text)) == {"a": {"b": True, "c": MASKED, "d": f"{MASKED} {MASKED}"}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values, st.text(min_size=4, max_size=12), st.booleans())
def test_no_text_of_a_masked_message_holds_the_secret(value: object, secret: str, ensure_ascii: bool) -> None:
    text = json.dumps({"v": value, "s": [secret]}, ensure_ascii=ensure_ascii).encode("utf-8", "replace")
    masked = json.loads(Redaction([secret]).message(text))
    if secret not in MASKED * 3 and secret.encode("utf-8", "replace").decode() == secret:
        assert masked["s"] == [MASKED]


def test_credentials_in_headers_are_masked_and_the_rest_is_kept() -> None:
    headers = {
        "authorization": ["Bearer abcdefgh"],
        "cookie": ["a=b"],
        "x-api-key": ["k"],
        "accept": ["application/json"],
        "www-authenticate": ["Bearer realm=x"],
    }
    assert shown(Redaction(), headers) == {
        "authorization": [f"Bearer {MASKED}"],
        "cookie": [MASKED],
        "x-api-key": [MASKED],
        "accept": ["application/json"],
        "www-authenticate": ["Bearer realm=x"],
    }


def test_headers_come_as_lines_too_and_one_sent_twice_has_two_values() -> None:
    assert shown(Redaction(), b"X-A: 1\r\nx-a: 2\r\n") == {"x-a": ["1", "2"]}
    assert shown(Redaction(), {b"X-A": b"1"}) == {"x-a": ["1"]}


def test_a_session_id_becomes_a_digest_that_tells_sessions_apart_and_shows_what_is_wrong_with_it() -> None:
    redaction = Redaction()
    first, second, odd = (
        shown(redaction, {"mcp-session-id": [value]})["mcp-session-id"][0] for value in ("a", "b", "ü")
    )
    assert first != second
    assert first == shown(redaction, b"Mcp-Session-Id: a")["mcp-session-id"][0]
    assert first.startswith("session-")
    assert first.strip() == first
    assert odd.strip() != odd


def test_a_token_that_was_seen_in_a_header_is_masked_in_messages_from_then_on() -> None:
    redaction = Redaction()
    digest = redaction.block({"authorization": ["Bearer a-long-token"]}).auth
    assert digest == redaction.block(b"Authorization: Bearer a-long-token\r\n").auth
    assert redaction.block({}).auth is None
    assert b"a-long-token" not in redaction.message(b'{"result": "you sent a-long-token"}')


def test_two_runs_give_different_digests() -> None:
    assert Redaction().digest("x") != Redaction().digest("x")


def test_variables_are_secret_by_their_names() -> None:
    assert secrets_of({"API_KEY": "0123456789abcdef", "SHORT_KEY": "x", "HOME": "/a/long/path/of/mine"}) == [
        "0123456789abcdef"
    ]


def test_where_a_look_ahead_finds_nothing_no_message_is_searched_again_until_more_is_known() -> None:
    redaction = Redaction([SECRET])
    assert redaction.ahead is not None
    redaction.look_ahead([b'{"a":1}', b"{}"])
    assert redaction.ahead is None
    redaction.know(["something else"])
    assert redaction.ahead is not None
    redaction.look_ahead([b"{}"])
    redaction.look_ahead(())
    assert redaction.ahead is not None


@pytest.mark.parametrize("spelling", [b"hidden-word", b"\\u0068idden-word", b"a\\/b"])
def test_a_look_ahead_misses_no_spelling(spelling: bytes) -> None:
    redaction = Redaction(["hidden-word"])
    redaction.look_ahead([b"{}", b'{"result":"' + spelling + b'"}', b"{}"])
    assert redaction.ahead is not None


def test_a_block_is_read_once_and_again_when_more_is_known() -> None:
    redaction = Redaction()
    headers = {"authorization": ["Bearer a-long-token"], "mcp-session-id": ["s"], "x-note": ["harmless"]}
    block = redaction.block(headers)
    assert redaction.block(headers) is block
    assert (block.session, block.is_json) == ("s", False)
    assert b"a-long-token" not in bytes(block.shown(b""))
    redaction.know(["harmless"])
    assert b"harmless" not in bytes(redaction.block(headers).shown(b""))
    assert redaction.block(b"Content-Type: application/json\r\n").is_json


def test_the_length_of_the_body_counts_and_not_that_of_the_block_which_was_read() -> None:
    redaction = Redaction()
    for length in (1, 20):
        answer = {b"content-length": b"%d" % length, b"server": b"x"}
        block = redaction.block(answer)
        assert block is redaction.block({b"content-length": b"0", b"server": b"x"})
        assert json.loads(bytes(block.shown(b"a" * length))) == {"content-length": [str(length)], "server": ["x"]}
        assert json.loads(bytes(block.shown(None))) == {"server": ["x"]}
    assert shown(redaction, {b"content-length": b"9"}) == {"content-length": ["4"]}
    assert shown(redaction, b"Content-Length: 9\r\n") == {"content-length": ["9"]}


def test_blocks_that_never_come_again_are_not_kept_for_ever() -> None:
    redaction = Redaction()
    for number in range(1000):
        redaction.block(b"X-A: %d" % number)
    assert len(redaction._blocks) <= 256


def test_every_way_headers_come_gives_the_same_values() -> None:
    expected = {"x-a": ["1"], "x-b": ["2"]}
    assert header_values(b"X-A: 1\r\nX-B:2\r\n") == expected
    assert header_values({"x-a": ["1"], "x-b": ["2"]}) == expected
    assert header_values({b"X-A": b"1", b"X-B": b"2"}) == expected


def test_the_same_block_has_the_same_identity_and_another_has_not() -> None:
    block = {"a": ["1"]}
    assert block_identity(block) == block_identity(block)
    assert block_identity({b"a": b"1"}) == block_identity({b"a": b"1"})
    assert len({block_identity(each) for each in (b"", b"a: 1", {b"a": b"1"}, {b"a": b"2"}, block, {})}) == 6


@pytest.mark.parametrize(
    "spelt", [quote_plus(ODD_SECRET), json.dumps({"password": ODD_SECRET}), html.escape(ODD_SECRET)]
)
def test_a_secret_is_masked_in_the_spelling_of_another_format(spelt: str) -> None:
    message = Redaction([ODD_SECRET]).message(json.dumps({"text": f"said {spelt}"}).encode())
    assert b"***" in message
    assert b"back9" not in message
