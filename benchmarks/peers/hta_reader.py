"""Load a trace with HTA and print its kernel breakdown and its operator counts.

Runs in HTA's own virtual environment (it needs pandas below 3); the benchmark makes it. HTA's
rounding to whole microseconds is switched off: that is faster, and keeps its sums exact.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
    kinds, kernels = analysis.get_gpu_kernel_breakdown(
        visualize=False, duration_ratio=1.0, num_kernels=1_000_000
    )
    frame = analysis.t.get_trace(0)
    symbols = analysis.t.symbol_table.get_sym_table()
    sums = frame.groupby(["cat", "name"])["dur"].agg(["count", "sum"])
    groups = [
        [symbols[cat] if cat >= 0 else "", symbols[name], int(row["count"]), float(row["sum"])]
        for (cat, name), row in sums.iterrows()
    ]
    answer = {
        "num_events": len(frame),
        "kernel_kinds": kinds.to_dict("records"),
        "kernels": kernels.to_dict("records"),
        "groups": groups,
    }
    print(json.dumps(answer, default=float))


if __name__ == "__main__":
    main()
