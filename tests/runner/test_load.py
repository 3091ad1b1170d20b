"""A file of tools: all of it, or everything that is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pactgate.runner.load import LoadError, LoadProblem, load, neighbours, problems_of
from tests.runner.driving import write_tools


@pytest.fixture(autouse=True)
def _importing_from_there(tmp_path: Path) -> Iterator[None]:
    sys.path.insert(0, str(tmp_path))
    before = set(sys.modules)
    yield
    sys.path.remove(str(tmp_path))
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refused(path: Path) -> list[str]:
    with pytest.raises(LoadError) as wrong:
        load(path)
    return [f"{problem.line} {problem.tool}: {problem.message}" for problem in wrong.value.problems]


def test_tools_keep_the_order_of_the_file_and_its_docstring_is_what_it_is_about(tmp_path: Path) -> None:
    path = tmp_path / "kit.py"
    path.write_text(
        '"""A kit."""\nfrom pactgate import tool\n'
        + "".join(
            f'@tool(category="query", idempotent=True, effects=[])\ndef {name}() -> None:\n    "x"\n' for name in "zab"
        )
    )
    box = load(path)
    assert (list(box.tools), box.about, box.files) == (["z", "a", "b"], "A kit.", (str(path),))


@pytest.mark.requirement("S2/MCP-004")
def test_every_problem_of_every_tool_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    path = write_tools(
        tmp_path,
        '@tool(category="x", idempotent=2, effects=["y"])\ndef one() -> None:\n    "x"\n'
        '@tool(**query)\ndef two(a):\n    "x"\n'
        '@tool(category="query", idempotent=False, effects=[], errors={"BUSY": Retryable("x")})\n'
        'def three() -> None:\n    "x"\n',
    )
    said = refused(path)
    first = path.read_text().splitlines().index('@tool(category="x", idempotent=2, effects=["y"])') + 1
    assert [line.partition(":")[0] for line in said] == [
        *[f"{first} one"] * 3,
        *[f"{first + 3} two"] * 2,
        f"{first + 6} three",
    ]


def test_two_tools_of_one_name_are_refused_though_python_would_take_the_second(tmp_path: Path) -> None:
    body = '@tool(**query)\ndef one() -> None:\n    "x"\n'
    (said,) = refused(write_tools(tmp_path, body + body))
    assert "already" in said


def test_a_file_without_tools_is_none(tmp_path: Path) -> None:
    assert "declares no tool" in refused(write_tools(tmp_path, ""))[0]
    (tmp_path / "kit.txt").write_text("")
    assert "not a Python file" in refused(tmp_path / "kit.txt")[0]


def test_tools_of_a_module_beside_it_are_served_with_it_and_watched(tmp_path: Path) -> None:
    write_tools(tmp_path, '@tool(**query)\ndef shared() -> None:\n    "x"\n', "shared_kit.py")
    path = write_tools(tmp_path, "from shared_kit import shared\n")
    box = load(path)
    assert list(box.tools) == ["shared"]
    assert set(box.files) == {str(path), str(tmp_path / "shared_kit.py")}
    assert neighbours(path)[0] == str(path)


def test_types_may_be_defined_below_their_use(tmp_path: Path) -> None:
    body = '@tool(**query)\ndef give() -> Later:\n    "x"\nclass Later(Struct):\n    a: int = 1\n'
    assert list(load(write_tools(tmp_path, body)).tools) == ["give"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("x = 1\n1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_what_the_code_of_a_file_raises_is_said_with_its_line(tmp_path: Path, body: str, said: str) -> None:
    path = write_tools(tmp_path, body)
    with pytest.raises((SyntaxError, ZeroDivisionError, SystemExit)) as wrong:
        load(path)
    (problem,) = problems_of(wrong.value, path)
    assert said in problem.message
    assert problem.line == len(path.read_text().splitlines())


def test_a_problem_in_words() -> None:
    assert str(LoadProblem("a.py", 3, "x", "No.")) == "a.py:3: x: No."
    assert str(LoadProblem("a.py", 0, "", "No.")) == "a.py: No."
