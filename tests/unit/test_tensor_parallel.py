"""A model's layers split over cores: which, into what shapes, and what is then exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from trnscope.estimate.recorded import TensorCollective
from trnscope.estimate.tensor_parallel import SplitError, TensorParallel, find_groups

WIDTH, HIDDEN, VOCABULARY = 16, 32, 48
BATCH, TOKENS = 2, 3


class Attention(nn.Module):
    def __init__(self, num_heads: int = 4, num_kv_heads: int = 2) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_width = num_heads, num_kv_heads, 4
        self.q = nn.Linear(WIDTH, num_heads * 4, bias=False)
        self.k = nn.Linear(WIDTH, num_kv_heads * 4, bias=False)
        self.v = nn.Linear(WIDTH, num_kv_heads * 4)
        self.o = nn.Linear(num_heads * 4, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        query = self.q(x).view(batch, tokens, self.num_heads, self.head_width)
        shared = self.num_heads // self.num_kv_heads
        key, value = (
            layer(x).view(batch, tokens, -1, self.head_width).repeat_interleave(shared, 2)
            for layer in (self.k, self.v)
        )
        mixed: torch.Tensor = self.o((query * key * value).flatten(2))
        return mixed


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Linear(WIDTH, HIDDEN)
        self.w2 = nn.Linear(HIDDEN, WIDTH)
        self.w3 = nn.Linear(WIDTH, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        narrowed: torch.Tensor = self.w2(self.w1(x) * self.w3(x))
        return narrowed


class Model(nn.Module):
    def __init__(self, *, recompute: bool = False, tied: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        self.recompute = recompute

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        x = checkpoint(self.layer, x, use_reentrant=False) if self.recompute else self.layer(x)
        logits: torch.Tensor = self.head(x)
        return logits

    def layer(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        result: torch.Tensor = x + self.feed_forward(x)
        return result


@pytest.fixture
def halves() -> Iterator[TensorParallel]:
    parallel = TensorParallel(2)
    yield parallel
    parallel.stop()


def tokens() -> torch.Tensor:
    return torch.zeros(BATCH, TOKENS, dtype=torch.long)


def test_layers_that_lead_back_to_the_width_are_split_by_rows() -> None:
    attention, feed_forward = find_groups(Model())
    assert [name for name, _ in attention.columns] == ["q", "k", "v"]
    assert attention.rows[0] == "o"
    assert [name for name, _ in feed_forward.columns] == ["w1", "w3"]
    assert feed_forward.rows[0] == "w2"


def test_other_linear_layers_are_left_alone() -> None:
    assert find_groups(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))) == ()
    assert find_groups(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 8))) == ()
    (pair,) = find_groups(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)))
    assert (pair.name, pair.rows[0]) == ("Sequential", "2")


def test_a_core_keeps_its_share_of_the_weights(halves: TensorParallel) -> None:
    model = Model()
    logits = model(tokens())
    assert logits.shape == (BATCH, TOKENS, VOCABULARY)
    attention, feed_forward = model.attention, model.feed_forward
    assert attention.q.weight.shape == (8, WIDTH)
    assert attention.v.weight.shape == (4, WIDTH)
    assert attention.v.bias.shape == (4,)
    assert attention.o.weight.shape == (WIDTH, 8)
    assert attention.o.bias.shape == (WIDTH,)
    assert (attention.num_heads, attention.num_kv_heads) == (2, 1)
    assert feed_forward.w2.weight.shape == (WIDTH, HIDDEN // 2)
    assert model.embedding.weight.shape == model.head.weight.shape == (VOCABULARY // 2, WIDTH)


@pytest.mark.parametrize("tied", [False, True])
def test_what_a_training_step_exchanges(halves: TensorParallel, tied: bool) -> None:
    """The embedding and both parts forward; both parts and the output layer backward."""
    model = Model(tied=tied)
    model(tokens()).sum().backward()
    activations = BATCH * TOKENS * WIDTH * 4
    assert set(halves.sent()) == {
        TensorCollective("all_reduce", activations, 3 + 3),
        TensorCollective("all_gather", BATCH * TOKENS * VOCABULARY * 4, 1),
    }
    assert model.embedding.weight.grad is not None
    halves.begin()
    assert halves.sent() == ()


def test_what_is_recomputed_is_exchanged_again(halves: TensorParallel) -> None:
    """But for the last sum of the part: recomputation ends before it, as nothing needs it."""
    Model(recompute=True)(tokens()).sum().backward()
    counts = {one.kind: one.count for one in halves.sent()}
    assert counts == {"all_reduce": 3 + 1 + 3, "all_gather": 1}


def test_inference_has_no_way_back(halves: TensorParallel) -> None:
    with torch.no_grad():
        Model()(tokens())
    assert {one.kind: one.count for one in halves.sent()} == {"all_reduce": 3, "all_gather": 1}


def test_a_model_that_cannot_be_split_says_why() -> None:
    parallel = TensorParallel(4)
    parallel.stop()
    with pytest.raises(SplitError, match=r"attention has 2 heads \(num_kv_heads\)"):
        parallel.split(Model())
    with pytest.raises(SplitError, match="Linear has no module whose linear layers lead back"):
        parallel.split(nn.Linear(8, 8))
    odd = nn.Sequential(nn.Linear(8, 30), nn.GELU(), nn.Linear(30, 8))
    with pytest.raises(SplitError, match=r"Sequential\.0 has 30 columns"):
        parallel.split(odd)
