"""The command `python -m fabrik_addon retarget …`, also available as `blender --command fabrik_retarget …`."""

import argparse
from pathlib import Path
from typing import Any, Final

import bpy

from ...markers.files.suffixes import SUFFIXES
from ...markers.steps import finish
from ...retarget.motion import RetargetError
from ...retarget.pairs import read_bone_map
from ..bake import command_line
from ..bake.bake import BakeResult
from ..bake.batch import BatchTake
from ..settings.motion import IMPORT_OPTIONS, KEY_OPTIONS, RETARGET_OPTIONS
from .retarget import is_file, retarget_from

_DESCRIPTION: Final = (
    "Retarget .bvh, .fbx, .glb, .usd, .npz (SMPL) or .mvnx files to keyframes on a rig, in new .blend files."
)
_READ: Final = {"up_axis": IMPORT_OPTIONS["up_axis"]}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rig", type=Path, metavar="RIG.blend", help="file with the armature")
    text = "the motion (.bvh, .fbx, .glb, .usd, .npz or .mvnx); several motions are written to a file each"
    parser.add_argument("motions", type=Path, nargs="+", metavar="MOTION", help=text)
    command_line.add_files(parser, "CSV file for the errors of bones, hips, hands and feet")
    text = "map of the source bones to the bones of the rig; without it, bones are matched by name"
    parser.add_argument("--map", dest="mapping", type=Path, metavar="MAP.json", help=text)
    text = "first and last frame (default: the whole motion)"
    parser.add_argument("--range", dest="frame_range", type=int, nargs=2, metavar=("A", "B"), help=text)
    command_line.add_options(parser, _READ)
    command_line.add_rate(parser)
    command_line.add_options(parser.add_argument_group("Poses"), RETARGET_OPTIONS)
    command_line.add_options(parser.add_argument_group("Keys"), KEY_OPTIONS)
    parser.add_argument("--action-name", default="", metavar="NAME", help="name of the new action")


def _retarget(chosen: argparse.Namespace, take: BatchTake) -> tuple[BakeResult, list[str]]:
    """Open the rig, retarget one motion, and save the file."""
    motion, suffix = take.recording, take.recording.suffix.lower()
    if suffix in SUFFIXES and not is_file(str(motion)):
        raise RetargetError(f"{motion.name}: has markers but no armature: use the command bake")
    if not is_file(str(motion)):
        other = "can't be imported: choose a .bvh, .fbx, .glb, .usd, .npz or .mvnx file"
        raise RetargetError(f"{motion.name}: {command_line.ADVICE.get(suffix, other)}")
    pairs = () if chosen.mapping is None else read_bone_map(chosen.mapping)
    (rig, notes), context = command_line.open_rig(chosen.rig, chosen.armature), bpy.context
    how: dict[str, Any] = command_line.chosen_options(chosen, RETARGET_OPTIONS)
    bake = {**command_line.chosen_options(chosen, KEY_OPTIONS), "action_name": chosen.action_name}
    frames = chosen.frame_range or (None, None)
    (up_axis,) = command_line.chosen_options(chosen, _READ).values()
    up_axis = None if up_axis == "AUTO" else up_axis
    steps = retarget_from(context, rig, str(motion.resolve()), frames, how, bake, pairs, up_axis, chosen.rate)
    result = finish(steps)
    command_line.show_range(context.scene, int(result.frames[0]), int(result.frames[-1]))
    command_line.write_files(result, take)
    return result.noted(*notes), []


COMMAND: Final = command_line.Command("retarget", _DESCRIPTION, _add_arguments, "motions", _retarget)
