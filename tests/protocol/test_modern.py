"""The ladder admits a modern request on its own evidence or says why not; results get and lose the marks of the era."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Rejection, Request
from pactgate.protocol.modern import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    PROTOCOL_VERSION_KEY,
    SERVER_INFO_KEY,
    SUBSCRIPTION_ID_KEY,
    Route,
    classify,
)
from pactgate.protocol.versions import METHODS, MODERN_VERSIONS, NAMED_BY
from tests.support.each import each

VERSION = MODERN_VERSIONS[0]
META: dict[str, Any] = {
    PROTOCOL_VERSION_KEY: VERSION,
    CAPABILITIES_KEY: {"elicitation": {"form": {}}},
    CLIENT_INFO_KEY: {"name": "desk", "version": "1.2"},
}


def request(method: str = "tools/list", meta: Any = META, **params: Any) -> Request:
    held = params if meta is ... else {"_meta": meta, **params}
    return Request(b'"q"', "q", method, json.dumps(held).encode())


def sent(version: str = VERSION, method: str = "tools/list", name: str | None = None) -> dict[str, list[str]]:
    headers = {"mcp-protocol-version": [version], "mcp-method": [method], "accept": ["application/json"]}
    return headers if name is None else headers | {"mcp-name": [name]}


def admitted(route: Route | Rejection) -> Route:
    assert isinstance(route, Route)
    return route


def refused(route: Route | Rejection) -> Rejection:
    assert isinstance(route, Rejection)
    assert route.id == b'"q"'
    return route


def texts(held: dict[str, Raw]) -> dict[str, Any]:
    return {name: messages.value(raw) for name, raw in held.items()}


# Admission


def test_a_good_request_is_admitted_with_what_it_says_of_itself() -> None:
    meta = META | {LOG_LEVEL_KEY: "warning", "progressToken": 7, "traceparent": "00-1-2-01", "vendor/x": [1]}
    route = admitted(classify(request(meta=meta), sent()))
    assert (route.version, route.client, route.log_level) == (VERSION, "desk/1.2", "warning")
    assert route.capabilities == {"elicitation": {"form": {}}}


def test_meta_stays_the_bytes_it_was_for_whoever_passes_it_on() -> None:
    raw = json.dumps(META)[:-1] + ', "v/n": 1.50e1, "v/big" :18446744073709551616}'
    text = b'{"id":1,"method":"tools/list","jsonrpc":"2.0","params":{"_meta":%b}}' % raw.encode()
    read = messages.decode(text)
    assert isinstance(read, Request)
    admitted(classify(read, None))
    assert read.params == b'{"_meta":%b}' % raw.encode()


@given(st.sampled_from([META, {}, {PROTOCOL_VERSION_KEY: 1}, {CAPABILITIES_KEY: []}, {"progressToken": []}]), st.data())
def test_a_request_is_judged_alike_by_its_decoded_values_and_by_its_bytes(part: dict[str, Any], data: Any) -> None:
    meta = data.draw(st.sampled_from([META, {}])) | part
    held = json.dumps({"name": data.draw(st.sampled_from(["a", 5, None])), "_meta": meta}).encode()
    method = data.draw(st.sampled_from(["tools/list", "tools/call", "no/such"]))
    read = messages.decode(messages.encode_request(b'"q"', method, held))
    assert isinstance(read, Request)
    assert read.values is not None
    unread = Request(b'"q"', "q", method, held)
    assert modern.has_envelope(read) is modern.has_envelope(unread)
    for headers in (None, sent(method=method, name="a")):
        assert classify(read, headers) == classify(unread, headers)


def test_the_client_need_not_say_who_it_is() -> None:
    route = admitted(classify(request(meta={PROTOCOL_VERSION_KEY: VERSION, CAPABILITIES_KEY: {}}), None))
    assert (route.client, route.capabilities, route.log_level) == ("", {}, None)


@pytest.mark.parametrize(
    ("info", "label"),
    [
        ({"name": "desk"}, "desk"),
        ({"version": "1"}, "1"),
        ({}, ""),
        ({"name": 5, "version": None}, ""),
        ({"name": "a\nb\x1b[0m\u202e"}, "a?b?[0m?"),
        ({"name": "n" * 5000, "version": "v" * 5000}, "n" * 128),
        ({"name": "n", "icons": ["x" * 5000]}, "n"),
    ],
)
def test_a_client_is_shown_by_a_short_printable_name(info: dict[str, Any], label: str) -> None:
    assert admitted(classify(request(meta=META | {CLIENT_INFO_KEY: info}), None)).client == label


@pytest.mark.parametrize("method", [name for name, revisions in METHODS.items() if VERSION in revisions])
def test_every_modern_method_is_admitted(method: str) -> None:
    member = NAMED_BY.get(method)
    params = {} if member is None else {member: "thing"}
    admitted(classify(request(method, **params), sent(method=method, name=None if member is None else "thing")))


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize(
    "bad",
    [
        Request(b'"q"', "q", "tools/list"),
        request(meta=...),
        request(meta="x"),
        request(meta=None),
        request(meta=[]),
        request(meta={}),
        request(meta={PROTOCOL_VERSION_KEY: VERSION}),
        request(meta={CAPABILITIES_KEY: {}}),
        request(meta={PROTOCOL_VERSION_KEY: 20260728, CAPABILITIES_KEY: {}}),
        request(meta={PROTOCOL_VERSION_KEY: None, CAPABILITIES_KEY: {}}),
        request(meta={PROTOCOL_VERSION_KEY: VERSION, CAPABILITIES_KEY: []}),
        request(meta={PROTOCOL_VERSION_KEY: VERSION, CAPABILITIES_KEY: None}),
        request(meta=META | {CLIENT_INFO_KEY: "desk"}),
        request(meta=META | {CLIENT_INFO_KEY: None}),
    ],
)
def test_an_incomplete_envelope_is_invalid_params_even_when_the_headers_are_fine(bad: Request) -> None:
    assert refused(classify(bad, sent())).code == messages.INVALID_PARAMS
    assert refused(classify(bad, {})).code == messages.INVALID_PARAMS
    assert refused(classify(bad, None)).code == messages.INVALID_PARAMS


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        sent(version="2025-11-25"),
        sent(method="tools/call"),
        sent(method="Tools/List"),
        sent(method="tools/list "),
        {"mcp-protocol-version": [VERSION]},
        {"mcp-method": ["tools/list"]},
        sent() | {"mcp-protocol-version": [VERSION, VERSION]},
        sent() | {"mcp-protocol-version": []},
        sent() | {"mcp-method": ["tools/list", "tools/list"]},
        sent() | {"mcp-name": ["a", "a"]},
    ],
)
def test_a_header_that_is_missing_doubled_or_different_is_a_mismatch(headers: dict[str, list[str]]) -> None:
    assert refused(classify(request(), headers)).code == messages.HEADER_MISMATCH
    admitted(classify(request(), None))


@each("method", NAMED_BY)
@each(
    ("name", "header"),
    [
        ("lookup", "lookup"),
        ("lookup", "=?base64?bG9va3Vw?="),
        ("é", "=?base64?w6k=?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("=x", "=x"),
        ("", ""),
    ],
)
def test_the_name_header_may_be_plain_or_encoded(method: str, name: str, header: str) -> None:
    admitted(classify(request(method, **{NAMED_BY[method]: name}), sent(method=method, name=header)))


@each("method", NAMED_BY)
@each(
    ("name", "header"),
    [
        ("lookup", None),
        ("lookup", "Lookup"),
        ("lookup", ""),
        ("lookup", "=?base64?bG9va3V?="),
        ("lookup", "=?base64?cm0=?="),
        ("=?base64?YQ==?=", "=?base64?YQ==?="),
        ("é", "é"),
        ("", None),
    ],
)
def test_a_name_header_that_says_something_else_is_a_mismatch(method: str, name: str, header: str | None) -> None:
    bad = request(method, **{NAMED_BY[method]: name})
    assert refused(classify(bad, sent(method=method, name=header))).code == messages.HEADER_MISMATCH


@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": None}, {"name": ["lookup"]}])
@pytest.mark.parametrize("header", [None, "lookup"])
def test_a_call_without_a_name_is_left_to_whoever_reads_the_params(params: dict[str, Any], header: str | None) -> None:
    admitted(classify(request("tools/call", **params), sent(method="tools/call", name=header)))


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize("version", ["2025-11-25", "2031-01-01", "", "x"])
def test_a_version_that_is_not_served_is_named_beside_those_that_are(version: str) -> None:
    rejection = refused(classify(request(meta=META | {PROTOCOL_VERSION_KEY: version}), sent(version=version)))
    assert rejection.code == messages.UNSUPPORTED_VERSION
    assert rejection.data == {"supported": list(MODERN_VERSIONS), "requested": version}


def test_an_absurdly_long_version_is_not_echoed_whole() -> None:
    rejection = refused(classify(request(meta=META | {PROTOCOL_VERSION_KEY: "9" * 100_000}), None))
    assert rejection.code == messages.UNSUPPORTED_VERSION
    assert len(messages.encode_rejection(rejection)) < 2000


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "x", "Tools/List"])
def test_a_method_of_another_era_or_none_is_not_found(method: str) -> None:
    assert refused(classify(request(method), sent(method=method))).code == messages.METHOD_NOT_FOUND


@pytest.mark.parametrize("token", ["", "t", 0, -5, 2**70])
def test_a_progress_token_is_a_string_or_an_integer(token: Any) -> None:
    admitted(classify(request(meta=META | {"progressToken": token}), None))


@pytest.mark.parametrize(
    "extra",
    [
        *({"progressToken": token} for token in (None, True, 1.5, 1e300, [1], {"a": 1})),
        *({LOG_LEVEL_KEY: level} for level in ("verbose", "WARNING", "", None, 3)),
    ],
)
def test_a_bad_progress_token_or_log_level_is_invalid_params(extra: dict[str, Any]) -> None:
    assert refused(classify(request(meta=META | extra), sent())).code == messages.INVALID_PARAMS


def test_the_rungs_are_climbed_in_order() -> None:
    broken_everywhere = request("nowhere", meta={PROTOCOL_VERSION_KEY: "2031-01-01", "progressToken": []})
    assert refused(classify(broken_everywhere, {})).code == messages.INVALID_PARAMS
    with_envelope = request(
        "nowhere", meta={PROTOCOL_VERSION_KEY: "2031-01-01", CAPABILITIES_KEY: {}, "progressToken": []}
    )
    assert refused(classify(with_envelope, {})).code == messages.HEADER_MISMATCH
    assert refused(classify(with_envelope, sent("2031-01-01"))).code == messages.HEADER_MISMATCH
    assert refused(classify(with_envelope, sent("2031-01-01", "nowhere"))).code == messages.UNSUPPORTED_VERSION
    of_the_version = request("nowhere", meta={PROTOCOL_VERSION_KEY: VERSION, CAPABILITIES_KEY: {}, "progressToken": []})
    assert refused(classify(of_the_version, sent(method="nowhere"))).code == messages.METHOD_NOT_FOUND


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=5) | st.just(VERSION),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from([PROTOCOL_VERSION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, "_meta"]), inner
        )
    ),
)
keys = st.sampled_from(
    [
        PROTOCOL_VERSION_KEY,
        CAPABILITIES_KEY,
        CLIENT_INFO_KEY,
        LOG_LEVEL_KEY,
        SERVER_INFO_KEY,
        SUBSCRIPTION_ID_KEY,
        "progressToken",
        "x",
    ]
)


@given(
    method=st.sampled_from([*METHODS, "x"]),
    params=st.dictionaries(
        st.sampled_from(["_meta", "name", "uri"]), anything | st.dictionaries(keys, anything), max_size=3
    ),
    headers=st.none()
    | st.dictionaries(
        st.sampled_from(["mcp-protocol-version", "mcp-method", "mcp-name"]),
        st.lists(st.sampled_from([VERSION, "tools/call", "x", "=?base64?", "=?base64?*?="]), max_size=2),
    ),
)
def test_every_request_is_admitted_or_refused_by_one_of_the_codes(
    method: str, params: dict[str, Any], headers: dict[str, list[str]] | None
) -> None:
    route = classify(request(method, ..., **params), headers)
    assert isinstance(route, Route) or refused(route).code in {
        messages.INVALID_PARAMS,
        messages.HEADER_MISMATCH,
        messages.UNSUPPORTED_VERSION,
        messages.METHOD_NOT_FOUND,
    }


# The envelope


@pytest.mark.parametrize(
    ("params", "modern_one"),
    [
        (None, False),
        (b"{}", False),
        (b'{"_meta":{"progressToken":1}}', False),
        (b'{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}', True),
        (b'{"_meta":{"io.modelcontextprotocol\\/protocolVersion":null}}', True),
        (b'{"_meta":{"\\u0069o.modelcontextprotocol/protocolVersion":1}}', True),
        (b'{"io.modelcontextprotocol/protocolVersion":"x"}', False),
        (b'{"_meta":{"a":"io.modelcontextprotocol/protocolVersion"}}', False),
        (b'{"_meta":["io.modelcontextprotocol/protocolVersion"]}', False),
        (b'{"a":"\\n"}', False),
    ],
)
def test_a_request_is_modern_when_its_meta_names_a_version(params: bytes | None, modern_one: bool) -> None:
    assert modern.has_envelope(Request(b"1", 1, "ping", params)) is modern_one
    if params is not None:
        decoded = messages.decode(messages.encode_request(b"1", "ping", messages.encode_json(messages.value(params))))
        assert isinstance(decoded, Request)
        assert modern.has_envelope(decoded) is modern_one


def test_an_envelope_of_ours_is_one_we_would_admit() -> None:
    meta = modern.envelope(VERSION, {"name": "gate", "version": "9"}, {"roots": {}})
    text = messages.encode_json({"_meta": meta})
    assert modern.has_envelope(Request(b"1", 1, "server/discover", text))
    route = admitted(classify(Request(b"1", 1, "server/discover", text), sent(method="server/discover")))
    assert (route.version, route.client, route.capabilities) == (VERSION, "gate/9", {"roots": {}})


def test_foreign_meta_travels_on_and_the_envelope_does_not() -> None:
    foreign = {"traceparent": Raw(b'"t"'), "vendor/x": Raw(b"1.50"), "io.modelcontextprotocol.other/x": Raw(b"1")}
    envelope = dict.fromkeys(
        [
            PROTOCOL_VERSION_KEY,
            CAPABILITIES_KEY,
            CLIENT_INFO_KEY,
            LOG_LEVEL_KEY,
            SERVER_INFO_KEY,
            SUBSCRIPTION_ID_KEY,
            "io.modelcontextprotocol/new",
            "progressToken",
        ],
        Raw(b"1"),
    )
    kept = modern.without_envelope(foreign | envelope)
    assert kept == foreign
    assert all(kept[key] is foreign[key] for key in foreign)


# Results

INFO = b'{"name":"gate","version":"9"}'
IDENTITY = {SERVER_INFO_KEY: {"name": "gate", "version": "9"}}


def result(text: str) -> dict[str, Raw]:
    return messages.members(text.encode())


def test_a_complete_result_has_a_type_and_our_identity() -> None:
    given_ = result('{"content":[1.50],"isError":false}')
    shaped = modern.complete(given_, INFO, cacheable=False)
    assert texts(shaped) == {"content": [1.5], "isError": False, "resultType": "complete", "_meta": IDENTITY}
    assert shaped["content"] is given_["content"]
    assert "_meta" not in given_


def test_a_cacheable_result_says_how_long_it_may_be_kept_and_keeps_what_it_said() -> None:
    shaped = modern.complete(result("{}"), INFO, cacheable=True)
    assert texts(shaped) == {"resultType": "complete", "_meta": IDENTITY, "ttlMs": 0, "cacheScope": "private"}
    said = result('{"ttlMs":50,"cacheScope":"public","resultType":"complete"}')
    assert texts(modern.complete(said, INFO, cacheable=True)) == texts(said) | {"_meta": IDENTITY}


def test_a_result_that_asks_for_input_is_never_marked_as_cacheable() -> None:
    asking = result('{"resultType":"input_required","requestState":"s"}')
    assert texts(modern.complete(asking, INFO, cacheable=True)) == texts(asking) | {"_meta": IDENTITY}


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        ('{"v/x":1.0}', {"v/x": 1.0}),
        (json.dumps({"v/x": 1}), {"v/x": 1}),
        ("{}", {}),
        ("null", {}),
        ('"text"', {}),
    ],
)
def test_a_result_without_an_identity_gets_ours_beside_foreign_meta(meta: str, kept: dict[str, Any]) -> None:
    shaped = modern.complete(result(f'{{"_meta":{meta}}}'), INFO, cacheable=False)
    assert messages.value(shaped["_meta"]) == kept | IDENTITY


def test_an_identity_the_upstream_gave_is_kept() -> None:
    meta = {SERVER_INFO_KEY: {"name": "upstream"}, "v/x": 1}
    shaped = modern.complete(result(json.dumps({"_meta": meta})), INFO, cacheable=False)
    assert messages.value(shaped["_meta"]) == meta


def test_a_legacy_caller_gets_nothing_only_modern_results_have() -> None:
    given_ = result('{"tools":[],"resultType":"complete","ttlMs":5,"cacheScope":"public","nextCursor":""}')
    assert texts(modern.strip_result(given_)) == {"tools": [], "nextCursor": ""}
    assert len(given_) == 5


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        (json.dumps({SERVER_INFO_KEY: {}, "v/x": 1}), {"v/x": 1}),
        (json.dumps({SERVER_INFO_KEY: {}, SUBSCRIPTION_ID_KEY: 1}), ...),
        ('{"v/x":1}', {"v/x": 1}),
        ("{}", {}),
        ("null", None),
    ],
)
def test_a_legacy_caller_gets_foreign_meta_only(meta: str, kept: Any) -> None:
    shaped = texts(modern.strip_result(result(f'{{"content":[],"_meta":{meta}}}')))
    assert shaped == ({"content": []} if kept is ... else {"content": [], "_meta": kept})


def test_meta_without_anything_of_the_era_stays_the_bytes_it_was() -> None:
    given_ = result('{"_meta": { "v/x" : 1.50 } }')
    assert modern.strip_result(given_)["_meta"] is given_["_meta"]


@given(st.dictionaries(st.sampled_from(["content", "isError", "structuredContent", "nextCursor"]), anything))
def test_what_is_completed_and_stripped_again_is_what_it_was(held: dict[str, Any]) -> None:
    given_ = result(json.dumps(held))
    assert modern.strip_result(modern.complete(given_, INFO, cacheable=True)) == given_
