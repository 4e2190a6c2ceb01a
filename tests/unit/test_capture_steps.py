"""Which optimizer steps and module calls end a step of a script."""

from __future__ import annotations

import gc

import pytest

from trnscope.capture.options import StepsBy
from trnscope.capture.steps import LastOfCycle, StepFinder


class Thing:
    """Stands for an optimizer or a module."""


def ends(finder: StepFinder, things: list[Thing]) -> list[bool]:
    return [finder.optimizer_stepped(thing) for thing in things]


def test_one_optimizer_ends_a_step_each_time() -> None:
    finder, adam = StepFinder(), Thing()
    assert ends(finder, [adam] * 3) == [True, True, True]
    assert finder.found is StepsBy.OPTIMIZER


def test_of_two_optimizers_the_second_ends_the_iteration() -> None:
    finder, discriminator, generator = StepFinder(), Thing(), Thing()
    # The first iteration cannot know yet that another one follows.
    assert ends(finder, [discriminator, generator]) == [True, True]
    assert ends(finder, [discriminator, generator] * 3) == [False, True] * 3


def test_a_critic_stepped_five_times_counts_once_with_its_generator() -> None:
    finder, critic, generator = StepFinder(), Thing(), Thing()
    ends(finder, [critic] * 5 + [generator])
    assert ends(finder, [critic] * 5 + [generator]) == [False] * 5 + [True]


def test_one_optimizer_per_parameter_counts_once() -> None:
    finder, optimizers = StepFinder(), [Thing() for _ in range(4)]
    ends(finder, optimizers)
    assert ends(finder, optimizers * 2) == [False, False, False, True] * 2


def test_once_frozen_a_new_optimizer_changes_nothing() -> None:
    finder, first, late = StepFinder(), Thing(), Thing()
    ends(finder, [first, first])
    finder.freeze()
    assert ends(finder, [late, first, late, first]) == [False, True, False, True]


def test_a_frozen_choice_that_is_gone_is_replaced() -> None:
    finder, first, second = StepFinder(), Thing(), Thing()
    ends(finder, [first, first])
    finder.freeze()
    del first
    gc.collect()
    assert ends(finder, [second, second]) == [True, True]


def test_certain_needs_a_whole_round_and_no_optimizer_still_to_come() -> None:
    finder, first, second = StepFinder(), Thing(), Thing()
    finder.optimizer_made(first)
    finder.optimizer_made(second)
    ends(finder, [first])
    assert (finder.certain, finder.waiting_optimizers) == (False, 1)
    ends(finder, [first])
    assert (finder.certain, finder.waiting_optimizers) == (False, 1)
    ends(finder, [second])
    assert (finder.certain, finder.waiting_optimizers) == (False, 0)
    ends(finder, [first, second])
    assert finder.certain
    assert finder.num_optimizers_made == 2


def test_an_optimizer_that_is_gone_is_not_waited_for() -> None:
    finder, kept = StepFinder(), Thing()
    finder.optimizer_made(kept)
    finder.optimizer_made(Thing())
    gc.collect()
    ends(finder, [kept, kept])
    assert finder.certain


def test_module_calls_end_steps_until_an_optimizer_steps() -> None:
    finder, model, adam = StepFinder(), Thing(), Thing()
    assert finder.module_called(model)
    assert finder.found is StepsBy.FORWARD
    assert not finder.certain
    assert finder.module_called(model)
    assert finder.certain
    assert finder.optimizer_stepped(adam)
    assert finder.found is StepsBy.OPTIMIZER
    assert not finder.module_called(model)


def test_a_frozen_finder_keeps_to_module_calls() -> None:
    finder, model, adam = StepFinder(), Thing(), Thing()
    finder.module_called(model)
    finder.freeze()
    assert not finder.optimizer_stepped(adam)
    assert finder.module_called(model)


def test_a_backbone_and_a_head_make_one_step() -> None:
    finder, backbone, head = StepFinder(), Thing(), Thing()
    finder.module_called(backbone)
    finder.module_called(head)
    assert [finder.module_called(part) for part in (backbone, head)] == [False, True]


@pytest.mark.parametrize(
    ("wanted", "by_optimizer", "by_module"),
    [
        (StepsBy.OPTIMIZER, True, False),
        (StepsBy.FORWARD, False, True),
        (StepsBy.TIME, False, False),
    ],
)
def test_an_explicit_rule_ignores_the_other(
    wanted: StepsBy, by_optimizer: bool, by_module: bool
) -> None:
    finder, model, adam = StepFinder(wanted), Thing(), Thing()
    assert finder.module_called(model) is by_module
    assert finder.optimizer_stepped(adam) is by_optimizer


def test_an_object_at_the_address_of_a_dead_one_is_new() -> None:
    cycle, kept = LastOfCycle(), Thing()
    for _ in range(50):
        passing = Thing()
        assert cycle.takes_turn(passing)
        del passing
    assert cycle.takes_turn(kept)
