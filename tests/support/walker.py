"""The walking sample person without Blender: skeleton, true poses and true markers of `sample_rigs/recipe`."""

from functools import cache

import numpy as np

from fabrik_addon.core import Effector, Skeleton, forward_kinematics
from sample_rigs.recipe import markers, walk

RATE = markers.RATE


@cache
def skeleton():
    bones = walk.bones()
    names = list(bones)
    rest = np.tile(np.eye(4), (len(names), 1, 1))
    rest[:, :3, :3] = [bone.rotation for bone in bones.values()]
    rest[:, :3, 3] = [bone.head for bone in bones.values()]
    parents = [names.index(bone.parent) if bone.parent else -1 for bone in bones.values()]
    return Skeleton(names, parents, rest, [bone.length for bone in bones.values()])


@cache
def true_rotations():
    """(F, J, 4) local rotations."""
    local, _ = walk.walk_poses(markers.recording_times())
    return np.stack([local[name] for name in skeleton().names], axis=1)


@cache
def true_matrices():
    """(F, J, 4, 4) true matrices of the bones."""
    _, root = walk.walk_poses(markers.recording_times())
    return forward_kinematics(skeleton(), true_rotations(), root)


@cache
def true_positions():
    """(F, M, 3) true positions of the markers."""
    positions = markers.true_positions()
    positions.setflags(write=False)
    return positions


def marker_names():
    return [marker.name for marker in markers.markers()]


def effectors():
    return [Effector(marker.bone, marker.offset) for marker in markers.markers()]


def on_bones(*bones):
    """Indices of the markers on some bones."""
    return [place for place, marker in enumerate(markers.markers()) if marker.bone in bones]


def points_of(solution):
    """(F, M, 3) positions of the markers in a solution."""
    names = skeleton().names
    placed = [
        solution.matrices[:, names.index(marker.bone)] @ np.array([*marker.offset, 1.0]) for marker in markers.markers()
    ]
    return np.stack(placed, axis=1)[..., :3]


def joint_errors(solution):
    """(F, J) meters from the true joints."""
    return np.linalg.norm(solution.heads - true_matrices()[..., :3, 3], axis=2)


def marker_errors(solution):
    """(F, M) meters from the true markers, seen or not."""
    return np.linalg.norm(points_of(solution) - true_positions(), axis=2)
