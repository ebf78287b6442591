"""Retargets another armature's motion to a rig: sampled, transferred, and keyed by the bake's writer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import bpy

from ...core import Effector
from ...core.arrays import FloatArray
from ...human.naming_schemes import match
from ...markers.steps import within
from ...retarget.bodies import two_hips
from ...retarget.goals import RetargetSettings
from ...retarget.pairs import Pair
from ...retarget.take import Retargeted, retarget_steps
from ..bake.bake import FindSteps, Steps, keyed_steps, timed
from ..bake.jobs import BakedTree
from ..bake.keys import check_root_motion
from ..bake.settings import BakeSettings
from ..control.posed_rig import posed_rig
from ..goals.effectors import Pin
from ..goals.goals import Goals, limits_of
from ..rig.armature import Tree, check_unscaled
from ..rig.legal import legal_pose
from ..rig.spaces import object_scale
from ..settings.rig import rig_settings
from .source import check_source, sample_source

_SAMPLING_ENDS: Final = 0.3
# A given location is like a pin: the root moves.
_GIVEN: Final = Pin((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))


def retarget_object_steps(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    source: bpy.types.Object,
    settings: BakeSettings,
    how: RetargetSettings,
    pairs: Sequence[Pair] | None = None,
) -> Steps:
    """Key the rig's bones by the motion of another armature, in small steps like a bake.

    pairs: the bone mapping; found automatically when None.
    """
    check_source(source, rig)
    find = partial(_found_steps, source=source, how=how, pairs=pairs)
    result = yield from keyed_steps(context, rig, settings, find, take=source.name)
    rig_settings(rig).retarget.brought = source.name
    return result


def _found_steps(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    settings: BakeSettings,
    seconds: dict[str, float],
    *,
    source: bpy.types.Object,
    how: RetargetSettings,
    pairs: Sequence[Pair] | None,
) -> FindSteps:
    """The rig's poses, and its world matrices."""
    tree = body_of(rig, pairs)
    goals = _goals_of(rig, tree)
    check_root_motion(rig, settings.root_motion, [goals])
    with timed(seconds, "sample"):
        motion, matrices = yield from within(0.0, _SAMPLING_ENDS, sample_source(context, source, rig, settings.frames))
    with timed(seconds, "solve"):
        steps = retarget_steps(motion, tree.skeleton, how, limits=goals.all_limits, pairs=pairs)
        found = yield from within(_SAMPLING_ENDS, 1.0, steps)
    return (_baked(goals, found, object_scale(matrices), settings.frames.tolist()),), matrices


def body_of(rig: bpy.types.Object, pairs: Sequence[Pair] | None = None) -> Tree:
    """The tree of bones that has the hips, or the first bone of the pairs; all heads are at their rest locations.

    Raises RetargetError if several trees have hips, and there are no pairs to choose one.
    """
    trees = sorted(posed_rig(rig).trees(at_rest=True), key=lambda tree: -len(tree.skeleton))
    if pairs:
        return next((tree for tree in trees if pairs[0].bone in tree.skeleton.names), trees[0])
    known = [(name, tree) for tree in trees if (name := _named_hips(tree))]
    if len(known) > 1:
        raise two_hips(known[0][0], known[1][0])
    return known[0][1] if known else trees[0]


def _named_hips(tree: Tree) -> str:
    """The bone named hips in a tree with legs, "" if there is none."""
    roles = match(tree.skeleton.names)
    legs = any(role.part == "thigh" for role in roles.values())
    return next((name for name, role in roles.items() if legs and role.part == "hips"), "")


def _goals_of(rig: bpy.types.Object, tree: Tree) -> Goals:
    """The limits of a tree, and its bones that may not rotate."""
    names = tree.skeleton.names
    posed = posed_rig(rig)
    held = {**posed.frozen, **posed.owned}
    check_unscaled(rig, names)
    return Goals(
        tree,
        names[:1],
        (Effector(names[0]),),
        (_GIVEN,),
        limits=limits_of(rig, names, baked=True),
        held={name: held[name] for name in names if name in held},
        root_moves=posed.may_move(names[0]),
    )


def _baked(goals: Goals, found: Retargeted, scale: FloatArray, frames: Sequence[int]) -> BakedTree:
    """The poses to write, inside the limits, of the bones that follow a source bone.

    frames: the scene's, used to name the reference.
    """
    bones = tuple(pair.bone for pair in found.pairs if pair.bone not in goals.held)
    legal = legal_pose(goals.tree.skeleton, goals.limits, found.solution.rotations)
    targets = (_GIVEN,) * len(found.effectors)
    goals = replace(
        goals, names=tuple(effector.bone for effector in found.effectors), effectors=found.effectors, targets=targets
    )
    off = {pair.bone: found.turned_off[:, place] for place, pair in enumerate(found.pairs)}
    solution = replace(found.solution, rotations=legal)
    reference = found.reference
    at = "the source's rest pose" if reference.frame is None else f"the source on frame {frames[reference.frame]}"
    note = f"Reference: {at}, {reference.pose}"
    return BakedTree(
        goals,
        bones,
        solution,
        scale,
        stances=found.stances,
        turned_off=off,
        notes=(note,),
        doubts=found.doubts,
    )
