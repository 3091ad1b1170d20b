"""The channels we have are channels."""

from __future__ import annotations

import pytest

from pactgate.upstreams.http.sse import HttpSseChannel
from pactgate.upstreams.http.streamable import HttpChannel
from pactgate.upstreams.process.stdio import StdioChannel


@pytest.mark.parametrize("kind", [StdioChannel, HttpChannel, HttpSseChannel])
def test_every_channel_has_what_the_port_asks_for(kind: type[StdioChannel | HttpChannel | HttpSseChannel]) -> None:
    assert all(callable(getattr(kind, name)) for name in ("open", "settle", "send", "close"))
    assert kind.answers_in_send is (kind is HttpChannel)
