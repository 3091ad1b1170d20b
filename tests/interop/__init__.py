"""Other people's clients and servers on both sides of the gateway; `scripts/prepare_interop.sh` fetches them."""
