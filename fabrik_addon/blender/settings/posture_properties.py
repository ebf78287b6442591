"""What a bone's custom properties say on how it takes part in a posture: its stiffness and its mass.

They are kept with its limit, so that they are copied, mirrored and overridden as that is.
"""

from dataclasses import replace

import bpy

from .limit_properties import checked, read_field, read_settings, write_settings
from .limit_values import check_mass, check_stiffness


def read_stiffness(pose_bone: bpy.types.PoseBone) -> float:
    """How much a bone keeps its rotation while others turn, from 0 to 1; 0 where nothing is said.

    Raises LimitPropertyError naming the bone and the property that makes no sense.
    """
    stiffness: float = read_field(pose_bone, "stiffness")
    checked(pose_bone, "stiffness", lambda: check_stiffness(stiffness))
    return stiffness


def read_mass(pose_bone: bpy.types.PoseBone) -> float | None:
    """The share of the body's mass that a bone carries; None where its name or its size tells.

    Raises LimitPropertyError naming the bone and the property that makes no sense.
    """
    mass: float = read_field(pose_bone, "mass")
    checked(pose_bone, "mass", lambda: check_mass(mass))
    return None if mass < 0.0 else mass


def write_stiffness(pose_bone: bpy.types.PoseBone, stiffness: float) -> None:
    """Keep a stiffness on a bone, from 0 to 1. Raises LimitPropertyError, with nothing changed, where it can't be."""
    write_settings(pose_bone, replace(read_settings(pose_bone), stiffness=stiffness))
