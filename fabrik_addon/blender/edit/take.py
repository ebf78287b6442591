"""The motion that a rig has: its poses on many frames, as the curves of its action say, and where those have keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ..rig import keyframes
from ..rig.armature import RigError, Tree, root_place
from ..rig.keyframes import bone_path
from ..rig.pose_keeper import PoseKeeper
from ..rig.rotation_modes import from_channels, property_name

# Frames nearer to each other than this are the same one.
SAME_FRAME = 1e-3
# How a curve may go round beyond its keys.
_ROUND = {"REPEAT", "REPEAT_OFFSET"}


@dataclass(frozen=True)
class Motion:
    """A tree of bones over F frames.

    Attributes:
        frames: (F,) rising. rotations: (F, J, 4) local. roots: (F, 3) the root's head in armature space.
        channels: what the rotation channels of keyed bones hold, (F, 3 or 4), by bone. location: (F, 3) the same of
            the root's location.
    """

    skeleton: Skeleton
    frames: FloatArray
    rotations: FloatArray
    roots: FloatArray
    channels: dict[str, FloatArray]
    location: FloatArray


class Take:
    """The action of an armature, read curve by curve.

    Attributes:
        tree: the bones that are read.
    """

    def __init__(self, armature: bpy.types.Object, tree: Tree) -> None:
        """Look the curves up. Raises RigError, naming the trouble, where they do not say how the bones stand."""
        self._armature, self.tree = armature, tree
        self._curves: dict[str, list[bpy.types.FCurve]] = {}
        for curve in _every_curve(armature):
            if len(curve.keyframe_points) and not (curve.mute or (curve.group is not None and curve.group.mute)):
                self._curves.setdefault(curve.data_path, []).append(curve)
        _check_plain(armature)

    @property
    def is_layered(self) -> bool:
        """Whether the motion is that of NLA strips, and not of an action."""
        return is_layered(self._armature)

    @property
    def skeleton(self) -> Skeleton:
        """The bones."""
        return self.tree.skeleton

    def curves(self, bone: str, channel: str) -> list[bpy.types.FCurve]:
        """Those of a bone's channel."""
        return self._curves.get(bone_path(bone, channel), [])

    def rotation_curves(self, bone: str) -> list[bpy.types.FCurve]:
        """Those of the rotation that counts."""
        return self.curves(bone, property_name(self._armature.pose.bones[bone].rotation_mode))

    @cached_property
    def keyed(self) -> set[str]:
        """The bones whose rotation has keys."""
        return {bone for bone in self.tree.skeleton.names if self.rotation_curves(bone)}

    def root_is_keyed(self) -> bool:
        """Whether the root's location has keys."""
        return bool(self.curves(self.tree.skeleton.names[0], "location"))

    def key_frames(
        self, bones: Sequence[str], *, root: bool = True, within: tuple[float, float] | None = None
    ) -> FloatArray:
        """(K,) the frames on which the rotation of some of the bones has a key; with `root`, its location too.

        within: a first and a last frame, between which the keys of curves that go round come again and again.
        """
        found = [curve for bone in bones for curve in self.rotation_curves(bone)]
        found += self.curves(self.tree.skeleton.names[0], "location") if root else []
        times = [_times(curve, within) for curve in found]
        return np.unique(np.concatenate(times)) if times else np.zeros(0)

    def motion(self, frames: FloatArray) -> Motion:
        """The poses on (F,) frames."""
        skeleton, names = self.tree.skeleton, self.tree.skeleton.names
        held = self._evaluated(frames) if self.is_layered else {}
        rotations = np.tile(self.tree.rotations, (len(frames), 1, 1))
        channels = {}
        for place, name in enumerate(names):
            if name in self.keyed:
                mode = self._armature.pose.bones[name].rotation_mode
                channel = property_name(mode)
                channels[name] = held[name, channel] if held else self._values(name, channel, frames)
                rotations[:, place] = from_channels(mode, channels[name])
        root = self._armature.pose.bones[names[0]]
        location = held[names[0], "location"] if held else self._values(names[0], "location", frames)
        return Motion(skeleton, frames, rotations, root_place(root, location), channels, location)

    def _evaluated(self, frames: FloatArray) -> dict[tuple[str, str], FloatArray]:
        """(F, n) what channels hold once Blender has played all strips, by bone and channel."""
        scene, bones = bpy.context.scene, self._armature.pose.bones
        wanted = [(name, property_name(bones[name].rotation_mode)) for name in self.tree.skeleton.names]
        wanted.append((self.tree.skeleton.names[0], "location"))
        found: dict[tuple[str, str], list[list[float]]] = {each: [] for each in wanted}
        keeper = PoseKeeper(scene, self._armature)
        try:
            for frame in frames.tolist():
                scene.frame_set(int(np.floor(frame)), subframe=frame - np.floor(frame))
                for name, channel in wanted:
                    found[name, channel].append(list(getattr(bones[name], channel)))
        finally:
            keeper.restore()
        return {each: np.array(values, dtype=np.float64) for each, values in found.items()}

    def _values(self, bone: str, channel: str, frames: FloatArray) -> FloatArray:
        """(F, n) what a channel holds; parts of it without keys hold what they do now."""
        present = np.array(getattr(self._armature.pose.bones[bone], channel), dtype=np.float64)
        values = np.tile(present, (len(frames), 1))
        for curve in self.curves(bone, channel):
            values[:, curve.array_index] = keyframes.values_at(curve, frames)
        return values


def is_animated(armature: bpy.types.Object) -> bool:
    """Whether an armature's bones have keys."""
    return any(curve.data_path.startswith("pose.bones[") for curve in _every_curve(armature))


def is_layered(armature: bpy.types.Object) -> bool:
    """Whether an armature has no action of its own, but NLA strips that play."""
    animation = armature.animation_data
    return animation is not None and animation.action is None and len(animation.nla_tracks) > 0


def _every_curve(armature: bpy.types.Object) -> Iterator[bpy.types.FCurve]:
    """The curves of an armature's action; where there is none, those of the strips that play."""
    if not is_layered(armature):
        yield from keyframes.curves(armature)
        return
    for track in armature.animation_data.nla_tracks:
        for strip in track.strips:
            if not (track.mute or strip.mute) and strip.action is not None:
                yield from keyframes.curves_of(strip.action, strip.action_slot)


def cycle_of(curve: bpy.types.FCurve) -> tuple[float, float] | None:
    """The first frame and the last of a curve that goes round; None where it does not."""
    modifiers: Any = curve.modifiers
    for modifier in modifiers:
        if modifier.type == "CYCLES" and not modifier.mute and _ROUND & {modifier.mode_before, modifier.mode_after}:
            times = keyframes.keys(curve)[:, 0]
            return (float(times[0]), float(times[-1])) if len(times) > 1 else None
    return None


def in_cycle(cycle: tuple[float, float], frames: FloatArray) -> FloatArray:
    """(F,) frames as those of the one round that has the keys, the seam as its first."""
    first, last = cycle
    places = np.mod(frames - first, last - first)
    return np.asarray(first + np.where(places > last - first - SAME_FRAME, 0.0, places))


def _times(curve: bpy.types.FCurve, within: tuple[float, float] | None) -> FloatArray:
    """(K,) the frames of a curve's keys, those that come again as well."""
    times, cycle = keyframes.keys(curve)[:, 0], cycle_of(curve)
    if cycle is None or within is None:
        return times
    length = cycle[1] - cycle[0]
    rounds = np.arange(np.floor((within[0] - cycle[0]) / length), np.ceil((within[1] - cycle[0]) / length) + 1.0)
    again = (times[:-1] + length * rounds[:, None]).ravel()
    return np.asarray(again[(again >= within[0]) & (again <= within[1])])


def _check_plain(armature: bpy.types.Object) -> None:
    """Raise RigError where something beside its action moves an armature's bones over time."""
    animation = armature.animation_data
    if animation is None:
        return
    if animation.action_influence != 1.0 or animation.action_blend_type != "REPLACE":
        raise RigError(f"The action of {armature.name!r} is blended with others: give it full influence to edit it")
    if animation.use_tweak_mode:
        raise RigError(f"{armature.name!r} has an NLA strip in tweak mode: leave it first")
