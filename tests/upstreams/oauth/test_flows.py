"""Each step of a sign-in without a network: what is asked for, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.oauth import sign_in
from pactgate.upstreams.oauth.authorization import AuthorizationRequest, challenge_of, read_answer
from pactgate.upstreams.oauth.challenge import Challenge
from pactgate.upstreams.oauth.client import OAuthClient, given_client, prove
from pactgate.upstreams.oauth.discovery import AuthorizationServer, canonical_resource, choose_scopes, covers
from pactgate.upstreams.oauth.sign_in import BegunSignIn, SignInSettings
from pactgate.upstreams.oauth.steps import Fetch, Fetched, Steps, T
from pactgate.upstreams.oauth.tokens import RefusedGrantError

URL = "https://api.example/team/mcp"
ISSUER = "https://login.example/tenant"
REDIRECT = "http://127.0.0.1:4711/callback"
PATH_FORM = "https://api.example/.well-known/oauth-protected-resource/team/mcp"
ROOT_FORM = "https://api.example/.well-known/oauth-protected-resource"
AS_FORM = "https://login.example/.well-known/oauth-authorization-server/tenant"
OIDC_FORM = "https://login.example/.well-known/openid-configuration/tenant"
OIDC_OLD_FORM = "https://login.example/tenant/.well-known/openid-configuration"
RESOURCE = {"resource": URL, "authorization_servers": [ISSUER]}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://login.example/authorize?tenant=1",
    "token_endpoint": "https://login.example/token",
    "registration_endpoint": "https://login.example/register",
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": ["none"],
}
REGISTERED = {"client_id": "c1", "token_endpoint_auth_method": "none"}
Documents = Mapping[str, object]


def play(steps: Steps[T], documents: Documents) -> tuple[T, list[Fetch]]:
    """Run the steps: a document is answered with 200, an integer is a status, everything else is 404."""
    asked: list[Fetch] = []
    try:
        fetch = next(steps)
        while True:
            asked.append(fetch)
            found = documents.get(fetch.url, 404)
            answer = Fetched(found, b"") if isinstance(found, int) else Fetched(200, json.dumps(found).encode())
            fetch = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value, asked


def begin(
    documents: Documents,
    *,
    challenge: Challenge | None = None,
    known: OAuthClient | None = None,
    before: tuple[str, ...] = (),
    **settings: object,
) -> tuple[BegunSignIn, list[Fetch]]:
    wanted = SignInSettings(server="linear", url=URL, **settings)  # type: ignore[arg-type]
    steps = sign_in.begin(
        wanted,
        challenge or Challenge(),
        lambda issuer: known,
        before=before,
        redirect_uri=REDIRECT,
        state="state-1",
        verifier="verifier-1",
    )
    return play(steps, documents)


ALL: Documents = {PATH_FORM: RESOURCE, AS_FORM: METADATA, "https://login.example/register": REGISTERED}


def query(begun: BegunSignIn) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(begun.request.url).query).items()}


def test_the_whole_way_from_a_challenge_to_the_url_a_person_opens() -> None:
    begun, asked = begin(ALL, challenge=Challenge("", ("read", "write")))
    assert [fetch.url for fetch in asked] == [PATH_FORM, AS_FORM, "https://login.example/register"]
    assert query(begun) == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "c1",
        "redirect_uri": REDIRECT,
        "state": "state-1",
        "code_challenge": challenge_of("verifier-1"),
        "code_challenge_method": "S256",
        "resource": URL,
        "scope": "read write",
    }
    assert asked[2].json is not None
    assert asked[2].json["application_type"] == "native"
    assert "refresh_token" in asked[2].json["grant_types"]  # type: ignore[operator]


def test_metadata_is_looked_for_in_every_place_the_specification_names() -> None:
    documents = {ROOT_FORM: {**RESOURCE, "resource": "https://api.example"}, OIDC_OLD_FORM: METADATA, **REGISTER}
    begun, asked = begin(documents)
    assert [fetch.url for fetch in asked] == [PATH_FORM, ROOT_FORM, AS_FORM, OIDC_FORM, OIDC_OLD_FORM, *REGISTER]
    assert begun.request.resource == "https://api.example"


REGISTER: Documents = {"https://login.example/register": REGISTERED}


@pytest.mark.parametrize(
    ("documents", "why"),
    [
        (
            {**ALL, PATH_FORM: {**RESOURCE, "resource": "https://evil.example/mcp"}},
            "metadata is that of another resource",
        ),
        ({**ALL, PATH_FORM: {**RESOURCE, "resource": "https://api.example/team/mc"}}, "another resource"),
        ({**ALL, PATH_FORM: {"resource": URL}}, "names no authorization server"),
        ({**ALL, AS_FORM: {**METADATA, "issuer": f"{ISSUER}/"}}, "names another issuer"),
        ({PATH_FORM: RESOURCE}, "has no metadata document"),
        ({**ALL, AS_FORM: {**METADATA, "code_challenge_methods_supported": None}}, "PKCE"),
        ({**ALL, AS_FORM: {**METADATA, "code_challenge_methods_supported": ["plain"]}}, "PKCE"),
        ({**ALL, AS_FORM: {**METADATA, "authorization_endpoint": "javascript:alert(1)"}}, "can be opened"),
        ({**ALL, AS_FORM: {**METADATA, "authorization_endpoint": "http://login.example/a"}}, "can be opened"),
        ({**ALL, AS_FORM: {**METADATA, "token_endpoint": 5}}, "no token_endpoint"),
        ({**ALL, AS_FORM: {**METADATA, "registration_endpoint": None}}, "registers no clients by itself"),
        ({**ALL, "https://login.example/register": 400}, "refused to register a client"),
        (
            {**ALL, "https://login.example/register": {**REGISTERED, "token_endpoint_auth_method": "tls"}},
            "not supported",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(documents: Documents, why: str) -> None:
    with pytest.raises(GatewayFailure, match=why) as refused:
        begin(documents)
    assert refused.value.kind is Kind.AUTHORIZATION_REQUIRED


def test_a_client_of_one_issuer_is_never_shown_to_another() -> None:
    known = OAuthClient("https://old.example", "old-client", redirect_uri=REDIRECT)
    begun, _ = begin(ALL, known=known)
    assert begun.client.id == "c1"


def test_a_registered_client_is_used_again_for_the_same_redirect_uri_alone() -> None:
    known = OAuthClient(ISSUER, "known", redirect_uri=REDIRECT)
    assert begin(ALL, known=known)[0].client.id == "known"
    moved = OAuthClient(ISSUER, "known", redirect_uri="http://127.0.0.1:1/callback")
    assert begin(ALL, known=moved)[0].client.id == "c1"


def test_given_credentials_go_to_the_issuer_they_were_made_for_and_to_no_other() -> None:
    elsewhere = {**ALL, PATH_FORM: {**RESOURCE, "authorization_servers": ["https://evil.example"]}}
    with pytest.raises(GatewayFailure, match="now names another authorization server"):
        begin(elsewhere, issuer=ISSUER, client_id="given", client_secret="secret")


def test_a_client_id_metadata_document_is_used_where_it_is_taken_and_else_a_client_is_registered() -> None:
    document = "https://pactgate.example/client.json"
    takes = {**ALL, AS_FORM: {**METADATA, "client_id_metadata_document_supported": True}}
    assert begin(takes, client_id=document)[0].client.id == document
    assert begin(ALL, client_id=document)[0].client.id == "c1"


def test_offline_access_is_asked_for_where_it_is_offered() -> None:
    offers = {**ALL, AS_FORM: {**METADATA, "scopes_supported": ["offline_access"]}}
    assert query(begin(offers, challenge=Challenge("", ("read",)))[0])["scope"] == "read offline_access"
    assert "scope" not in query(begin(ALL)[0])


def test_scopes_are_those_of_the_challenge_then_those_on_offer_and_never_fewer_than_before() -> None:
    assert choose_scopes(settings=(), challenged=("a",), offered=("b",), before=()) == ("a",)
    assert choose_scopes(settings=(), challenged=(), offered=("b",), before=()) == ("b",)
    assert choose_scopes(settings=(), challenged=(), offered=None, before=()) == ()
    assert choose_scopes(settings=(), challenged=("b",), offered=None, before=("a",)) == ("a", "b")
    assert choose_scopes(settings=("s",), challenged=("b",), offered=("o",), before=()) == ("s", "b")


def waiting(*, needs_issuer: bool = False) -> AuthorizationRequest:
    request = begin(ALL)[0].request
    return AuthorizationRequest(
        **{name: getattr(request, name) for name in request.__struct_fields__ if name != "needs_issuer"},
        needs_issuer=needs_issuer,
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"code": "c"}, "another sign-in"),
        ({"code": "c", "state": "state-2"}, "another sign-in"),
        ({"code": "c", "state": "state-1", "iss": f"{ISSUER}/"}, "another issuer"),
        ({"code": "c", "state": "state-1", "iss": ISSUER.upper()}, "another issuer"),
        ({"error": "access_denied", "state": "state-1", "iss": "https://evil.example"}, "another issuer"),
        ({"error": "access_denied", "state": "state-1"}, "it was refused \\(access_denied\\)"),
        ({"error": "<b>call 555</b>", "state": "state-1"}, "unreadable error"),
        ({"state": "state-1"}, "no code"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(answer: dict[str, str], why: str) -> None:
    with pytest.raises(GatewayFailure, match=why) as refused:
        read_answer(waiting(), {"error_description": "text of a stranger", **answer})
    assert "stranger" not in refused.value.message


def test_an_answer_without_an_issuer_is_refused_where_one_was_promised() -> None:
    assert read_answer(waiting(), {"code": "c", "state": "state-1"}) == "c"
    assert read_answer(waiting(needs_issuer=True), {"code": "c", "state": "state-1", "iss": ISSUER}) == "c"
    with pytest.raises(GatewayFailure, match="lacks the issuer"):
        read_answer(waiting(needs_issuer=True), {"code": "c", "state": "state-1"})


@pytest.mark.parametrize(
    ("method", "members", "authorization"),
    [
        ("none", {"client_id": "i d"}, ""),
        ("client_secret_post", {"client_id": "i d", "client_secret": "s:1"}, ""),
        ("client_secret_basic", {}, "Basic aStkOnMlM0Ex"),
    ],
)
def test_a_client_proves_itself_as_the_endpoint_wants_it(
    method: str, members: dict[str, str], authorization: str
) -> None:
    assert prove(OAuthClient(ISSUER, "i d", "s:1", method), {"a": "b"}) == ({"a": "b", **members}, authorization)


def grant_of(token: Mapping[str, object]) -> sign_in.Grant:
    begun, _ = begin(ALL)
    found, asked = play(sign_in.finish(begun, "code-1", 1000.0), {"https://login.example/token": token})
    assert asked[0].form is not None
    assert asked[0].form["resource"] == URL
    assert asked[0].form["code_verifier"] == "verifier-1"
    return found


@pytest.mark.parametrize(
    ("lifetime", "end"),
    [(60, 1060.0), ("60", 1060.0), (None, None), (-1, None), (True, None), (1e99, None), ("x", None)],
)
def test_the_end_of_a_token_is_what_can_be_believed(lifetime: object, end: float | None) -> None:
    token = {"access_token": "t", "token_type": "bearer", "expires_in": lifetime}
    assert grant_of(token).expires_at == end


@pytest.mark.parametrize("token", [{}, {"access_token": "a b"}, {"access_token": "a\r\nX: y"}, {"access_token": 5}])
def test_a_token_that_can_not_stand_in_a_header_is_refused(token: dict[str, object]) -> None:
    with pytest.raises(GatewayFailure, match="Signing in to linear failed"):
        grant_of(token)


def test_a_token_of_another_type_is_refused() -> None:
    with pytest.raises(GatewayFailure, match="bearer"):
        grant_of({"access_token": "t", "token_type": "dpop"})


def test_a_refresh_keeps_the_old_refresh_token_where_it_gets_no_new_one_and_invalid_grant_is_the_end() -> None:
    grant = grant_of({"access_token": "t", "token_type": "bearer", "refresh_token": "r"})
    endpoint = "https://login.example/token"
    found, asked = play(
        sign_in.refreshed("linear", grant, 2000.0), {endpoint: {"access_token": "t2", "token_type": "bearer"}}
    )
    assert (found.access_token, found.refresh_token, found.refreshed_at, found.signed_in_at) == (
        "t2",
        "r",
        2000.0,
        1000.0,
    )
    assert asked[0].form == {"grant_type": "refresh_token", "refresh_token": "r", "resource": URL, "client_id": "c1"}
    with pytest.raises(RefusedGrantError):
        play(sign_in.refreshed("linear", grant, 2000.0), {endpoint: {"error": "invalid_grant"}})


@pytest.mark.parametrize(
    ("said", "does"),
    [
        (URL, True),
        ("https://api.example/team", True),
        ("https://api.example/team/", True),
        ("https://api.example", True),
        ("https://api.example/team/mcp/", True),
        ("https://api.example/tea", False),
        ("http://api.example/team/mcp", False),
        ("https://api.example:8443/team/mcp", False),
        ("https://api.example.evil.example/team/mcp", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_a_resource_covers_its_own_paths_only(said: str, does: bool) -> None:
    assert covers(said, canonical_resource(URL)) is does


@given(st.binary(max_size=200), st.integers(100, 599))
def test_any_answer_of_a_token_endpoint_is_a_grant_or_a_failure(body: bytes, status: int) -> None:
    begun, _ = begin(ALL)
    steps = sign_in.finish(begun, "code-1", 1000.0)
    next(steps)
    with pytest.raises(GatewayFailure):
        steps.send(Fetched(status, body))


def test_metadata_without_a_list_of_methods_means_basic() -> None:
    found = AuthorizationServer("i", "a", "t")
    client = given_client("linear", found, "id", "secret")
    assert client is not None
    assert client.auth_method == "client_secret_basic"
