"""What `check` warns of between API keys and `callers`: a group that no rule looks at gives nothing, a key that is not there is nobody."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.config.model import Config
from pactgate.config.problems import ConfigProblem, nearest, show
from pactgate.state.key_file import KeyRing


def warnings_of_keys(config: Config, ring: KeyRing | None) -> Iterator[ConfigProblem]:
    keys = () if ring is None else ring.keys
    names = {key.name for key in keys}
    for class_name, one in config.callers.items():
        for name in one.keys:
            if name not in names:
                close = nearest(name, names)
                hint = f'Did you mean "{close}"?' if close else f"Make it with: pactgate keys add {name}."
                yield ConfigProblem(f"callers.{class_name}.keys", f"There is no key {show(name)}.", hint)
    for key in keys:
        for group in key.groups:
            if not _is_named(group, config):
                hint = "Name it in groups of a class, or in a condition on caller.groups."
                yield ConfigProblem(
                    "auth.keys", f"The key {show(key.name)} has the group {show(group)}, which no rule looks at.", hint
                )


def _is_named(group: str, config: Config) -> bool:
    """Whether a class names a group, or a condition has it as a text."""
    if any(group in one.groups for one in config.callers.values()):
        return True
    conditions = [text for rule in config.permissions for text in (rule.when, rule.unless) if text is not None]
    return any(f"{quote}{group}{quote}" in text for text in conditions for quote in "'\"")
