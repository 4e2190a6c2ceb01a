"""Which forward op each op of autograd belongs to, as Kineto's arrows ``fwdbwd`` say it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trnscope.sim.virtual_trace.recording import HostRow

CATEGORY = "fwdbwd"


def backward_links(host: Iterable[HostRow]) -> Iterator[tuple[HostRow, HostRow]]:
    """Pairs of a forward op and the backward op that autograd ran for it.

    Of several forward ops with one sequence number the last to begin made autograd's node; of
    several backward ops the first to begin holds the others.
    """
    forward: dict[tuple[int, int], HostRow] = {}
    backward: dict[tuple[int, int], HostRow] = {}
    for row in host:
        number = row.sequence_number
        if number is None:
            continue
        if row.forward_thread is None:
            forward[row.thread, number] = row
        else:
            backward.setdefault((row.forward_thread, number), row)
    for key, row in backward.items():
        if key in forward:
            yield forward[key], row
