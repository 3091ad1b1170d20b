"""What a call through the gateway costs, beside the same call without it. `python -m bench` runs everything."""
