"""The normal equations of a tree from the inertias of its bodies (Featherstone 2008), without forming the Jacobian.

A small turn ω of a body about its head h moves a point x by ω × x + h × ω: the six numbers ω and h × ω are its screw.
The effectors below a body, each with its weight, make a symmetric 6×6 matrix, its composite inertia. The element of
JᵀWJ for two columns, one body above the other, is the upper one's screw times the lower one's inertia times its screw.
From the rows of J instead, a step of a walk (42 markers) took twice as long.
"""

from collections.abc import Sequence

import numpy as np

from ..arrays import FloatArray
from ..model.bodies import Body
from ..model.residuals import Residuals, holders_of
from .dofs import DegreesOfFreedom
from .equations import Equations
from .joints import above_or_self

# The six different entries of w x xᵀ: row (as a column of the moments) and column of each, and where they belong.
_ROWS, _COLUMNS = [1, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 2]
_ENTRIES = np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]])
_CROSSES = np.cross(np.eye(3)[:, None], np.eye(3))


def _inertia_of_moments() -> FloatArray:
    """(11, 36) makes [[tr C I − C + t I, [f]×], [[f]×ᵀ, w I]] of the moments w, f = Σ w x, C = Σ w x xᵀ and t."""
    result = np.zeros((11, 6, 6))
    result[0, 3:, 3:] = result[10, :3, :3] = np.eye(3)
    result[1:4, 3:, :3], result[1:4, :3, 3:] = _CROSSES, np.swapaxes(_CROSSES, 1, 2)
    for row, column in np.ndindex(3, 3):
        result[_ENTRIES[row, column], row, column] -= 1.0
        result[_ENTRIES[row, row], column, column] += 1.0
    return result.reshape(11, 36)


_INERTIA = _inertia_of_moments()


class Inertias:
    """B bodies, all of which inherit rotation, and what is measured of them: points and turns, no loops."""

    def __init__(self, bodies: Sequence[Body], measures: Residuals, dofs: DegreesOfFreedom, free_root: bool) -> None:
        self._count, self._asked, self._dofs, self._free_root = measures.count, measures.asked, dofs, free_root
        above = above_or_self([body.parent for body in bodies])
        self._sums = above[[*holders_of(bodies, measures.count), *measures.holders]].T
        # The root's place is above all. Blocks of one body are counted twice where both triangles are added.
        beside = np.pad(above, (0, 1))
        beside[:, -1] = 1.0
        owners = [*dofs.owners, *[len(bodies)] * (3 * free_root)]
        self._shares = (beside - 0.5 * np.eye(len(beside)))[np.ix_(owners, owners)].T

    def equations(
        self,
        points: FloatArray,
        heads: FloatArray,
        residuals: FloatArray,
        weights: FloatArray,
        hinges: FloatArray,
        prior: tuple[FloatArray, FloatArray] | None,
    ) -> Equations:
        """The least-squares problem of a step; see `Jacobian.equations`."""
        inertias, wrenches = self._composites(points[:, : self._count] - heads[:, :1], residuals, weights)
        screws, momenta, force = self._columns(heads - heads[:, :1], inertias, wrenches)
        screws, momenta = (self._dofs.narrow(each, hinges) for each in (screws, momenta))
        force, squares = self._dofs.narrow(force, hinges), (screws * momenta).sum(axis=1)
        counts = np.zeros_like(force) if prior is None else self._dofs.expect(force, hinges, *prior)
        scale = self._dofs.scales(squares + counts)
        halves = np.swapaxes(screws * scale[:, None], 1, 2) @ (momenta * scale[:, None])
        halves *= self._shares
        matrix: FloatArray = np.asarray(halves + np.swapaxes(halves, 1, 2), dtype=np.float64)
        diagonal = np.einsum("fii->fi", matrix)
        diagonal += counts * scale**2
        return Equations(matrix, force * scale, scale, self._dofs, hinges)

    def _composites(
        self, points: FloatArray, residuals: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, B, 6, 6) inertias, and (F, B, 6) torques and forces, of what hangs on each body and below it.

        points: (F, E, 3) from the root's head. residuals, weights: (F, E + O, ...).
        """
        count, asked = self._count, self._asked
        forces = residuals[:, :asked] * weights[:, :asked, None]
        parts = np.zeros((len(points), asked, 17))
        ends = parts[:, :count]
        ends[..., 0] = weights[:, :count]
        ends[..., 1:4] = points * weights[:, :count, None]
        ends[..., 4:10] = ends[..., _ROWS] * points[..., _COLUMNS]
        ends[..., 11:14] = np.cross(points, forces[:, :count])
        ends[..., 14:] = forces[:, :count]
        parts[:, count:, 10], parts[:, count:, 11:14] = weights[:, count:asked], forces[:, count:]
        sums = self._sums @ parts
        return (sums[..., :11] @ _INERTIA).reshape(*sums.shape[:2], 6, 6), sums[..., 11:]

    def _columns(
        self, heads: FloatArray, inertias: FloatArray, wrenches: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(F, 6, D) screws of all columns, (F, 6, D) what inertias make of them, (F, D) what wrenches do along them."""
        frames, bodies = heads.shape[:2]
        turning = np.zeros((frames, bodies, 3, 6))
        turning[..., :3] = np.eye(3)
        turning[..., 3:] = (heads @ _CROSSES.reshape(3, 9)).reshape(frames, bodies, 3, 3)
        force = (turning @ wrenches[..., None]).reshape(frames, -1)
        screws, momenta = (np.swapaxes(each.reshape(frames, -1, 6), 1, 2) for each in (turning, turning @ inertias))
        if not self._free_root:
            return screws, momenta, force
        shifts = np.broadcast_to(np.eye(6)[:, 3:], (frames, 6, 3))
        return (
            np.concatenate([screws, shifts], axis=2),
            np.concatenate([momenta, inertias[:, 0, :, 3:]], axis=2),
            np.concatenate([force, wrenches[:, 0, 3:]], axis=1),
        )
