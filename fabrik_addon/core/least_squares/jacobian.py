"""How effectors move when bodies turn: the Jacobian of a tree, and its normal equations without forming it."""

from collections.abc import Sequence

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, times
from ..model.bodies import Body, hung_effectors
from ..model.prismatic import slide_levers
from ..model.residuals import Residuals
from .dofs import DegreesOfFreedom
from .equations import Equations
from .inertia import Inertias

# Forming the Jacobian costs more than inertias do: it pays where there are far fewer rows than columns.
_WIDE = 0.6


class Jacobian:
    """Which body moves which effector, and about what arm.

    Turning a body by a small rotation vector ω moves an effector below it by ω × arm. The arm runs from the body's
    head to the effector, or to the head of the first body between them that does not inherit rotation.
    """

    def __init__(
        self, bodies: Sequence[Body], measures: Residuals, free_root: bool, slides: Sequence[int] = ()
    ) -> None:
        self.bodies = bodies
        self.measures = measures
        self.count = count = measures.ends
        self.free_root = free_root
        first = 3 * len(bodies) + 3 * free_root
        self.slid = slice(first, first + len(slides))
        self.columns = first + 3 * ((len(slides) + 2) // 3)  # in threes, as all others are; what is too much is zero
        self.wide = 3 * measures.asked < _WIDE * self.columns
        self.dofs = DegreesOfFreedom(bodies)
        self._carries = slide_levers(bodies, count, slides)
        self.moves, self._ends = _ends_of_arms(bodies, count)
        rigid = not measures.loops and all(body.inherits_rotation for body in bodies[1:])
        self._inertias = Inertias(bodies, measures, self.dofs, free_root) if rigid else None
        self._turned = _turned_rows(bodies, measures.holders, self.columns)

    @property
    def numbers_a_frame(self) -> int:
        """How large the matrix of the equations is."""
        return self.columns * (3 * self.measures.asked if self.wide else self.columns)

    def equations(
        self,
        points: FloatArray,
        heads: FloatArray,
        residuals: FloatArray,
        weights: FloatArray,
        hinges: FloatArray,
        axes: FloatArray | None = None,
        prior: tuple[FloatArray, FloatArray] | None = None,
    ) -> "Equations":
        """The least-squares problem of a step, in whichever of its two forms is smaller.

        Args:
            points: (F, M, 3) the effectors, and what else is measured.
            heads: (F, B, 3) of the bodies.
            residuals: (F, M, 3) from the points to their targets.
            weights: (F, M).
            hinges: (F, H, 3) axes of the bodies that are hinges.
            axes: (F, S, 3) along the bodies that slide.
            prior: (F, B, 3) rotation vectors from the bodies to what they are expected to be, and (F, B) weights.
        """
        if self._inertias and axes is None and not (self.wide and prior is None):
            return self._inertias.equations(points, heads, residuals, weights, hinges, prior)
        root = np.sqrt(weights[:, : self.measures.asked])
        rows = self.dofs.narrow(self._weighted_rows(self.measures.points(points), heads, root, axes), hinges)
        right = (residuals[:, : self.measures.asked] * root[..., None]).reshape(len(points), -1)
        if self.wide and prior is None:
            return Equations.of_rows(rows, right, self.dofs, hinges)
        across = np.swapaxes(rows, 1, 2)
        matrix, force = across @ rows, times(across, right)
        if prior is not None:
            diagonal = np.einsum("fii->fi", matrix)
            diagonal += self.dofs.expect(force, hinges, *prior)
        return Equations.scaled(matrix, force, self.dofs, hinges)

    def _weighted_rows(
        self, points: FloatArray, heads: FloatArray, root: FloatArray, axes: FloatArray | None
    ) -> FloatArray:
        """(F, 3 (E + O), D) √W J, with the difference of both sides where an effector closes a loop."""
        count, loops = self.measures.count, list(self.measures.loops)
        scale = np.concatenate([root[:, :count], root[:, loops]], axis=1) if loops else root[:, :count]
        rows = self.rows(points, heads, scale)
        if axes is not None:
            slid = np.einsum("fe,es,fsi->feis", scale, self._carries, axes)
            rows[:, :, self.slid] = slid.reshape(len(rows), -1, axes.shape[1])
        if loops:
            by_point = rows.reshape(len(rows), -1, 3, self.columns)
            by_point[:, loops] -= by_point[:, count:]
            rows = rows[:, : 3 * count]
        return np.concatenate([rows, self._turned_rows(root)], axis=1) if root.shape[1] > count else rows

    def _turned_rows(self, root: FloatArray) -> FloatArray:
        """(F, 3 O, D) what wanted rotations add to √W J."""
        return np.asarray(self._turned * np.repeat(root[:, self.measures.count :], 3, axis=1)[..., None])

    def _arms(self, points: FloatArray, heads: FloatArray) -> FloatArray:
        """(F, E, B, 3) arms from effector points (F, E, 3) and heads (F, B, 3); zero where a body moves nothing."""
        ends = np.concatenate([points, heads], axis=1)[:, self._ends]
        return np.asarray(np.where(self.moves[..., None], ends - heads[:, None], 0.0))

    def rows(self, points: FloatArray, heads: FloatArray, scale: FloatArray) -> FloatArray:
        """(F, 3 E, D) how effectors move with the bodies' rotation vectors and the root, times `scale` (F, E)."""
        frames, bodies = len(points), len(self.bodies)
        x, y, z = np.moveaxis(self._arms(points, heads) * scale[..., None, None], -1, 0)
        result = np.zeros((frames, self.count, 3, self.columns))
        turning = result.reshape(frames, self.count, 3, -1, 3)[..., :bodies, :]
        turning[:, :, 0, :, 1], turning[:, :, 0, :, 2] = z, -y
        turning[:, :, 1, :, 0], turning[:, :, 1, :, 2] = -z, x
        turning[:, :, 2, :, 0], turning[:, :, 2, :, 1] = y, -x
        if self.free_root:
            result[..., 3 * bodies : 3 * bodies + 3] = scale[..., None, None] * np.eye(3)
        return result.reshape(frames, 3 * self.count, self.columns)


def _turned_rows(bodies: Sequence[Body], holders: Sequence[int], columns: int) -> FloatArray:
    """(3 O, D) how the rotation of bodies changes with the rotation vectors of those that carry it."""
    rows = np.zeros((len(holders), 3, columns))
    for row, holder in zip(rows, holders, strict=True):
        for upper, between in _ancestors(bodies, holder):
            if between is None:
                row[:, 3 * upper : 3 * upper + 3] = np.eye(3)
    return rows.reshape(-1, columns)


def _ancestors(bodies: Sequence[Body], index: int) -> list[tuple[int, int | None]]:
    """The body itself and all above it, each with the first body strictly below it that does not inherit rotation."""
    result: list[tuple[int, int | None]] = [(index, None)]
    between = None
    while bodies[index].parent >= 0:
        between = between if bodies[index].inherits_rotation else index
        index = bodies[index].parent
        result.append((index, between))
    return result


def _ends_of_arms(bodies: Sequence[Body], count: int) -> tuple[BoolArray, IntArray]:
    """(E, B) whether a body moves an effector, and where its arm ends, as an index into effectors + heads."""
    moves = np.zeros((count, len(bodies)), dtype=bool)
    ends = np.zeros((count, len(bodies)), dtype=np.int64)
    for effector, holder, _ in hung_effectors(bodies):
        for upper, between in _ancestors(bodies, holder):
            moves[effector, upper] = True
            ends[effector, upper] = effector if between is None else count + between
    return moves, ends
