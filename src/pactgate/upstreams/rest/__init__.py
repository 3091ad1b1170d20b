"""REST endpoints as tools."""
