"""Targets on sinusoids in and out of reach, followed by the chain, the Y and the hand; and the drag of Kine.

Each step is checked: whether a reachable target is met, how far a joint moves relative to the target, and whether a
joint shakes (moves back and immediately forward again).
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from support.rigs import straight_chain
from support.solvers import jacobian
from support.solvers.ccd import ccd
from support.solvers.figure import Figure
from support.solvers.loop import Turning, iterate, met_or_still

from benchmarks.paper import chain
from benchmarks.tables import table
from fabrik_addon.core import Effector, Hinge, Options, Skeleton, Solver
from sample_rigs.recipe.paper_models import PAPER_MODELS

STEPS = 1000
TOLERANCE = 1e-3
STEPS_OF_OTHERS = 10
SHAKE = 0.1
EVERY_MM = 1000.0


@dataclass(frozen=True)
class Model:
    """A rig without limits, the bones whose tails follow the targets (T, E, 3), and a name for the table. In mm."""

    name: str
    skeleton: Skeleton
    ends: tuple
    targets: np.ndarray
    limits: dict

    @property
    def effectors(self):
        return [Effector(end) for end in self.ends]

    @property
    def within_reach(self):
        """(T,) whether each target, taken alone, is within reach of its own path, with a small margin."""
        root = self.skeleton.rest[0, :3, 3]
        paths = [self.skeleton.path(self.skeleton.index(end)) for end in self.ends]
        reach = np.array([self.skeleton.lengths[path].sum() for path in paths])
        return (np.linalg.norm(self.targets - root, axis=2) < 0.98 * reach).all(axis=1)


def skeleton_of(bones):
    """A skeleton in mm from a sample rig's bones."""
    names = [bone.name for bone in bones]
    rest = np.tile(np.eye(4), (len(bones), 1, 1))
    rest[:, :3, :3] = [bone.rotation for bone in bones]
    rest[:, :3, 3] = [np.multiply(bone.head, EVERY_MM) for bone in bones]
    parents = [names.index(bone.parent) if bone.parent else -1 for bone in bones]
    return Skeleton(names, parents, rest, [bone.length * EVERY_MM for bone in bones])


def model(name, steps=STEPS):
    """The chain, the Y or the hand of the paper, with targets that swing about its tips and beyond."""
    skeleton = skeleton_of(PAPER_MODELS[name]())
    parents = set(skeleton.parents)
    ends = tuple(bone for index, bone in enumerate(skeleton.names) if index not in parents)
    return Model(name, skeleton, ends, _swinging(skeleton, ends, steps), {})


def _swinging(skeleton, ends, steps):
    """(T, E, 3) from 55 to 115 % of the tips' distances from the root, and to the sides."""
    time = np.linspace(0.0, 2.0 * np.pi, steps)[:, None, None]
    tips = Figure(skeleton, ends).tips
    phase = np.arange(len(ends))[None, :, None]
    size = np.linalg.norm(tips, axis=1)[None, :, None]
    aside = np.concatenate([np.sin(3 * time + phase), np.cos(2 * time + phase), np.sin(2 * time - phase)], axis=2)
    return tips * (0.85 + 0.3 * np.sin(5 * time)) + 0.15 * size * aside


@dataclass(frozen=True)
class Track:
    """Positions of joints (T, P, 3) and errors of the effectors (T, E), step by step."""

    joints: np.ndarray
    errors: np.ndarray

    def step_ratio(self, targets):
        """The largest step of a joint, divided by the largest step of a target."""
        return steps(self.joints).max() / steps(targets).max()

    def shakes(self, targets):
        """(T - 3,) whether a joint moves back and immediately forward again, by a tenth of a target's largest step."""
        turns = backs(self.joints, SHAKE * steps(targets).max())
        return (turns[1:] & turns[:-1]).any(axis=1)


def steps(points):
    """(T - 1, P) how far points (T, P, 3) move."""
    return np.linalg.norm(np.diff(points, axis=0), axis=2)


def backs(points, least):
    """(T - 2, P) whether a point's step goes against the one before, both longer than `least`."""
    moves = np.diff(points, axis=0)
    long_enough = np.minimum(steps(points)[:-1], steps(points)[1:]) > least
    return ((moves[:-1] * moves[1:]).sum(axis=2) < 0.0) & long_enough


def follow_each_by_itself(model):
    """The shipped solver on all steps at once, each from rest."""
    solution = _solver(model).solve(model.targets)
    return Track(np.concatenate([solution.heads, solution.tails], axis=1), solution.errors)


def follow_on(model, **options):
    """The shipped solver, each step from the pose before."""
    solver = _solver(model, **options)
    joints, errors, pose = [], [], None
    for target in model.targets:
        solution = solver.solve(target, start=pose)
        pose = solution.rotations
        joints.append(np.concatenate([solution.heads, solution.tails]))
        errors.append(solution.errors)
    return Track(np.array(joints), np.array(errors))


def _solver(model, **options):
    return Solver(model.skeleton, model.effectors, limits=model.limits, options=Options(tolerance=1e-6, **options))


def follow_by_turning(model, iteration):
    """A comparison method: each step starts from the pose before, and takes a few iterations."""
    figure = Figure(model.skeleton, model.ends)
    joints, errors = [], []
    for target in model.targets:
        run = Turning(iteration, figure, target)
        iterate(run, met_or_still(TOLERANCE, 1e-2 * TOLERANCE), STEPS_OF_OTHERS)
        joints.append(run.points)
        errors.append(np.linalg.norm(run.tips - target, axis=1))
    return Track(np.array(joints), np.array(errors))


def ways(model):
    """Name -> a function that follows the model's targets."""
    unit = float(np.median(model.skeleton.lengths))
    dls = partial(jacobian.step, rule=chain.RULES["Jacobian DLS"], unit=unit, longest=chain.LONGEST_STEP)
    fabrik = {
        "FABRIK, this extension, each step from rest": partial(follow_each_by_itself, model),
        "the same, from the previous step": partial(follow_on, model),
        "FABRIK, the paper's loop": partial(follow_on, model, plain=True, max_sweeps=STEPS_OF_OTHERS),
    }
    if len(model.ends) > 2:  # the paper's hand is FABRIK's alone
        return fabrik
    return fabrik | {
        "CCD": partial(follow_by_turning, model, ccd),
        "Jacobian DLS": partial(follow_by_turning, model, dls),
    }


def follow_all():
    """(model, method) -> (model, track)."""
    moving = [model(name) for name in ("chain", "y", "hand")]
    return {(m.name, way): (m, follow()) for m in moving for way, follow in ways(m).items()}


def step_ratios(followed):
    """Method -> (T - 1,) the chain's largest joint movement divided by the target's largest, at each step."""
    return {
        way: steps(track.joints).max(axis=1) / steps(moving.targets).max()
        for (name, way), (moving, track) in followed.items()
        if name == "chain"
    }


def tracking_table(followed):
    rows = [_row(name, moving, way, track) for (name, way), (moving, track) in followed.items()]
    header = (
        "model",
        "method",
        "error in reach, mm: median",
        "max",
        "largest joint step / target step",
        "steps on which a joint shakes, %: in reach",
        "beyond",
    )
    return table(
        f"Tracking over {STEPS:,} steps in and out of reach; other methods have {STEPS_OF_OTHERS} iterations per step",
        header,
        rows,
    )


def _row(name, moving, way, track):
    misses = track.errors[moving.within_reach].max(axis=1)
    shakes, within = track.shakes(moving.targets), moving.within_reach[3:]
    return (
        name,
        way,
        f"{np.median(misses):.2g}",
        f"{misses.max():.2g}",
        f"{track.step_ratio(moving.targets):.2f}",
        f"{100.0 * shakes[within].mean():.1f}",
        f"{100.0 * shakes[~within].mean():.1f}",
    )


def snake(steps=300):
    """Kine's chain of six joints in a plane, all hinges about one direction, dragged within reach."""
    skeleton = straight_chain(5, 100.0)
    time = np.linspace(0.0, 2.0 * np.pi, steps)
    size, angle = 290.0 + 180.0 * np.sin(3 * time), 0.9 * np.sin(2 * time) + 0.7 * np.sin(5 * time + 1.0)
    targets = np.stack([0 * time, size * np.cos(angle), size * np.sin(angle)], axis=1)[:, None]
    hinges = {name: Hinge("X", -np.pi, np.pi) for name in skeleton.names}
    return Model("snake", skeleton, (skeleton.names[-1],), targets, hinges)


def clicks(count=40):
    """The snake with a target that jumps across the plane from click to click."""
    rng = np.random.default_rng(4)
    dragged = snake(count)
    size, angle = rng.uniform(120.0, 480.0, count), rng.uniform(-np.pi, np.pi, count)
    targets = np.stack([0 * size, size * np.cos(angle), size * np.sin(angle)], axis=1)[:, None]
    return Model("snake", dragged.skeleton, dragged.ends, targets, dragged.limits)


def measure_snake():
    rows = []
    for what, moving in (("dragged", snake()), ("clicked", clicks())):
        for way, follow in ways(moving).items():
            rows.append(_snake_row(what, moving, way, follow()))
    header = (
        "target",
        "method",
        "reached to 0.01 mm, %",
        "distance from its plane, mm",
        "largest joint step / target step",
        "bend (sum of the joint angles): mean, max",
    )
    return table("Kine: a planar chain of 6 joints whose target is dragged or clicked", header, rows)


def _snake_row(what, moving, way, track):
    bend = bends(track.joints[:, : len(moving.skeleton)], track.joints[:, len(moving.skeleton) :])
    return (
        what,
        way,
        f"{100.0 * (track.errors[:, 0] < 0.01).mean():.0f}",
        f"{np.abs(track.joints[..., 0]).max():.1g}",
        f"{track.step_ratio(moving.targets):.2f}",
        f"{bend.mean():.0f}°, {bend.max():.0f}°",
    )


def bends(heads, tails):
    """(T,) sums of the angles between neighboring bones (T, B), in degrees; large for a chain that rolls itself up."""
    links = tails - heads
    before, after = links[:, :-1], links[:, 1:]
    cross = np.linalg.norm(np.cross(before, after), axis=2)
    return np.degrees(np.arctan2(cross, (before * after).sum(axis=2))).sum(axis=1)
