"""Reads the motion of a rig from its action's curves: poses, frames with keys, and paths of bones for trails."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import bpy
import numpy as np
from bpy.types import FCurve, Object

from ...core import forward_kinematics
from ...core.arrays import BoolArray, FloatArray
from ...core.errors import FabrikError
from ...core.kernel.kinematics import tails
from ..control.posed_rig import posed_rig
from ..control.writer import RigMotion
from ..rig import keyframes
from ..rig.armature import RigError, Tree, matrices, root_place
from ..rig.keyframes import SAME_FRAME, RigCurves, cycle_of, every_curve, key_times
from ..rig.pose_writer import PoseKeeper
from ..rig.rotation_modes import from_channels, property_name
from ..settings.why_not import is_layered, is_played


class EditedTake:
    """The motion of an armature, read from its action's curves.

    Attributes:
        posed: the rig. tree: the bones to read, with their skeleton. place: the bone whose location channel moves the
        root.
        is_layered: whether the motion comes from NLA strips instead of an action.
    """

    def __init__(self, armature: Object, tree: Tree) -> None:
        """Find the curves. Raises RigError or KeyframeError if they don't determine the pose."""
        self._armature, self.posed, self.tree, self.skeleton = armature, posed_rig(armature), tree, tree.skeleton
        self.is_layered = is_layered(armature)
        self.place = self.posed.place(tree.skeleton.names[0])
        self._read = RigCurves(armature, every_curve(armature))
        names = self.skeleton.names
        self._holders = {name: self.posed.holders(name) for name in names}
        on_ik = [holder for name in names if name in self.posed.on_ik for holder in self._holders[name]]
        # The curves of the rotations and locations of the bones or controls that pose these bones.
        self._turning, self._moving = (
            {name: found for name in dict.fromkeys(holders) if (found := self._read.channel(name, channel))}
            for channel, holders in (
                ("", [*(each for own in self._holders.values() for each in own), self.place]),
                ("location", on_ik),
            )
        )
        animation = armature.animation_data
        if animation is None:
            return
        if animation.action_influence != 1.0 or animation.action_blend_type != "REPLACE":
            raise RigError(f"The action of {armature.name!r} is blended with others: set its influence to 1 to edit it")
        keyframes.check_not_tweaked(armature)

    def curves(self, bone: str, channel: str) -> list[FCurve]:
        """The curves of a channel of a bone."""
        return self._read.channel(bone, channel)

    def _posing(self, bone: str) -> list[FCurve]:
        """The curves of the rotation of a bone or of its control, or those of the controls of its limb on IK."""
        tables = self._turning, self._moving
        return [curve for holder in self._holders[bone] for table in tables for curve in table.get(holder, ())]

    @cached_property
    def keyed(self) -> set[str]:
        """The bones whose pose has keys."""
        return {bone for bone in self.skeleton.names if self._posing(bone)}

    def key_frames(
        self, bones: Sequence[str], *, root: bool = True, within: tuple[float, float] | None = None
    ) -> FloatArray:
        """(K,) frames with keys of the pose of some bones and, with `root`, of the location of the root.

        within: the first and the last frame between which the keys of cyclic curves are repeated.
        """
        found = [curve for bone in bones for curve in self._posing(bone)]
        found += self.curves(self.place, "location") if root else []
        times = [key_times(curve, within) for curve in found]
        return np.unique(np.concatenate(times)) if times else np.zeros(0)

    def round_length(self, bones: Sequence[str]) -> float:
        """The number of frames after which the rotation of some of the bones repeats; infinite if it does not."""
        cycles = [cycle_of(curve) for bone in bones for curve in self._posing(bone)]
        return min((last - first for first, last in filter(None, cycles)), default=np.inf)

    def motion(self, frames: FloatArray) -> RigMotion:
        """The poses on (F,) frames. Blender evaluates strips and control rigs frame by frame."""
        bones, names = self._armature.pose.bones, self.skeleton.names
        trees: list[Tree] = []
        evaluated: dict[str, FloatArray] = {}
        if self.posed.by_channels and not self.is_layered:
            channels = {name: self._read.values(name, frames) for name in self._turning}
            locations = {self.place: self._read.values(self.place, frames, "location")}
        else:
            channels, locations, trees, evaluated = self._evaluated(frames)
        own = {name: from_channels(bones[name].rotation_mode, values) for name, values in channels.items()}
        if trees:
            rotations = np.array([tree.rotations for tree in trees])
            roots = np.array([tree.root_location for tree in trees])
        else:
            rotations = np.tile(self.tree.rotations, (len(frames), 1, 1))
            for name, turned in own.items():
                rotations[:, names.index(name)] = turned
            roots = root_place(bones[self.place], locations[self.place])
        return RigMotion(self.skeleton, frames, rotations, roots, channels, own, locations, evaluated)

    def _evaluated(
        self, frames: FloatArray
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray], list[Tree], dict[str, FloatArray]]:
        """`channels` and `locations` of `RigMotion`; for control rigs also the tree on each frame, and `matrices`."""
        scene, bones = bpy.context.scene, self._armature.pose.bones
        held: dict[tuple[str, str], list[list[float]]] = {
            **{(holder, property_name(bones[holder].rotation_mode)): [] for holder in self._turning},
            **{(holder, "location"): [] for holder in (self.place, *self._moving) if holder in bones},
        }
        trees, played = [], self.posed.sampled_bones
        counting = {bone.name: row for row, bone in enumerate(bones) if bone.name in played}
        by_frame = np.empty((len(frames), len(counting), 4, 4))
        with PoseKeeper(scene, self._armature):
            for row, frame in enumerate(frames.tolist()):
                scene.frame_set(int(np.floor(frame)), subframe=frame - np.floor(frame))
                for (holder, channel), values in held.items():
                    values.append(list(getattr(bones[holder], channel)))
                if not self.posed.by_channels:
                    trees.append(tree_of(self._armature, self.skeleton.names[0]))
                    by_frame[row] = matrices(bones, "matrix")[list(counting.values())]
        turned, moved = (
            {name: np.array(held[name, channel]) for name, channel in held if (channel == "location") == is_moved}
            for is_moved in (False, True)
        )
        return turned, moved, trees, dict(zip(counting, by_frame.swapaxes(0, 1), strict=True))


def tree_of(armature: Object, bone: str) -> Tree:
    """The tree that contains a bone; on a control rig, a tree of deform bones."""
    return next(tree for tree in posed_rig(armature).trees() if bone in tree.skeleton.names)


def is_animated(armature: Object) -> bool:
    """Whether an armature's bones have keys."""
    return any(curve.data_path.startswith("pose.bones[") for curve in every_curve(armature))


# Paths have at most _MOST frames before and after the current one. If fewer than _NEAR_THE_END are left, they are
# updated.
_MOST: Final = 500
_NEAR_THE_END: Final = 250


@dataclass(frozen=True)
class Paths:
    """The positions of a rig's bones on F whole frames, in armature space.

    Attributes:
        frames: (F,). names: the N bones. lengths: (N,) of the bones. tails: (F, N, 3). keyed: (F, N) whether a bone has
            a key on a frame.
    """

    frames: FloatArray
    names: tuple[str, ...]
    lengths: FloatArray = field(repr=False)
    tails: FloatArray = field(repr=False)
    keyed: BoolArray = field(repr=False)

    def rows(self, first: float, last: float) -> slice:
        """The indices of the frames from the first to the last."""
        return slice(*np.searchsorted(self.frames, (first, last + 1.0 - SAME_FRAME)).tolist())


class PathKeeper:
    """Caches the paths of one rig, and notices changes of its keys."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._paths: Paths | None = None
        self._played = 0

    def sample(self, rig: Object, frame: float, about: float) -> Paths | None:
        """The paths of a rig that `is_played`: plays the frames around a frame in Blender; None without keys."""
        self._paths = _sampled(rig, frame, about)
        self._played += 1
        self._state = self._key_state(rig)
        return self._paths

    def paths(self, rig: Object, frame: float) -> tuple[Paths | None, tuple[object, ...]]:
        """The paths around a frame, and a value that changes with them. Both are None without readable keys.

        A rig that `is_played` has no paths until it is sampled, and again after its keys have changed: see
        `is_current`.
        """
        state = self._key_state(rig)
        if is_played(rig):
            return (self._paths if state == self._state else None), state
        near = self._paths is not None and (
            len(self._paths.frames) < 2 * _MOST
            or min(frame - self._paths.frames[0], self._paths.frames[-1] - frame) > _NEAR_THE_END
        )
        if state != self._state or not near:
            self._state, self._paths = state, None
            with suppress(FabrikError):
                self._paths = _sampled(rig, frame, _MOST)
        return self._paths, self._state

    def is_current(self, rig: Object) -> bool:
        """Whether the cached paths match a rig's current keys, or the rig is known to have no keys."""
        return self._key_state(rig) == self._state

    def _key_state(self, rig: Object) -> tuple[object, ...]:
        """A value that changes with the keys of the rig's bones; keys are not checked during playback and scrubbing.

        Checking 400 frames of 91 curves takes 1.2 ms. Rigs in different files have different session IDs, even if their
        names are equal.
        """
        own, screen = (rig.session_uid, self._played), bpy.context.screen
        # In Blender, `is_animation_playing` is also true during scrubbing.
        if screen is not None and screen.is_animation_playing and self._state[:2] == own:
            return self._state
        # The times and influences of the strips of a rig without its own action.
        tracks = rig.animation_data.nla_tracks if is_layered(rig) else ()
        strips = [
            (each.frame_start, each.frame_end, each.influence, float(track.mute or each.mute))
            for track in tracks
            for each in track.strips
        ]
        return (*own, *strips, *(hash(keyframes.keys(curve).tobytes()) for curve in every_curve(rig)))


def _sampled(rig: Object, frame: float, about: float) -> Paths | None:
    """The paths of a rig around a frame, evaluated by Blender; None if its bones have no keys."""
    trees = posed_rig(rig).trees()
    takes = [EditedTake(rig, tree) for tree in trees]
    keys = [take.key_frames(tree.skeleton.names) for take, tree in zip(takes, trees, strict=True)]
    every = np.concatenate(keys)
    if not len(every):
        return None
    first, last = max(np.floor(every.min()), frame - about), min(np.ceil(every.max()), frame + about)
    frames = np.arange(first, last + 1.0)
    parts = []
    for take in takes:
        skeleton, motion = take.skeleton, take.motion(frames)
        posed = forward_kinematics(skeleton, motion.rotations, motion.roots)
        own = [take.key_frames([name], root=index == 0) for index, name in enumerate(skeleton.names)]
        keyed = np.stack([np.isin(frames, np.round(each)) for each in own], axis=1)
        parts.append(Paths(frames, skeleton.names, skeleton.lengths, tails(skeleton, posed), keyed))
    names = tuple(name for part in parts for name in part.names)
    joined = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("tails", "keyed"))
    return Paths(frames, names, np.concatenate([part.lengths for part in parts]), *joined)
