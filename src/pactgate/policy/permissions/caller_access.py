"""What one class of callers may use of one state of the catalog: the answer that every path asks for.

A tool or prompt without a grant does not exist for these callers. A URI need not be listed to be read, so it is decided when it comes.
A URI whose path a server may read in another way than the gateway (dot segments, encoded separators) is nobody's, unless a list has it.
Must not: raise, or know how a caller came here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.context import AppliedRule
from pactgate.core.values import Tool
from pactgate.policy.permissions.rules import UNRESTRICTED, CallerKey, Denied, Grant, Permissions
from pactgate.policy.permissions.selection import Subject

_AMBIGUOUS: Final = re.compile(r"%2e|%2f|%5c|\\|(?:^|/)\.{1,2}(?:/|$|[?#])", re.IGNORECASE)
_MAX_URIS: Final = 1024


class Shows(Protocol):
    """A view: what it does not show can't be read in it."""

    def has_uri(self, server: str, full_uri: str) -> bool: ...


class CallerAccess:
    """Without permissions, everything is allowed that the view shows.

    `tools` and `prompts` have the grants by full name, `listed` the full URIs of resources and templates that are allowed."""

    def __init__(
        self,
        permissions: Permissions | None,
        key: CallerKey | None,
        *,
        tools: Mapping[str, Grant],
        prompts: Mapping[str, Grant],
        listed: Collection[str],
        view: Shows | None = None,
    ) -> None:
        self.tools = tools
        self.prompts = prompts
        self._permissions = permissions
        self._key = key
        self._listed = frozenset(listed)
        self._view = view
        self._uris: dict[str, Grant | Denied] = {}

    def of_uri(self, server: str, uri: str) -> Grant | Denied:
        """Whether a resource may be read, by its full URI."""
        known = self._uris.get(uri)
        if known is None:
            if len(self._uris) >= _MAX_URIS:
                self._uris.clear()
            known = self._uris[uri] = self._decide_uri(server, uri)
        return known

    def has_whole(self, server: str) -> bool:
        """Whether methods outside the protocol may pass to a server: only where nothing of it is denied or left out by a view."""
        if self._permissions is None or self._key is None or self._view is not None:
            return self._view is None
        return self._permissions.has_whole(self._key, server)

    def may_use(self, tool: Tool) -> bool:
        """Whether a tool may still be used, also one of a server that is away. The gateway's own tools are no matter of permissions."""
        return tool.server == OWN_SERVER_ID or self.why_denied(Subject.of(tool)) is None

    def why_denied(self, subject: Subject) -> Denied | None:
        """By which rule something is denied, or that none allows it; None if it is allowed."""
        if self._permissions is None or self._key is None:
            return None
        found = self._permissions.decide(self._key, subject)
        return found if isinstance(found, Denied) else None

    def _decide_uri(self, server: str, uri: str) -> Grant | Denied:
        is_shown = self._view is None or self._view.has_uri(server, uri)
        if not is_shown or (_AMBIGUOUS.search(uri) and uri not in self._listed and not self.has_whole(server)):
            return Denied(None, AppliedRule() if self._permissions is None else self._permissions.nothing)
        if self._permissions is None or self._key is None:
            return UNRESTRICTED
        found = self._permissions.decide(self._key, Subject(server, uri))
        if isinstance(found, Grant) and found.reader is not None:
            decided = found.decide()  # a read has no arguments
            return decided if isinstance(decided, Denied) else Grant(decided)
        return found
