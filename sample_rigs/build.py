"""Build the sample rigs and the sample recording, into this folder or another one.

    python -m sample_rigs.build [FOLDER]

Runs in a Python with `bpy`. The files in the repository were written by Blender 4.5. The person and
the hand get their joint limits from the add-on's preset.
"""

from __future__ import annotations

import sys
from pathlib import Path

import bpy

import fabrik_addon
from fabrik_addon.batch import leave
from fabrik_addon.blender.goals.effectors import add_effector, pin_bones
from fabrik_addon.blender.limits.editing import apply_preset
from fabrik_addon.blender.posing.solve import solve_frame
from fabrik_addon.blender.settings.rig import rig_settings

from .recipe import blend_files, markers
from .recipe.human import human_bones
from .recipe.paper_models import PAPER_MODELS
from .recipe.skin import build_skin

# In front of the left shoulder and a little above it: the arm bends, and the trunk follows. Meters.
FIRST_TARGET = (0.3, -0.45, 1.45)
TARGET_SIZE = 0.05
# Shown in the file next to the person.
STEPS = """\
FABRIK: your first pose

1. Put the mouse over the 3D viewport and press N. Open the tab FABRIK Pose.

2. The target of the left hand is selected. Press G and move the mouse. The person follows, and the pinned feet stay. \
Click to finish. If the hand can't reach the target, an orange line shows the distance.

3. Click Enter Pose Mode in the tab. Click the bone of the head, press F and move the mouse. Click to finish.

4. Drag the hips down in the same way: a squat. Esc while you drag restores the old pose.

5. Keyframe Solved Bones saves the pose as keys. The question mark opens the user guide.
"""
# The paper's model with the joints of a human.
LIMITED = "hand"


def build(folder: Path) -> None:
    """Write every sample file into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_recording(folder)
    for name, bones in PAPER_MODELS.items():
        blend_files.start_file()
        rig = blend_files.add_armature(bones())
        if name == LIMITED:
            limit(rig)
        blend_files.save_file(folder / f"{name}.blend")
    blend_files.start_file()
    rig = blend_files.add_armature(human_bones())
    blend_files.add_skin(build_skin(), rig)
    limit(rig)
    blend_files.frame(rig)
    blend_files.save_file(folder / "human.blend")
    fabrik_addon.register()
    try:
        first_pose(rig)
        blend_files.show_text("Steps.txt", STEPS)
        blend_files.save_file(folder / "first_pose.blend")
    finally:
        fabrik_addon.unregister()


def limit(rig: bpy.types.Object) -> None:
    """Apply the joint limits of the preset, which needs to know whether the rig is a control rig."""
    fabrik_addon.register()
    try:
        apply_preset(rig, list(rig.pose.bones))
    finally:
        fabrik_addon.unregister()


def first_pose(rig: bpy.types.Object) -> None:
    """The person with pinned feet and a live target for a hand. The target is selected, so that G moves it."""
    bpy.context.view_layer.objects.active = rig
    pin_bones(rig, ["foot.L", "foot.R"])
    hand = add_effector(bpy.context, rig, "hand.L")
    hand.target.empty_display_size = TARGET_SIZE
    hand.target.location = FIRST_TARGET
    bpy.context.view_layer.update()
    solve_frame(bpy.context, rig)
    rig_settings(rig).live = True
    for thing in bpy.data.objects:
        thing.select_set(thing == hand.target)
    bpy.context.view_layer.objects.active = hand.target


def write_recording(folder: Path) -> None:
    """Write the walk and its marker map."""
    walk = markers.trc_text(markers.recording(), "walk.trc")
    (folder / "walk.trc").write_text(walk, encoding="ascii", newline="\n")
    (folder / "walk_map.json").write_text(markers.map_text(), encoding="ascii", newline="\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
    # Blender 4.5 as a module may wait for one of its own threads when Python ends.
    leave(0)
