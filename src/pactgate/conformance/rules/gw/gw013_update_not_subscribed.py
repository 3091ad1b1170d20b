"""GW-013."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict
from pactgate.conformance.message import RecordedMessage, Role, as_list, as_object
from pactgate.conformance.rule import RequiredEvidence, SessionRule, quoted
from pactgate.conformance.subscriptions import around
from pactgate.protocol.modern import SUBSCRIPTION_ID_KEY
from pactgate.protocol.versions import LATEST_MODERN


class UpdateNotSubscribed(SessionRule):
    """A server reports updates only of resources that are subscribed at that time.

    What it checks
        Each `notifications/resources/updated` names a URI that was subscribed and not unsubscribed, or one below it. Legacy:
        by `resources/subscribe`; modern: as acknowledged on the `subscriptions/listen` it is tagged with.

    Why
        An update nobody asked for tells a client of resources it may not be meant to know, and costs it a read.

    How to fix
        Keep subscriptions per session or stream, and drop them when it ends.

    Reference
        Resources, Subscriptions; Subscriptions; all revisions, a MUST since 2026-07-28.
    """

    code = "GW-013"
    spec = "server/resources#subscriptions"
    category = "subscriptions"
    must_since = LATEST_MODERN
    needs = RequiredEvidence.SERVER_MESSAGES

    def prepare(self) -> None:
        self._subscribed: BoundedDict[object] = BoundedDict()

    def on_message(self, message: RecordedMessage) -> None:
        if message.method == "notifications/resources/updated" and not message.is_from_client:
            self._on_update(message)
        elif message.method == "resources/subscribe":
            self._on_subscribe(message)
        elif message.method == "resources/unsubscribe" and message.role is Role.RESPONSE and message.is_success:
            self._subscribed.pop(_uri(message.request_params()), None)
        elif message.method == "notifications/subscriptions/acknowledged":
            granted = as_object(message.params.get("notifications")).get("resourceSubscriptions")
            for uri in as_list(granted):
                if isinstance(uri, str):
                    self._subscribed[uri] = message.meta.get(SUBSCRIPTION_ID_KEY)
        elif message.method == "subscriptions/listen" and message.role is Role.RESPONSE and message.request is not None:
            ended = message.request.body.get("id")
            for uri in [uri for uri, stream in self._subscribed.items() if stream == ended]:
                del self._subscribed[uri]

    def at_end(self) -> None:
        if self._subscribed.has_forgotten:
            self.unjudged("There were more subscriptions than the checker remembers.")

    def _on_subscribe(self, message: RecordedMessage) -> None:
        """From the request on, since the first update may cross its answer; an error takes it back."""
        if message.role is Role.REQUEST:
            self._subscribed[_uri(message.params)] = None
        elif message.role is Role.RESPONSE and message.is_error:
            self._subscribed.pop(_uri(message.request_params()), None)

    def _on_update(self, message: RecordedMessage) -> None:
        self.seen += 1
        uri = message.params.get("uri")
        if not isinstance(uri, str) or not any(place in self._subscribed for place in around(uri)):
            self.fault(message, "/params/uri", f"{quoted(uri)} is not subscribed at this time.")


def _uri(params: dict[str, object]) -> str:
    uri = params.get("uri")
    return uri if isinstance(uri, str) else ""
