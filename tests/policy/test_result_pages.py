"""Results on the shelf: bounded, owned, readable in pages that are the whole when put together."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import ErrorCode, Kind, Plane, Verdict
from pactgate.core.values import HandleOwner, Tool
from pactgate.policy.result_pages import PAGE_KEY, Address, Page, PagedResultStore, read_uri, write_uri

OVERHEAD = 512
ANN, BOB, EVE = HandleOwner("ann"), HandleOwner("bob"), HandleOwner("eve")
TOOL = Tool(
    server="crm",
    name="export",
    full_name="crm.export",
    exposed_name="crm__export",
    definition=b"{}",
    exposed_definition=b"{}",
    digest="",
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shelf(clock: Clock | None = None, *, room: int = 10, entries: int = 10, page_bytes: int = 1000) -> PagedResultStore:
    """Room for so many results of 100 bytes."""
    return PagedResultStore(
        max_bytes=room * (100 + OVERHEAD),
        max_entries=entries,
        ttl_s=60.0,
        page_bytes=page_bytes,
        clock=clock or Clock(),
    )


def put(on: PagedResultStore, owner: HandleOwner = ANN, letter: str = "x") -> str:
    handle = on.put(owner, letter.encode() * 100, TOOL)
    assert handle is not None
    return handle


def holds(on: PagedResultStore, handle: str, owner: HandleOwner = ANN) -> bool:
    return on.read(owner, handle, 1) is not None


def test_a_result_is_read_back_by_the_caller_it_was_kept_for() -> None:
    on = shelf()
    assert on.read(ANN, put(on), 1) == Page("x" * 100, 1, 1)


def test_a_handle_is_random_and_opens_nothing_for_anybody_else() -> None:
    on = shelf()
    handles = {put(on) for _ in range(5)}
    assert len(handles) == 5
    assert all(len(bytes.fromhex(handle)) == 16 for handle in handles)
    handle = handles.pop()
    assert on.read(BOB, handle, 1) is None
    assert on.read_resource(BOB, write_uri(handle)) is None
    assert on.read(HandleOwner("ann", "a session"), handle, 1) is None
    assert on.read(ANN, "0" * 32, 1) is None


def test_a_result_of_a_tool_that_its_caller_has_lost_does_not_exist() -> None:
    on = shelf()
    handle = put(on)
    assert on.read(ANN, handle, 1, lambda tool: tool is TOOL) is not None
    assert on.read(ANN, handle, 1, lambda tool: False) is None


@pytest.mark.parametrize("page", [0, -1, 2, 10**6])
def test_there_is_no_page_beyond_the_last(page: int) -> None:
    on = shelf()
    assert on.read(ANN, put(on), page) is None


def test_a_result_is_readable_until_its_time_is_over_and_then_gone() -> None:
    clock = Clock()
    on = shelf(clock)
    handle = put(on)
    clock.now += 60.0
    assert holds(on, handle)
    clock.now += 0.001
    assert not holds(on, handle)
    assert len(on) == 1
    on.sweep()
    assert (len(on), on.held_bytes) == (0, 0)


def test_the_oldest_makes_room_when_there_are_too_many_bytes() -> None:
    on = shelf(room=2)
    first, second, third = put(on), put(on), put(on)
    assert [holds(on, handle) for handle in (first, second, third)] == [False, True, True]
    assert on.held_bytes == 2 * (100 + OVERHEAD)


def test_the_oldest_makes_room_when_there_are_too_many_entries() -> None:
    on = shelf(entries=2)
    first, second, third = put(on), put(on), put(on)
    assert [holds(on, handle) for handle in (first, second, third)] == [False, True, True]


def test_a_caller_displaces_its_own_results_before_those_of_others() -> None:
    on = shelf(room=3)
    old = put(on, ANN)
    handles = [put(on, BOB) for _ in range(6)]
    assert holds(on, old, ANN)
    assert [holds(on, handle, BOB) for handle in handles] == [False] * 4 + [True] * 2
    assert holds(on, put(on, EVE), EVE)
    assert not holds(on, old, ANN)


def test_what_is_larger_than_the_shelf_is_not_kept_and_displaces_nothing() -> None:
    on = shelf(room=1)
    handle = put(on)
    assert on.put(ANN, b"y" * 10_000, TOOL) is None
    assert holds(on, handle)
    assert shelf(entries=0).put(ANN, b"x", TOOL) is None


def test_the_results_of_one_caller_can_be_dropped_without_those_of_others() -> None:
    on = shelf()
    anns, bobs = put(on, ANN), put(on, HandleOwner("bob"))
    on.forget("ann")
    assert not holds(on, anns, ANN)
    assert holds(on, bobs, HandleOwner("bob"))


def test_a_cleared_shelf_holds_nothing() -> None:
    on = shelf()
    handle = put(on)
    on.clear()
    assert (len(on), on.held_bytes, on.pages(handle)) == (0, 0, 0)


@given(
    value=st.recursive(st.text() | st.integers(), st.lists),
    page_bytes=st.integers(20, 120),
    indent=st.none() | st.just(1),
)
def test_the_pages_together_are_the_whole_and_each_is_within_its_bound(
    value: object, page_bytes: int, indent: int | None
) -> None:
    result = json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "replace")
    on = PagedResultStore(page_bytes=page_bytes)
    handle = on.put(ANN, result, TOOL)
    assert handle is not None
    pages = [on.read(ANN, handle, number) for number in range(1, on.pages(handle) + 1)]
    texts = [page.text for page in pages if page is not None]
    assert len(texts) == len(pages)
    assert all(texts)
    assert "".join(texts).encode() == result
    assert all(len(json.dumps(text, ensure_ascii=False).encode()) <= page_bytes for text in texts)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3000), st.floats(0, 30)), max_size=40))
def test_the_bounds_hold_after_every_operation(puts: list[tuple[str, int, float]]) -> None:
    clock = Clock()
    on = PagedResultStore(max_bytes=8000, max_entries=5, ttl_s=60.0, clock=clock)
    for owner, size, wait_s in puts:
        clock.now += wait_s
        handle = on.put(HandleOwner(owner), b"x" * size, TOOL)
        assert handle is not None
        assert holds(on, handle, HandleOwner(owner))
        assert on.held_bytes <= 8000
        assert len(on) <= 5
    clock.now += 61
    on.sweep()
    assert (len(on), on.held_bytes) == (0, 0)


def test_a_uri_names_a_result_and_a_page() -> None:
    handle = "0123456789abcdef" * 2
    assert write_uri(handle, 3) == f"pactgate://results/{handle}?page=3"
    assert read_uri(write_uri(handle, 3)) == Address(handle, 3)
    assert read_uri(f"pactgate://results/{handle}") == Address(handle, 1)


@pytest.mark.parametrize(
    "uri",
    [
        "pactgate://status",
        "pactgate://results/",
        "pactgate://results/" + "0" * 31,
        "pactgate://results/" + "0" * 33,
        "pactgate://results/" + "G" * 32,
        "pactgate://results/" + "0" * 32 + "?page=0",
        "pactgate://results/" + "0" * 32 + "?page=-1",
        "pactgate://results/" + "0" * 32 + "?page=9999999",
        "pactgate://results/" + "0" * 32 + "?page=\u0661",
        "pactgate://results/" + "0" * 32 + "?page=1&x=2",
        "pactgate://results/" + "0" * 32 + "?page=1\n",
        "pactgate://results/../" + "0" * 32,
    ],
)
def test_other_uris_name_nothing_on_the_shelf(uri: str) -> None:
    assert read_uri(uri) is None
    assert shelf().read_resource(ANN, uri) is None


def test_a_page_is_read_as_a_resource_that_leads_to_the_next() -> None:
    on = shelf(page_bytes=128)
    handle = put(on)
    first = json.loads(on.read_resource(ANN, write_uri(handle)) or b"")
    assert first["contents"] == [{"uri": write_uri(handle), "mimeType": "text/plain", "text": "x" * 60}]
    assert first["_meta"][PAGE_KEY] == {"page": 1, "pages": 2, "next": write_uri(handle, 2)}
    last = json.loads(on.read_resource(ANN, write_uri(handle, 2)) or b"")
    assert last["contents"][0]["text"] == "x" * 40
    assert last["_meta"][PAGE_KEY] == {"page": 2, "pages": 2}


def test_a_result_of_one_page_is_json() -> None:
    on = shelf()
    handle = on.put(ANN, b'{"content":[]}', TOOL)
    assert handle is not None
    read = json.loads(on.read_resource(ANN, write_uri(handle)) or b"")
    assert read["contents"][0]["mimeType"] == "application/json"
    assert json.loads(read["contents"][0]["text"]) == {"content": []}


@pytest.mark.requirement("S1/RESP-003")
def test_an_answer_too_large_to_send_fails_with_the_place_where_it_can_be_read() -> None:
    on = shelf(page_bytes=128)
    failure = on.keep(ANN, b"x" * 100, TOOL, 50)
    assert (failure.kind, failure.code, failure.plane, failure.verdict) == (
        Kind.RESPONSE_TOO_LARGE,
        ErrorCode.OPERATION_FAILED,
        Plane.RESULT,
        Verdict.RAN,
    )
    assert (failure.server, failure.tool) == ("crm", "crm.export")
    told = failure.details
    assert {name: told[name] for name in ("originalSizeBytes", "maxResponseBytes", "pages", "expiresInMs")} == {
        "originalSizeBytes": 100,
        "maxResponseBytes": 50,
        "pages": 2,
        "expiresInMs": 60_000,
    }
    assert told["resultUri"] in failure.message
    assert on.read_resource(ANN, told["resultUri"]) is not None


def test_an_answer_too_large_even_to_keep_says_so() -> None:
    failure = shelf().keep(ANN, b"x" * 100_000, TOOL, 50)
    assert failure.details == {"originalSizeBytes": 100_000, "maxResponseBytes": 50}
    assert "too large to be kept" in failure.message
