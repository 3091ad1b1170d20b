"""Other people's gateways under the gateway profile: their installation, their runs, and the page of their scores."""
