"""The section `cache`: its defaults, its ranges, and two marks that need room between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.model import Config
from pactgate.config.sections.cache import Cache, CacheRule
from tests.config.writing import loaded, paths, problems

DAY_MS = 86_400_000


def test_defaults_are_those_of_the_requirement_document() -> None:
    cache = Config().cache
    assert (cache.max_size_bytes, cache.max_entries, cache.default_ttl_ms) == (104_857_600, 10_000, 3_600_000)
    assert (cache.eviction_policy, cache.high_water_mark, cache.low_water_mark) == ("lru", 0.9, 0.7)
    assert (cache.cleanup_interval_ms, cache.tools) == (60_000, {})


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".toml"])
def test_a_whole_section_loads_from_every_format(suffix: str, tmp_path: Path) -> None:
    texts = {
        ".json": '{"cache": {"maxEntries": 5, "highWaterMark": 1, "lowWaterMark": 0.5, "tools": '
        '{"files.*": {"ttlMs": 0}, "crm.find": {}}}}',
        ".yaml": "cache:\n  maxEntries: 5\n  highWaterMark: 1\n  lowWaterMark: 0.5\n"
        "  tools:\n    files.*: {ttlMs: 0}\n    crm.find: {}\n",
        ".toml": "[cache]\nmaxEntries = 5\nhighWaterMark = 1\nlowWaterMark = 0.5\n"
        '[cache.tools]\n"files.*" = {ttlMs = 0}\n"crm.find" = {}\n',
    }
    tools = {"files.*": CacheRule(ttl_ms=0), "crm.find": CacheRule()}
    expected = Cache(max_entries=5, high_water_mark=1.0, low_water_mark=0.5, tools=tools)
    assert loaded(tmp_path, texts[suffix], suffix).cache == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"maxSizeBytes": 1023}, ["cache.maxSizeBytes"]),
        ({"maxEntries": 0}, ["cache.maxEntries"]),
        ({"defaultTtlMs": -1}, ["cache.defaultTtlMs"]),
        ({"defaultTtlMs": 31 * DAY_MS}, ["cache.defaultTtlMs"]),
        ({"evictionPolicy": "random"}, ["cache.evictionPolicy"]),
        ({"highWaterMark": 0.49}, ["cache.highWaterMark"]),
        ({"highWaterMark": 1.01}, ["cache.highWaterMark"]),
        ({"highWaterMark": "0.9"}, ["cache.highWaterMark"]),
        ({"highWaterMark": True}, ["cache.highWaterMark"]),
        ({"highWaterMark": None}, ["cache.highWaterMark"]),
        ({"lowWaterMark": 0.09}, ["cache.lowWaterMark"]),
        ({"lowWaterMark": 0.95}, ["cache.lowWaterMark"]),
        ({"cleanupIntervalMs": 99}, ["cache.cleanupIntervalMs"]),
        ({"tools": ["files.*"]}, ["cache.tools"]),
        ({"tools": {"files.*": 1000}}, ['cache.tools["files.*"]']),
        ({"tools": {"": {}}}, ['cache.tools[""]']),
        ({"tools": {"files.*": {"ttlMs": -1}}}, ['cache.tools["files.*"].ttlMs']),
        ({"tools": {"files.*": {"ttl": 5}}}, ['cache.tools["files.*"].ttl']),
        ({"maxBytes": 5000}, ["cache.maxBytes"]),
    ],
)
def test_what_is_out_of_range_is_a_problem(settings: dict[str, Any], expected: list[str], tmp_path: Path) -> None:
    assert paths(problems(tmp_path, {"cache": settings})) == expected


@pytest.mark.parametrize("text", [".nan", ".inf", "-.inf"])
def test_what_is_no_number_is_no_part_of_anything(text: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"cache:\n  highWaterMark: {text}\n", ".yaml")
    assert (problem.path, problem.line) == ("cache.highWaterMark", 2)


@pytest.mark.requirement("S1/CACHE-001")
@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"lowWaterMark": 0.8, "highWaterMark": 0.8}, "lowWaterMark"),
        ({"lowWaterMark": 0.9, "highWaterMark": 0.6}, "lowWaterMark"),
        ({"lowWaterMark": 0.9}, "lowWaterMark"),
        ({"highWaterMark": 0.7}, "highWaterMark"),
        ({"highWaterMark": 0.5}, "highWaterMark"),
    ],
)
def test_a_low_mark_that_is_not_below_the_high_one_is_a_problem(
    settings: dict[str, float], where: str, tmp_path: Path
) -> None:
    (problem,) = problems(tmp_path, {"cache": settings})
    assert problem.path == f"cache.{where}"
    assert problem.line
    assert problem.hint


def test_a_mark_that_is_wrong_by_itself_is_not_compared_as_well(tmp_path: Path) -> None:
    assert paths(problems(tmp_path, {"cache": {"lowWaterMark": 2, "highWaterMark": "x"}})) == [
        "cache.lowWaterMark",
        "cache.highWaterMark",
    ]


@pytest.mark.parametrize("section", [None, [], 5])
def test_a_section_that_is_no_table_is_one_problem(section: Any, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, {"cache": section})) == ["cache"]
