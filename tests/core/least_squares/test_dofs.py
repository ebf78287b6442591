"""Steps of the finish in the columns that are open: the least squares of all columns, held to the open turns."""

import numpy as np
import pytest
from support.families import ball, hinge, limb

from fabrik_addon.core import Effector, Fixed
from fabrik_addon.core.backend import array as many
from fabrik_addon.core.least_squares.jacobian import Jacobian
from fabrik_addon.core.model.bodies import build_bodies, place_bodies
from fabrik_addon.core.model.residuals import make_residuals

FRAMES = 3
LIMITS = (ball(80), hinge("X", -90, 120), Fixed(), hinge("Z", -60, 60), ball(45))


class Problem:
    """A chain of balls, hinges and a fixed bone on some frames, and where its effectors miss their targets."""

    def __init__(self, ends, *, free_root, turned=(), prior=False):
        rng = np.random.default_rng(4)
        family = limb((0.3, 0.25, 0.2, 0.15, 0.1), *LIMITS)
        effectors = [
            Effector(name, (0.02 * place, 0.1, 0.03), rotation_weight=float(name in turned))
            for place, name in enumerate(ends)
        ]
        self.bodies = build_bodies(family.skeleton, effectors, family.limits, many)
        measures = make_residuals(self.bodies, effectors, np.ones(len(ends)), tolerance=1e-6)
        samples = [limit.sample(rng.random((FRAMES, 3))) for limit in LIMITS]
        pose = place_bodies(self.bodies, [many.quaternion(turns) for turns in samples], many.Vector((0.0, 0.0, 0.0)))
        self.jacobian = Jacobian(self.bodies, measures, free_root)
        self.heads = many.stack(pose.heads, FRAMES)
        wanted = rng.normal(size=(FRAMES, len(ends), 4))
        wanted /= np.linalg.norm(wanted, axis=2, keepdims=True)
        self.points, self.holders = measures.vectors(many, self.bodies, pose, wanted), measures.holders
        self.residuals = rng.normal(size=self.points.shape) * 0.1
        self.weights = rng.uniform(0.5, 2.0, self.points.shape[:2])
        self.hinges = self.jacobian.dofs.hinge_axes(many.stack(pose.orientations, FRAMES).transpose(2, 1, 0))
        shape = FRAMES, len(self.bodies)
        self.prior = (rng.normal(size=(*shape, 3)), rng.uniform(0.1, 1.0, shape)) if prior else None
        self.equations = self.jacobian.equations(
            self.points, self.heads, self.residuals, self.weights, self.hinges, prior=self.prior
        )

    def dense(self):
        """(F, R, D) √W J and (F, R) √W r: points, then turns of bodies, then what they are expected to be."""
        root, count = np.sqrt(self.weights), self.jacobian.measures.count
        rows = [self.jacobian.rows(self.points[:, :count], self.heads, root[:, :count])]
        right = self.residuals * root[..., None]
        for place, holder in enumerate(self.holders):
            turn = np.zeros((FRAMES, 3, self.jacobian.columns))
            turn[..., : 3 * holder + 3] = np.tile(np.eye(3), holder + 1)
            rows.append(turn * root[:, count + place, None, None])
        right = right.reshape(FRAMES, -1)
        if self.prior is not None:
            expected, weights = self.prior
            each = np.eye(3 * len(self.bodies), self.jacobian.columns)
            rows.append(each * np.sqrt(np.repeat(weights, 3, axis=1))[..., None])
            right = np.concatenate([right, (expected * np.sqrt(weights)[..., None]).reshape(FRAMES, -1)], axis=1)
        return np.concatenate(rows, axis=1), right

    def bases(self):
        """(F, D, d) what each open column is in full ones: a free body's own three, a hinge's axis, the root's."""
        full = self.jacobian.columns
        bases = []
        for frame in range(FRAMES):
            free, hinges, hinge_axes = [], [], iter(self.hinges[frame])
            for index, body in enumerate(self.bodies):
                block = np.zeros((full, body.limit.freedom))
                part = slice(3 * index, 3 * index + 3)
                block[part] = np.eye(3) if body.limit.freedom == 3 else 0.0
                if body.limit.freedom == 1:
                    block[part, 0] = next(hinge_axes)
                (free if body.limit.freedom == 3 else hinges).append(block)
            rest = np.eye(full)[:, 3 * len(self.bodies) :]
            bases.append(np.concatenate([*free, *hinges, rest], axis=1))
        return bases


@pytest.mark.parametrize("free_root", [False, True])
@pytest.mark.parametrize("turned", [(), ("b1", "b4")], ids=["points", "turns"])
@pytest.mark.parametrize("prior", [False, True], ids=["", "prior"])
@pytest.mark.parametrize("ends", [("b4",), ("b0", "b1", "b2", "b3", "b4", "b4")], ids=["wide", "square"])
def test_a_step_is_that_of_the_dense_problem_in_the_open_columns(ends, prior, turned, free_root):
    problem = Problem(ends, free_root=free_root, turned=turned, prior=prior)
    assert problem.equations.wide == (len(ends) == 1 and not prior)
    damping = np.full(FRAMES, 1e-3)
    step = problem.equations.widened(problem.equations.step(damping))
    rows, right = problem.dense()
    for frame, basis in enumerate(problem.bases()):
        open_rows = rows[frame] @ basis
        square = open_rows.T @ open_rows
        damped = square + damping[frame] * np.diag(1.0 / problem.equations.scale[frame] ** 2)
        expected = basis @ np.linalg.solve(damped, open_rows.T @ right[frame])
        np.testing.assert_allclose(step[frame], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("free_root", [False, True])
def test_what_is_predicted_is_what_the_dense_problem_gains(free_root):
    problem = Problem(("b1", "b4", "b4"), free_root=free_root)
    scaled = problem.equations.step(np.full(FRAMES, 1e-2))
    step = problem.equations.widened(scaled)
    rows, right = problem.dense()
    left = right - (rows @ step[..., None])[..., 0]
    np.testing.assert_allclose(problem.equations.predicted(scaled), (right**2).sum(axis=1) - (left**2).sum(axis=1))


def test_narrow_and_wide_vectors_are_the_same_turns():
    problem = Problem(("b4", "b2"), free_root=True)
    dofs, narrow = problem.jacobian.dofs, np.random.default_rng(1).normal(size=(FRAMES, 3 + 1 + 1 + 3 + 3))
    wide = dofs.widen(narrow, problem.hinges)
    np.testing.assert_allclose(dofs.narrow(wide, problem.hinges), narrow, atol=1e-12)
    assert (wide[:, 6:9] == 0.0).all()  # the fixed bone's
    np.testing.assert_allclose(np.linalg.norm(np.cross(wide[:, 3:6], problem.hinges[:, 0]), axis=1), 0.0, atol=1e-12)
