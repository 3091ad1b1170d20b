from __future__ import annotations

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.documents import DocumentClient
from tests.support.identity_provider import IdentityProvider


async def test_a_document_is_fetched_from_where_the_operator_wrote_and_a_redirect_is_not_followed() -> None:
    client = HttpClient()
    async with IdentityProvider() as server:
        documents = DocumentClient(client, "auth.issuers", [server.issuer])
        server.responses["/there"] = 302, b"{}"
        assert (await documents.fetch(f"{server.issuer}/there")).status == 302
        assert server.asked == ["/there"]
        with pytest.raises(GatewayFailure) as refused:
            await documents.fetch("http://127.0.0.1:1/elsewhere")
        assert refused.value.kind is Kind.DESTINATION_REFUSED
    await client.close()
