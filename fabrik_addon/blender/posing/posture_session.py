"""Makes the solver of a rig that is posed repeatedly: for dragging, live posing and Solve."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import bpy

from ...core import Effector
from ...core.arrays import FloatArray
from ...core.drag import DragSolver
from ...core.kernel.hanging import HangFrom
from ...core.kernel.joint_limits import Holder
from ...core.limits.base import Limit
from ...core.model.skeleton import Skeleton
from ..goals.goals import Goals, moves_root
from ..goals.support import collision_of, floor_of, support_of
from ..rig.locks import WithLocks
from ..rig.posture_masses import masses_of
from ..settings.rig import rig_settings
from .stored_pose import kept_pose_key, preferred_pose


def make_solver(
    armature: bpy.types.Object,
    skeleton: Skeleton,
    effectors: Sequence[Effector],
    *,
    limits: Mapping[str, Limit],
    still: Collection[str] = (),
    root: str,
    locks: Mapping[int, WithLocks] | None = None,
    pinned: Collection[str] = (),
    hang_from: HangFrom | None = None,
    stiff: Collection[str] = (),
) -> DragSolver:
    """The solver of one tree; it still has to be told which pose to prefer, and where to begin.

    Masses, floor, balance and self-collision are those of the rig.

    Args:
        armature: the rig.
        skeleton: J bones of it.
        effectors: E points on them.
        limits: bone name to limit.
        still: names of bones that keep their local rotation.
        root: "FIXED" or "FREE".
        locks: by index of a bone, its allowed local rotations.
        pinned: pinned bones, which may support the rig.
        hang_from: the pose whose limb tilts are kept by limbs without goals; None: these are rigid.
        stiff: bones that move as one piece.
    """
    return DragSolver(
        skeleton,
        effectors,
        masses_of(armature, skeleton, stiff),
        limits=limits,
        still=still,
        root=root,
        floor=floor_of(armature),
        support=support_of(armature, pinned),
        locks=locks,
        hang_from=hang_from,
        collision=collision_of(armature, skeleton),
    )


def session_for(
    rig: bpy.types.Object,
    goals: Goals,
    begin: tuple[FloatArray, FloatArray],
    *,
    locks: Mapping[int, WithLocks] | None = None,
) -> DragSolver:
    """The solver of some goals near the pose that the rig prefers, by default the start pose."""
    free = moves_root(rig, goals)
    solver = make_solver(
        rig,
        goals.tree.skeleton,
        goals.effectors,
        limits=goals.all_limits,
        root="FREE" if free else "FIXED",
        locks=locks,
        pinned=goals.pinned,
    )
    preferred = preferred_pose(rig, goals.tree, *begin, bones=goals.bones, moves_root=free)
    solver.prefer(*preferred)
    solver.begin(*preferred)
    return solver


def why_short(holder: Holder | None, pinned: Mapping[str, str]) -> str:
    """The reason that a body misses its targets, as a text to show; "" for none.

    pinned: bones with their displayed names.
    """
    if holder is None:
        return ""
    return {
        "LIMIT": f"{holder.bone} is at its limit",
        "GOAL": f"{pinned[holder.bone]} is pinned" if holder.bone in pinned else f"{holder.bone} is held by its target",
        "FLOOR": f"{holder.bone} is on the floor",
        "BALANCE": "the body keeps its balance",
        "BODY": f"{holder.bone} touches {holder.other}",
        "REACH": "out of reach",
    }[holder.kind]


def depends_on(rig: bpy.types.Object, goals: Goals) -> tuple[Any, ...]:
    """A key of everything that a session for some goals depends on, except rest pose, preferred pose and targets."""
    masses, kept, up = masses_of(rig, goals.tree.skeleton), rig_settings(rig), rig.matrix_world[2][:]
    weighed = tuple(array.tobytes() for array in (masses.shares, masses.centres, masses.factors))
    floor = (kept.floor_height, up) if kept.use_floor else None
    settings = kept_pose_key(rig), kept.balance, kept.use_self_collision, up[:3], floor
    return weighed, settings, goals.effectors, dict(goals.limits), tuple(goals.held), moves_root(rig, goals)
