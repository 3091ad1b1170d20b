"""Whose message is whose, where one child serves several workers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.contract import REPORT_METHOD
from pactgate.protocol import messages, modern
from pactgate.workers.sharing import LATE_LOG_S, STRAY_S, Out, Sharing
from tests.support.facing import Clock

GREETING = {"protocolVersion": "2025-11-25"}


def encode(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


class Table:
    """A child with two workers, A (1) and B (2), and what each was sent."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.sharing = Sharing(self.clock)
        for seat in (1, 2):
            self.sharing.join(seat)

    def says(self, seat: int, **fields: Any) -> list[Any]:
        """What reaches the child."""
        out = self.sharing.from_seat(seat, encode(**fields))
        assert not out.to_seats
        return [json.loads(frame) for frame in out.to_child]

    def asks(self, seat: int, method: str = "tools/call", id_: Any = 1, **params: Any) -> Any:
        """The id the child sees."""
        [sent] = self.says(seat, id=id_, method=method, params=params)
        assert sent["method"] == method
        return sent["id"]

    def child(self, **fields: Any) -> list[tuple[int, Any]]:
        """Who hears what of it."""
        return heard(self.sharing.from_child(encode(**fields)))


def heard(out: Out) -> list[tuple[int, Any]]:
    return [(seat, json.loads(frame)) for seat, frame in out.to_seats]


def test_equal_ids_of_two_workers_become_different_ones_and_answers_find_back() -> None:
    table = Table()
    first, second = table.asks(1, id_=7), table.asks(2, id_=7)
    assert first != second
    assert table.child(id=second, result={"b": 1}) == [(2, {"jsonrpc": "2.0", "id": 7, "result": {"b": 1}})]
    assert table.child(id=first, error={"code": -3, "message": "no", "data": [1]}) == [
        (1, {"jsonrpc": "2.0", "id": 7, "error": {"code": -3, "message": "no", "data": [1]}})
    ]
    assert table.child(id=first, result={}) == [], "an answer counts once"
    assert table.child(id="7", result={}) == []
    assert len(table.sharing) == 0


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 5)), max_size=30), st.randoms())
def test_no_answer_ever_reaches_another_worker(asked: list[tuple[int, int]], chance: Any) -> None:
    table = Table()
    open_ = [(table.asks(seat, id_=number), seat, number) for seat, number in asked]
    chance.shuffle(open_)
    for id_, seat, number in open_:
        [(who, told)] = table.child(id=id_, result={"for": [seat, number]})
        assert (who, told["id"], told["result"]) == (seat, number, {"for": [seat, number]})


def test_numbers_and_texts_pass_as_the_bytes_they_were() -> None:
    table = Table()
    out = table.sharing.from_seat(
        1,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"n":1.10e5,"big":123456789012345678901}}}',
    )
    assert b'"params":{"arguments":{"n":1.10e5,"big":123456789012345678901}}' in out.to_child[0]
    back = table.sharing.from_child(b'{"jsonrpc":"2.0","id":1,"result":{"n":1.10e5,"u":"\\u00e4"}}')
    assert b'"result":{"n":1.10e5,"u":"\\u00e4"}' in back.to_seats[0][1]
    assert back.is_answer


def test_progress_goes_to_whoever_asked_under_the_token_it_chose() -> None:
    table = Table()
    tokens = []
    for seat in (1, 2):
        [sent] = table.says(
            seat, id=5, method="tools/call", params={"name": "x", "_meta": {"progressToken": 5, "own": [1]}}
        )
        assert sent["params"]["_meta"]["own"] == [1]
        tokens.append(sent["params"]["_meta"]["progressToken"])
    assert len(set(tokens)) == 2
    told = table.child(method="notifications/progress", params={"progressToken": tokens[1], "progress": 3})
    assert told == [
        (2, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 5, "progress": 3}})
    ]
    assert table.child(method="notifications/progress", params={"progressToken": 999, "progress": 3}) == []
    table.child(id=tokens[1], result={})
    assert table.child(method="notifications/progress", params={"progressToken": tokens[1], "progress": 4}) == []


def test_the_word_progress_token_in_an_argument_is_left_alone() -> None:
    table = Table()
    [sent] = table.says(1, id=1, method="tools/call", params={"arguments": {"progressToken": 9}})
    assert sent["params"] == {"arguments": {"progressToken": 9}}


def test_only_the_call_that_was_given_up_is_cancelled() -> None:
    table = Table()
    kept, given_up = table.asks(1, id_=3), table.asks(2, id_=3)
    [told] = table.says(2, method="notifications/cancelled", params={"requestId": 3, "reason": "tired"})
    assert (told["method"], told["params"]["requestId"]) == ("notifications/cancelled", given_up)
    assert table.child(id=given_up, result={}) == [], "nobody waits for it"
    assert table.child(id=kept, result={})[0][0] == 1
    assert table.says(1, method="notifications/cancelled", params={"requestId": 99}) == []


def test_a_worker_that_leaves_has_its_calls_cancelled_and_its_subscriptions_ended() -> None:
    table = Table()
    table.asks(1, "resources/subscribe", uri="memo:a")
    table.asks(1, "resources/subscribe", id_=2, uri="memo:b")
    table.asks(2, "resources/subscribe", uri="memo:b")
    call = table.asks(1, id_=3)
    said = [json.loads(frame) for frame in table.sharing.leave(1).to_child]
    assert call in [one["params"]["requestId"] for one in said if one["method"] == "notifications/cancelled"]
    assert [one["params"] for one in said if one["method"] == "resources/unsubscribe"] == [{"uri": "memo:a"}]
    assert table.child(id=call, result={}) == []
    assert [seat for seat, _ in table.child(method="notifications/tools/list_changed")] == [2]


def test_the_child_is_greeted_once_and_its_words_serve_everybody() -> None:
    table = Table()
    [sent] = table.says(1, id=1, method="initialize", params=GREETING)
    assert table.says(2, id=8, method="initialize", params=GREETING) == []
    told = table.child(id=sent["id"], result={"serverInfo": {"name": "x"}})
    assert [(seat, one["id"]) for seat, one in told] == [(1, 1), (2, 8)]
    assert len(table.says(1, method="notifications/initialized")) == 1
    assert table.says(2, method="notifications/initialized") == []
    table.sharing.join(3)
    late = table.sharing.from_seat(3, encode(id=4, method="initialize", params=GREETING))
    assert heard(late) == [(3, {"jsonrpc": "2.0", "id": 4, "result": {"serverInfo": {"name": "x"}}})]
    assert not late.to_child


def test_a_refused_probe_is_refused_for_all_and_one_after_the_greeting_never_reaches_the_child() -> None:
    table = Table()
    [sent] = table.says(1, id=1, method="server/discover", params={})
    table.child(id=sent["id"], error={"code": -32601, "message": "what?"})
    again = heard(table.sharing.from_seat(2, encode(id=2, method="server/discover", params={})))
    assert again == [(2, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "what?"}})]
    fragile = Table()
    fragile.says(1, id=1, method="initialize", params=GREETING)
    out = fragile.sharing.from_seat(2, encode(id=2, method="server/discover", params={}))
    assert not out.to_child
    assert heard(out)[0][1]["error"]["code"] == -32601


def test_a_greeting_given_up_by_one_is_still_answered_to_the_other() -> None:
    table = Table()
    [sent] = table.says(1, id=1, method="server/discover", params={})
    table.says(2, id=2, method="server/discover", params={})
    assert table.says(1, method="notifications/cancelled", params={"requestId": 1}) == []
    assert [seat for seat, _ in table.child(id=sent["id"], result={})] == [2]


@pytest.mark.parametrize("method", ["notifications/tools/list_changed", "notifications/prompts/list_changed", "x/y"])
def test_what_concerns_everybody_is_told_to_everybody(method: str) -> None:
    assert [seat for seat, _ in Table().child(method=method)] == [1, 2]


def test_what_a_tool_was_seen_doing_is_told_once_and_that_the_file_changed_to_everybody() -> None:
    report = {"method": REPORT_METHOD, "params": {"what": "late", "tool": "write"}}
    assert [seat for seat, _ in Table().child(**report)] == [1]
    reloaded = {"method": REPORT_METHOD, "params": {"what": "reloaded", "tool": ""}}
    assert [seat for seat, _ in Table().child(**reloaded)] == [1, 2]


def test_an_update_is_told_to_all_and_only_the_last_to_leave_ends_a_subscription() -> None:
    table = Table()
    for seat in (1, 2):
        table.asks(seat, "resources/subscribe", uri="memo:a")
    updated = {"method": "notifications/resources/updated", "params": {"uri": "memo:a"}}
    assert [seat for seat, _ in table.child(**updated)] == [1, 2]
    out = table.sharing.from_seat(1, encode(id=9, method="resources/unsubscribe", params={"uri": "memo:a"}))
    assert heard(out) == [(1, {"jsonrpc": "2.0", "id": 9, "result": {}})]
    assert not out.to_child
    assert table.asks(2, "resources/unsubscribe", uri="memo:a")


def test_the_child_is_told_the_lowest_log_level_anybody_wants() -> None:
    table = Table()
    table.asks(1, "logging/setLevel", level="warning")
    table.asks(2, "logging/setLevel", level="debug")
    out = table.sharing.from_seat(1, encode(id=2, method="logging/setLevel", params={"level": "error"}))
    assert not out.to_child
    assert heard(out) == [(1, {"jsonrpc": "2.0", "id": 2, "result": {}})]


LOG = {"method": "notifications/message", "params": {"level": "info", "data": "secret"}}


def test_a_log_message_is_passed_on_only_where_it_is_certain_whose_it_is() -> None:
    table = Table()
    assert table.child(**LOG) == [], "nobody asked for anything"
    one = table.asks(1)
    assert [seat for seat, _ in table.child(**LOG)] == [1]
    other = table.asks(2)
    assert table.child(**LOG) == [], "two are under way"
    table.child(id=one, result={})
    assert table.child(**LOG) == [], "it may still be about the one before"
    table.clock.now += LATE_LOG_S
    assert [seat for seat, _ in table.child(**LOG)] == [2]
    table.child(id=other, result={})
    assert table.child(**LOG) == []
    assert table.sharing.unattributed_count == 4


def test_a_question_goes_to_the_only_worker_with_calls_and_its_answer_back() -> None:
    table = Table()
    question = {"id": "q1", "method": "elicitation/create", "params": {"message": "?"}}
    refused = table.sharing.from_child(encode(**question))
    assert json.loads(refused.to_child[0])["error"]["code"] == -32601
    table.asks(1)
    assert [(seat, told["id"]) for seat, told in table.child(**question)] == [(1, "q1")]
    assert table.says(2, id="q1", result={"action": "accept"}) == [], "it was not asked"
    assert table.says(1, id="q1", result={"action": "accept"})[0]["result"] == {"action": "accept"}
    assert table.says(1, id="q1", result={}) == [], "an answer counts once"
    table.asks(2)
    doubtful = table.sharing.from_child(encode(**question))
    assert json.loads(doubtful.to_child[0])["error"]["code"] == -32600


def test_a_call_given_up_lately_makes_a_question_doubtful_for_others() -> None:
    table = Table()
    question = encode(id="q1", method="elicitation/create", params={"message": "?"})
    table.asks(1, id_=4)
    table.says(1, method="notifications/cancelled", params={"requestId": 4})
    table.asks(2)
    assert not table.sharing.from_child(question).to_seats
    table.clock.now += STRAY_S
    assert [seat for seat, _ in heard(table.sharing.from_child(question))] == [2]


def test_a_question_to_a_worker_that_is_gone_is_answered_with_an_error() -> None:
    table = Table()
    table.asks(1)
    table.child(id=5, method="elicitation/create", params={})
    said = [json.loads(frame) for frame in table.sharing.leave(1).to_child]
    assert [one["error"]["code"] for one in said if one.get("id") == 5] == [-32603]


def test_a_ping_is_answered_for_all() -> None:
    out = Table().sharing.from_child(encode(id="p", method="ping"))
    assert json.loads(out.to_child[0]) == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert not out.to_seats


def test_what_belongs_to_a_listen_goes_to_its_worker_under_its_id() -> None:
    table = Table()
    first = table.asks(1, "subscriptions/listen", id_=9)
    second = table.asks(2, "subscriptions/listen", id_=9)
    params = {"uri": "memo:a", "_meta": {modern.SUB: second, "other": 1}}
    [(seat, told)] = table.child(method="notifications/resources/updated", params=params)
    assert (seat, told["params"]) == (2, {"uri": "memo:a", "_meta": {modern.SUB: 9, "other": 1}})
    [(seat, told)] = table.child(method="notifications/cancelled", params={"requestId": first})
    assert (seat, told["params"]["requestId"]) == (1, 9)
    assert table.child(method="x", params={"_meta": {modern.SUB: first}}) == [], "that listen is over"


def test_what_is_no_message_is_shown_to_one_worker() -> None:
    assert [seat for seat, _ in Table().sharing.from_child(b"{not json").to_seats] == [1]


def test_a_call_as_our_own_peer_writes_it_takes_the_short_way_to_the_same_end() -> None:
    table = Table()
    params = b'{"name":"echo","arguments":{"n":1.10e5}}'
    ids = []
    for seat in (1, 2):
        [sent] = table.sharing.from_seat(seat, messages.encode_request(b"7", "tools/call", params)).to_child
        assert sent.endswith(b',"method":"tools/call","params":' + params + b"}")
        ids.append(json.loads(sent)["id"])
    assert len(set(ids)) == 2
    [told] = table.says(1, method="notifications/cancelled", params={"requestId": 7})
    assert told["params"]["requestId"] == ids[0]
    assert [(seat, one["id"]) for seat, one in table.child(id=ids[1], result={})] == [(2, 7)]
