"""Drag a bone of a sample rig and draw the drag as strips: a dozen steps from the front, and the same from the side.

    python sample_rigs/drag_strip.py BLEND OUT.png --bone head --shift 0 -0.25 -0.45 [--shift X Y Z] [--pin foot.L ...]
                                     [--head] [--steps 12] [--size 160x240] [--angles 20 80] [--there-and-back]

Runs in a Python that has `bpy`. The mouse moves through the --shift points in steps of a centimeter. They are in
meters, relative to the bone's start position. The .blend file is only read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import contact_sheet

STEP = 0.01  # meters; a slow movement of the mouse


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the picture."""
    import fabrik_addon  # noqa: PLC0415  registered for the drag alone

    options = _parse(arguments)
    fabrik_addon.register()
    try:
        with tempfile.TemporaryDirectory() as folder:
            posed = Path(folder) / "posed.blend"
            _pose(options, posed)
            draw(options, posed, Path(folder))
    finally:
        fabrik_addon.unregister()
    print(f"wrote {options.picture}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="drag_strip.py", description="Draw a drag as strips.")
    parser.add_argument("blend", type=Path, metavar="BLEND")
    parser.add_argument("picture", type=Path, metavar="OUT.png")
    parser.add_argument("--bone", required=True)
    parser.add_argument("--head", action="store_true", help="drag the bone's head instead of its tail")
    parser.add_argument("--shift", type=float, nargs=3, action="append", required=True, metavar=("X", "Y", "Z"))
    parser.add_argument("--pin", nargs="*", default=["foot.L", "foot.R"])
    parser.add_argument("--steps", type=int, default=12, help="number of pictures")
    parser.add_argument("--size", type=contact_sheet.read_size, default=(160, 240), metavar="WIDTHxHEIGHT")
    parser.add_argument("--angles", type=float, nargs="+", default=[20.0, 85.0], help="degrees from the front")
    parser.add_argument("--there-and-back", action="store_true")
    return parser.parse_args(arguments)


def _pose(options: argparse.Namespace, path: Path) -> None:
    """Drag, key evenly spaced steps on frames from 1, and save the file."""
    from fabrik_addon.blender.goals.effectors import pin_bones  # noqa: PLC0415
    from fabrik_addon.blender.posing.drag import DragSettings, begin_drag  # noqa: PLC0415

    bpy.ops.wm.open_mainfile(filepath=str(options.blend))
    rig = next(item for item in bpy.context.scene.objects if item.type == "ARMATURE")
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    pin_bones(rig, options.pin)
    key(rig, 1)
    point = "HEAD" if options.head else "TAIL"
    drag = begin_drag(bpy.context, rig, options.bone, point=point, settings=DragSettings(root="FREE"))
    way = _way(options)
    shown = np.round(np.linspace(0, len(way) - 1, options.steps)).astype(int)
    for place, shift in enumerate(way):
        drag.step(drag.start + shift)
        for frame in np.flatnonzero(shown == place):
            key(rig, int(frame) + 1)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, options.steps
    bpy.ops.wm.save_as_mainfile(filepath=str(path))


def _way(options: argparse.Namespace) -> NDArray[np.float64]:
    """(N, 3) shifts, one for each step of the mouse, starting at the start position."""
    corners = np.array([(0.0, 0.0, 0.0), *options.shift])
    legs = [corners[:1]]
    for begin, end in pairwise(corners):
        count = int(np.ceil(np.linalg.norm(end - begin) / STEP))
        legs.append(begin + (end - begin) * (np.arange(1, count + 1) / count)[:, None])
    way = np.concatenate(legs)
    return np.concatenate([way, way[-2::-1]]) if options.there_and_back else way


def key(rig: bpy.types.Object, frame: int) -> None:
    """Key the current pose."""
    for bone in rig.pose.bones:
        bone.keyframe_insert("rotation_quaternion", frame=frame)
        bone.keyframe_insert("location", frame=frame)


def draw(options: argparse.Namespace, posed: Path, folder: Path) -> None:
    """Draw the strips of all angles, one above the other."""
    strips = []
    for place, angle in enumerate(options.angles):
        strip = folder / f"{place}.png"
        size = "x".join(map(str, options.size))
        rows = ["--columns", str(options.steps), "--rows", "1", "--frames", "1", str(options.steps)]
        contact_sheet.main([str(posed), str(strip), *rows, "--size", size, "--angle", str(angle)])
        strips.append(_pixels(strip))
    contact_sheet.save(np.concatenate(strips[::-1]), options.picture)


def _pixels(path: Path) -> contact_sheet.Picture:
    image = bpy.data.images.load(str(path))
    pixels = np.empty(image.size[0] * image.size[1] * 4, dtype=np.float32)
    image.pixels.foreach_get(pixels)
    return pixels.reshape(image.size[1], image.size[0], 4)


if __name__ == "__main__":
    # Blender 4.5 as a module may wait for one of its own threads when Python ends.
    from fabrik_addon.batch import leave

    leave(main())
