"""Reports in narrow and wide terminals, and in pipes: lines fit, numbers and names stay whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from trnscope.analysis.breakdown import breakdown
from trnscope.analysis.kernels import kernels
from trnscope.analysis.launch import launches
from trnscope.analysis.ops import ops
from trnscope.analysis.overlap import overlap
from trnscope.analysis.steps import steps
from trnscope.analysis.summary import summarize
from trnscope.cli.output import PIPED_WIDTH
from trnscope.model.kinds import SliceKind
from trnscope.report.breakdown import breakdown_lines
from trnscope.report.kernels import kernels_lines
from trnscope.report.launch import launch_lines
from trnscope.report.ops import ops_lines
from trnscope.report.overlap import overlap_lines
from trnscope.report.steps import steps_lines
from trnscope.report.summary import summary_lines
from trnscope.report.text import fold
from trnscope.report.view import View
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

REPORTS: dict[str, tuple[Callable[[Profile], Any], Callable[[Any, View], Iterable[Text]]]] = {
    "summary": (summarize, summary_lines),
    "steps": (steps, steps_lines),
    "breakdown": (breakdown, breakdown_lines),
    "ops": (ops, ops_lines),
    "kernels": (kernels, kernels_lines),
    "overlap": (overlap, overlap_lines),
    "launch": (launches, launch_lines),
}
KERNEL = (
    "void at::native::(anonymous namespace)::vectorized_elementwise_kernel<4, at::native::{}, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)
FUNCTORS = ("CUDAFunctor_add<float>", "CUDAFunctor_mul<float>")
NUMBER = re.compile(r"(?<![\w:.])\d[\d,.]*(?: (?:[nµm]?s|%))?(?![\w:])")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Two ranks; on each two kernels with long names, a copy and a collective on three streams."""
    return Profile(tuple(_rank(tmp_path_factory.mktemp("t") / "t", rank) for rank in range(2)))


def _rank(path: Path, rank: int) -> Any:
    builder = TraceBuilder(path, rank=rank)
    host, compute = builder.thread(), builder.stream(stream=7)
    copies, communication = builder.stream(stream=13), builder.stream(stream=20)
    work = [(compute, KERNEL.format(functor), SliceKind.KERNEL) for functor in FUNCTORS]
    work += [
        (copies, "Memcpy HtoD (Pageable -> Device)", SliceKind.MEMCPY),
        (communication, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", SliceKind.COLLECTIVE),
    ]
    for step in range(2):
        at = step * 2_000_000_000
        builder.slice(host, f"ProfilerStep#{step + 100}", at, 1_234_567_891, SliceKind.ANNOTATION)
        for number, (stream, name, kind) in enumerate(work):
            call, start = 4 * step + number + 1, at + 1000 + number * 100_000_000
            builder.slice(host, "aten::_" + "very_" * 20 + f"long_{number}", start, 50_000)
            builder.slice(host, "cudaLaunchKernel", start + 10, 10_000, SliceKind.RUNTIME,
                          correlation=call)  # fmt: skip
            builder.slice(stream, name, start + 100_000, 123_456_789, kind, correlation=call)
    return builder.build()


def lines_of(profile: Profile, command: str, width: int | None) -> list[str]:
    analysis, render = REPORTS[command]
    lines = list(render(analysis(profile), View(width=width)))
    if width is None:
        return [line.plain for line in lines]
    return [part.plain for line in lines for part in fold(line, width)]


@pytest.mark.parametrize("width", [60, 80, PIPED_WIDTH])
@pytest.mark.parametrize("command", REPORTS)
def test_lines_fit_and_every_number_is_whole(profile: Profile, command: str, width: int) -> None:
    lines = lines_of(profile, command, width)
    assert max(map(len, lines)) <= width
    whole = "\n".join(lines_of(profile, command, None))
    numbers = Counter(NUMBER.findall("\n".join(lines)))
    assert len(numbers) > 3
    # Names may lose digits where they are cut; figures, with their units, may not.
    for number, count in Counter(NUMBER.findall(whole)).items():
        if " " in number:
            assert numbers[number] == count, number


@pytest.mark.parametrize("width", [60, 80, 120])
def test_ends_of_names_tell_kernels_apart(profile: Profile, width: int) -> None:
    lines = lines_of(profile, "kernels", width)
    for functor in FUNCTORS:
        assert len([line for line in lines if functor[-15:] in line]) == 1
    assert not [line for line in lines if "(int, at::native" in line]


def test_names_keep_their_room_in_the_narrowest_terminal(profile: Profile) -> None:
    lines = lines_of(profile, "ops", 60)
    names = [line for line in lines if line.startswith("aten::_very")]
    assert len(names) == 4
    assert all(re.search(r"very_long_\d$", name) for name in names)
    assert {len(name) for name in names} == {60}
