"""Compares the cost model with published measurements, block by block.

``python -m benchmarks.sim_accuracy [--measured CSV] [--workloads FILE] [--page FILE]``

The table has a row a figure; the workload file says what each row ran, as ATen ops with shapes and
a mode or as a tile program of engine instructions. Rows that the code has never seen need only an
entry there. Constants come from the data files alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.accuracy.compare import compare
from benchmarks.accuracy.measured import read
from benchmarks.accuracy.page import page
from benchmarks.accuracy.problems import InputProblem
from benchmarks.accuracy.summary import text
from benchmarks.accuracy.workloads import left_out_rules, load
from trnscope.sim.cost import CostModel

ROOT = Path(__file__).parents[1]
MEASURED = ROOT.parent / "shared" / "reference" / "neuroncore_measured.csv"
WORKLOADS = Path(__file__).with_name("sim_workloads.toml")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.sim_accuracy", description=__doc__)
    parser.add_argument("--measured", type=Path, default=MEASURED, help="table of measurements")
    parser.add_argument("--workloads", type=Path, default=WORKLOADS, help="what its rows ran")
    parser.add_argument("--page", type=Path, help="also write the page of docs here")
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    for path in (arguments.measured, arguments.workloads):
        if not path.is_file():
            print(f"{path}: no such file; name the table with --measured", file=sys.stderr)
            return 1
    try:
        rules = left_out_rules(arguments.workloads)
        comparison = compare(read(arguments.measured), load(arguments.workloads), rules)
    except InputProblem as problem:
        named = str(problem).startswith((str(arguments.measured), str(arguments.workloads)))
        print(problem if named else f"{arguments.workloads}: {problem}", file=sys.stderr)
        return 1
    version = CostModel.for_instance("trn2").version
    print(f"simulated by model version {version}; measured by others\n")
    print(text(comparison))
    if arguments.page:
        arguments.page.write_text(page(comparison, version), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
