"""A port for the rendezvous of ranks, so that jobs that run at once do not meet."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
