"""Who the gateway is as a client of authorization servers: its name, its addresses, what its private keys sign. Must not: keep a key."""

from __future__ import annotations

from typing import Final

CLIENT_NAME: Final = "Pactgate"
CALLBACK_PATH: Final = "/connect/callback"
"""Where browsers bring the answers to sign-ins of callers. `pactgate login` has an address of its own."""
DOCUMENT_PATH: Final = "/oauth/client.json"
"""Where the gateway publishes its client id metadata document."""
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_MIN_RSA_BITS = 2048


def algorithm_of(pem: str) -> str | None:
    """The algorithm that a private key signs with (RFC 7518, 3.1); None where it is no key that can be used."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if "ENCRYPTED" in pem:  # nobody is there to ask for its password
        return None
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, UnsupportedAlgorithm):
        return None
    if isinstance(key, EllipticCurvePrivateKey):
        return _CURVES.get(key.curve.name)
    if isinstance(key, RSAPrivateKey):
        return "RS256" if key.key_size >= _MIN_RSA_BITS else None
    return "EdDSA" if isinstance(key, Ed25519PrivateKey) else None
