"""Ports of the stores that outlive a request, and the stores that live in this process."""
