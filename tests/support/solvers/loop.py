"""The loop shared by all comparison methods: iterate until a stop rule holds, and record the steps."""

import time
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Trace:
    """The largest distance from a target: before the first iteration, then after each."""

    errors: list = field(default_factory=list)
    seconds: list = field(default_factory=lambda: [0.0])

    @property
    def iterations(self):
        return len(self.errors) - 1


class Turning:
    """A figure moved toward its targets by a function (figure, targets) that does one iteration."""

    def __init__(self, iteration, figure, targets):
        self.figure, self.target, self._iteration = figure, np.asarray(targets, dtype=float), iteration

    @property
    def tips(self):
        return self.figure.tips

    @property
    def points(self):
        return self.figure.points

    def advance(self):
        self._iteration(self.figure, self.target)


def iterate(run, is_done, most):
    """Advance a run (`tips`, `target`, `points`, `advance`) until `is_done(run, points before)`, or `most` times.

    The clock counts the iterations alone.
    """
    trace = Trace([miss(run)])
    while trace.iterations < most:
        before = run.points
        began = time.perf_counter()
        run.advance()
        trace.seconds.append(trace.seconds[-1] + time.perf_counter() - began)
        trace.errors.append(miss(run))
        if is_done(run, before):
            break
    return trace


def miss(run):
    """The greatest distance of an end effector from its target."""
    return float(np.linalg.norm(run.tips - run.target, axis=1).max())


def met(tolerance):
    """Done when every target is within `tolerance`."""
    return lambda run, _before: miss(run) <= tolerance


def still(tolerance):
    """Done when no joint moved farther than `tolerance`."""
    return lambda run, before: np.linalg.norm(run.points - before, axis=1).max() <= tolerance


def met_or_still(tolerance, least_move):
    """Done when every target is met, or no joint moved farther than `least_move`."""
    is_met, is_still = met(tolerance), still(least_move)
    return lambda run, before: is_met(run, before) or is_still(run, before)
