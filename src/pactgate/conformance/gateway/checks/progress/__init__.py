"""Progress, cancellation, logging: what is said about a call while it runs."""
