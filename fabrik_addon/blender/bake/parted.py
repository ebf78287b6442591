"""Self-collision in a bake: moves hands, arms and legs out of a person's body."""

from dataclasses import replace
from typing import Final

import bpy
import numpy as np

from ...core import Effector
from ...core.arrays import lengths, times
from ...core.edit import EditModel, EditSolver
from ...core.model.bodies import effector_offset
from ...human.naming_schemes import match
from ..goals.goals import moves_root
from ..goals.support import collision_of
from ..rig.posture_masses import masses_of
from .jobs import BakedTree

# Ends of limbs whose pose is kept exactly, and those whose pose is kept as far as the body allows.
_HELD: Final = ("foot",)
_LED: Final = ("hand", "head")
# Share of the body's size, 0.2 mm for a person: smaller overlaps are rounding errors.
_LEAST: Final = 1e-4


def parted(armature: bpy.types.Object, tree: BakedTree) -> BakedTree:
    """The poses without overlaps of a person's body; unchanged if there are none, and for other rigs.

    Feet keep their position and rotation, hands and the head keep theirs as far as the surface of the body. Changes are
    smoothed over time.
    """
    skeleton = tree.goals.tree.skeleton
    collision = collision_of(armature, skeleton, always=True)
    if collision is None or not np.allclose(tree.solution.lengths, skeleton.lengths):
        return tree
    ends = {name: role.part for name, role in match(skeleton.names).items() if role.part in (*_HELD, *_LED)}
    effectors = [
        Effector(name, rotation_weight=1.0 if part in _HELD else 0.0, priority=int(part in _LED))
        for name, part in ends.items()
    ]
    limits, turning = tree.goals.all_limits, set(skeleton.names) - tree.goals.held.keys()
    free = tree.travels and moves_root(armature, tree.goals)
    model = EditModel(skeleton, effectors, masses_of(armature, skeleton), limits, turning, free, collision, parted=True)
    rotations, roots = tree.solution.rotations, tree.solution.root_location
    solver = EditSolver(model, rotations, np.broadcast_to(roots, (len(rotations), 3)))
    inside = solver.overlaps > _LEAST * skeleton.size
    if not inside.any():
        return tree
    asked = solver.own_points, np.where(np.isin([*ends.values()], _HELD)[:, None], solver.own_rotations, np.nan)
    found = solver.smoothed(*asked, solver.solve(*asked))
    solution = replace(tree.solution, rotations=found.rotations, root_location=found.roots)
    moved = [
        lengths(times(solution.matrices[:, bone] - tree.solution.matrices[:, bone], np.append(offset, 1.0))[:, :3])
        for bone, offset in (
            (skeleton.index(each.bone), effector_offset(skeleton, each)) for each in tree.goals.effectors
        )
    ]
    # An upper bound: each target is at most this much farther away.
    solution = replace(solution, errors=solution.errors + np.stack(moved, axis=1))
    deepest = 1000.0 * float((solver.overlaps * tree.scale).max())
    note = f"Self-collision: up to {deepest:.0f} mm on {np.count_nonzero(inside)} frames, moved out of the body"
    return replace(tree, solution=solution, notes=(*tree.notes, note))
