"""Which private keys can prove a client, and by which algorithm."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from pactgate.config.oauth_client import algorithm_of
from tests.support.identity_provider import rsa_key

NO_PASSWORD = serialization.NoEncryption()


def pem(key: PrivateKeyTypes, password: serialization.KeySerializationEncryption = NO_PASSWORD) -> str:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, password).decode()


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa_key(), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        (ec.generate_private_key(ec.SECP256K1()), None),
        (rsa.generate_private_key(public_exponent=65537, key_size=1024), None),
        (x25519.X25519PrivateKey.generate(), None),
    ],
)
def test_the_algorithm_follows_from_the_key(key: PrivateKeyTypes, algorithm: str | None) -> None:
    assert algorithm_of(pem(key)) == algorithm


def test_what_is_no_private_key_or_has_a_password_can_not_sign() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    locked = pem(key, serialization.BestAvailableEncryption(b"secret"))
    assert [algorithm_of(text) for text in ("", "a secret", public.decode(), locked)] == [None] * 4
