"""What a server says beside its answers reaches whoever it is about, and nobody else. (Whole conversations: `test_peer`.)"""

from __future__ import annotations

import json
import time
from typing import Any

from msgspec import Raw

from pactgate.core.contract import REQUEST_KEY
from pactgate.protocol import modern
from pactgate.protocol.messages import Notification, encode_json
from pactgate.upstreams.notification_router import NotificationRouter, attributed, member_id


def notice(method: str, **params: Any) -> Notification:
    return Notification(f"notifications/{method}", encode_json(params))


class Listener:
    def __init__(self) -> None:
        self.ended: list[str | int] = []
        self.heard = NotificationRouter(self.ended.append, time.monotonic)
        self.progress: list[dict[str, Raw]] = []
        self.logs: list[Notification] = []
        self.changes: list[Notification] = []


async def test_progress_goes_by_its_token_until_the_request_is_forgotten() -> None:
    listener = Listener()
    listener.heard.listen(1, listener.progress.append, None)
    assert listener.heard.take(notice("progress", progressToken=1, progress=5), None, 1)
    assert listener.heard.take(notice("progress", progressToken=2, progress=5), None, 1)
    listener.heard.forget(1)
    assert listener.heard.take(notice("progress", progressToken=1, progress=6), None, 1)
    assert listener.progress == [{"progress": Raw(b"5")}]


async def test_a_log_message_goes_to_the_request_whose_stream_brought_it_or_to_the_only_one() -> None:
    listener = Listener()
    listener.heard.note_owner("a")
    listener.heard.listen(1, None, listener.logs.append)
    assert listener.heard.take(notice("message", level="info", data=1), 1, 2)
    assert listener.heard.take(notice("message", level="info", data=2), None, 1)
    assert listener.heard.take(notice("message", level="info", data=3), None, 2)
    listener.heard.note_owner("b")
    assert listener.heard.take(notice("message", level="info", data=4), None, 1)
    assert [log.params for log in listener.logs] == [b'{"level":"info","data":1}', b'{"level":"info","data":2}']
    assert listener.heard.unattributed_logs == 2


async def test_changes_go_to_the_listen_they_are_tagged_with_and_its_end_is_told() -> None:
    listener = Listener()
    assert not listener.heard.take(notice("tools/list_changed"), None, 0)
    listener.heard.listen(3, None, None, listener.changes.append)
    tagged = notice("tools/list_changed", _meta={modern.SUBSCRIPTION_ID_KEY: 3})
    assert listener.heard.take(tagged, None, 1)
    assert listener.heard.take(notice("tools/list_changed"), 3, 1)
    assert not listener.heard.take(notice("tools/list_changed", _meta={modern.SUBSCRIPTION_ID_KEY: 4}), None, 1)
    assert listener.changes == [tagged, notice("tools/list_changed")]
    assert not listener.heard.take(notice("cancelled", requestId=9), None, 1)
    assert listener.heard.take(notice("cancelled", requestId=3), None, 1)
    assert listener.ended == [3]


def test_an_id_that_is_none_names_nothing() -> None:
    assert member_id(notice("cancelled", requestId=1), "requestId") == 1
    assert member_id(notice("cancelled", requestId=[1]), "requestId") is None
    assert member_id(Notification("x", b"[]"), "requestId") is None
    assert member_id(Notification("x"), "requestId") is None


def test_a_log_message_of_our_own_runner_names_its_request_and_loses_the_name() -> None:
    said = notice("message", level="info", data="x", _meta={REQUEST_KEY: 7})
    plain, request = attributed(said)
    assert (json.loads(plain.params or b""), request) == ({"level": "info", "data": "x"}, 7)
    for strange in ({}, {"_meta": 3}, {"_meta": {REQUEST_KEY: "7"}}):
        assert attributed(notice("message", level="info", **strange))[1] is None
