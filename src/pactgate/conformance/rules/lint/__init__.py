"""LINT-001 and on: definitions that the specification allows, and that clients in use refuse or people miss."""
