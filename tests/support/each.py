"""One test for a whole table: for hundreds of cases that take less time than pytest needs for a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


def each(names: str | tuple[str, ...], table: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `pytest.mark.parametrize`, in one test, which ends with the first case that fails and names it.

    Must not: stand above a test that can't be called twice with the same fixtures, such as `tmp_path`.
    """
    known = (names,) if isinstance(names, str) else names
    cases = [dict(zip(known, (case,) if isinstance(names, str) else case, strict=True)) for case in table]
    assert cases, "an empty table proves nothing"

    def of_all(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        fixtures = [given for name, given in signature.parameters.items() if name not in known]

        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def whole(**given: Any) -> None:
                for case in cases:
                    with naming(**case):
                        await test(**given, **case)

        else:

            @wraps(test)
            def whole(**given: Any) -> None:
                for case in cases:
                    with naming(**case):
                        test(**given, **case)

        vars(whole)["__signature__"] = signature.replace(parameters=fixtures)
        return whole

    return of_all


@contextmanager
def naming(**case: Any) -> Iterator[None]:
    """What fails in here says in which case."""
    try:
        yield
    except BaseException as problem:
        problem.add_note("with " + ", ".join(f"{name}={value!r:.300}" for name, value in case.items()))
        raise
