"""Loops with several optimizers, and what a person would call a step of each: {case: [[begin, end] of each step]} is printed, in
CLOCK_MONOTONIC, ns. All passes and optimizers of a step lie within these times, and nothing else."""

import contextlib
import math
import time

from figures import APART_S, say
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
torch.manual_seed(0)
CASES, steps = {}, []


def case(function):
    CASES[function.__name__] = function
    return function


class Step:
    """One of the steps that count."""

    def now(self):
        time.sleep(APART_S)
        now = time.monotonic_ns()
        time.sleep(APART_S)
        return now

    def __enter__(self):
        self.begin = self.now()

    def __exit__(self, *_):
        steps.append([self.begin, self.now()])


def layers(count=2):
    return [nn.Linear(64, 64) for _ in range(count)]


def adam(model):
    return torch.optim.Adam(model.parameters(), 0.01)


def x():
    return torch.randn(8, 64)


def loss_of(*models, over=None):
    y = x() if over is None else over
    for model in models:
        y = model(y)
    return y.square().mean()


def train(model, optimizer):
    loss_of(model).backward()
    optimizer.step()
    optimizer.zero_grad()


@case
def together():
    first, second = layers()
    optimizers = [torch.optim.SGD(first.parameters(), 0.1, momentum=0.9), adam(second)]
    for _ in range(4):
        with Step():
            loss_of(first, second).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


def gan(fetch, accumulate=1):
    maker, critic = layers()
    of_maker, of_critic = adam(maker), adam(critic)
    for _ in range(4):
        with Step():
            of_critic.zero_grad()
            for _ in range(accumulate):
                made = maker(x())
                (loss_of(critic, over=fetch()) + loss_of(critic, over=made.detach())).backward()
            of_critic.step()
            of_maker.zero_grad()
            for _ in range(accumulate):
                loss_of(critic, over=made).backward(retain_graph=True)
            of_maker.step()


@case
def critic_first():
    gan(x)


@case
def critic_first_with_batches():
    batches = iter(DataLoader(torch.randn(64, 64), 8))
    gan(lambda: next(batches), 2)


@case
def one_scaler():
    """Gradients overflow now and then, of one optimizer's parameters only."""
    first, second = layers()
    optimizers, scaler = [adam(first), adam(second)], torch.amp.GradScaler("cpu")
    for number in range(7):
        with Step():
            scaler.scale(loss_of(first, second)).backward()
            if number in (0, 3, 5):
                (first if number < 5 else second).weight.grad.fill_(torch.inf)
            for optimizer in optimizers:
                scaler.step(optimizer)
                optimizer.zero_grad()
            scaler.update()


@case
def one_scaler_in_turn():
    first, second = layers()
    optimizers, scaler = [adam(first), adam(second)], torch.amp.GradScaler("cpu")
    for number in range(5):
        with Step():
            for model, optimizer in zip((first, second), optimizers):
                scaler.scale(loss_of(model)).backward()
                if number == 2 and model is first:
                    model.weight.grad.fill_(torch.inf)
                scaler.step(optimizer)
                optimizer.zero_grad()
            scaler.update()


def gan_with_scalers(overflows):
    """The first gradients overflow, as they do with the scale that GradScaler begins with."""
    maker, critic = layers()
    optimizers = [adam(critic), adam(maker)]
    scalers = [torch.amp.GradScaler("cpu") for _ in optimizers]
    for number in range(4):
        with Step():
            made = maker(x())
            for over, model, optimizer, scaler in zip([made.detach(), made], [critic, maker], optimizers, scalers):
                optimizer.zero_grad()
                scaler.scale(loss_of(critic, over=over)).backward()
                if number in overflows.get(model is maker, ()):
                    model.weight.grad.fill_(torch.inf)
                scaler.step(optimizer)
                scaler.update()


@case
def the_critic_is_skipped_at_first():
    gan_with_scalers({False: [0, 1]})


@case
def the_maker_is_skipped_at_first():
    gan_with_scalers({True: [0, 1]})


@case
def both_are_skipped_at_first():
    gan_with_scalers({False: [0], True: [0]})


@case
def skipped_by_the_program():
    first, second = layers()
    optimizers = [adam(first), adam(second)]
    for number in range(7):
        # A step that is skipped is one with the next until both have stepped.
        with Step() if number > 1 else contextlib.nullcontext():
            loss_of(first, second).backward()
            if number in (0, 3, 5):
                (first if number < 5 else second).weight.grad.fill_(torch.inf)
            for model, optimizer in zip((first, second), optimizers):
                if math.isfinite(model.weight.grad.sum()):
                    optimizer.step()
                optimizer.zero_grad()


@case
def one_of_two_is_not_used():
    model, other = layers()
    optimizer, _unused = adam(model), adam(other)
    for batch in DataLoader(torch.randn(32, 64), 8):
        with Step():
            loss_of(model, over=batch).backward()
            optimizer.step()


@case
def one_of_two_is_not_used_and_no_batches():
    model, other = layers()
    optimizer, _unused = adam(model), adam(other)
    # Until it has stepped again, nothing says that the other does not come.
    train(model, optimizer)
    train(model, optimizer)
    for _ in range(3):
        with Step():
            train(model, optimizer)


@case
def for_the_same_parameters():
    head, body = layers()
    model = nn.Sequential(body, head)
    first, then = adam(head), adam(model)
    for optimizer in [first] * 3 + [then] * 3:
        with Step():
            train(model, optimizer)


@case
def made_anew():
    kept = []
    for model in layers(3):
        kept.append(adam(model))
        for _ in range(3):
            with Step():
                train(model, kept[-1])


@case
def five_to_one():
    maker, critic = layers()
    of_maker, of_critic = adam(maker), adam(critic)
    train(critic, of_critic)
    train(critic, of_critic)
    for _ in range(2):
        for _ in range(5):
            with Step():
                train(critic, of_critic)
        with Step():
            train(maker, of_maker)


@case
def one_begins_later():
    first, second = layers()
    of_first = adam(first)
    for _ in range(3):
        with Step():
            train(first, of_first)
    of_second = adam(second)
    for _ in range(3):
        with Step():
            train(first, of_first)
            train(second, of_second)


@case
def accumulated():
    model = layers()[0]
    optimizer = adam(model)
    for _ in range(3):
        with Step():
            for _ in range(3):
                loss_of(model).backward()
            optimizer.step()


@case
def closures():
    model = layers()[0]
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    for _ in range(3):
        with Step():
            optimizer.step(closure)


@case
def in_backward():
    models = layers(4)
    each = {one: torch.optim.SGD([one], 0.1) for model in models for one in model.parameters()}
    for one, optimizer in each.items():
        one.register_post_accumulate_grad_hook(lambda _, optimizer=optimizer: optimizer.step())
    for number in range(5):
        with Step():
            # Not all are needed each time.
            loss_of(*models[: 4 - number % 3]).backward()


told = {}
for name, function in CASES.items():
    steps = []
    function()
    told[name] = steps
say(**told)
