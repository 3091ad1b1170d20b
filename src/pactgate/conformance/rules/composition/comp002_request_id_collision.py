"""COMP-002."""

from __future__ import annotations

from itertools import combinations

from pactgate.conformance.bounded import Key
from pactgate.conformance.composition import Composition, RecordedServer
from pactgate.conformance.rule import CompositionRule, CompositionSeverity, quoted

_SHOWN_IDS = 5


class RequestIdCollision(CompositionRule):
    """No two servers are sent the same JSON-RPC request id.

    What it checks
        The ids of the client's requests towards different servers are disjoint; 1 and "1" are different ids, and
        notifications have none. Where all sessions concerned say which transport they used (`transport_id`) and it is not the
        same one, shared ids are harmless and only mentioned.

    Why
        On one shared transport the answer to a reused id can't be assigned to one request.

    How to fix
        Give each server a transport of its own, or number requests across all servers.

    Reference
        Conformance invariants, Multi-server composition safety.
    """

    code = "COMP-002"
    spec = "basic#requests"
    kind = "request_id_collision"

    def check(self, composition: Composition) -> None:
        groups: dict[tuple[RecordedServer, ...], list[Key]] = {}
        for key, holders in composition.shared_ids():
            groups.setdefault(tuple(holders), []).append(key)
        for servers, keys in groups.items():
            is_shared = any(not one.is_apart_from(other) for one, other in combinations(servers, 2))
            ids = [quoted(key) for key in keys[:_SHOWN_IDS] if not isinstance(key, bytes)]
            rest = len(keys) - len(ids)
            subject = ", ".join(ids) + (f" and {rest} more" if rest else "")
            severity = CompositionSeverity.CONFLICT if is_shared else CompositionSeverity.INFO
            text = f"The request id {subject} was used towards {len(servers)} servers"
            why = "." if is_shared else ", each on a transport of its own."
            self.conflict(subject, servers, text + why, severity)
