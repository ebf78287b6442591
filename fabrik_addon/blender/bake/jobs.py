"""The jobs of a bake: each tree of bones with its targets on all frames."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import partial

import bpy
import numpy as np

from ...core import Solution, Solver
from ...core.arrays import BoolArray, FloatArray, IntArray
from ...markers.feet import Stance
from ...markers.signals import low_pass
from ...markers.take import FilledSpan, TakeSettings
from ..capture.calibrate import kept_factors
from ..capture.clip import scene_rate
from ..control.posed_rig import posed_rig
from ..goals.effectors import followed, follows_markers
from ..goals.places import SampledTargets, sampled_steps
from ..goals.problem import RigProblem, find_problems
from ..rig.spaces import object_scale
from .animated import check_still, root_heads
from .settings import BakeError, BakeSettings


@dataclass(frozen=True)
class Job:
    """One tree to solve.

    goals: effectors and their targets. places: the positions of the targets on F frames, NaN if not visible. bones:
    indices of the bones that move the visible targets' points. root_heads: (F, 3) the head of a pinned root; None if it
    is free. scale: as in `BakedTree`. factors: (J,) the person's bone lengths relative to the rig's; None if they are
    not used. take: settings for markers; None for effectors.
    """

    problem: RigProblem
    places: SampledTargets
    bones: list[int]
    root_heads: FloatArray | None
    scale: FloatArray
    factors: FloatArray | None
    take: TakeSettings | None

    @property
    def seen(self) -> BoolArray:
        """(F, E) whether each target is seen on each frame."""
        unseen: BoolArray = np.isnan(self.places.points).any(axis=-1)
        return ~unseen

    @property
    def solver(self) -> Solver:
        """The solver of the tree."""
        return self.problem.solver()


@dataclass(frozen=True)
class BakedTree:
    """The result of a bake for one tree of bones.

    Attributes:
        goals: the bones, the effectors and their targets.
        bones: names of the bones that got keys.
        solution: the poses to write, on F frames in the space of the tree.
        scale: (F,) world meters per unit of that space.
        keyed: (F, J) whether a bone gets a key on a frame; None if all do.
        travels: whether the location of a free root gets keys.
        filled: spans without markers for a bone, and how they were filled.
        outliers: (F, E) whether a visible marker was rejected; None if outliers are not rejected.
        stances: spans on which planted feet were prevented from sliding.
        turned_off: for each bone with a source, (F,) radians by which its rotation differs from the source.
        notes: short lines about how the poses were found.
        doubts: sentences about why the poses may be wrong.
    """

    problem: RigProblem
    bones: tuple[str, ...]
    solution: Solution
    scale: FloatArray = field(repr=False)
    keyed: BoolArray | None = field(default=None, repr=False)
    travels: bool = True
    filled: tuple[FilledSpan, ...] = ()
    outliers: BoolArray | None = field(default=None, repr=False)
    stances: tuple[Stance, ...] = field(default=(), repr=False)
    turned_off: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def sample(
    context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings
) -> Generator[float, None, tuple[list[Job], FloatArray]]:
    """The trees to solve, and (F, 4, 4) world matrices of the armature; yields the share done."""
    scene, frames, by_markers = context.scene, settings.frames, follows_markers(armature, settings.source)
    # Bones that are not solved have their pose on the first frame.
    if armature.animation_data is not None and scene.frame_current_final != settings.frame_start:
        scene.frame_set(settings.frame_start)
    else:
        context.view_layer.update()
    problems = find_problems(armature, followed(armature, settings.source), baked=True)
    rate = scene_rate(scene) / settings.step
    smooth = partial(low_pass, rate=rate, cutoff=settings.low_pass) if by_markers else None
    sampled, matrices = yield from sampled_steps(scene, armature, problems, frames, smooth, recorded=by_markers)
    take = None
    if by_markers:
        take = TakeSettings(
            gaps=settings.gaps,
            robust=settings.robust,
            steady=settings.robust,
            plant_feet=settings.plant_feet == "ON",
            rate=rate,
            up=int(np.argmax(np.abs(matrices[0, 2, :3]))),
            meter=1.0 / float(object_scale(matrices[0])),
        )
    jobs = [
        _job(armature, tree, places, space, frames, take)
        for tree, (places, space) in zip(problems, sampled, strict=True)
    ]
    seen = [job for job in jobs if job.seen.any()]
    if not seen:
        raise BakeError(f"No marker is seen in frames {frames[0]}-{frames[-1]}: choose others")
    return seen, matrices


def _job(
    armature: bpy.types.Object,
    problem: RigProblem,
    places: SampledTargets,
    space: FloatArray,
    frames: IntArray,
    take: TakeSettings | None,
) -> Job:
    """One tree to solve; raises RigError if a bone to rotate has an animated location or scale."""
    ever_seen = ~np.isnan(places.points).any(axis=-1).all(axis=0)
    bones = [int(bone) for bone in np.flatnonzero(problem.turned_by[ever_seen].any(axis=0))]
    names = [problem.tree.skeleton.names[bone] for bone in bones]
    heads = None if problem.free_root else np.tile(problem.tree.root_location, (len(frames), 1))
    if posed_rig(armature).by_channels:
        check_still(armature, names, frames)
        heads = None if heads is None else root_heads(armature, problem.tree, frames)
    if heads is not None and problem.carrier:
        # A root with a parent stays at the same position in its parent's space.
        heads = np.tile(problem.tree.root_location, (len(frames), 1))
    factors = None if take is None else kept_factors(armature, problem.tree.skeleton.names)
    return Job(problem, places, bones, heads, object_scale(space), factors, take)
