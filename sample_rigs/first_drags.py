"""Drag the sample person into several poses, each by one drag from the rest pose, and draw the final poses.

    python sample_rigs/first_drags.py OUT.png

Runs in a Python that has `bpy`. The upper row is seen from the front, the lower one from the side.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import bpy
import drag_strip
import numpy as np

PERSON = Path(__file__).parent / "human.blend"
FEET = ("foot.L", "foot.R")


class FirstDrag(NamedTuple):
    """A bone, the shift of its point in meters, and the pinned bones.

    is_view: whether it is dragged by the mouse in a front view.
    """

    bone: str
    shift: tuple[float, float, float]
    pinned: tuple[str, ...] = FEET
    point: str = "TAIL"
    is_view: bool = False


DRAGS = (
    FirstDrag("foot.L", (0.0, 0.0, 0.3), ("foot.R",)),
    FirstDrag("thigh.L", (0.0, -0.35, 0.35), ("foot.R",)),
    FirstDrag("foot.L", (0.0, 0.3, 0.2), ("foot.R",)),
    FirstDrag("hips", (0.0, 0.0, -0.45), point="HEAD", is_view=True),
    FirstDrag("head", (0.0, -0.5, -0.3)),
    FirstDrag("hand.L", (-0.5, -0.4, -0.85)),
    FirstDrag("upper_arm.L", (0.05, 0.0, 0.3)),
    FirstDrag("hand.L", (0.0, -0.7, 0.0)),
)


def main() -> int:
    """Make the picture."""
    import fabrik_addon  # noqa: PLC0415  registered for the drags alone

    parser = argparse.ArgumentParser(prog="first_drags.py", description="Draw where a few drags end.")
    parser.add_argument("picture", type=Path, metavar="OUT.png")
    picture = parser.parse_args().picture
    fabrik_addon.register()
    try:
        with tempfile.TemporaryDirectory() as folder:
            posed = Path(folder) / "posed.blend"
            _pose(posed)
            how = argparse.Namespace(picture=picture, steps=len(DRAGS), size=(200, 260), angles=[25.0, 88.0])
            drag_strip.draw(how, posed, Path(folder))
    finally:
        fabrik_addon.unregister()
    return 0


def _pose(path: Path) -> None:
    """Key the final pose of each drag on its own frame, from 1, and save the file."""
    from fabrik_addon.blender.goals.effectors import pin_bones  # noqa: PLC0415
    from fabrik_addon.blender.posing.drag import begin_drag  # noqa: PLC0415

    bpy.ops.wm.open_mainfile(filepath=str(PERSON))
    rig = next(item for item in bpy.context.scene.objects if item.type == "ARMATURE")
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    for frame, each in enumerate(DRAGS, 1):
        rig.fabrik.effectors.clear()
        bpy.ops.pose.select_all(action="SELECT")
        bpy.ops.pose.transforms_clear()
        pin_bones(rig, each.pinned)
        drag = begin_drag(bpy.context, rig, each.bone, point=each.point)
        steps = int(np.ceil(np.linalg.norm(each.shift) / drag_strip.STEP))
        for share in np.arange(1, steps + 1) / steps:
            drag.step(drag.start + share * np.array(each.shift), None, (0.0, 1.0, 0.0) if each.is_view else None)
        drag.finish(bpy.context)
        drag_strip.key(rig, frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, len(DRAGS)
    bpy.ops.wm.save_as_mainfile(filepath=str(path))


if __name__ == "__main__":
    # Blender 4.5 as a module may wait for one of its own threads when Python ends.
    from fabrik_addon.batch import leave

    leave(main() or 0)
