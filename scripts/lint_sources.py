"""What the house lint reads: sources with their syntax trees, and small questions about them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "src" / "pactgate"
TESTS: Final = ROOT / "tests"


class Finding(NamedTuple):
    """One breach of a rule. `path` is relative to the project, so that an editor can jump there."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Source:
    """One Python file. `name` is its path inside the package or inside the project."""

    def __init__(self, path: str, text: str, *, name: str | None = None) -> None:
        self.path = path
        self.name = path if name is None else name
        self.text = text

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def finding(self, node: ast.AST, message: str) -> Finding:
        return Finding(self.path, getattr(node, "lineno", 1), message)


def package_sources() -> list[Source]:
    """Every module of the package, named by its path inside the package."""
    return [
        Source(in_project(path), path.read_text(encoding="utf-8"), name=path.relative_to(PACKAGE).as_posix())
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def test_sources() -> list[Source]:
    return [Source(in_project(path), path.read_text(encoding="utf-8")) for path in sorted(TESTS.rglob("*.py"))]


def in_project(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def names(node: ast.expr | None) -> list[str]:
    """The last part of each name in an expression such as `Exception`, `builtins.Exception` or `(A, b.C)`."""
    if isinstance(node, ast.Tuple):
        return [name for element in node.elts for name in names(element)]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def called(node: ast.AST) -> str | None:
    """The last part of the name that is called: `asyncio.sleep(0)` is a call of "sleep"."""
    return next(iter(names(node.func)), None) if isinstance(node, ast.Call) else None


def handlers(source: Source) -> Iterator[ast.ExceptHandler]:
    return (node for node in source.nodes if isinstance(node, ast.ExceptHandler))
