"""What a bake has to solve: where targets are over the frames, for each tree of bones."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import partial

import bpy
import numpy as np

from ...core import Solution, Solver
from ...core.arrays import BoolArray, FloatArray, IntArray
from ...markers.butterworth import low_pass
from ...markers.feet.stances import Stance
from ...markers.take import FilledSpan, TakeSettings
from ..capture.calibrate import kept_factors
from ..capture.clip import scene_rate
from ..control.posed_rig import posed_rig
from ..goals.effectors import followed, follows_markers
from ..goals.goals import Goals, gather_goals, moves_root
from ..goals.places import Places, sampled_steps
from ..rig.spaces import object_scale
from .animated import check_still, root_heads
from .settings import BakeError, BakeSettings


@dataclass(frozen=True)
class Job:
    """One tree to be solved.

    goals: what is to reach what. places: where that is on F frames, NaN where not seen. bones: places of the bones that
    some target is ever seen for. root_heads: (F, 3) where a pinned root is; None where it is free. scale: (F,) as for a
    baked tree. factors: (J,) how much longer than the rig's the recorded person's bones are; None where that does not
    count. take: how markers are solved; None where effectors are followed.
    """

    goals: Goals
    places: Places
    bones: list[int]
    root_heads: FloatArray | None
    scale: FloatArray
    factors: FloatArray | None
    take: TakeSettings | None

    @property
    def seen(self) -> BoolArray:
        """(F, E) whether a target is seen."""
        unseen: BoolArray = np.isnan(self.places.points).any(axis=-1)
        return ~unseen

    @property
    def solver(self) -> Solver:
        """The solver of the tree."""
        return self.goals.solver(free_root=self.root_heads is None)


@dataclass(frozen=True)
class BakedTree:
    """What a bake found for one tree of bones.

    Attributes:
        goals: the bones, the effectors and their targets.
        bones: names of the bones that got keys.
        solution: the poses written, F frames in the space of the tree.
        scale: (F,) world metres to one unit of that space.
        keyed: (F, J) whether a bone gets a key on a frame; None where all do.
        travels: whether the root's place gets keys too, where it is free.
        filled: spans over which a bone had no markers, and what was done about them.
        outliers: (F, E) markers that were seen and not believed; None where that was not asked.
        stances: when feet stood that were kept from sliding.
        turned_off: (F,) radians by which bones that go by a source's are turned from that, by bone.
        notes: short lines on how the poses were found.
        doubts: sentences on why the poses may be wrong.
    """

    goals: Goals
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
    """The trees to be solved, and (F, 4, 4) world matrices of the armature; yields the share done."""
    scene, frames, by_markers = context.scene, settings.frames, follows_markers(armature, settings.source)
    goals = _goals_at(context, armature, settings)
    rate = scene_rate(scene) / settings.step
    smooth = partial(low_pass, rate=rate, cutoff=settings.low_pass) if by_markers else None
    sampled, matrices = yield from sampled_steps(scene, armature, goals, frames, smooth, recorded=by_markers)
    take = _take_settings(settings, rate, matrices[0]) if by_markers else None
    jobs = [
        _job(armature, tree, places, space, frames, take) for tree, (places, space) in zip(goals, sampled, strict=True)
    ]
    seen = [job for job in jobs if job.seen.any()]
    if not seen:
        raise BakeError(f"No marker is seen in frames {frames[0]}-{frames[-1]}: choose others")
    return seen, matrices


def _goals_at(context: bpy.types.Context, armature: bpy.types.Object, settings: BakeSettings) -> list[Goals]:
    """What is followed, with the bones as they are on the first frame."""
    frame = settings.frame_start
    if armature.animation_data is not None and context.scene.frame_current_final != frame:
        context.scene.frame_set(frame)
    else:
        context.view_layer.update()
    return gather_goals(armature, posed_rig(armature).trees(), followed(armature, settings.source), baked=True)


def _take_settings(settings: BakeSettings, rate: float, world: FloatArray) -> TakeSettings:
    """How markers are solved; rate: baked frames a second; world: (4, 4) of the armature."""
    return TakeSettings(
        gaps=settings.gaps,
        robust=settings.robust,
        steady=settings.robust,
        plant_feet=settings.plant_feet,
        rate=rate,
        up=int(np.argmax(np.abs(world[2, :3]))),
        metre=1.0 / float(object_scale(world)),
    )


def _job(
    armature: bpy.types.Object,
    goals: Goals,
    places: Places,
    space: FloatArray,
    frames: IntArray,
    take: TakeSettings | None,
) -> Job:
    """One tree to be solved; raises RigError where a bone that is to be turned moves by itself."""
    ever_seen = ~np.isnan(places.points).any(axis=-1).all(axis=0)
    bones = [int(bone) for bone in np.flatnonzero(goals.turned_by[ever_seen].any(axis=0))]
    names = [goals.tree.skeleton.names[bone] for bone in bones]
    heads = None if moves_root(armature, goals) else np.tile(goals.tree.root_location, (len(frames), 1))
    if posed_rig(armature).by_channels:
        check_still(armature, names, frames)
        heads = None if heads is None else root_heads(armature, goals.tree, frames)
    if heads is not None and goals.carrier:
        # What carries the root keeps it in one place of its space.
        heads = np.tile(goals.tree.root_location, (len(frames), 1))
    factors = None if take is None else kept_factors(armature, goals.tree.skeleton.names)
    return Job(goals, places, bones, heads, object_scale(space), factors, take)
