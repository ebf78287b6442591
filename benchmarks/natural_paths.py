"""Drags and live posing without a window, and measurements from step to step."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import bpy
import numpy as np

from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.goals.effectors import add_effector, pin_bones
from fabrik_addon.blender.posing import live, solve
from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.rig.armature import Tree, read_trees
from fabrik_addon.blender.settings.limit_properties import read_limits
from fabrik_addon.core import Effector, Options, Solver
from fabrik_addon.core.rotations import angle_between, conjugate, product, rotation_vector_from_quaternion

HUMAN = Path(__file__).parents[1] / "sample_rigs" / "human.blend"
FEET = ("foot.L", "foot.R")
# Meters from one step to the next: a slow movement of the mouse.
STEP = 0.01
# A drag that returns to its start restores the pose exactly; at this distance from it, the pose is still solved.
NEARLY_BACK = 1e-5
# The number of mouse moves at the end, during which the joints catch up.
RESTING = 4
# Radians: joints that are bent by less are those of a straight limb.
STRAIGHT = 0.35


@dataclass(frozen=True)
class Path3:
    """The path of a dragged point: straight lines between shifts (W, 3) from its start, in meters."""

    name: str
    bone: str
    shifts: tuple
    pinned: tuple = FEET
    point: str = "TAIL"

    def out(self):
        """(N, 3) the steps of the path, without the way back."""
        corners = np.array([(0.0, 0.0, 0.0), *self.shifts])
        legs = []
        for begin, end in pairwise(corners):
            count = int(np.ceil(np.linalg.norm(end - begin) / STEP))
            legs.append(begin + (end - begin) * (np.arange(1, count + 1) / count)[:, None])
        return np.concatenate(legs)

    def there_and_back(self):
        """(N, 3) the path out and back, to just before its start, where the mouse stops."""
        out = self.out()
        return np.concatenate([out, out[-2::-1], [(NEARLY_BACK, 0.0, 0.0)] * RESTING])


@dataclass(frozen=True)
class Track:
    """The result of a drag of N steps for J bones.

    parents: (J,), -1 for none. rotations: (N + 1, J, 4) local, the start first. matrices: (N + 1, J, 4, 4) in armature
    space. shifts: (N, 3) of the dragged point. errors, pin_errors: (N,) meters. seconds: (N,) from the mouse to posed
    bones.
    """

    names: tuple
    parents: np.ndarray
    rotations: np.ndarray
    matrices: np.ndarray
    shifts: np.ndarray
    errors: np.ndarray
    pin_errors: np.ndarray
    seconds: np.ndarray

    @property
    def turns(self):
        """(N, J) degrees by which bones rotate from step to step."""
        return np.degrees(angle_between(self.rotations[:-1], self.rotations[1:]))

    @property
    def closing(self):
        """The largest rotation of a bone from the first to the last pose, in degrees."""
        return float(np.degrees(angle_between(self.rotations[0], self.rotations[-1]).max()))

    @property
    def in_reach(self):
        """(N,) whether the dragged point is within a millimeter of its target."""
        return self.errors < 1e-3

    @property
    def both_in_reach(self):
        """(N,) whether a step begins and ends in reach; after one that begins out of reach, joints catch up."""
        return self.in_reach & np.concatenate([[True], self.in_reach[:-1]])

    @property
    def at_straight_limb(self):
        """(N, J) whether a joint, or an adjacent one, is straight before or after a step."""
        heads, along = self.matrices[..., :3, 3], self.matrices[..., :3, 1]
        before = heads - heads[:, self.parents]
        cosine = (before * along).sum(axis=-1) / np.maximum(np.linalg.norm(before, axis=-1), 1e-9)
        straight = (cosine > np.cos(STRAIGHT)) & (self.parents >= 0)
        near = straight.copy()
        for bone, parent in enumerate(self.parents):
            if parent >= 0:
                near[:, parent] |= straight[:, bone]
                near[:, bone] |= straight[:, parent]
        return near[:-1] | near[1:]

    def reversals(self, least=2.0):
        """The number of steps on which a bone rotates back by more than `least` degrees although the mouse moves on."""
        turned = rotation_vector_from_quaternion(product(conjugate(self.rotations[:-1]), self.rotations[1:]))
        sizes = np.degrees(np.linalg.norm(turned, axis=-1))
        ahead = (np.diff(self.shifts, axis=0)[1:] * np.diff(self.shifts, axis=0)[:-1]).sum(axis=1) > 0.0
        back = (turned[2:] * turned[1:-1]).sum(axis=-1) < 0.0
        both = back & (sizes[2:] > least) & (sizes[1:-1] > least)
        return int((both.any(axis=1) & ahead).sum())


def open_human():
    """The sample person, in Pose mode."""
    bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
    rig = bpy.data.objects["Rig"]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    return rig


def present(rig):
    """(J, 4) rotations and (J, 4, 4) matrices of a rig whose bones have quaternion mode."""
    bones = rig.pose.bones
    rotations, matrices = np.empty(4 * len(bones), np.float32), np.empty(16 * len(bones), np.float32)
    bones.foreach_get("rotation_quaternion", rotations)
    bones.foreach_get("matrix", matrices)
    return rotations.reshape(-1, 4).astype(float), matrices.reshape(-1, 4, 4).transpose(0, 2, 1).astype(float)


class DraggedFromStart:
    """The oldest method: each step is solved from the drag's first pose, by sweeps and least squares."""

    def __init__(self, rig, path):
        self._rig, (self._tree,) = rig, read_trees(rig)
        bones = rig.pose.bones
        pins = [Effector(name, rotation_weight=1.0) for name in path.pinned]
        grip = Effector(path.bone, (0.0, 0.0, 0.0) if path.point == "HEAD" else None, priority=1)
        ends = [bones[name].tail if path.point == "TAIL" or name != path.bone else bones[name].head
                for name in (path.bone, *path.pinned)]  # fmt: skip
        self._places = np.array([rig.matrix_world @ end for end in ends])
        self.start = self._places[0].copy()
        self._turns = np.array([bones[name].matrix.to_quaternion() for name in (path.bone, *path.pinned)])
        self._solver = Solver(
            self._tree.skeleton, [grip, *pins], limits=read_limits(rig), root="FREE", options=Options(restarts=0)
        )

    def step(self, location):
        targets = np.concatenate([[location], self._places[1:]])
        tree: Tree = self._tree
        found = self._solver.solve(
            targets, start=tree.rotations, start_location=tree.root_location, target_rotations=self._turns
        )
        posed_rig(self._rig).write(bpy.context, tree.skeleton, found.rotations, found.root_location)
        return float(found.errors[0]), float(found.errors[1:].max(initial=0.0))

    def cancel(self):
        tree = self._tree
        posed_rig(self._rig).write(bpy.context, tree.skeleton, tree.rotations, tree.root_location)
        bpy.context.view_layer.update()


class Dragged:
    """The drag session that the mouse uses."""

    def __init__(self, rig, path):
        pin_only(rig, path)
        self._drag = begin_drag(bpy.context, rig, path.bone, point=path.point, settings=DragSettings(root="FREE"))
        self.start, self.cancel = self._drag.start, self._drag.cancel

    def step(self, location):
        found = self._drag.step(location)
        return found.error, found.pin_error


class Live:
    """A live rig whose target is moved."""

    def __init__(self, rig, path):
        pin_only(rig, path)
        bpy.context.view_layer.update()
        self._rig, self._path, self._before = rig, path, present(rig)[0]
        self._held = self._places(path.pinned)
        self._effector = add_effector(bpy.context, rig, path.bone, point=path.point)
        self._target = self._effector.target
        self.start = np.array(self._target.location)
        # Live poses ease in only in a window.
        solve.IS_EASED = True
        rig.fabrik.live = True
        bpy.context.view_layer.update()

    def step(self, location):
        if np.allclose(location, self._target.location, rtol=0.0, atol=1e-7):
            live.go_on()
        self._target.location = location
        bpy.context.view_layer.update()
        off = np.linalg.norm(self._places(self._path.pinned) - self._held, axis=1)
        bone = self._rig.pose.bones[self._path.bone]
        end = bone.tail if self._path.point == "TAIL" else bone.head
        return float(np.linalg.norm(self._rig.matrix_world @ end - self._target.location)), float(off.max(initial=0.0))

    def cancel(self):
        solve.IS_EASED = False
        self._rig.fabrik.live = False
        self._rig.fabrik.effectors.clear()
        bpy.data.objects.remove(self._target)
        for bone, turn in zip(self._rig.pose.bones, self._before, strict=True):
            bone.rotation_quaternion, bone.location = turn, (0.0, 0.0, 0.0)
        bpy.context.view_layer.update()

    def _places(self, bones):
        return np.array(
            [end for name in bones for end in (self._rig.pose.bones[name].head, self._rig.pose.bones[name].tail)]
        )


def pin_only(rig, path):
    """Pin the bones that a path keeps in place, and no others."""
    rig.fabrik.effectors.clear()
    pin_bones(rig, [bone for bone in path.pinned if bone != path.bone])


NOW = {"drag": Dragged, "live": Live}
METHODS = {"from the drag's start": DraggedFromStart, **NOW}


def follow(rig, path, shifts, method):
    """The track of a path; restores the rig."""
    bpy.context.view_layer.update()
    drag = method(rig, path)
    poses, errors, seconds = [present(rig)], [], []
    for shift in shifts:
        began = perf_counter()
        errors.append(drag.step(drag.start + shift))
        bpy.context.view_layer.update()
        seconds.append(perf_counter() - began)
        poses.append(present(rig))
    drag.cancel()
    rotations, matrices = (np.stack(values) for values in zip(*poses, strict=True))
    names = tuple(bone.name for bone in rig.pose.bones)
    error, pin_error = np.array(errors).T
    places = {name: place for place, name in enumerate(names)}
    parents = np.array([places[bone.parent.name] if bone.parent else -1 for bone in rig.pose.bones])
    return Track(names, parents, rotations, matrices, np.asarray(shifts), error, pin_error, np.array(seconds))


def mirrored(path):
    """The mirror image of a path."""
    other = {"L": "R", "R": "L"}

    def flip(name):
        return f"{name[:-1]}{other[name[-1]]}" if name[-2:] in {".L", ".R"} else name

    shifts = tuple((-x, y, z) for x, y, z in path.shifts)
    return Path3(path.name, flip(path.bone), shifts, tuple(flip(name) for name in path.pinned), path.point)
