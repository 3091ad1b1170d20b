"""GW-102."""

from __future__ import annotations

from pactgate.conformance.composition import Composition
from pactgate.conformance.rule import CompositionRule, RequirementLevel, quoted


class ResourceUriOverlap(CompositionRule):
    """No two servers offer the same resource URI.

    What it checks
        Among the resources and templates that the servers of a capture have listed, no URI stands twice.

    Why
        A URI is how a client asks for a resource; with two owners, one of them is never read.

    How to fix
        Give each server a scheme or an authority of its own.

    Reference
        Resources, Data Types.
    """

    code = "GW-102"
    spec = "server/resources#data-types"
    kind = "resource_uri_overlap"
    level = RequirementLevel.SHOULD

    def check(self, composition: Composition) -> None:
        for name, servers in composition.sharing(lambda server: server.uris):
            text = f"The resource {quoted(name)} is offered by {len(servers)} servers."
            self.conflict(name, servers, text)
