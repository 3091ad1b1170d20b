"""`make chaos`: the gateway under mixed load, beside servers and clients that misbehave; its promises are checked while it runs."""
