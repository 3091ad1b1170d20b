"""The sections of the configuration file, and the parts every struct of settings is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from pactgate.config import value_checks


class Section(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Settings that belong together: camelCase in files, snake_case in code, unknown keys refused."""


def doc(description: str, **bounds: Any) -> Meta:
    """One sentence about a setting, and its range. The reference page and the JSON Schema show both."""
    return Meta(description=description, **bounds)


def ignored(description: str) -> Meta:
    """A setting of clients that is accepted and has no effect here."""
    return Meta(description=description, extra={"ignored": True})


def path_type(is_path: Callable[[str], bool]) -> Meta:
    """A string that names a file or folder where `is_path` says so; the loader makes it absolute."""
    extra = {"expand": True, "check": value_checks.check_program, "is_path": is_path}
    return Meta(min_length=1, max_length=500, extra=extra)


Folder = Annotated[str, path_type(lambda _: True)]
"""The path of a file or folder."""
Secret = Annotated[
    str, Meta(min_length=1, max_length=500, extra={"expand": True, "secret": True, "check": value_checks.check_token})
]
"""A token or key. It is masked in all output."""
