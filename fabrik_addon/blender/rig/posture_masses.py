"""What a rig's bones weigh and how stiff they are, for the posture term."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...core.posture.mass import Masses
from ...human.masses import body_masses
from ..settings.posture_properties import read_mass, read_stiffness


def masses_of(armature: bpy.types.Object, skeleton: Skeleton) -> Masses:
    """The masses of the J bones of a tree: a human's, or by size; `fabrik_mass` and `fabrik_stiffness` count.

    Raises LimitPropertyError naming a bone whose properties make no sense.
    """
    found = body_masses({bone.name: bone.length for bone in armature.data.bones})
    bones = [armature.pose.bones[name] for name in skeleton.names]
    own = [read_mass(bone) for bone in bones]
    shares = np.array([found[bone.name].share if mass is None else mass for bone, mass in zip(bones, own, strict=True)])
    keeps = np.array([found[bone.name].keeps for bone in bones])
    factors = stiffness_factors([read_stiffness(bone) for bone in bones])
    return Masses(
        shares / max(float(shares.sum()), np.finfo(float).tiny),
        np.array([found[bone.name].centre for bone in bones]),
        keeps * factors,
    )


def stiffness_factors(stiffness: Sequence[float]) -> FloatArray:
    """(J,) what a bone's part of the posture term is multiplied by: 1 at 0, 4 at a half, infinite at 1."""
    left = 1.0 - np.clip(np.array(stiffness, dtype=np.float64), 0.0, 1.0)
    return np.where(left > 0.0, 1.0 / np.maximum(left, 1e-12) ** 2, np.inf)
