"""GW-NNN: the further rules of a session. Shown beside the documented ones; they decide when they are asked for."""
