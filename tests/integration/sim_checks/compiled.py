"""``torch.compile`` on the device: one execution a graph, with the numbers of eager mode."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import nn
from torch.nn import functional

import trnscope.sim
from trnscope.errors import UsageError
from trnscope.sim.cost import CostModel
from trnscope.sim.signature import GraphNode, GraphSpec, OpSignature, TensorSpec

DEVICE = trnscope.sim.activate()
LOG = DEVICE.extension
GRAPH = 5


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.RMSNorm(64), nn.Linear(64, 8))


def launched() -> list[str]:
    by_number = [row[1] for row in LOG.executions()]
    log = LOG.launch_columns()
    return [by_number[n] for n, kind in zip(log["signature"], log["kind"], strict=True)
            if kind == GRAPH]  # fmt: skip


def check_training_equals_eager() -> None:
    theirs = model()
    ours = copy.deepcopy(theirs).to("neuron")
    compiled = torch.compile(ours, backend="neuron")
    for step in range(3):
        torch.manual_seed(step)
        x = torch.randn(4, 32)
        losses = []
        for net, parameters, batch in (
            (theirs, theirs.parameters(), x),
            (compiled, ours.parameters(), x.to("neuron")),
        ):
            loss = net(batch).square().mean()
            loss.backward()
            losses.append(loss.item())
            with torch.no_grad():
                for parameter in parameters:
                    assert parameter.grad is not None
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
        assert losses[0] == losses[1]
    for a, b in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert torch.equal(a, b.cpu())


def check_a_graph_is_one_execution_each_way() -> None:
    net = torch.compile(model().to("neuron"), backend="neuron")
    x = torch.randn(5, 32, device="neuron")
    net(x).sum().backward()
    torch.neuron.synchronize()
    LOG.clear_log()
    net(x).sum().backward()
    names = launched()
    assert len(names) == 2 and names[1] == f"{names[0]}_backward"


def check_the_cost_is_the_models_of_the_whole_graph() -> None:
    @torch.compile(backend="neuron", fullgraph=True)
    def call(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return functional.relu(a @ b)

    a = torch.randn(128, 256, device="neuron")
    b = torch.randn(256, 512, device="neuron")
    LOG.clear_log()
    call(a, b)
    product, relu = (TensorSpec(shape, "float32") for shape in ((128, 512), (128, 512)))
    left, right = TensorSpec((128, 256), "float32"), TensorSpec((256, 512), "float32")
    spec = GraphSpec(
        "any",
        (
            GraphNode(OpSignature("aten::mm", (left, right), (product,)), (0, 1), (2,)),
            GraphNode(OpSignature("aten::relu", (product,), (relu,)), (2,), (3,)),
        ),
        (0, 1),
        (3,),
    )
    cost = CostModel.for_instance("trn2.3xlarge").graph(spec)
    log = LOG.launch_columns()
    assert log["kind"].tolist() == [GRAPH]
    spent = log["host_end_ns"] - log["host_start_ns"] - log["compile_ns"]
    assert spent.tolist() == [cost.host_ns]
    assert log["compile_ns"].tolist() == [cost.compile_ns]
    length = log["device_end_ns"] - log["device_start_ns"]
    assert length.tolist() == [cost.device_ns + DEVICE.model.runtime.neff_switch_ns]


def check_a_new_shape_is_a_new_program() -> None:
    net = torch.compile(model().to("neuron"), backend="neuron")
    compiled = []
    for batch in (2, 3, 2, 4):
        x = torch.randn(batch, 32, device="neuron")
        LOG.clear_log()
        assert net(x).shape == (batch, 8)
        log = LOG.launch_columns()
        compiled.append(bool(log["compile_ns"][log["kind"] == GRAPH].sum()))
    assert compiled == [True, True, False, True]


def check_it_is_chosen_on_the_device() -> None:
    net = model().to("neuron")
    x = torch.randn(3, 32, device="neuron")
    compiled = torch.compile(net)
    with torch.no_grad():
        LOG.clear_log()
        assert torch.equal(compiled(x).cpu(), net(x).cpu())
    assert len(launched()) == 1


def check_a_mode_is_ignored_with_a_warning_also_where_it_is_chosen() -> None:
    net = model().to("neuron")
    x = torch.randn(3, 32, device="neuron")
    for arguments in ({"mode": "reduce-overhead"}, {"options": {"max_autotune": True}}):
        torch._dynamo.reset()
        LOG.clear_log()
        with warnings.catch_warnings(record=True) as caught, torch.no_grad():
            warnings.simplefilter("always")
            assert torch.equal(torch.compile(net, **arguments)(x).cpu(), net(x).cpu())
        assert len(launched()) == 1
        said = any("reduce-overhead" in str(warning.message) for warning in caught)
        assert said == ("mode" in arguments)


def check_the_cpu_keeps_inductor_and_its_modes() -> None:
    taken = []

    def wrapper(mode: object, options: object, dynamic: object) -> object:
        taken.append((mode, options, dynamic))
        return lambda module, _inputs: module.forward

    original = torch._TorchCompileInductorWrapper
    torch._TorchCompileInductorWrapper = wrapper
    try:
        for arguments in ({}, {"mode": "max-autotune"}, {"options": {"trace.enabled": False}}):
            torch._dynamo.reset()
            torch.compile(model(), dynamic=False, **arguments)(torch.randn(2, 32))
    finally:
        torch._TorchCompileInductorWrapper = original
    assert taken == [
        ("default", None, False),
        ("max-autotune", None, False),
        (None, {"trace.enabled": False}, False),
    ]


def check_what_it_does_not_have_is_said() -> None:
    try:
        torch.compile(model(), backend="neuron", dynamic=True)
    except UsageError as error:
        assert "dynamic" in str(error)
    else:
        raise AssertionError("dynamic=True was taken")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compile(model().to("neuron"), backend="neuron", mode="max-autotune")(
            torch.randn(2, 32, device="neuron")
        )
    assert any("max-autotune" in str(warning.message) for warning in caught)


def check_attention_and_random_numbers_in_a_graph() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        y = functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        return functional.dropout(y, 0.5)

    x = torch.randn(2, 4, 16, 8, device="neuron")
    torch.manual_seed(7)
    eager = call(x).cpu()
    torch.manual_seed(7)
    compiled = torch.compile(call, backend="neuron")(x).cpu()
    assert torch.equal(eager, compiled)
