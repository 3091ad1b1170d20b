"""Streamable HTTP and HTTP+SSE towards servers, and the HTTP client below them."""
