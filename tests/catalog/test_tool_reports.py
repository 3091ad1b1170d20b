"""Reports of the runner of Python tools become events; what a server says beside them goes where it always went."""

from __future__ import annotations

from pactgate.catalog.tool_reports import ToolReports
from pactgate.core.contract import REPORT_METHOD
from pactgate.core.events import EffectsExceeded, Event, ToolReported
from pactgate.protocol.messages import Notification, encode_json


def report(**members: object) -> Notification:
    return Notification(REPORT_METHOD, encode_json(members))


def test_a_report_is_masked_and_told_and_why_a_file_was_not_loaded_is_kept_until_it_was() -> None:
    told: list[Event] = []
    reports = ToolReports("notes", told.append, lambda text: text.replace("secret", "***"), otherwise=lambda _: None)
    reports.notice(report(what="not_reloaded", text="secret broke it"))
    assert reports.not_reloaded == "*** broke it"
    reports.notice(report(what="crashed", tool="count", text="KeyError"))
    assert reports.not_reloaded == "*** broke it"
    reports.notice(report(what="reloaded"))
    assert reports.not_reloaded is None
    assert told == [
        ToolReported("notes", "", "not_reloaded", "*** broke it"),
        ToolReported("notes", "notes.count", "crashed", "KeyError"),
        ToolReported("notes", "", "reloaded", ""),
    ]


def test_undeclared_operations_are_an_event_of_their_own() -> None:
    told: list[Event] = []
    reports = ToolReports("notes", told.append, str, otherwise=lambda _: None)
    operations = [{"kind": "network", "what": "connect", "target": "evil.example:443"}]
    reports.notice(report(what="late_operations", tool="count", operations=operations))
    assert [type(event) for event in told] == [EffectsExceeded]


def test_other_notifications_and_reports_that_can_not_be_read_are_no_events() -> None:
    told, passed_on = list[Event](), list[Notification]()
    reports = ToolReports("notes", told.append, str, otherwise=passed_on.append)
    changed = Notification("notifications/tools/list_changed")
    for notification in (changed, Notification(REPORT_METHOD, b"[")):
        reports.notice(notification)
    assert (told, passed_on) == ([], [changed])
