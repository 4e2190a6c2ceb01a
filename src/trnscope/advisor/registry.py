"""The list of rules. A rule is one file in ``rules/`` and one line here."""

from __future__ import annotations

from trnscope.advisor.rule import Rule
from trnscope.advisor.rules.allocator_stalls import AllocatorStallsRule
from trnscope.advisor.rules.anomaly_detection import AnomalyDetectionRule
from trnscope.advisor.rules.backward_hooks import BackwardHooksRule
from trnscope.advisor.rules.barrier_in_step import BarrierInStepRule
from trnscope.advisor.rules.blocking_copy import BlockingCopyRule
from trnscope.advisor.rules.checkpoint_in_step import CheckpointInStepRule
from trnscope.advisor.rules.clipping_by_loop import ClippingByLoopRule
from trnscope.advisor.rules.clocks_disagree import ClocksDisagreeRule
from trnscope.advisor.rules.compile_in_window import CompileInWindowRule
from trnscope.advisor.rules.compiled_piece_by_piece import CompiledPieceByPieceRule
from trnscope.advisor.rules.core_waits import CoreWaitsRule
from trnscope.advisor.rules.cpu_fallback import CpuFallbackRule
from trnscope.advisor.rules.dense_embedding_gradient import DenseEmbeddingGradientRule
from trnscope.advisor.rules.device_copies import DeviceCopiesRule
from trnscope.advisor.rules.dtype_casts import DtypeCastsRule
from trnscope.advisor.rules.element_reads import ElementReadsRule
from trnscope.advisor.rules.engine_bound import EngineBoundRule
from trnscope.advisor.rules.evaluation_in_step import EvaluationInStepRule
from trnscope.advisor.rules.exposed_communication import ExposedCommunicationRule
from trnscope.advisor.rules.exposed_copies import ExposedCopiesRule
from trnscope.advisor.rules.float64_ops import Float64OpsRule
from trnscope.advisor.rules.fp32_matmul import Fp32MatmulRule
from trnscope.advisor.rules.fp32_reduction import Fp32ReductionRule
from trnscope.advisor.rules.gc_in_step import GcInStepRule
from trnscope.advisor.rules.graph_breaks import GraphBreaksRule
from trnscope.advisor.rules.graph_replay import GraphReplayRule
from trnscope.advisor.rules.incomplete_capture import IncompleteCaptureRule
from trnscope.advisor.rules.late_reduction import LateReductionRule
from trnscope.advisor.rules.launch_bound import LaunchBoundRule
from trnscope.advisor.rules.layout_copies import LayoutCopiesRule
from trnscope.advisor.rules.loader_bound import LoaderBoundRule
from trnscope.advisor.rules.main_thread_preparation import MainThreadPreparationRule
from trnscope.advisor.rules.many_tiny_ops import ManyTinyOpsRule
from trnscope.advisor.rules.memory_bound import MemoryBoundRule
from trnscope.advisor.rules.model_switches import ModelSwitchesRule
from trnscope.advisor.rules.neuron_compile_recorded import NeuronCompileRecordedRule
from trnscope.advisor.rules.new_shapes import NewShapesRule
from trnscope.advisor.rules.no_steps import NoStepsRule
from trnscope.advisor.rules.pointwise_chain import PointwiseChainRule
from trnscope.advisor.rules.profiler_overhead import ProfilerOverheadRule
from trnscope.advisor.rules.program_per_op import ProgramPerOpRule
from trnscope.advisor.rules.python_overhead import PythonOverheadRule
from trnscope.advisor.rules.rebuilt_constants import RebuiltConstantsRule
from trnscope.advisor.rules.recompiles import RecompilesRule
from trnscope.advisor.rules.recomputed_forward import RecomputedForwardRule
from trnscope.advisor.rules.recurrent_cell_loop import RecurrentCellLoopRule
from trnscope.advisor.rules.reduced_every_micro_batch import ReducedEveryMicroBatchRule
from trnscope.advisor.rules.restarted_workers import RestartedWorkersRule
from trnscope.advisor.rules.single_process_loading import SingleProcessLoadingRule
from trnscope.advisor.rules.slow_attention_path import SlowAttentionPathRule
from trnscope.advisor.rules.slow_collate import SlowCollateRule
from trnscope.advisor.rules.slow_sample_code import SlowSampleCodeRule
from trnscope.advisor.rules.small_collectives import SmallCollectivesRule
from trnscope.advisor.rules.small_dma import SmallDmaRule
from trnscope.advisor.rules.small_grids import SmallGridsRule
from trnscope.advisor.rules.small_host_copies import SmallHostCopiesRule
from trnscope.advisor.rules.small_matmuls import SmallMatmulsRule
from trnscope.advisor.rules.spill_traffic import SpillTrafficRule
from trnscope.advisor.rules.sync_in_step import SyncInStepRule
from trnscope.advisor.rules.thread_oversubscription import ThreadOversubscriptionRule
from trnscope.advisor.rules.throttled import ThrottledRule
from trnscope.advisor.rules.too_few_workers import TooFewWorkersRule
from trnscope.advisor.rules.unfused_attention import UnfusedAttentionRule
from trnscope.advisor.rules.unfused_cross_entropy import UnfusedCrossEntropyRule
from trnscope.advisor.rules.unfused_norm import UnfusedNormRule
from trnscope.advisor.rules.unfused_optimizer import UnfusedOptimizerRule
from trnscope.advisor.rules.unlinked_work import UnlinkedWorkRule
from trnscope.advisor.rules.unpinned_copy import UnpinnedCopyRule
from trnscope.advisor.rules.waits_for_dma import WaitsForDmaRule
from trnscope.advisor.rules.warm_up_recorded import WarmUpRecordedRule
from trnscope.advisor.rules.zeroed_gradients import ZeroedGradientsRule
from trnscope.errors import UsageError

RULES: tuple[Rule, ...] = (
    LoaderBoundRule(),
    SingleProcessLoadingRule(),
    SlowSampleCodeRule(),
    UnpinnedCopyRule(),
    TooFewWorkersRule(),
    RestartedWorkersRule(),
    SlowCollateRule(),
    MainThreadPreparationRule(),
    BlockingCopyRule(),
    SmallHostCopiesRule(),
    SyncInStepRule(),
    LaunchBoundRule(),
    PythonOverheadRule(),
    GcInStepRule(),
    ThreadOversubscriptionRule(),
    ElementReadsRule(),
    AnomalyDetectionRule(),
    CheckpointInStepRule(),
    EvaluationInStepRule(),
    ClippingByLoopRule(),
    BackwardHooksRule(),
    ZeroedGradientsRule(),
    ManyTinyOpsRule(),
    UnfusedOptimizerRule(),
    UnfusedNormRule(),
    PointwiseChainRule(),
    Fp32MatmulRule(),
    LayoutCopiesRule(),
    DtypeCastsRule(),
    UnfusedAttentionRule(),
    SmallMatmulsRule(),
    UnfusedCrossEntropyRule(),
    RebuiltConstantsRule(),
    DenseEmbeddingGradientRule(),
    SlowAttentionPathRule(),
    RecurrentCellLoopRule(),
    Float64OpsRule(),
    ExposedCommunicationRule(),
    SmallCollectivesRule(),
    BarrierInStepRule(),
    LateReductionRule(),
    ReducedEveryMicroBatchRule(),
    Fp32ReductionRule(),
    AllocatorStallsRule(),
    RecomputedForwardRule(),
    MemoryBoundRule(),
    SmallGridsRule(),
    ExposedCopiesRule(),
    DeviceCopiesRule(),
    CpuFallbackRule(),
    ProgramPerOpRule(),
    NewShapesRule(),
    NeuronCompileRecordedRule(),
    ModelSwitchesRule(),
    SmallDmaRule(),
    EngineBoundRule(),
    WaitsForDmaRule(),
    SpillTrafficRule(),
    ThrottledRule(),
    CoreWaitsRule(),
    CompileInWindowRule(),
    RecompilesRule(),
    GraphBreaksRule(),
    CompiledPieceByPieceRule(),
    NoStepsRule(),
    WarmUpRecordedRule(),
    IncompleteCaptureRule(),
    ProfilerOverheadRule(),
    UnlinkedWorkRule(),
    ClocksDisagreeRule(),
    GraphReplayRule(),
)
"""All rules, in the order of the manual."""


def by_specificity() -> tuple[Rule, ...]:
    """The most specific first: what they explain, general rules do not claim."""
    return tuple(sorted(RULES, key=lambda rule: -rule.specificity))


def find_rule(name: str) -> Rule:
    """The rule of this code (``IN01``) or name (``loader-bound``)."""
    wanted = name.strip().lower()
    for rule in RULES:
        if wanted in (rule.code.lower(), rule.name):
            return rule
    raise UsageError(f"no rule {name}", hint="trnscope rule lists them all")
