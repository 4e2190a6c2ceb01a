"""The models that the programs train, one file each."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from benchmarks.doctor.models.convnet import Convnet
from benchmarks.doctor.models.recommender import Recommender
from benchmarks.doctor.models.rnn import Rnn
from benchmarks.doctor.models.transformer import Transformer
from benchmarks.doctor.plan import Plan

MODELS: dict[str, Callable[[Plan], nn.Module]] = {
    "convnet": Convnet,
    "transformer": Transformer,
    "recommender": Recommender,
    "rnn": Rnn,
}
