"""The open model of the NeuronCore: from ops and graphs to instructions, transfers and times."""

from trnscope.sim.cost.model import CostModel

__all__ = ["CostModel"]
