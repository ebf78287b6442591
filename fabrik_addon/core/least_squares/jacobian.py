"""How effectors move when bodies turn: the Jacobian of a tree, and its normal equations without forming it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..model.bodies import Body, hung_effectors
from ..model.prismatic import slide_levers
from ..model.residuals import Residuals
from .dofs import DegreesOfFreedom
from .equations import Equations

# The six different entries of a symmetric 3×3 matrix: row (as a column of the moments) and column of each,
# and back from the moments to the full matrix.
_ROWS = [1, 1, 1, 2, 2, 3]
_COLUMNS = [0, 1, 2, 1, 2, 2]
# Forming the Jacobian costs more than the moments do: it pays where there are far fewer rows than columns.
_WIDE = 0.6
_FULL = np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]])


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
        self._pairs = _ancestor_pairs(bodies)
        self._sums, self._holds = self._end_sums()
        self._turned = _turned_rows(bodies, measures.holders, self.columns)

    @property
    def numbers_a_frame(self) -> int:
        """How large the matrix of the equations is."""
        return self.columns * (3 * self.measures.asked if self.wide else self.columns)

    def _end_sums(self) -> tuple[FloatArray, FloatArray]:
        """Which ends the arms of bodies have, (B, E) or (B, E + B) where some do not inherit; what heads stand for."""
        bodies = len(self.bodies)
        sums = np.zeros((bodies, self.count + bodies))
        for effector, upper in np.argwhere(self.moves):
            sums[upper, self._ends[effector, upper]] = 1.0
        if sums[:, self.count :].any():
            return sums, self.moves.T.astype(float)
        return sums[:, : self.count], np.zeros((bodies, self.count))

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
        count, asked = self.measures.count, self.measures.asked
        places, root = self.measures.points(points), np.sqrt(weights[:, :asked])
        right = (residuals[:, :asked] * root[..., None]).reshape(len(points), -1)
        if prior is None and (self.wide or self.measures.loops or axes is not None):
            rows = self.dofs.narrow(self._weighted_rows(places, heads, root, axes), hinges)
            return Equations.of_rows(rows, right, self.dofs, hinges, self.wide)
        if self.measures.loops or axes is not None:
            matrix, force = _squared(self._weighted_rows(places, heads, root, axes), right)
        else:
            matrix, force = self.normal_equations(places, heads, residuals[:, :count], weights[:, :count])
        if prior is not None:
            _expect(matrix, force, *prior)
        if asked > count and not (self.measures.loops or axes is not None):
            more_matrix, more_force = _squared(self._turned_rows(root), right[:, 3 * count :])
            matrix, force = matrix + more_matrix, force + more_force
        narrow = self.dofs.narrow(np.swapaxes(self.dofs.narrow(matrix, hinges), 1, 2), hinges)
        return Equations.scaled(narrow, self.dofs.narrow(force, hinges), self.dofs, hinges)

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
        turns = result.reshape(frames, self.count, 3, -1, 3)[..., :bodies, :]
        turns[:, :, 0, :, 1], turns[:, :, 0, :, 2] = z, -y
        turns[:, :, 1, :, 0], turns[:, :, 1, :, 2] = -z, x
        turns[:, :, 2, :, 0], turns[:, :, 2, :, 1] = y, -x
        if self.free_root:
            result[..., 3 * bodies : 3 * bodies + 3] = scale[..., None, None] * np.eye(3)
        return result.reshape(frames, 3 * self.count, self.columns)

    def normal_equations(
        self, points: FloatArray, heads: FloatArray, residuals: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, D, D) JᵀWJ and (F, D) JᵀW·residual, from moments of the points (as composite rigid bodies are summed).

        For a body and one below it whose head lies d from its own: with c the arms of the lower one and a = c + d
        those of the upper, Σ over the effectors of w (a·c I − c aᵀ), which needs Σ w c and Σ w c cᵀ only. From the rows
        of J instead, 400 frames of a walk took 1.38 times as long to fit (42 markers), of another 1.63 (41 markers).
        """
        moments = self._moments(points, heads, residuals, weights)
        first, second, slope = _about_heads(moments, heads - heads[:, :1])
        frames, turning = len(points), 3 * len(self.bodies)
        square = np.zeros((frames, self.columns, self.columns))
        pairs = self._pairs
        offsets = heads[:, pairs.end] - heads[:, pairs.upper]
        blocks = _blocks(first[:, pairs.lower], second[:, pairs.lower] * pairs.rigid[:, None, None], offsets)
        rows = 3 * pairs.upper[:, None, None] + np.arange(3)[:, None]
        columns = 3 * pairs.lower[:, None, None] + np.arange(3)
        square[:, rows, columns] = blocks
        square[:, columns, rows] = blocks
        if not self.free_root:
            return square, slope.reshape(frames, -1)
        cross = _cross_matrices(first).reshape(frames, turning, 3)
        square[:, :turning, turning:] = cross
        square[:, turning:, :turning] = np.swapaxes(cross, 1, 2)
        square[:, turning:, turning:] = weights.sum(axis=1)[:, None, None] * np.eye(3)
        force = (residuals * weights[..., None]).sum(axis=1)
        return square, np.concatenate([slope.reshape(frames, -1), force], axis=1)

    def _moments(self, points: FloatArray, heads: FloatArray, residuals: FloatArray, weights: FloatArray) -> FloatArray:
        """(F, B, 16) sums over the ends of each body's arms, about the root's head: w, w x, w x xᵀ, w m, x × w m."""
        forces = residuals * weights[..., None]
        if self._holds.any():
            points = np.concatenate([points, heads], axis=1)
            weights = np.concatenate([weights, weights @ self._holds.T], axis=1)
            forces = np.concatenate([forces, self._holds @ forces], axis=1)
        x = points - heads[:, :1]
        parts = np.empty((*x.shape[:2], 16))
        parts[..., 0] = weights
        parts[..., 1:4] = x * weights[..., None]
        parts[..., 4:10] = parts[..., _ROWS] * x[..., _COLUMNS]
        parts[..., 10:13] = forces
        parts[..., 13:] = np.cross(x, forces)
        return np.asarray(self._sums @ parts)


def _squared(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The normal equations, matrix and right side, of (F, R, D) rows and their (F, R) right side."""
    across = np.swapaxes(rows, 1, 2)
    return across @ rows, (across @ right[..., None])[..., 0]


def _turned_rows(bodies: Sequence[Body], holders: Sequence[int], columns: int) -> FloatArray:
    """(3 O, D) how the rotation of bodies changes with the rotation vectors of those that carry it."""
    rows = np.zeros((len(holders), 3, columns))
    for row, holder in zip(rows, holders, strict=True):
        for upper, between in _ancestors(bodies, holder):
            if between is None:
                row[:, 3 * upper : 3 * upper + 3] = np.eye(3)
    return rows.reshape(-1, columns)


@dataclass(frozen=True)
class _Pairs:
    """Every body with itself and each body below it.

    Attributes:
        upper, lower: (P,) bodies.
        end: (P,) where the upper body's arms to what the lower one moves start to differ: the lower body, or the first
            body on the way to it that does not inherit rotation.
        rigid: (P,) 1 where the lower body turns with the upper one, 0 where such a body is between.
    """

    upper: IntArray
    lower: IntArray
    end: IntArray
    rigid: FloatArray


def _ancestor_pairs(bodies: Sequence[Body]) -> _Pairs:
    rows = []
    for lower in range(len(bodies)):
        for upper, between in _ancestors(bodies, lower):
            rows.append((upper, lower, lower if between is None else between, float(between is None)))
    upper_, lower_, end, rigid = zip(*rows, strict=True)
    return _Pairs(np.array(upper_), np.array(lower_), np.array(end), np.array(rigid))


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


def _about_heads(moments: FloatArray, heads: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Moments about each body's own head: (F, B, 3) Σ w c, (F, B, 3, 3) Σ w c cᵀ, (F, B, 3) torque."""
    mass, sums = moments[..., 0:1], moments[..., 1:4]
    first = sums - heads * mass
    second = moments[..., _FULL] - heads[..., None] * sums[..., None, :] - first[..., None] * heads[..., None, :]
    torque = moments[..., 13:] - np.cross(heads, moments[..., 10:13])
    return first, second, torque


def _blocks(first: FloatArray, second: FloatArray, offsets: FloatArray) -> FloatArray:
    """(F, P, 3, 3) Σ w (a·c I − c aᵀ) from the moments of c (`second` is zero where a does not contain c)."""
    trace = np.trace(second, axis1=2, axis2=3) + (first * offsets).sum(axis=2)
    return np.asarray(trace[..., None, None] * np.eye(3) - second - first[..., :, None] * offsets[..., None, :])


def _cross_matrices(vectors: FloatArray) -> FloatArray:
    """(..., 3, 3) matrices that multiply as v × …."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    zero = np.zeros_like(x)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _expect(matrix: FloatArray, force: FloatArray, expected: FloatArray, weights: FloatArray) -> None:
    """Add to normal equations that bodies turn by rotation vectors (F, B, 3), with weights (F, B)."""
    columns = 3 * weights.shape[1]
    diagonal = np.einsum("fii->fi", matrix)[:, :columns]
    diagonal += np.repeat(weights, 3, axis=1)
    force[:, :columns] += (expected * weights[..., None]).reshape(len(matrix), -1)
