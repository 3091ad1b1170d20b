"""What every table of settings is made of. In a file of its own, so that sections outside `model` can be built on it."""

from __future__ import annotations

from msgspec import Struct


class Documented(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Settings that belong together: camelCase in files, snake_case in code, unknown keys refused."""
