"""How effectors move when bodies turn: the Jacobian of a tree, and its normal equations without forming it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..model.bodies import Body
from ..model.prismatic import slide_levers
from ..model.residuals import Residuals
from .dofs import Ways

# The six different entries of a symmetric 3×3 matrix: row (as a column of the moments) and column of each,
# and back from the moments to the full matrix.
_ROWS = [1, 1, 1, 2, 2, 3]
_COLUMNS = [0, 1, 2, 1, 2, 2]
_TINY = 1e-30
# Forming the Jacobian costs more than the moments do: it pays where there are far fewer rows than columns.
_WIDE = 0.6
_FULL = np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]])


class Levers:
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
        self.ways = Ways(bodies)
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
        misses: FloatArray,
        weights: FloatArray,
        hinges: FloatArray,
        axes: FloatArray | None = None,
    ) -> "Equations":
        """The least-squares problem of a step, in whichever of its two forms is smaller.

        Args:
            points: (F, M, 3) the effectors, and what else is measured.
            heads: (F, B, 3) of the bodies.
            misses: (F, M, 3) from the points to their targets.
            weights: (F, M).
            hinges: (F, H, 3) axes of the bodies that are hinges.
            axes: (F, S, 3) along the bodies that slide.
        """
        count, asked = self.measures.count, self.measures.asked
        places, root = self.measures.points(points), np.sqrt(weights[:, :asked])
        right = (misses[:, :asked] * root[..., None]).reshape(len(points), -1)
        if self.wide or self.measures.loops or axes is not None:
            rows = self.ways.narrow(self._rows(places, heads, root, axes), hinges)
            matrix, right = (rows, right) if self.wide else _squared(rows, right)
            return Equations(matrix, right, self.ways, hinges, self.wide)
        matrix, force = self.normal_equations(places, heads, misses[:, :count], weights[:, :count])
        if asked > count:
            more_matrix, more_force = _squared(self._turned_rows(root), right[:, 3 * count :])
            matrix, force = matrix + more_matrix, force + more_force
        narrow = self.ways.narrow(np.swapaxes(self.ways.narrow(matrix, hinges), 1, 2), hinges)
        return Equations(narrow, self.ways.narrow(force, hinges), self.ways, hinges, wide=False)

    def _rows(self, points: FloatArray, heads: FloatArray, root: FloatArray, axes: FloatArray | None) -> FloatArray:
        """(F, 3 (E + O), D) √W J, with the difference of both sides where an effector closes a loop."""
        count, loops = self.measures.count, list(self.measures.loops)
        scale = np.concatenate([root[:, :count], root[:, loops]], axis=1) if loops else root[:, :count]
        rows = self.jacobian(points, heads, scale)
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

    def jacobian(self, points: FloatArray, heads: FloatArray, scale: FloatArray) -> FloatArray:
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
        self, points: FloatArray, heads: FloatArray, misses: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, D, D) JᵀWJ and (F, D) JᵀW·miss, from moments of the points (as composite rigid bodies are summed).

        For a body and one below it whose head lies d from its own: with c the arms of the lower one and a = c + d
        those of the upper, Σ over the effectors of w (a·c I − c aᵀ), which needs Σ w c and Σ w c cᵀ only.
        """
        moments = self._moments(points, heads, misses, weights)
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
        force = (misses * weights[..., None]).sum(axis=1)
        return square, np.concatenate([slope.reshape(frames, -1), force], axis=1)

    def _moments(self, points: FloatArray, heads: FloatArray, misses: FloatArray, weights: FloatArray) -> FloatArray:
        """(F, B, 16) sums over the ends of each body's arms, about the root's head: w, w x, w x xᵀ, w m, x × w m."""
        forces = misses * weights[..., None]
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


@dataclass(frozen=True)
class Equations:
    """A damped least-squares step in the making, on F frames with D columns, of which d are open (see `Ways`).

    Attributes:
        matrix: (F, d, d) JᵀWJ, or where `wide` (F, R, d) √W J with fewer rows than columns.
        right: (F, d) JᵀW·miss, or where `wide` (F, R) √W·miss.
        ways: which columns are open.
        hinges: (F, H, 3) axes of the bodies that are hinges.
        wide: which of the two.
    """

    matrix: FloatArray
    right: FloatArray
    ways: Ways
    hinges: FloatArray
    wide: bool

    def part(self, frames: IntArray) -> "Equations":
        """The same on some of the frames."""
        return replace(self, matrix=self.matrix[frames], right=self.right[frames], hinges=self.hinges[frames])

    def locked(self, columns: FloatArray) -> "Equations":
        """The same where some columns besides those of bodies, zero in (F, D), do not move."""
        kept = np.ones((len(columns), self.matrix.shape[2]))
        kept[:, self.ways.turning :] = columns[:, self.ways.full_turning :]
        matrix = self.matrix * kept[:, None]
        if self.wide:
            return replace(self, matrix=matrix)
        return replace(self, matrix=matrix * kept[..., None], right=self.right * kept)

    def promise(self, step: FloatArray) -> FloatArray:
        """(F,) by how much a step (F, D) lowers Σ w · miss² if the problem were linear."""
        narrow = self.ways.narrow(step, self.hinges)
        moved = (self.matrix @ narrow[..., None])[..., 0]
        return np.asarray(((2.0 * self.right - moved) * (moved if self.wide else narrow)).sum(axis=1))

    def force(self) -> FloatArray:
        """(F, D) JᵀW·miss, what pulls at the joints."""
        return self._pulled(self.right)

    def force_after(self, step: FloatArray, damping: FloatArray) -> FloatArray:
        """(F, D) what still pulls at the joints after a step (F, D), the damping included."""
        narrow = self.ways.narrow(step, self.hinges)
        left = self.right - (self.matrix @ narrow[..., None])[..., 0]
        return self._pulled(left) - (damping * self._scale())[:, None] * step

    def arms(self) -> FloatArray:
        """(F, B) how far a small turn of each body moves the effectors: √(Σ weight · arm²)."""
        squares = (self.matrix**2).sum(axis=1) if self.wide else np.diagonal(self.matrix, axis1=1, axis2=2)
        return self.ways.arms(squares)

    def _pulled(self, right: FloatArray) -> FloatArray:
        pull = (np.swapaxes(self.matrix, 1, 2) @ right[..., None])[..., 0] if self.wide else right
        return self.ways.widen(pull, self.hinges)

    def _scale(self) -> FloatArray:
        """(F,) the mean diagonal of JᵀWJ."""
        count = max(self.matrix.shape[2], 1)
        if self.wide:
            return np.asarray((self.matrix**2).sum(axis=(1, 2)) / count)
        return np.asarray(np.trace(self.matrix, axis1=1, axis2=2) / count)

    def step(self, damping: FloatArray) -> FloatArray:
        """(F, D) the step with `damping` (F,) times the mean diagonal of JᵀWJ."""
        return self.ways.widen(self._solved(self.matrix, self.right, damping), self.hinges)

    def open_step(self, damping: FloatArray, open_: FloatArray, moved: FloatArray) -> FloatArray:
        """(F, D) the step that is settled to begin with in some ways and open in others.

        Args:
            damping: (F,).
            open_: (F, B, 3, 3) projects each body's rotation vector on what is open.
            moved: (F, B, 3) rotation vectors in ways that are not.
        """
        frames, ways = len(damping), self.ways
        settled = np.zeros((frames, self.matrix.shape[2]))
        settled[:, : ways.turning] = ways.narrow(moved.reshape(frames, -1), self.hinges)
        right = self.right - (self.matrix @ settled[..., None])[..., 0]
        matrix = self.matrix.copy()
        ways.project(matrix, open_)
        if not self.wide:
            ways.project(np.swapaxes(matrix, 1, 2), open_)
            ways.project(right[:, None], open_)
        return ways.widen(settled + self._solved(matrix, right, damping), self.hinges)

    def _solved(self, matrix: FloatArray, right: FloatArray, damping: FloatArray) -> FloatArray:
        if not self.wide:
            return _solved(matrix, right, damping)
        across = np.swapaxes(matrix, 1, 2)
        share = matrix.shape[1] / max(matrix.shape[2], 1)
        return np.asarray((across @ _solved(matrix @ across, right, damping * share)[..., None])[..., 0])


def _squared(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The normal equations, matrix and right side, of (F, R, D) rows and their (F, R) right side."""
    across = np.swapaxes(rows, 1, 2)
    return across @ rows, (across @ right[..., None])[..., 0]


def _solved(square: FloatArray, right: FloatArray, damping: FloatArray) -> FloatArray:
    """Solve with `damping` times the mean diagonal added to the diagonal; the matrix stays as it is."""
    diagonal = np.einsum("fii->fi", square)
    kept = diagonal.copy()
    diagonal += (damping * (kept.sum(axis=1) / max(kept.shape[1], 1) + _TINY))[:, None]
    solution = np.linalg.solve(square, right[..., None])[..., 0]
    diagonal[...] = kept
    return np.asarray(solution)


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
    for holder, body in enumerate(bodies):
        for effector in (index for attachment in body.attachments for index in attachment.effectors):
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
