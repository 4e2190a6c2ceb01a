"""How long device work waits after its launch, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.launch import Distribution, HostLaunches, LaunchReport, StreamLaunches
from trnscope.model.units import format_ns
from trnscope.report.owners import Owners
from trnscope.report.summary import NO_DEVICE
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, cut_note, note, title


def launch_lines(result: LaunchReport, view: View) -> Iterator[Text]:
    """Latency, delay and queue by stream, then launch calls by host."""
    yield from title(view, "Launches")
    if not result.streams and not result.hosts:
        yield note(NO_DEVICE)
        return
    owners = Owners.of([*result.streams, *result.hosts])
    if result.streams:
        yield from _waits(result.streams, view, owners)
        yield Text()
        yield from _queues(result.streams, view, owners)
    if result.hosts:
        yield Text()
        yield from _hosts(result.hosts, view, owners)
    yield from owners.notes()


def _waits(streams: tuple[StreamLaunches, ...], view: View, owners: Owners) -> Iterator[Text]:
    """Streams by their number of launches; those without any are only counted."""
    launched = [stream for stream in streams if stream.num_launches]
    launched.sort(key=lambda stream: -stream.num_launches)
    if launched:
        rows = [
            [f"{_name(stream, owners)} {what}", f"{stream.num_launches:,}", *_percentiles(times)]
            for stream in launched[: view.shown(len(launched))]
            for what, times in (("latency", stream.latency), ("delay", stream.delay))
        ]
        columns = [Column(head) for head in ("launches", "median", "95 %", "longest")]
        yield from Table("stream", columns, rows).lines(view.width)
        yield from cut_note(view, len(launched), "stream")
        yield note("latency: from the start of the launch call to the start of its work")
        yield note("delay: from the end of the launch call; negative if the work began before")
    if len(launched) < len(streams):
        left_out = plural(len(streams) - len(launched), "stream")
        yield note(f"{left_out} left out: the launches of their work are not in the trace")


def _queues(streams: tuple[StreamLaunches, ...], view: View, owners: Owners) -> Iterator[Text]:
    """Streams by the number of pieces of work on them."""
    most_first = sorted(streams, key=lambda stream: -stream.num_work)
    rows = [_queue_row(stream, owners) for stream in most_first[: view.shown(len(streams))]]
    heads = ("work", "mean queue", "longest", "unlinked", "unlinked time")
    yield from Table("stream", [Column(head) for head in heads], rows).lines(view.width)
    yield from cut_note(view, len(streams), "stream")
    yield note("queue: pieces of work launched and not finished; unlinked: without a launch")


def _queue_row(stream: StreamLaunches, owners: Owners) -> list[str]:
    mean = stream.queue.mean_length
    return [
        _name(stream, owners),
        f"{stream.num_work:,}",
        NOT_RECORDED if mean is None else f"{mean:.1f}",
        NOT_RECORDED if mean is None else f"{stream.queue.max_length:,}",
        f"{stream.num_unlinked:,}",
        format_ns(stream.unlinked_ns),
    ]


def _name(stream: StreamLaunches, owners: Owners) -> str:
    number = NOT_RECORDED if stream.stream is None else str(stream.stream)
    return f"{owners.prefix(stream)}{stream.device.label} stream {number}"


def _percentiles(times: Distribution | None) -> list[str]:
    if times is None:
        return [NOT_RECORDED] * 3
    return [format_ns(times.p50_ns), format_ns(times.p95_ns), format_ns(times.max_ns)]


def _hosts(hosts: tuple[HostLaunches, ...], view: View, owners: Owners) -> Iterator[Text]:
    """Hosts by their number of launches; those without any are only counted."""
    launching = sorted(
        (host for host in hosts if host.num_launches), key=lambda host: -host.num_launches
    )
    if launching:
        rows = [_host_row(host, owners) for host in launching[: view.shown(len(launching))]]
        heads = ("launches", "per second", "without work", "window")
        yield from Table("host", [Column(head) for head in heads], rows).lines(view.width)
        yield from cut_note(view, len(launching), "host")
        yield note("without work: the launched work is not in the trace")
    if len(launching) < len(hosts):
        yield note(f"{plural(len(hosts) - len(launching), 'host')} without launches left out")


def _host_row(host: HostLaunches, owners: Owners) -> list[str]:
    rate = host.launches_per_second
    return [
        owners.text(host) if owners.are_several else "all threads",
        f"{host.num_launches:,}",
        NOT_RECORDED if rate is None else f"{rate:,.0f}",
        f"{host.num_without_work:,}",
        format_ns(host.window_ns),
    ]
