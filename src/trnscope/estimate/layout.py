"""A parallel layout: how many cores hold copies of the model, how many share one, or a layer."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.errors import UsageError


@dataclass(frozen=True)
class Layout:
    """Each core, or each group of ``tp`` cores, runs the recorded step on a batch of its own."""

    dp: int = 1
    """Copies: data parallel; gradients are averaged over them."""
    fsdp: int = 1
    """Cores that share one copy: fully sharded."""
    tp: int = 1
    """Cores that share each layer's work on one batch: tensor parallel."""

    def __post_init__(self) -> None:
        for name, value in (("--dp", self.dp), ("--fsdp", self.fsdp), ("--tp", self.tp)):
            if value < 1:
                raise UsageError(f"{name} {value} is no number of cores", hint="give 1 or more")

    @property
    def num_cores(self) -> int:
        """Logical cores in use."""
        return self.dp * self.fsdp * self.tp

    @property
    def num_batches(self) -> int:
        """Batches that are worked on at a time."""
        return self.dp * self.fsdp

    @property
    def one_group(self) -> Layout:
        """The smallest layout of this kind: what the recorded step runs on."""
        return Layout(tp=self.tp)

    def check_fits(self, instance: str, num_cores: int, lnc: int) -> None:
        """Raise where the instance has fewer logical cores."""
        if self.num_cores > num_cores:
            raise UsageError(
                f"{self._product} cores are more than the {num_cores} of {instance} with LNC={lnc}",
                hint=f"lower {' or '.join(self._options)}, or name a larger --instance",
            )

    @property
    def _product(self) -> str:
        sizes = [self.dp, self.fsdp] + ([self.tp] if self.tp > 1 else [])
        return " x ".join(map(str, sizes))

    @property
    def _options(self) -> list[str]:
        return ["--dp", "--fsdp"] + (["--tp"] if self.tp > 1 else [])


ONE_CORE = Layout()
"""The step as it was recorded."""
