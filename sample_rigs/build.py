"""Build the sample rigs and the sample recording anew, into this folder or another one.

    python -m sample_rigs.build [FOLDER]

Runs in a Python with `bpy`. The files there now were written by Blender 4.2. The person and the hand get
the joint limits that the add-on's preset has for them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fabrik_addon.blender.limits.preset import apply_preset

from .recipe import blend_files, markers
from .recipe.human import human_bones
from .recipe.paper_models import PAPER_MODELS
from .recipe.skin import build_skin

# Of the paper's models, the one with the joints of a human.
LIMITED = "hand"


def build(folder: Path) -> None:
    """Write every sample file into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_recording(folder)
    for name, bones in PAPER_MODELS.items():
        blend_files.start_file()
        rig = blend_files.add_armature(bones())
        if name == LIMITED:
            apply_preset(rig, list(rig.pose.bones))
        blend_files.save_file(folder / f"{name}.blend")
    blend_files.start_file()
    rig = blend_files.add_armature(human_bones())
    blend_files.add_skin(build_skin(), rig)
    apply_preset(rig, list(rig.pose.bones))
    blend_files.save_file(folder / "human.blend")


def write_recording(folder: Path) -> None:
    """Write the walk and its marker map."""
    walk = markers.trc_text(markers.recording(), "walk.trc")
    (folder / "walk.trc").write_text(walk, encoding="ascii", newline="\n")
    (folder / "walk_map.json").write_text(markers.map_text(), encoding="ascii", newline="\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
