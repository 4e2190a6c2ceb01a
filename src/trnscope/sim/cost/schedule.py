"""When each instruction and transfer of a program runs.

An instruction starts when what it reads is written, the buffer it writes is no longer read, and its
engine has an idle time that is long enough: one that is ready goes ahead of others that still wait,
as the vendor's compiler orders them by its estimates. Transfers share the core's DMA engines. Loops
are followed until they repeat themselves and then advanced in one step: in the steady state every
clock of the machine moves by a fixed amount an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from trnscope.hardware.neuroncore import NeuronCore
from trnscope.sim.cost.dma import DmaModel
from trnscope.sim.cost.engines import EngineModel
from trnscope.sim.cost.program import DmaTransfer, Instruction, Loop, Program

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync", "dma")
DMA = ENGINES.index("dma")
MAX_GAPS = 6
MAX_PERIOD = 12
"""Iterations after which a loop may repeat itself: buffers of two and of three tiles make six."""
MAX_FOLLOWED = 96
"""Iterations of a loop that are followed before it is advanced by its average."""
THROTTLE_WINDOW_NS = 3000.0


@dataclass(frozen=True)
class Execution:
    """One instruction or transfer in time."""

    step: Instruction | DmaTransfer
    start_ns: int
    duration_ns: int
    engine: str
    """An engine's name, or ``dma``."""
    queue: str | None = None
    """The DMA queue."""


@dataclass(frozen=True)
class MemoryUse:
    """Bytes in use on the chip from a time on."""

    time_ns: int
    sbuf_bytes: int
    psum_bytes: int


@dataclass(frozen=True)
class Schedule:
    """A program's course on one physical core."""

    total_ns: int
    engine_ns: dict[str, int]
    """Busy time by engine."""
    executions: tuple[Execution, ...]
    """In order of issue; loops may be cut, see ``complete``."""
    complete: bool
    """Every instruction is in ``executions``."""
    memory: tuple[MemoryUse, ...] = field(default=())


@dataclass(frozen=True)
class _Leaf:
    """A step with its times worked out."""

    step: Instruction | DmaTransfer
    engine: int
    busy_ns: float
    result_ns: float
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    issue_ns: float = 0.0
    accumulate: bool = False


@dataclass(frozen=True)
class _LoopNode:
    body: tuple[_Leaf | _LoopNode, ...]
    count: int
    tiles: tuple[int, ...]
    """Tiles that its body touches."""
    warm_up: int
    """Iterations before its buffers are all in use."""


class _Server:
    """What does one thing at a time and fills idle gaps: an engine, or all DMA engines together."""

    __slots__ = ("free", "gaps")

    def __init__(self) -> None:
        self.free = 0.0
        self.gaps: list[tuple[float, float]] = []

    def claim(self, ready: float, needed: float) -> tuple[float, float]:
        """From when to when it works on something that is ready; idle gaps are used first."""
        start, end = -1.0, ready
        kept: list[tuple[float, float]] = []
        for begin, finish in self.gaps:
            first = max(begin, ready)
            taken = min(needed, finish - first)
            if taken <= 0:
                kept.append((begin, finish))
                continue
            start = first if start < 0 else start
            end = first + taken
            needed -= taken
            kept += [(a, b) for a, b in ((begin, first), (end, finish)) if b > a]
        self.gaps = kept
        if needed > 0 or start < 0:
            first = max(self.free, ready)
            if first > self.free:
                self.gaps.append((self.free, first))
            start = first if start < 0 else start
            end = self.free = first + needed
        del self.gaps[:-MAX_GAPS]
        return start, end

    def claim_whole(self, ready: float, needed: float) -> float:
        """The same for work that cannot be interrupted: its start."""
        for number, (begin, finish) in enumerate(self.gaps):
            start = max(begin, ready)
            if finish - start >= needed:
                left = [(begin, start)] if start > begin else []
                right = [(start + needed, finish)] if finish > start + needed else []
                self.gaps[number : number + 1] = left + right
                del self.gaps[:-MAX_GAPS]
                return start
        start = max(self.free, ready)
        if start > self.free:
            self.gaps.append((self.free, start))
            del self.gaps[:-MAX_GAPS]
        self.free = start + needed
        return start

    def clocks(self) -> list[float]:
        """Every clock, for the search for a steady state."""
        return [self.free, *(time for gap in self.gaps for time in gap)]

    def set_clocks(self, moved: Iterator[float]) -> None:
        """The clocks in the same order."""
        self.free = next(moved)
        self.gaps = [(next(moved), next(moved)) for _ in self.gaps]


class _Slots:
    """The buffers of a tile: when each holds its content, who wrote it, and when it is free."""

    __slots__ = ("current", "ready", "released", "used", "writer")

    def __init__(self, buffers: int) -> None:
        self.current = 0
        self.ready = [0.0] * buffers
        self.released = [0.0] * buffers
        self.writer = -1
        self.used = True


class Scheduler:
    """Schedules programs on one core."""

    def __init__(self, core: NeuronCore, *, throttle: bool = False) -> None:
        self.core = core
        self.engine_model = EngineModel(core)
        self.dma_model = DmaModel(core)
        self.throttle = throttle

    def run(self, program: Program, max_executions: int = 0) -> Schedule:
        """The schedule, with up to ``max_executions`` single executions listed."""
        names = {tile.name: number for number, tile in enumerate(program.tiles)}
        buffers = [tile.buffers for tile in program.tiles]
        nodes = self._nodes(program.steps, names, buffers)
        machine = _Machine(self.core, program, self.throttle, max_executions)
        machine.follow(nodes)
        return machine.schedule()

    def _nodes(
        self,
        steps: Sequence[Instruction | DmaTransfer | Loop],
        names: dict[str, int],
        buffers: Sequence[int],
    ) -> tuple[_Leaf | _LoopNode, ...]:
        return tuple(
            self._loop(step, names, buffers) if isinstance(step, Loop) else self._leaf(step, names)
            for step in steps
        )

    def _loop(self, step: Loop, names: dict[str, int], buffers: Sequence[int]) -> _LoopNode:
        body = self._nodes(step.body, names, buffers)
        written = [buffers[n] for node in body for n in _written(node)]
        touched = tuple(sorted({n for node in body for n in _touched(node)}))
        return _LoopNode(body, step.count, touched, max(written, default=0))

    def _leaf(self, step: Instruction | DmaTransfer, names: dict[str, int]) -> _Leaf:
        reads = tuple(names[name] for name in step.reads)
        writes = tuple(names[name] for name in step.writes)
        if isinstance(step, DmaTransfer):
            dma = self.dma_model.time(step)
            extra = dma.busy_ns * (step.repeat - 1)
            busy, data = dma.busy_ns + extra, dma.data_ns + extra
            return _Leaf(step, DMA, busy, data, reads, writes, dma.issue_ns * step.repeat)
        time = self.engine_model.time(step)
        extra = time.busy_ns * (step.repeat - 1)
        engine = ENGINES.index(step.engine)
        busy, result = time.busy_ns + extra, time.result_ns + extra
        return _Leaf(step, engine, busy, result, reads, writes, accumulate=step.accumulate)


class _Machine:
    """The clocks of a core while a program is followed."""

    def __init__(
        self, core: NeuronCore, program: Program, throttle: bool, max_executions: int
    ) -> None:
        self.core = core
        self.program = program
        self.throttle = throttle
        self.room = max_executions
        self.engines = [_Server() for _ in ENGINES]
        if core.shares_port:
            self.engines[3] = self.engines[1]
        self.busy = [0.0] * len(ENGINES)
        self.active_until = [0.0] * len(ENGINES)
        self.result_at = [0.0] * len(ENGINES)
        self.end = 0.0
        self.issuing = 0.0
        self.data = _Server()
        self.issue = _Server()
        self.tiles = [_Slots(tile.buffers) for tile in program.tiles]
        self.executions: list[Execution] = []
        self.cut = max_executions == 0
        self.pe_load = 1.0

    def schedule(self) -> Schedule:
        self.busy[DMA] = max(self.busy[DMA], self.issuing)
        for engine in range(len(ENGINES)):
            last = self.result_at[engine] - self.active_until[engine]
            self.busy[engine] = min(self.end, self.busy[engine] + last)
        busy = {name: round(ns) for name, ns in zip(ENGINES, self.busy, strict=True) if ns}
        executions = _apart(self.executions)
        memory = memory_use(self.program, executions)
        return Schedule(round(self.end), busy, executions, not self.cut, memory)

    def follow(self, nodes: Sequence[_Leaf | _LoopNode]) -> None:
        for node in nodes:
            if isinstance(node, _LoopNode):
                self._loop(node)
            elif node.engine == DMA:
                self._transfer(node)
            else:
                self._instruction(node)

    def _loop(self, loop: _LoopNode) -> None:
        history: list[list[float]] = []
        lags: list[list[float]] = []
        done = 0
        while done < loop.count:
            self.follow(loop.body)
            done += 1
            left = loop.count - done
            if self.room > 0 or left < 1 or done < loop.warm_up - MAX_PERIOD:
                continue
            history.append(self._clocks(loop))
            lags.append(self._lags(loop))
            is_last = len(history) >= MAX_FOLLOWED
            period = _period(history, lags, is_last) if done > loop.warm_up else 0
            if period and left >= period:
                times = left // period
                self._advance(loop, history[-1], history[-1 - period], times)
                self.cut = True
                done += times * period
                history.clear()
                lags.clear()

    def _instruction(self, leaf: _Leaf) -> None:
        engine = leaf.engine
        ready = self._after_tiles(leaf, 0.0, 0.0)
        busy, result = leaf.busy_ns, leaf.result_ns
        if self.throttle and engine == 0:
            busy, result = self._throttled(max(ready, self.engines[0].free), busy, result)
        start = self.engines[engine].claim_whole(ready, busy)
        self._count(engine, start, busy, result)
        self._write(leaf, start + result, engine)
        self._note(leaf, start, result)

    def _throttled(self, start: float, busy: float, result: float) -> tuple[float, float]:
        """Half the rate for the part of a burst that follows a quiet window."""
        idle = start - self.engines[0].free
        keep = max(0.0, 1 - idle / THROTTLE_WINDOW_NS)
        self.pe_load *= keep
        slow = 0.0
        if self.pe_load < 0.5:
            slow = min(busy, THROTTLE_WINDOW_NS)
        self.pe_load = min(1.0, self.pe_load + busy / THROTTLE_WINDOW_NS)
        added = slow * (1 / self.core.tensor.throttled_rate - 1)
        return busy + added, result + added

    def _transfer(self, leaf: _Leaf) -> None:
        dma = self.core.dma
        ready = max(self._after_tiles(leaf, 0.0, dma.engine_to_trigger_ns), dma.trigger_ns)
        issued, end = self.issue.claim(ready, leaf.issue_ns) if leaf.issue_ns else (ready, ready)
        start, moved = self.data.claim(issued, leaf.busy_ns)
        done = max(end, moved, start + leaf.result_ns) + dma.completion_ns
        self.busy[DMA] += leaf.busy_ns
        self.issuing += leaf.issue_ns
        self.end = max(self.end, done)
        self._write(leaf, done + dma.done_to_engine_ns, DMA)
        self._note(leaf, start, leaf.result_ns)

    def _after_tiles(self, leaf: _Leaf, start: float, delay: float) -> float:
        """The earliest start by what is read and what is overwritten."""
        for number in leaf.reads:
            tile = self.tiles[number]
            ready = tile.ready[tile.current]
            if tile.writer != DMA:
                ready += delay
            start = max(start, ready)
        for number in leaf.writes:
            tile = self.tiles[number]
            if tile.used or not leaf.accumulate:
                start = max(start, tile.released[(tile.current + 1) % len(tile.ready)])
        return start

    def _write(self, leaf: _Leaf, end: float, engine: int) -> None:
        for number in leaf.reads:
            tile = self.tiles[number]
            tile.released[tile.current] = max(tile.released[tile.current], end)
            tile.used = True
        for number in leaf.writes:
            tile = self.tiles[number]
            if tile.used or not leaf.accumulate:
                tile.current = (tile.current + 1) % len(tile.ready)
            tile.used = False
            tile.ready[tile.current] = end
            tile.released[tile.current] = end
            tile.writer = engine

    def _count(self, engine: int, start: float, busy: float, result: float) -> None:
        """Busy time: the work, and the wait for its result until the next one starts."""
        until = self.active_until[engine]
        if start >= until:
            self.busy[engine] += max(0.0, min(self.result_at[engine], start) - until)
            self.active_until[engine] = start + busy
            self.result_at[engine] = start + result
        self.busy[engine] += busy
        self.end = max(self.end, start + result)

    def _note(self, leaf: _Leaf, start: float, duration: float) -> None:
        if self.room <= 0:
            self.cut = True
            return
        step = leaf.step
        self.room -= 1
        begin = round(start)
        self.executions.append(
            Execution(
                step,
                begin,
                round(start + duration) - begin,
                ENGINES[leaf.engine],
                step.queue if isinstance(step, DmaTransfer) else None,
            )
        )

    def _clocks(self, loop: _LoopNode) -> list[float]:
        """Every clock in an order that does not depend on which buffer is current."""
        clocks = [*self.busy, *self.active_until, *self.result_at, self.end, self.issuing]
        for server in (*self.engines, self.data, self.issue):
            clocks += server.clocks()
        for number in loop.tiles:
            tile = self.tiles[number]
            turn = tile.current + 1
            clocks += tile.ready[turn:] + tile.ready[:turn]
            clocks += tile.released[turn:] + tile.released[:turn]
        return clocks

    def _lags(self, loop: _LoopNode) -> list[float]:
        """What cannot grow for ever: how far readers are behind a writer, idle gaps behind work."""
        servers = (*self.engines, self.data, self.issue)
        lags = [server.free - time for server in servers for gap in server.gaps for time in gap]
        for number in loop.tiles:
            tile = self.tiles[number]
            turn = tile.current + 1
            behind = [b - a for a, b in zip(tile.ready, tile.released, strict=True)]
            lags += behind[turn:] + behind[:turn]
        return lags

    def _advance(self, loop: _LoopNode, now: list[float], before: list[float], times: int) -> None:
        """Move every clock on by ``times`` periods.

        The end moves with what ended last; a slower engine may overtake that on the way.
        """
        moved = iter([a + (a - b) * times for a, b in zip(now, before, strict=True)])
        for clocks in (self.busy, self.active_until, self.result_at):
            clocks[:] = [next(moved) for _ in clocks]
        end = next(moved)
        self.issuing = next(moved)
        for server in (*self.engines, self.data, self.issue):
            server.set_clocks(moved)
        transferred = max(self.data.free, self.issue.free) + self.core.dma.completion_ns
        last = transferred if self.issuing or self.busy[DMA] else 0.0
        self.end = max(end, last, *self.active_until, *self.result_at)
        for number in loop.tiles:
            tile = self.tiles[number]
            turn = tile.current + 1
            for clocks in (tile.ready, tile.released):
                rotated = [next(moved) for _ in clocks]
                split = len(clocks) - turn
                clocks[:] = rotated[split:] + rotated[:split]


def _apart(executions: list[Execution]) -> tuple[Execution, ...]:
    """An engine's instruction is shown until the next one starts, though its result comes later."""
    following: dict[str, int] = {}
    order = sorted(range(len(executions)), key=lambda n: -executions[n].start_ns)
    found = list(executions)
    for number in order:
        one = executions[number]
        if one.engine == "dma":
            continue
        limit = following.get(one.engine, one.start_ns + one.duration_ns)
        duration = min(one.duration_ns, limit - one.start_ns)
        found[number] = replace(one, duration_ns=max(0, duration))
        following[one.engine] = one.start_ns
    return tuple(found)


def _touched(node: _Leaf | _LoopNode) -> tuple[int, ...]:
    return node.reads + node.writes if isinstance(node, _Leaf) else node.tiles


def _written(node: _Leaf | _LoopNode) -> tuple[int, ...]:
    if isinstance(node, _Leaf):
        return node.writes
    return tuple(number for part in node.body for number in _written(part))


def _period(history: list[list[float]], lags: list[list[float]], last_try: bool) -> int:
    """Iterations after which every clock moves on as it did before; 0: not yet.

    Where a writer still runs ahead of its readers, its free buffers come to an end.
    """
    for period in range(1, MAX_PERIOD + 1):
        if len(history) <= 2 * period + 1 or not _repeats(history, period):
            continue
        if all(abs(a - b) <= 1e-3 for a, b in zip(lags[-1], lags[-1 - period], strict=True)):
            return period
    if last_try and len(history[-1]) == len(history[-1 - MAX_PERIOD]):
        return MAX_PERIOD
    return 0


def _repeats(history: list[list[float]], period: int) -> bool:
    now, before, earlier = history[-1], history[-1 - period], history[-1 - 2 * period]
    if len(now) != len(before) or len(before) != len(earlier):
        return False
    return all(
        abs((a - b) - (b - c)) <= 1e-6 * (1 + abs(a - b))
        for a, b, c in zip(now, before, earlier, strict=True)
    )


def memory_use(program: Program, executions: tuple[Execution, ...]) -> tuple[MemoryUse, ...]:
    """Bytes of SBUF and PSUM in use over the listed executions.

    A buffer counts from the start of the instruction that fills it to the end of its last reader.
    """
    sizes: dict[str, tuple[str, int]] = {
        tile.name: (tile.memory, tile.bytes_per_partition * 128) for tile in program.tiles
    }
    lives: list[tuple[int, int, str]] = []
    open_lives: dict[str, list[int]] = {}
    for execution in executions:
        end = execution.start_ns + execution.duration_ns
        for name in execution.step.reads:
            if name in open_lives:
                open_lives[name][1] = max(open_lives[name][1], end)
        for name in execution.step.writes:
            if name in open_lives:
                lives.append((*open_lives[name], name))  # type: ignore[arg-type]
            open_lives[name] = [execution.start_ns, end]
    lives += [(begin, end, name) for name, (begin, end) in open_lives.items()]
    return _levels(lives, sizes)


def _levels(
    lives: list[tuple[int, int, str]], sizes: dict[str, tuple[str, int]]
) -> tuple[MemoryUse, ...]:
    changes: dict[int, list[int]] = {}
    for begin, end, name in lives:
        memory, size = sizes[name]
        column = 0 if memory == "sbuf" else 1
        changes.setdefault(begin, [0, 0])[column] += size
        changes.setdefault(end, [0, 0])[column] -= size
    levels, sbuf, psum = [], 0, 0
    for time in sorted(changes):
        sbuf += changes[time][0]
        psum += changes[time][1]
        levels.append(MemoryUse(time, sbuf, psum))
    return tuple(levels)
