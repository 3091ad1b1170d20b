"""The sides callers see: HTTP in both eras, stdio, health and the read-only JSON API."""
