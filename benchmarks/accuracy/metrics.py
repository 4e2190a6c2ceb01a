"""From a prediction to a measured row's metric, in the row's unit."""

from __future__ import annotations

from benchmarks.accuracy.predict import Prediction, model_for
from benchmarks.accuracy.workloads import Workload

TIME_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
TIMES = (
    "time",
    "latency",
    "time_per_launch",
    "forward_time",
    "total_active",
    "total_time",
    "time_avg",
    "host_time",
    "time_per_iter",
    "initiation_interval",
    "fixed_time",
    "tpot_p50",
    "step_time",
    "latency_upper_bound",
)
ENGINES = {
    "pe_active_pct": "tensor",
    "dma_active_pct": "dma",
    "vector_active_pct": "vector",
    "vector_engine_active_time_percent": "vector",
    "scalar_engine_active_time_percent": "scalar",
}
TIMING_UNITS = {*TIME_UNITS, "TFLOP/s", "TOP/s", "GB/s", "tok/s", "steps/s", "graph-steps/s"}


class NoMetricError(ValueError):
    """The model has no figure for this metric."""


def value(metric: str, unit: str, workload: Workload, found: Prediction) -> float:
    """The predicted value of a row."""
    name = metric.split(" ")[0]
    if name in TIMES:
        if unit not in TIME_UNITS:
            raise NoMetricError(f"no figure for a {name} in {unit!r}")
        return found.time_ns / TIME_UNITS[unit]
    if not found.time_ns or not found.device_ns:
        raise NoMetricError(f"no figure for {name}: the workload takes no time")
    if name in ("throughput", "bandwidth", "pct_of_measured_peak"):
        return _rate(name, unit, workload, found)
    if name == "bandwidth_rel_to_32KiB":
        return workload.number("bytes") / found.time_ns / workload.number("reference_bytes_per_ns")
    if name in ENGINES:
        share = found.engine_ns.get(ENGINES[name], 0) / found.device_ns
        return share * (100 if unit == "pct" else 1)
    return _counter(name, workload, found)


def _rate(name: str, unit: str, workload: Workload, found: Prediction) -> float:
    if unit in ("TFLOP/s", "TOP/s"):
        return found.flops / found.time_ns / 1e3
    if unit == "GB/s":
        moved = workload.number("bytes", found.read_bytes + found.write_bytes)
        return moved / found.time_ns
    if name == "pct_of_measured_peak":
        return 100 * found.flops / found.time_ns / 1e3 / workload.number("peak_tflops")
    return workload.number("items", 1.0) / found.time_ns * 1e9


def _counter(name: str, workload: Workload, found: Prediction) -> float:
    if name == "hbm_read_bytes":
        return found.read_bytes
    if name == "hbm_write_bytes":
        return found.write_bytes
    if name == "matmul_instr":
        return 2.0 * found.opcodes.get("MATMUL", 0)
    if name == "vector_instr":
        return float(sum(n for op, n in found.opcodes.items() if op != "MATMUL"))
    if name == "mfu_pct":
        peak = dict(model_for(workload.instance, workload.lnc).core.peak_flops)["bfloat16"]
        return 100 * found.flops / (found.time_ns * peak / 1e9)
    if name == "mbu_pct":
        moved = found.read_bytes + found.write_bytes
        return 100 * moved / found.time_ns / workload.number("mbu_bytes_per_ns", 716.0)
    raise NoMetricError(f"no figure for {name}")


def is_timing(metric: str, unit: str) -> bool:
    """The row is a time or a rate, not a counter."""
    return unit in TIMING_UNITS or metric.split(" ")[0] in (
        "pct_of_measured_peak",
        "bandwidth_rel_to_32KiB",
    )
