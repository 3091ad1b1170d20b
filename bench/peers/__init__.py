"""Other gateways in front of the same upstream, for comparison: which ones, how they are installed, how they are started."""
