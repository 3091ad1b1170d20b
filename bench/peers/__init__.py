"""Other gateways in front of the same server, for comparison: their installation, their start, their measurement."""
