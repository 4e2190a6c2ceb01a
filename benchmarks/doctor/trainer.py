"""Trains the model of a plan, step by step."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.doctor.data import loader, seed
from benchmarks.doctor.models import MODELS
from benchmarks.doctor.plan import Plan


class Trainer:
    """A program that is ready to take its steps."""

    def __init__(self, plan: Plan) -> None:
        seed()
        torch.set_num_threads(plan.threads)
        self.plan = plan
        self.model = MODELS[plan.model](plan).to(plan.device, plan.dtype)
        self.run = plan.wrap_model(self.model)
        self.optimizer = plan.optimizer(list(self.model.parameters()))
        self.batches = loader(plan)
        self.loss: Tensor | None = None
        self.kept: Tensor | None = None
        """What a fault carries from step to step."""
        self.number = 0

    def step(self) -> None:
        """One step of training."""
        torch.set_num_threads(self.plan.threads)
        with self.plan.around_step():
            self._step()
        self.number += 1

    def _step(self) -> None:
        self.optimizer.zero_grad()
        for _ in range(self.plan.micro_batches - 1):
            with self.plan.without_sync(self):
                self._pass()
        self._pass()
        for call in self.plan.before_update:
            call(self)
        self.optimizer.step()
        for call in self.plan.after_step:
            call(self)

    def _pass(self) -> None:
        plan = self.plan
        inputs, targets = next(self.batches)
        inputs, targets = plan.to_device(inputs, plan.device), targets.to(plan.device)
        if inputs.is_floating_point():
            inputs = inputs.to(plan.dtype)
        inputs, targets = plan.prepare(self, inputs, targets)
        self.loss = plan.loss(self.run(inputs), targets.flatten())
        self.loss.backward()
