"""Run by test_hta.py in an environment of its own: prints HTA's numbers for each file as JSON."""

from __future__ import annotations

import json
import logging
import math
import sys
import warnings


def main(paths: list[str]) -> None:
    """Print ``{path: {idle, compute, non_compute, kernel_time, overlap}}``; times in µs."""
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    from hta.trace_analysis import TraceAnalysis

    answers = {}
    for path in paths:
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir="/")
        times = analysis.get_temporal_breakdown(visualize=False).iloc[0]
        overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
        percent = float(overlap["comp_comm_overlap_pctg"])
        answers[path] = {
            "idle": float(times["idle_time(us)"]),
            "compute": float(times["compute_time(us)"]),
            "non_compute": float(times["non_compute_time(us)"]),
            "kernel_time": float(times["kernel_time(us)"]),
            "overlap": None if math.isnan(percent) else percent,
        }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
