"""Asking back: what servers ask clients through a gateway, and what clients answer."""
