"""Several workers seen as one gateway."""

from __future__ import annotations

from typing import Any

from pactgate.metrics import Metrics
from pactgate.workers.gathered import AllStories, add_metrics, add_snapshots, seen_by_others

ROWS = [{"serverId": "files", "status": "connected", "toolCount": 3, "resourceCount": 0, "attempts": 1}]


def samples(text: bytes) -> dict[str, float]:
    pairs = [line.rpartition(" ") for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in pairs}


def test_counters_add_up_and_what_is_the_same_everywhere_is_not_added() -> None:
    own = Metrics().render(ROWS, 5.5, {"pactgate_cache_hits": 2})
    other = Metrics().render(ROWS, 7.25, {"pactgate_cache_hits": 3})
    own += b'# TYPE x counter\nx{a="1"} 4\n'
    other += b'# TYPE x counter\nx{a="1"} 5\nx{a="2"} 6.5\n# TYPE y counter\ny 1\n'
    merged = add_metrics(own, [other])
    seen = samples(merged)
    assert seen["pactgate_cache_hits"] == 5
    assert (seen['x{a="1"}'], seen['x{a="2"}'], seen["y"]) == (9, 6.5, 1)
    assert seen['pactgate_server_status{server="files",status="connected"}'] == 1
    assert seen['pactgate_server_tools{server="files"}'] == 3
    assert seen["pactgate_uptime_seconds"] == 7.25
    lines = merged.decode().splitlines()
    assert len([line for line in lines if line == "# TYPE x counter"]) == 1
    assert lines.index("# TYPE x counter") < lines.index('x{a="2"} 6.500000') < lines.index("# TYPE y counter")


def test_one_worker_s_metrics_stay_what_they_were() -> None:
    text = Metrics().render(ROWS, 5.0, {"pactgate_calls_held": 1})
    assert samples(add_metrics(text, [])) == samples(text)


def snapshot(calls: int, sessions: int) -> dict[str, Any]:
    return {
        "uptimeMs": calls * 1000,
        "calls": {"total": calls, "failed": 1},
        "cache": {"hits": calls, "pressure": "none"},
        "servers": [{"serverId": "files", "status": "connected", "callerSessions": sessions}],
        "tools": [{"fullName": "files.read"}],
    }


def test_snapshots_add_up_what_is_counted_and_leave_the_rest() -> None:
    own = snapshot(3, 1)
    merged = add_snapshots(
        own, [seen_by_others(snapshot(4, 2)), {"uptimeMs": 0, "calls": {}, "cache": {}, "servers": []}]
    )
    assert merged["calls"] == {"total": 7, "failed": 2}
    assert merged["cache"] == {"hits": 7, "pressure": "none"}
    assert merged["servers"][0]["callerSessions"] == 3
    assert merged["tools"] == own["tools"]
    assert merged["uptimeMs"] == 4000
    assert own == snapshot(3, 1), "what was given is left as it was"


class Own:
    def tell(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None:
        return {"requestId": "own"} if request_id == "own" else None

    def latest(self, count: int, subject: str | None = None) -> list[dict[str, Any]]:
        return [{"time": "2026-01-01T00:00:02Z", "subject": "ann"}][:count]


def test_calls_of_all_workers_are_one_list_in_order_and_each_caller_sees_its_own() -> None:
    stories = AllStories(Own())
    stories.rows = [
        {"time": "2026-01-01T00:00:03Z", "subject": "bob"},
        {"time": "2026-01-01T00:00:01Z", "subject": "ann"},
    ]
    assert [row["time"][18] for row in stories.latest(10)] == ["3", "2", "1"]
    assert [row["time"][18] for row in stories.latest(10, "ann")] == ["2", "1"]
    assert len(stories.latest(1)) == 1


def test_a_story_of_another_worker_is_told_to_its_caller_and_to_admins_only() -> None:
    stories = AllStories(Own())
    stories.stories["far"] = {"requestId": "far", "subject": "bob"}
    assert stories.tell("own") == {"requestId": "own"}
    assert stories.tell("far") == stories.tell("far", "bob") == {"requestId": "far", "subject": "bob"}
    assert stories.tell("far", "ann") is None
    assert stories.tell("nowhere") is None
