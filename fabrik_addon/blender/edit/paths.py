"""The paths of a rig's bones over the frames of its action, for trails. They are cached until a key changes."""

from dataclasses import dataclass, field
from typing import Final

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import BoolArray, FloatArray
from ...core.model.kinematics import tails
from ..control.posed_rig import posed_rig
from ..rig.actions import is_layered
from .take import SAME_FRAME, Take, every_curve

# The maximum number of frames before and after the current one. If fewer than the margin are left, update the paths.
_MOST: Final = 500
_NEAR_THE_END: Final = 250
# During playback the curves are checked in this many groups, one group per redraw.
_TURNS: Final = 4


@dataclass(frozen=True)
class Paths:
    """The positions of a rig's bones on F whole frames, in armature space.

    Attributes:
        frames: (F,). names: the N bones. heads, tails: (F, N, 3). keyed: (F, N) whether a bone has a key on a frame.
    """

    frames: FloatArray
    names: tuple[str, ...]
    heads: FloatArray = field(repr=False)
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
        self._keys: list[int] = []
        self._frame, self._turn, self._played = np.nan, 0, 0

    def sample(self, rig: bpy.types.Object, frame: float, about: float) -> Paths | None:
        """The paths of a rig that `needs_sampling`: plays the frames around a frame in Blender; None without keys."""
        self._paths = _sampled(rig, frame, about)
        self._played += 1
        self._keys = []
        self._state = self._look_at(rig, frame)
        return self._paths

    def paths(self, rig: bpy.types.Object, frame: float) -> tuple[Paths | None, tuple[object, ...]]:
        """The paths around a frame (None without keys), and a value that changes when they change.

        A rig that `needs_sampling` has no paths until it is sampled, and again after its keys have changed: see
        `is_current`.
        """
        state = self._look_at(rig, frame)
        if needs_sampling(rig):
            return (self._paths if state == self._state else None), state
        near = self._paths is not None and (
            len(self._paths.frames) < 2 * _MOST
            or min(frame - self._paths.frames[0], self._paths.frames[-1] - frame) > _NEAR_THE_END
        )
        if state != self._state or not near:
            self._state, self._paths = state, find_paths(rig, frame)
        return self._paths, self._state

    def is_current(self, rig: bpy.types.Object, frame: float) -> bool:
        """Whether the cached paths match a rig's current keys, or the rig is known to have no keys."""
        return self._look_at(rig, frame) == self._state

    def _look_at(self, rig: bpy.types.Object, frame: float) -> tuple[object, ...]:
        """A value that changes if a key of the rig's bones changes; on a new frame it checks only some of the curves.

        During playback keys rarely change, and checking 400 frames of 91 curves takes 2 ms. Rigs in different files
        have different session IDs, even if their names are equal.
        """
        curves, own = list(every_curve(rig)), (rig.session_uid, self._played)
        chosen = range(len(curves))
        if frame != self._frame and len(curves) == len(self._keys) and self._state[:2] == own:
            self._turn = (self._turn + 1) % _TURNS
            chosen = chosen[self._turn :: _TURNS]
        else:
            self._keys = [0] * len(curves)
        for place in chosen:
            points = curves[place].keyframe_points
            values = np.empty(2 * len(points), dtype=np.float32)
            points.foreach_get("co", values)
            self._keys[place] = hash(values.tobytes())
        self._frame = frame
        # The times and influences of the strips of a rig without its own action.
        tracks = rig.animation_data.nla_tracks if is_layered(rig) else ()
        strips = [
            (each.frame_start, each.frame_end, each.influence, float(track.mute or each.mute))
            for track in tracks
            for each in track.strips
        ]
        return (*own, *strips, *self._keys)


def needs_sampling(rig: bpy.types.Object) -> bool:
    """Whether Blender must evaluate each frame to find the bones' positions. It can't do this while it draws."""
    return is_layered(rig) or not posed_rig(rig).by_channels


def find_paths(rig: bpy.types.Object, frame: float) -> Paths | None:
    """The paths of a rig around a frame, from its curves; None without keys, or if strips or controls move bones."""
    return None if needs_sampling(rig) else _sampled(rig, frame, _MOST)


def _sampled(rig: bpy.types.Object, frame: float, about: float) -> Paths | None:
    """The paths of a rig around a frame, evaluated by Blender; None if its bones have no keys."""
    trees = posed_rig(rig).trees()
    takes = [Take(rig, tree) for tree in trees]
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
        own = [take.key_frames([name], root=place == 0) for place, name in enumerate(skeleton.names)]
        keyed = np.stack([np.isin(frames, np.round(each)) for each in own], axis=1)
        parts.append(Paths(frames, skeleton.names, posed[:, :, :3, 3], tails(skeleton, posed), keyed))
    names = tuple(name for part in parts for name in part.names)
    joined = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("heads", "tails", "keyed"))
    return Paths(frames, names, *joined)
