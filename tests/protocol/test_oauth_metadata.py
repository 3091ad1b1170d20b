from __future__ import annotations

import pytest

from pactgate.protocol.oauth_metadata import metadata_urls

OPENID = "/.well-known/openid-configuration"


@pytest.mark.parametrize(
    ("issuer", "paths"),
    [
        ("https://a.example", ["/.well-known/oauth-authorization-server", OPENID]),
        ("https://a.example/x/", ["/.well-known/oauth-authorization-server/x", f"{OPENID}/x", f"/x{OPENID}"]),
    ],
)
def test_metadata_is_looked_for_where_the_specifications_say(issuer: str, paths: list[str]) -> None:
    assert metadata_urls(issuer) == tuple("https://a.example" + path for path in paths)
