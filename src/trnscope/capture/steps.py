"""Decides which optimizer steps and module calls of a script end one of its steps.

The rule, for optimizers and modules alike: a step ends with *the last of them to have made
its first appearance*. One optimizer: each of its steps. A GAN's two: the second one's, so an
iteration counts once. A critic stepped five times before its generator: the generator's. One
optimizer per parameter: the last one's. Micro-batches of gradient accumulation end no step,
because the optimizer does not step after them. When recording starts the choice is frozen.

Optimizers come before modules: once an optimizer has stepped, module calls count no more.
"""

from __future__ import annotations

import weakref

from trnscope.capture.options import StepsBy


class LastOfCycle:
    """Of things that take turns, finds the one that ends each round."""

    def __init__(self) -> None:
        self._seen: dict[int, weakref.ref[object]] = {}
        self._last: weakref.ref[object] | None = None
        self._frozen = False
        self.repeats = 0
        """How often the chosen one came round again since it was chosen."""

    def freeze(self) -> None:
        """Keep to the present choice for as long as it exists."""
        self._frozen = True

    def has_seen(self, thing: object) -> bool:
        """Whether this very object has had a turn."""
        known = self._seen.get(id(thing))
        return known is not None and known() is thing

    def takes_turn(self, thing: object) -> bool:
        """Note a turn of ``thing``; returns whether it ends a round."""
        last = None if self._last is None else self._last()
        if last is thing:
            self.repeats += 1
            return True
        if last is not None and (self._frozen or self.has_seen(thing)):
            return False
        self._seen[id(thing)] = self._last = weakref.ref(thing)
        self.repeats = 0
        return True


class StepFinder:
    """Turns what happens in a script into ends of steps."""

    def __init__(self, steps_by: StepsBy = StepsBy.AUTO) -> None:
        self._wanted = steps_by
        self._found: StepsBy | None = None
        self._frozen = False
        self._optimizers = LastOfCycle()
        self._modules = LastOfCycle()
        self._made: list[weakref.ref[object]] = []

    @property
    def found(self) -> StepsBy | None:
        """What the steps go by; None while nothing has happened."""
        return self._found

    @property
    def certain(self) -> bool:
        """Whether a whole round passed without anything new, and nothing is still to come."""
        if self._found is StepsBy.FORWARD:
            return self._modules.repeats > 0
        return self._optimizers.repeats > 0 and not self.waiting_optimizers

    @property
    def waiting_optimizers(self) -> int:
        """How many optimizers exist that never stepped."""
        alive = [made() for made in self._made]
        return sum(one is not None and not self._optimizers.has_seen(one) for one in alive)

    @property
    def num_optimizers_made(self) -> int:
        """How many optimizers were constructed, whether or not they still exist."""
        return len(self._made)

    def freeze(self) -> None:
        """Recording starts: change neither the kind of step nor what ends it."""
        self._frozen = True
        self._optimizers.freeze()
        self._modules.freeze()

    def optimizer_made(self, optimizer: object) -> None:
        """An optimizer was constructed."""
        self._made.append(weakref.ref(optimizer))

    def optimizer_stepped(self, optimizer: object) -> bool:
        """An optimizer has stepped; returns whether that ends a step."""
        if self._wanted in (StepsBy.FORWARD, StepsBy.TIME):
            return False
        if self._frozen and self._found is not StepsBy.OPTIMIZER:
            return False
        self._found = StepsBy.OPTIMIZER
        return self._optimizers.takes_turn(optimizer)

    def module_called(self, module: object) -> bool:
        """An outermost module call has returned; returns whether that ends a step."""
        if self._wanted in (StepsBy.OPTIMIZER, StepsBy.TIME):
            return False
        if self._found is StepsBy.OPTIMIZER:
            return False
        self._found = StepsBy.FORWARD
        return self._modules.takes_turn(module)
