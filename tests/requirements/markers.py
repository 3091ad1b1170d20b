"""Which test file proves which requirement, read from the sources, so that it is the same whichever tests are run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


class UnreadableMarkerError(Exception):
    """A requirement marker whose id is not a plain string can't be held against the manifest."""


@cache
def markers() -> dict[str, list[str]]:
    """Requirement id -> the test files that prove it, relative to the project, sorted."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS.parent).as_posix()
        for id_ in marked_ids(path.read_text(encoding="utf-8"), name):
            found.setdefault(id_, set()).add(name)
    return {id_: sorted(names) for id_, names in found.items()}


def marked_ids(source: str, name: str) -> Iterator[str]:
    """The ids in every `pytest.mark.requirement(...)` of one file, wherever pytest accepts a mark."""
    for node in ast.walk(ast.parse(source, name)):
        if not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement"
        ):
            continue
        if not (isinstance(node.func.value, ast.Attribute) and node.func.value.attr == "mark"):
            continue
        for argument in node.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise UnreadableMarkerError(f"{name}:{node.lineno}: write the requirement id as a plain string")
            yield argument.value
