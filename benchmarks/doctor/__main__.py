"""``python -m benchmarks.doctor``: runs the corpus, scores a half and writes docs/doctor.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.doctor.case import HALVES, Case, Twin, all_cases
from benchmarks.doctor.corpus import FOLDER, Corpus
from benchmarks.doctor.damage import Damaged, all_damaged, is_careful
from benchmarks.doctor.page import page
from benchmarks.doctor.score import Careful, Healthy, Judged, Said, Score, score
from benchmarks.doctor.workshop import Failed, import_all

PAGE = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
Program = Case | Twin | Damaged


def main() -> None:
    """Run what is not there yet, score, write."""
    options = _options()
    import_all()
    cases = [case for case in all_cases() if _is_wanted(case, options)]
    twins = list(dict.fromkeys(case.twin for case in cases))
    damaged = [one for one in all_damaged() if one.half == options.half and not options.only]
    work: list[Program] = [*cases, *(twin for twin in twins), *damaged]
    failed = _run(work, options)
    corpus = Corpus(options.folder)
    done = _score(corpus, cases, [twin for twin in twins if twin.half == options.half], damaged)
    text = page(done, options.half, failed, options.device)
    if options.details:
        _show_details(done)
    if options.only or options.details:
        print(text)
    else:
        PAGE.write_text(text)
        print(f"wrote {PAGE}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.doctor", description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="held")
    parser.add_argument("--only", action="append", metavar="KIND", help="only these faults")
    parser.add_argument("--device", choices=("cpu", "neuron"), help="only the programs on it")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--details", action="store_true", help="each case; for the tuning half")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    if options.details and options.half == "held":
        parser.error("single cases of the held half are not looked at")
    return options


def _is_wanted(case: Case, options: argparse.Namespace) -> bool:
    is_kind = not options.only or case.fault.kind in options.only
    return case.half == options.half and is_kind and options.device in (None, case.device)


def _run(work: Sequence[Program], options: argparse.Namespace) -> list[str]:
    """Names of the programs that did not run. The work is shared among some processes."""
    started = time.monotonic()
    shards = []
    for shard in range(1, options.jobs):
        pid = os.fork()
        if pid == 0:
            _run_shard(work[shard :: options.jobs], options, started)
            os._exit(0)
        shards.append(pid)
    _run_shard(work[:: options.jobs], options, started)
    for pid in shards:
        os.waitpid(pid, 0)
    corpus = Corpus(options.folder)
    return [one.name for one in work if not corpus.has(one)]


def _run_shard(work: Sequence[Program], options: argparse.Namespace, started: float) -> None:
    corpus = Corpus(options.folder)
    for number, one in enumerate(work, start=1):
        try:
            corpus.result(one)
            if isinstance(one, Case):
                corpus.timing(one)
            word = ""
        except Failed as error:
            word = f" failed: {error}"
        seconds = time.monotonic() - started
        is_open = options.half == "tuning" or not isinstance(one, Case)
        name = one.name if is_open else f"{one.half} case"
        print(f"{seconds:5.0f} s  {number}/{len(work)}  {name}{word}", file=sys.stderr, flush=True)


def _score(
    corpus: Corpus, cases: Sequence[Case], twins: Sequence[Twin], damaged: Sequence[Damaged]
) -> Score:
    judged = [_judged(corpus, case) for case in cases if corpus.has(case) and corpus.has(case.twin)]
    healthy = [Healthy(one.name, _timed_codes(corpus.result(one))) for one in twins
               if corpus.has(one)]  # fmt: skip
    careful = [Careful(one.name, is_careful(corpus.result(one))) for one in damaged
               if corpus.has(one)]  # fmt: skip
    return score(judged, healthy, careful)


def _judged(corpus: Corpus, case: Case) -> Judged:
    document, timing = corpus.result(case), corpus.timing(case)
    faulty_ns = healthy_ns = None
    if timing is not None:
        faulty_ns, healthy_ns = timing["faulty_ns"], timing["healthy_ns"]
    elif case.fault.costs:
        faulty_ns = document["all_steps_ns"] or 0
        healthy_ns = corpus.result(case.twin)["all_steps_ns"] or 0
    return Judged(
        case.name,
        case.fault.kind,
        case.device,
        case.fault.codes,
        case.fault.costs,
        tuple(_said(one) for one in document["findings"]),
        faulty_ns,
        healthy_ns,
    )


def _said(finding: dict[str, Any]) -> Said:
    times = finding["recoverable_ns_per_step"]
    return Said(finding["code"], *(times or (None, None, None)), finding["share_of_step"])


def _timed_codes(document: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        one["code"] for one in document["findings"] if one["recoverable_ns_per_step"] is not None
    )


def _show_details(done: Score) -> None:
    for one in sorted((*done.judged, *done.small), key=lambda one: one.name):
        mark = "." if one.is_first else ("3" if one.is_among(3) else "X")
        mark = mark if one.matters else "s"
        said = " ".join(f"{s.code}:{100 * (s.share or 0):.0f}" for s in one.said)
        came = "-" if not one.faulty_ns else f"{100 * (one.realised_ns or 0) / one.faulty_ns:.0f} %"
        low_high = ""
        if one.predicted_ns and one.faulty_ns:
            low_high = "/".join(f"{100 * t / one.faulty_ns:.0f}" for t in one.predicted_ns)
        error = "" if one.error is None else f"err {100 * one.error:.0f} %"
        print(f"{mark} {one.name:<52} came {came:>6} pred {low_high:<10} {error:<9} {said}")


if __name__ == "__main__":
    main()
