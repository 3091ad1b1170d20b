"""Several processes that serve together: an owner that holds the socket and the children, and workers that each have their own callers."""
