"""What the host and the runtime spend around an execution: constants of ``neuron/runtime.toml``."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.hardware.neuroncore import Numbers, read_neuron_file


@dataclass(frozen=True)
class Runtime:
    """Host-side constants; all times simulated."""

    version: str
    eager_dispatch_ns: int
    """The host's time for an eager op."""
    eager_queue_depth: int
    """Executions that eager mode lets wait on a core: the host waits for the end of the one that
    many launches before."""
    graph_launch_ns: int
    """The host's time for a compiled graph."""
    graph_input_ns: int
    """The host's time for each tensor that it passes to a graph."""
    launch_latency_ns: int
    """From the end of the launch to the start on an idle core."""
    neff_fixed_ns: int
    """On the device, in every execution."""
    neff_switch_ns: int
    """On the device, when another NEFF ran before."""
    sync_ns: int
    """The host's time to notice that a core is done."""
    benchmark_ns: int
    """What ``nki.benchmark`` adds on trn1; only comparisons use it, as the three below."""
    readback_launch_ns: int
    replay_gap_ns: int
    profile_start_ns: int
    copy_fixed_ns: int
    h2d_bytes_per_ns: float
    h2d_large_bytes_per_ns: float
    d2h_bytes_per_ns: float
    d2h_large_bytes_per_ns: float
    staging_bytes: int
    """Copies beyond it run at the large rate."""
    compile_base_ns: int
    compile_per_node_ns: int
    compile_eager_ns: int
    fallback_dispatch_ns: int
    fallback_bytes_per_ns: float


def load_runtime() -> Runtime:
    """The constants as they stand in the data file."""
    tables = read_neuron_file("runtime")
    numbers = Numbers(tables, "runtime.toml")
    whole, real = numbers.whole, numbers.get
    return Runtime(
        version=str(tables["version"]),
        eager_dispatch_ns=whole("eager", "dispatch_ns"),
        eager_queue_depth=whole("eager", "queue_depth"),
        graph_launch_ns=whole("launch", "graph_ns"),
        graph_input_ns=whole("launch", "graph_input_ns"),
        launch_latency_ns=whole("launch", "latency_ns"),
        neff_fixed_ns=whole("launch", "neff_fixed_ns"),
        neff_switch_ns=whole("launch", "neff_switch_ns"),
        sync_ns=whole("launch", "sync_ns"),
        benchmark_ns=whole("measurement", "benchmark_ns"),
        readback_launch_ns=whole("measurement", "readback_launch_ns"),
        replay_gap_ns=whole("measurement", "replay_gap_ns"),
        profile_start_ns=whole("measurement", "profile_start_ns"),
        copy_fixed_ns=whole("copy", "fixed_ns"),
        h2d_bytes_per_ns=real("copy", "h2d_bytes_per_ns"),
        h2d_large_bytes_per_ns=real("copy", "h2d_large_bytes_per_ns"),
        d2h_bytes_per_ns=real("copy", "d2h_bytes_per_ns"),
        d2h_large_bytes_per_ns=real("copy", "d2h_large_bytes_per_ns"),
        staging_bytes=whole("copy", "staging_bytes"),
        compile_base_ns=whole("compile", "base_ns"),
        compile_per_node_ns=whole("compile", "per_node_ns"),
        compile_eager_ns=whole("compile", "eager_ns"),
        fallback_dispatch_ns=whole("fallback", "dispatch_ns"),
        fallback_bytes_per_ns=real("fallback", "host_bytes_per_ns"),
    )
