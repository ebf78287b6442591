"""Priorities: effectors in groups that are solved one after the other (the paper's section 4.2), the first ones first.

When all targets can be met the order does not matter. When they cannot, the pose that compromises between them is
where the groups begin: each is brought as near as the ones before it let it, and these stay where they are.
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..least_squares.solve import LeastSquares
from ..model.bodies import Body
from ..model.residuals import Measures
from ..state import Work

# What a group counts beside the ones before it: so little that they barely give way, so much that it gets anywhere.
_GRADE = 1e-4


class Groups:
    """The groups of one set of bodies on one number system; `ranks` (M,) says which group a measured vector is in."""

    def __init__(self, numbers: ModuleType, bodies: Sequence[Body], measures: Measures, finish: LeastSquares) -> None:
        self.numbers, self.bodies, self.finish = numbers, bodies, finish
        self.ranks = measures.ranks
        self.last = int(self.ranks.max())

    def in_order(self, work: Work) -> None:
        """Bring each group as near to its targets as those before it let it, in place.

        On the way back what the earlier ones have given way is made good.
        """
        own, stationary = work.weights, work.stationary
        for group in (*range(self.last + 1), *reversed(range(self.last))):
            self._finish(work, own * np.where(self.ranks < group, 1.0, self._only(group) * (_GRADE if group else 1.0)))
            stationary = work.stationary.copy() if group == self.last else stationary
        work.weights, work.stationary = own, stationary

    def first_alone(self, work: Work) -> FloatArray:
        """(F, M) weights of the first group, with none for the others."""
        return np.asarray(work.weights * self._only(0))

    def graded(self, weights: FloatArray) -> FloatArray:
        """(F, M) weights with which a group barely gives way to those after it."""
        return np.asarray(weights * _GRADE**self.ranks)

    def unmet_above_last(self, work: Work) -> BoolArray:
        """(F,) whether something is missed besides what is in the last group."""
        return np.asarray((self._costs(work)[:, : self.last] > 0.0).any(axis=1))

    def no_worse(self, work: Work, than: Work) -> BoolArray:
        """(F,) whether the first group that differs is nearer to its targets; met is met."""
        mine, others = self._costs(work), self._costs(than)
        differ = mine != others
        first = differ.argmax(axis=1)[:, None]
        less = np.take_along_axis(mine < others, first, axis=1)[:, 0]
        return np.asarray(less | ~differ.any(axis=1))

    def _finish(self, work: Work, weights: FloatArray) -> None:
        work.weights = weights
        work.stationary[:] = False
        self.finish.run(self.numbers, work)

    def _only(self, group: int) -> FloatArray:
        return np.asarray(self.ranks == group, dtype=np.float64)

    def _costs(self, work: Work) -> FloatArray:
        """(F, G) Σ weight · distance² of each group, without what is within its tolerance."""
        errors = work.errors(self.numbers, self.bodies)
        missed = np.where(errors > work.tolerances, work.weights * errors**2, 0.0)
        return np.stack([(missed * self._only(group)).sum(axis=1) for group in range(self.last + 1)], axis=1)
