"""The settings of a bake, and its jobs: each tree of bones with its targets on all frames."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import bpy
import numpy as np

from ...core import Solution, Solver
from ...core.arrays import BoolArray, FloatArray, IntArray
from ...core.errors import FabrikError
from ...markers.feet import Stance
from ...markers.signals import low_pass
from ...markers.take import FilledSpan, TakeSettings
from ..capture.calibrate import kept_factors
from ..capture.matching import recorded_range, scene_rate
from ..control.posed_rig import posed_rig
from ..goals.effectors import followed, follows_markers
from ..goals.places import SampledTargets, sampled_steps
from ..goals.problem import RigProblem, find_problems
from ..rig.armature import RigError, Tree, object_scale, root_location_channel, root_place
from ..rig.keyframes import bone_path, bone_property_path, channel_values, curves, curves_by_path, values_at
from ..settings.bake_options import OPTIONS, BakeOptions, KeyOptions, MarkerOptions
from ..settings.limit_properties import NUMBERS, read_extra_field
from ..settings.limit_values import NO_SLIDE
from ..settings.why_not import mapped_markers


class BakeError(FabrikError):
    """A bake is impossible; the message says why."""


class BakeSettings(KeyOptions, BakeOptions, MarkerOptions):
    """The settings of a bake: frames, options, and the name of a new action ("" to derive it from the rig).

    `KeyOptions`, `BakeOptions` and `MarkerOptions` describe the options: words in capitals, angles in radians,
    distances in world meters, rates in Hz. Raises BakeError for an empty range, unknown options or choices, and invalid
    numbers.
    """

    def __init__(self, frame_start: int, frame_end: int, *, action_name: str = "", **options: Any) -> None:
        self.frame_start, self.frame_end, self.action_name = frame_start, frame_end, action_name
        if frame_end < frame_start:
            raise BakeError(f"The last frame ({frame_end}) is before the first ({frame_start}): choose a later one")
        unknown = options.keys() - OPTIONS.keys()
        if unknown:
            raise BakeError(f"A bake has no option {min(unknown)!r}: choose from {', '.join(OPTIONS)}")
        for name, declared in OPTIONS.items():
            setattr(self, name, _checked(name, declared.keywords, options))

    @property
    def frames(self) -> IntArray:
        """(F,) the frames that get keys."""
        return np.arange(self.frame_start, self.frame_end + 1, self.step, dtype=np.int64)


def _checked(name: str, declared: dict[str, Any], options: dict[str, Any]) -> Any:
    """The value of an option, or its default; raises BakeError if the value is invalid."""
    if "items" in declared:
        choices = [identifier for identifier, *_ in declared["items"]]
        value = options.get(name, choices[0])
        if value not in choices:
            raise BakeError(f"{name} is {value!r}: it must be one of {', '.join(choices)}")
        return value
    value = options.get(name, declared.get("default", False))
    if "min" in declared and not declared["min"] <= value < inf:
        raise BakeError(f"{name} is {value}: it must be {declared['min']:g} or more")
    return value


def preview_range(scene: bpy.types.Scene) -> tuple[int, int] | None:
    """The first and the last frame of the scene's preview range; None if it is off."""
    return (scene.frame_preview_start, scene.frame_preview_end) if scene.use_preview_range else None


def chosen_range(scene: bpy.types.Scene, rig: bpy.types.Object, source: str) -> tuple[int, int]:
    """The first and the last frame to bake; `source` as in `follows_markers`.

    These are the preview range, if the scene has one, else the frames of the markers, else the scene's range.
    """
    preview = preview_range(scene)
    if preview is not None:
        return preview
    if follows_markers(rig, source):
        return recorded_range(scene, ((marker.target, marker.target_bone) for marker in mapped_markers(rig)))
    return scene.frame_start, scene.frame_end


# A channel that changes by less than this (armature units for locations, a factor for scales) counts as still.
_STILL = 1e-4


def animated_limits(armature: bpy.types.Object, bones: Sequence[str], frames: IntArray) -> Iterator[str]:
    """A warning for each bone whose limit is driven, or animated on frames (F,)."""
    paths = {bone_property_path(bone, name): (bone, name) for bone in bones for name in NUMBERS}
    keyed = [curve for curve in curves(armature) if curve.data_path in paths and not curve.mute]
    changing = [curve.data_path for curve in keyed if np.ptp(values_at(curve, frames)) > _STILL]
    if armature.animation_data is not None:
        changing += [curve.data_path for curve in armature.animation_data.drivers if curve.data_path in paths]
    for path in dict.fromkeys(changing):
        bone, name = paths[path]
        yield f"Bone {bone!r} has an animated limit ({name}): its values on frame {frames[0]} were used"


def check_still(armature: bpy.types.Object, bones: Sequence[str], frames: IntArray | FloatArray) -> None:
    """Raise RigError, naming the bone, if the location or scale of a bone to rotate changes on frames (F,).

    The solver needs constant bone lengths. The location of a root may change, because it belongs to the pose.
    """
    by_path = curves_by_path(curves(armature))
    for bone in bones:
        pose_bone = armature.pose.bones[bone]
        slides = pose_bone.parent is not None and not pose_bone.bone.use_connect
        for channel in ("location", "scale") if slides else ("scale",):
            for curve in by_path.get(bone_path(bone, channel), ()):
                along = channel == "scale" and curve.array_index == 1
                stretches = along and read_extra_field(pose_bone, "slide") != NO_SLIDE
                if not stretches and np.ptp(values_at(curve, frames)) > _STILL:
                    raise RigError(
                        f"Bone {bone!r} has an animated {channel} in frames {frames[0]:g}-{frames[-1]:g}, "
                        "but only rotations can be baked: remove those keys first"
                    )


def root_heads(armature: bpy.types.Object, tree: Tree, frames: IntArray) -> FloatArray:
    """(F, 3) the root's head in armature space on frames (F,), from the keys of its location."""
    root = armature.pose.bones[tree.skeleton.names[0]]
    present = root_location_channel(root, tree.root_location)
    own = curves_by_path(curves(armature)).get(bone_path(root.name, "location"), ())
    return root_place(root, channel_values(present, own, frames))


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
