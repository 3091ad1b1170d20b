"""Names and lists that clients can rely on."""
