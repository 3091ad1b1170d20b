from __future__ import annotations

from bench.goals import AIMS, GOALS
from bench.load import LoadResult
from bench.measurements import GatewayStart, Measurements, Results, check_goals, figures
from bench.report import aims, goals, remeasured, table
from bench.workloads import FEW, MANY, MIB, NOT_RECORDED, OVER_MCP, OVER_REST, RECORDED, WORKLOADS


def measured(cpu_us: float, p50_us: float = 100.0, calls_per_s: float = 9000.0) -> LoadResult:
    return LoadResult(1000, 0, "", calls_per_s, p50_us, p50_us * 2, cpu_us, 200)


def missed(results: Results, starts: list[GatewayStart] | None = None) -> list[str]:
    judged = check_goals(Measurements(results, starts or []), GOALS)
    return [result.goal.title for result in judged if not result.is_met]


def test_a_goal_is_judged_by_the_median_of_the_rounds() -> None:
    assert missed({"mixed-32": {"pactgate": [measured(50), measured(59), measured(900)]}}) == []
    assert missed({"mixed-32": {"pactgate": [measured(50), measured(61), measured(900)]}}) != []


def test_what_was_not_measured_is_not_judged() -> None:
    measurements = Measurements({"list-23": {"pactgate": [measured(500)]}})
    assert check_goals(measurements, GOALS) == check_goals(measurements, AIMS) == []


def test_growth_with_servers_is_the_median_ratio_of_neighbouring_rounds() -> None:
    few, many = [measured(100), measured(200), measured(100)], [measured(105), measured(212), measured(300)]
    assert figures(Measurements({"flat": {FEW.label: few, MANY.label: many}})).many_to_few == 1.06


def test_a_rest_tool_is_held_against_an_mcp_tool_of_the_same_run() -> None:
    within = {"rest-32": {OVER_MCP.label: [measured(100)], OVER_REST.label: [measured(159)]}}
    assert missed(within) == []
    beyond = {"rest-32": {OVER_MCP.label: [measured(100)], OVER_REST.label: [measured(161)]}}
    assert missed(beyond) == ["REST call over MCP call, more CPU"]


def test_memory_and_start_have_goals() -> None:
    assert missed({}, [GatewayStart(0.4, 45 * MIB, 40 * MIB)]) == []
    assert missed({}, [GatewayStart(1.2, 75 * MIB, 70 * MIB)]) == [
        "resident memory, idle",
        "start to first answered call",
    ]


def test_mixed_calls_have_a_goal_beside_nginx_in_both_eras() -> None:
    rows = {"nginx": [measured(20)], "pactgate": [measured(59)]}
    assert missed({"mixed-32": rows, "mixed-32-modern": rows}) == []
    dear = {"nginx": [measured(19)], "pactgate": [measured(59)]}
    assert missed({"mixed-32": dear, "mixed-32-modern": dear}) == [
        "mixed, 32 clients (legacy), CPU over nginx's",
        "mixed, 32 clients (modern), CPU over nginx's",
    ]


def test_an_aim_that_is_not_reached_is_reported_and_is_no_missed_goal() -> None:
    results = {"recorded": {NOT_RECORDED.label: [measured(50)], RECORDED.label: [measured(71)]}}
    assert missed(results) == []
    said = aims(check_goals(Measurements(results), AIMS))
    assert "not yet  recording both sides, more CPU per call: 21.00 us (at most 20 us)" in said


def test_an_aim_over_a_peer_wants_at_least_so_many_times_its_calls() -> None:
    rows = {"pactgate": [measured(60, calls_per_s=16_000)], "fastmcp": [measured(27_000, calls_per_s=35)]}
    over = {v.goal.title: v for v in check_goals(Measurements({"mixed-32": rows}), AIMS)}[
        "calls/s over FastMCP's default"
    ]
    assert over.is_met
    assert round(over.value) == 457


def test_memory_per_further_server_is_an_aim() -> None:
    measurements = Measurements(
        starts=[GatewayStart(0.3, 40 * MIB, 30 * MIB)], further_server_bytes=[0.3 * MIB, 0.1 * MIB, 0.19 * MIB]
    )
    assert "reached  resident memory per further HTTP server: 0.19 MiB (at most 0.2 MiB)" in aims(
        check_goals(measurements, AIMS)
    )


def test_the_table_compares_with_the_direct_call_and_with_nginx() -> None:
    rows = {"direct": [measured(10, 70)], "nginx": [measured(20, 150)], "pactgate": [measured(60, 230)]}
    line = next(line for line in table(WORKLOADS, Measurements({"mixed-32": rows})).splitlines() if "pactgate" in line)
    assert line.split() == ["pactgate", "60.0", "3.0", "6.0", "230", "+160", "460", "9000", "0"]


def test_a_missed_goal_stands_out() -> None:
    judged = check_goals(Measurements(starts=[GatewayStart(1.2, 45 * MIB, 40 * MIB)]), GOALS)
    assert "MISSED  start to first answered call: 1.20 s (at most 0.4 s)" in goals(judged)


def test_a_goal_met_only_when_measured_again_still_shows_its_first_figure() -> None:
    first = check_goals(Measurements(starts=[GatewayStart(1.2, 45 * MIB, 40 * MIB)]), GOALS)
    assert "start to first answered call: 1.20 s at first" in remeasured([v for v in first if not v.is_met])
