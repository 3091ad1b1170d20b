"""GW-044."""

from __future__ import annotations

from pactgate.conformance.bounded import BoundedDict, digest
from pactgate.conformance.message import RecordedMessage, Role
from pactgate.conformance.methods import CHANGE_SIGNALS, LISTS
from pactgate.conformance.rule import SHOWN_EVIDENCE, RequirementLevel, SessionRule


class ListChangedSilently(SessionRule):
    """A list that differs from the one before was announced.

    What it checks
        Two complete listings of tools, prompts, resources or templates for the same credentials are equal, whatever their
        order, unless a `list_changed` came between them. A modern server can announce nothing without a `listen`, and a
        plain capture does not have what the server sends on its own; then a difference can't be judged.

    Why
        Clients keep what they have listed. A silent change is also how a tool that was approved becomes another one.

    How to fix
        Advertise `listChanged` and send the notification, before the new list is given out.

    Reference
        Tools, Prompts, Resources: List Changed Notification; all revisions.
    """

    code = "GW-044"
    spec = "server/tools#list-changed-notification"
    category = "tools"
    level = RequirementLevel.SHOULD

    def prepare(self) -> None:
        self._before: dict[tuple[str, str | None], str] = {}
        self._announced: dict[str, bool] = {}
        self._is_listening = False
        self._changes: BoundedDict[bool] = BoundedDict(SHOWN_EVIDENCE)

    def on_message(self, message: RecordedMessage) -> None:
        if message.role is Role.NOTIFICATION and not message.is_from_client:
            for method, signal in CHANGE_SIGNALS.items():
                if message.method == signal:
                    self._announced[method] = True
        elif message.role is Role.REQUEST and message.method == "subscriptions/listen":
            self._is_listening = True
        elif message.role is Role.RESPONSE and message.method in LISTS and message.is_success:
            self._on_page(message)

    def _on_page(self, message: RecordedMessage) -> None:
        listing = self.session.lists[message.method]
        if not listing.is_whole:
            return
        shown = digest({name: item.definition for name, item in listing.items.items()})
        place = (message.method, message.view.exchange.auth)
        before = self._before.get(place)
        was_announced = self._announced.pop(message.method, False)
        self._before[place] = shown
        if before is None or was_announced:
            return
        if before == shown:
            self.seen += 1
        else:
            self._changes[message] = not message.is_modern or self._is_listening

    def at_end(self) -> None:
        for message, could_announce in self._changes.items():
            if could_announce and self.session.has_server_messages:
                text = f"{message.method} shows another list than before, and nothing announced it."
                self.fault(message, "/result", text)
            else:
                self.unjudged("A list changed, but the capture can't tell whether that was announced.")
