"""Graphs that torch traced, as the cost model takes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from trnscope.sim.cost import CostModel  # noqa: E402
from trnscope.sim.graph_spec import to_spec  # noqa: E402
from trnscope.sim.signature import CollectiveSpec  # noqa: E402


@pytest.fixture
def eight_ranks() -> Iterator[None]:
    """A group of eight that sends nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("eight_ranks")
def test_a_traced_collective_knows_the_size_of_its_group() -> None:
    functional = torch.ops._c10d_functional
    group = dist.group.WORLD.group_name

    def reduced(x: torch.Tensor) -> torch.Tensor:
        return functional.wait_tensor(functional.all_reduce(x, "sum", group))

    value = torch.ones(256, 256)
    spec = to_spec("reduced", make_fx(reduced)(value), [value])
    (op,) = [node.op for node in spec.nodes if "all_reduce" in node.op.name]
    assert dict(op.attributes)["group_size"] == 8
    model = CostModel.for_instance("trn1.32xlarge")
    law = CollectiveSpec("all_reduce", 4 * 256 * 256, 8)
    fixed = model.runtime.neff_fixed_ns
    expected = fixed + model.collectives.of_a_graph_ns([law])
    assert model.graph(spec).device_ns == pytest.approx(expected, abs=1)
