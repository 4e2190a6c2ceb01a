"""How long device work waits after its launch, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.launch import Distribution, HostLaunches, LaunchReport, StreamLaunches
from trnscope.model.units import format_ns
from trnscope.report.steps import rank_text
from trnscope.report.summary import NO_DEVICE
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.view import View, cut_note, note, title


def launch_lines(result: LaunchReport, view: View) -> Iterator[Text]:
    """Latency, delay and queue by stream, then launch calls by host."""
    yield from title(view, "Launches")
    if not result.streams and not result.hosts:
        yield note(NO_DEVICE)
        return
    if result.streams:
        yield from _streams(result.streams, view)
    if result.hosts:
        yield Text()
        yield from _hosts(result.hosts, view)


def _streams(streams: tuple[StreamLaunches, ...], view: View) -> Iterator[Text]:
    shown = streams[: view.shown(len(streams))]
    yield from _waits(shown).lines(view.width)
    yield from cut_note(view, len(streams), "stream")
    yield note("latency: from the start of the launch call to the start of its work")
    yield note("delay: from the end of the launch call; negative if the work began before")
    yield Text()
    yield from _queues(shown).lines(view.width)
    yield note("queue: pieces of work launched and not finished; unlinked: without a launch")


def _waits(streams: tuple[StreamLaunches, ...]) -> Table:
    rows = [
        [f"{_name(stream)} {what}", f"{stream.num_launches:,}", *_percentiles(times)]
        for stream in streams
        for what, times in (("latency", stream.latency), ("delay", stream.delay))
    ]
    columns = [Column(head) for head in ("launches", "median", "95 %", "longest")]
    return Table("stream", columns, rows)


def _queues(streams: tuple[StreamLaunches, ...]) -> Table:
    rows = [_queue_row(stream) for stream in streams]
    heads = ("work", "mean queue", "longest", "unlinked", "unlinked time")
    return Table("stream", [Column(head) for head in heads], rows)


def _queue_row(stream: StreamLaunches) -> list[str]:
    mean = stream.queue.mean_length
    return [
        _name(stream),
        f"{stream.num_work:,}",
        NOT_RECORDED if mean is None else f"{mean:.1f}",
        NOT_RECORDED if mean is None else f"{stream.queue.max_length:,}",
        f"{stream.num_unlinked:,}",
        format_ns(stream.unlinked_ns),
    ]


def _name(stream: StreamLaunches) -> str:
    rank = "" if stream.rank is None and stream.source == 0 else f"{_rank(stream)} "
    number = NOT_RECORDED if stream.stream is None else str(stream.stream)
    return f"{rank}{stream.device.label} stream {number}"


def _rank(of: StreamLaunches | HostLaunches) -> str:
    return f"rank {rank_text(of.rank, of.source)}"


def _percentiles(times: Distribution | None) -> list[str]:
    if times is None:
        return [NOT_RECORDED] * 3
    return [format_ns(times.p50_ns), format_ns(times.p95_ns), format_ns(times.max_ns)]


def _hosts(hosts: tuple[HostLaunches, ...], view: View) -> Iterator[Text]:
    rows = [_host_row(host) for host in hosts[: view.shown(len(hosts))]]
    columns = [Column("launches"), Column("per second"), Column("without work"), Column("window")]
    yield from Table("host", columns, rows).lines(view.width)
    yield from cut_note(view, len(hosts), "host")
    yield note("without work: the launched work is not in the trace")


def _host_row(host: HostLaunches) -> list[str]:
    rate = host.launches_per_second
    return [
        "all threads" if host.rank is None and host.source == 0 else _rank(host),
        f"{host.num_launches:,}",
        NOT_RECORDED if rate is None else f"{rate:,.0f}",
        f"{host.num_without_work:,}",
        format_ns(host.window_ns),
    ]
