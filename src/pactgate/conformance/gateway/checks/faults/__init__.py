"""A server that misbehaves hurts its own calls and nobody else."""
