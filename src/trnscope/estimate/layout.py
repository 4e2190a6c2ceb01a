"""A parallel layout: how many cores hold copies of the model, how many share one."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.errors import UsageError


@dataclass(frozen=True)
class Layout:
    """Each core runs the recorded step on a batch of its own."""

    dp: int = 1
    """Copies: data parallel; gradients are averaged over them."""
    fsdp: int = 1
    """Cores that share one copy: fully sharded."""

    def __post_init__(self) -> None:
        for name, value in (("--dp", self.dp), ("--fsdp", self.fsdp)):
            if value < 1:
                raise UsageError(f"{name} {value} is no number of cores", hint="give 1 or more")

    @property
    def num_cores(self) -> int:
        """Logical cores in use."""
        return self.dp * self.fsdp

    def check_fits(self, instance: str, num_cores: int, lnc: int) -> None:
        """Raise where the instance has fewer logical cores."""
        if self.num_cores > num_cores:
            raise UsageError(
                f"{self.dp} x {self.fsdp} cores are more than the {num_cores} of {instance} "
                f"with LNC={lnc}",
                hint="lower --dp or --fsdp, or name a larger --instance",
            )


ONE_CORE = Layout()
"""The step as it was recorded."""
