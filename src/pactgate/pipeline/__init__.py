"""The way of a request through the gateway: kernel, gates, dispatch, the other methods."""
