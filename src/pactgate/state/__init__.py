"""What outlives a request: ports, and the stores behind them that live in this process."""
