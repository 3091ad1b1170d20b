"""How clients reach the gateway: HTTP in both eras, stdio, health and the read-only JSON API."""
