"""The section `lock`: what happens when definitions of a server are not those of the lock file.

The lock file stands beside the configuration; `definition_lock` reads it. Must not: look at a definition.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pactgate.config.sections import Section, doc

LockMode = Literal["off", "report", "hold", "refuse"]


class LockSection(Section, frozen=True, kw_only=True):
    """Definitions of tools, prompts and resources that were approved: `pactgate lock` writes them into a file beside this one."""

    mode: Annotated[
        LockMode,
        doc(
            "What happens to definitions that are not those of the lock file: `report` names them in log, metrics and status; `hold` also "
            "hides them from clients and refuses their calls; `refuse` does so with every tool of the server. With `hold` and `refuse` "
            "the gateway does not start without its lock file."
        ),
    ] = "off"
