"""The house lint finds what it is there to find; `make check` runs it over the sources."""

from __future__ import annotations

import pytest

from scripts import lint_failures, lint_house
from scripts.lint_sources import ROOT, Finding, Source


def package_file(text: str, name: str = "policy/x.py") -> Source:
    return Source(f"src/pactgate/{name}", text, name=name)


def about_failures(text: str) -> list[str]:
    """Findings in one file of the package. What the tables of the lint name is not there, and not what is asked for."""
    found = lint_failures.lint([package_file(text)])
    return [str(finding) for finding in found if finding.path.startswith("src/")]


@pytest.mark.requirement("S4/R1")
@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("raise KeyError(1)", "1: raises KeyError: make it a GatewayFailure, or add what becomes of it to BUILT_IN"),
        ("class LostError(Exception): ...", "1: no handler names LostError: catch it where it becomes a failure"),
        ("try: f()\nexcept asyncio.CancelledError: pass", "2: swallows a cancellation: raise it again"),
        ("try: f()\nexcept (OSError, TypeError): pass", "2: catches TypeError: add the reason to MAY_CATCH"),
        (
            "with suppress(Exception): f()",
            "1: suppresses every exception: catch it, with the reason beside it",
        ),
        (
            "X = (OSError, EOFError, LookupError, MemoryError, ValueError, ArithmeticError)",
            "1: is a broad except, spelt out: write `except Exception` and its reason",
        ),
    ],
)
def test_a_failure_that_could_get_lost_is_found(text: str, finding: str) -> None:
    assert about_failures(text) == [f"src/pactgate/policy/x.py:{finding}"]


@pytest.mark.requirement("S4/R1")
def test_a_failure_of_the_table_and_an_exception_caught_by_name_are_fine() -> None:
    assert not about_failures(
        "class GatewayFailure(Exception): ...\n"
        "class HereError(Exception): ...\n"
        "def go(): raise HereError\n"
        "try: go()\nexcept HereError as e: raise GatewayFailure from e\n"
        "try: go()\nexcept GatewayFailure: ...\n"
        "try: go()\nexcept asyncio.CancelledError: raise\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("async def f(): ...", "waits, in a layer that is pure"),
        ("print(1)", "calls print, in a layer that is pure"),
    ],
)
def test_a_pure_layer_that_waits_or_touches_the_world_is_found(text: str, message: str) -> None:
    found = list(lint_house.impure(package_file(text, "core/x.py")))
    assert found == [Finding("src/pactgate/core/x.py", 1, message)]
    assert not list(lint_house.impure(package_file(text)))


def test_a_task_nobody_holds_is_found() -> None:
    held = "async def f():\n  async with TaskGroup() as group:\n    group.create_task(g())\n  kept = loop.create_task(g())\n"
    assert not list(lint_house.dropped_tasks(package_file(held)))
    (found,) = lint_house.dropped_tasks(package_file("self._loop.create_task(g())"))
    assert found.message == "drops its task: keep it, and await or cancel it"


def test_a_module_without_tests_of_its_name_is_found() -> None:
    (found,) = lint_house.unproved(package_file("", "policy/nobody_tests_this.py"))
    assert found.message == "its tests are missing: tests/policy/test_nobody_tests_this.py"
    (_, found) = lint_house.unproved(package_file("", "conformance/rules/inv999_nothing.py"))
    assert found.message == "tests/conformance/fixtures/INV-999 has no capture fail_*.json"


def test_a_test_that_sleeps_is_found_and_a_program_may() -> None:
    text = "time.sleep(0.1)\nasyncio.sleep(0)"
    assert [found.line for found in lint_house.sleeping(Source("tests/test_x.py", text))] == [1]
    program = f"{text}\nif __name__ == '__main__': main()"
    assert not list(lint_house.sleeping(Source("tests/support/server.py", program)))


def test_a_place_on_one_machine_is_found_with_its_line() -> None:
    path = ROOT / "tests" / "somewhere.txt"
    text = "fine\n/ho" + "me/ada/x\n/usr/bin/env\n"
    assert [(found.path, found.line) for found in lint_house.named_places_in(path, text)] == [
        ("tests/somewhere.txt", 2)
    ]
