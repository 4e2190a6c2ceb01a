"""Does from Python what ``trnscope run`` does, and prints what recording cost the script.

    python examples/record_a_script.py train.py --epochs 1

Without arguments it records the demo.
"""

from __future__ import annotations

import sys

from trnscope.capture.options import CaptureSettings, RunOptions
from trnscope.capture.run import run_script
from trnscope.demo import demo_script_path


def main() -> int:
    """Record the script that the arguments name; returns the script's own exit code."""
    target, *args = sys.argv[1:] or [str(demo_script_path()), "--steps", "20"]
    result = run_script(RunOptions(target, tuple(args), capture=CaptureSettings(steps=4)))
    if result.reason is not None:
        print(f"nothing was recorded: {result.reason}")
    for record in result.records:
        overhead = record.overhead
        if record.trace is None or overhead.slowdown_ratio is None:
            continue
        print(f"{record.trace}: {record.num_steps} steps, by {record.steps_by}")
        print(
            f"a recorded step took {100 * overhead.slowdown_ratio:+.0f} %; "
            f"start, stop and writing took {(overhead.total_ns or 0) / 1e9:.2f} s"
        )
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
