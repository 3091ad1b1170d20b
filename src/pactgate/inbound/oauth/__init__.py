"""The gateway as an OAuth resource server: access tokens of identity providers (RFC 6750, 7662, 8414, 9068, 9449, 9728).

Imported only where issuers are configured, because it needs PyJWT and cryptography. Must not: issue tokens, or send a token anywhere but to
the introspection endpoint of its issuer.
"""
