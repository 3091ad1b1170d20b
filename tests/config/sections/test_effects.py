"""The declaration of effects: what may be written, where paths start, and what is only worth a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.effects import Effects
from tests.config.writing import loaded, paths, problems, remote, server


def test_nothing_is_declared_unless_it_is_written(tmp_path: Path) -> None:
    assert loaded(tmp_path, server()).servers["files"].effects is None
    assert loaded(tmp_path, server(effects={})).servers["files"].effects == Effects()


@pytest.mark.requirement("S2/MCP-002")
def test_a_declaration_allows_nothing_by_itself_and_is_enforced() -> None:
    effects = Effects()
    assert not any((effects.read, effects.write, effects.connect, effects.bind, effects.run, effects.sockets))
    assert effects.enforce
    assert not effects.best_effort


def test_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    written = {"read": ["data", "/etc"], "write": ["./data/../data", "${HOME}/data"], "run": ["git", "bin/tool"]}
    config = loaded(tmp_path, server(effects=written), HOME=str(tmp_path))
    effects = config.servers["files"].effects
    assert effects is not None
    data = str(tmp_path / "data")
    assert (effects.read, effects.write) == ((data, "/etc"), (data, data))
    assert effects.run == ("git", str(tmp_path / "bin" / "tool"))


@pytest.mark.parametrize(("run", "expected"), [(True, True), (False, False), ([], ()), (["git"], ("git",))])
def test_starting_programs_is_a_yes_a_no_or_a_list(run: Any, expected: Any, tmp_path: Path) -> None:
    effects = loaded(tmp_path, server(effects={"run": run})).servers["files"].effects
    assert effects is not None
    assert effects.run == expected


def test_a_path_that_does_not_exist_is_a_warning(tmp_path: Path) -> None:
    written = {"read": ["/etc", "gone"], "write": ["/no/such"], "run": ["no-such-program", "/no/program"]}
    warnings = loaded(tmp_path, server(effects=written)).warnings
    start = "mcpServers.files.effects"
    assert paths(warnings) == [f"{start}.read[1]", f"{start}.write[0]", f"{start}.run[1]"]
    assert all("does not exist" in warning.message for warning in warnings)


@pytest.mark.parametrize(
    ("effects", "where"),
    [
        ([], ""),
        ({"reads": []}, ".reads"),
        ({"read": "/data"}, ".read"),
        ({"read": ["~/data"]}, ".read[0]"),
        ({"read": [""]}, ".read[0]"),
        ({"write": ["a\nb"]}, ".write[0]"),
        ({"write": ["${MISSING}"]}, ".write[0]"),
        ({"write": ["x"] * 65}, ".write"),
        ({"connect": [0]}, ".connect[0]"),
        ({"connect": ["443"]}, ".connect[0]"),
        ({"bind": [65536]}, ".bind[0]"),
        ({"run": "git"}, ".run"),
        ({"run": None}, ".run"),
        ({"run": [True]}, ".run[0]"),
        ({"run": ["~/tool"]}, ".run[0]"),
        ({"sockets": 1}, ".sockets"),
        ({"enforce": "yes"}, ".enforce"),
    ],
)
def test_what_can_not_be_meant_is_a_problem(effects: Any, where: str, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, server(effects=effects))) == [f"mcpServers.files.effects{where}"]


@pytest.mark.parametrize("effects", [{}, {"read": ["/etc"]}])
def test_effects_belong_to_a_program_we_start(effects: dict[str, Any], tmp_path: Path) -> None:
    assert paths(problems(tmp_path, remote(effects=effects))) == ["mcpServers.crm.effects"]


def test_a_declared_folder_with_files_of_the_gateway_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    warnings = loaded(tmp_path, server(effects={"read": ["data", "."], "write": ["data"]})).warnings
    assert paths(warnings) == ["mcpServers.files.effects.read[1]"]
    assert "can read files of the gateway" in warnings[0].message
    trusted = server(effects={"read": ["."], "enforce": False})
    assert loaded(tmp_path, trusted).warnings == ()


@pytest.mark.parametrize(
    ("memory", "expected"), [("512MiB", 2**29), ("1GiB", 2**30), ("16384KiB", 2**24), (2**24, 2**24)]
)
def test_memory_is_a_number_of_bytes_or_has_a_unit(memory: Any, expected: int, tmp_path: Path) -> None:
    effects = loaded(tmp_path, server(effects={"memory": memory, "processes": 20})).servers["files"].effects
    assert effects is not None
    assert (effects.memory_bytes, effects.processes) == (expected, 20)
    assert Effects().memory_bytes == 0


@pytest.mark.parametrize(
    ("effects", "where"),
    [
        ({"memory": "512"}, "memory"),
        ({"memory": "512MB"}, "memory"),
        ({"memory": "1KiB"}, "memory"),
        ({"memory": 1}, "memory"),
        ({"memory": 1.5}, "memory"),
        ({"memory": "512MiB", "enforce": False}, "memory"),
        ({"processes": 0}, "processes"),
        ({"processes": "20"}, "processes"),
        ({"processes": 20, "enforce": False}, "processes"),
    ],
)
def test_a_bound_that_can_not_be_meant_is_a_problem(effects: dict[str, Any], where: str, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, server(effects=effects))) == [f"mcpServers.files.effects.{where}"]
