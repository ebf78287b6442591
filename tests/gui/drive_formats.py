"""Drives the import of keypoints and poses: drops, the dialog, a choice of the layout; run by `test_gui.py`.

From the drop to keys: an .npz of SMPL's poses in three actions (drop, OK, Retarget). Leaves formats_dropped.png,
formats_layout.png and formats_retargeted.png.
"""

from pathlib import Path

import bpy
import gui_drive as g
import numpy as np

FRAMES = 30


def rig():
    return bpy.data.objects["Rig"]


def write_poses():
    """Write poses of a person who stands and lowers the arms."""
    down = np.linspace(0.0, 1.2, FRAMES)
    poses = np.zeros((FRAMES, 24, 3))
    poses[:, 0] = [np.pi / 2, 0.0, 0.0]
    poses[:, 16, 2], poses[:, 17, 2] = -down, down
    path = Path(g.OUT) / "arms.npz"
    np.savez(path, poses=poses.reshape(FRAMES, -1), trans=np.tile([0.0, 0.0, 0.93], (FRAMES, 1)), mocap_framerate=30.0)
    return path


def drop(path):
    g.goto(*g.center())
    yield
    with g.override():
        bpy.ops.fabrik.import_markers("INVOKE_DEFAULT", filepath=str(path))
    yield 1.0


def steps():
    with g.override():
        bpy.ops.object.select_all(action="DESELECT")
        bpy.context.view_layer.objects.active = rig()
        rig().select_set(True)
    yield from poses_become_keys()
    yield from a_layout_is_asked_for()
    yield from a_performer_is_asked_for()


def poses_become_keys():
    yield from drop(write_poses())
    g.shot("formats_dropped.png")
    assert "arms" not in bpy.data.armatures, "nothing was asked"
    g.key("RET")
    yield 2.0
    assert len(bpy.data.armatures["arms"].bones) == 24, "the dialogue imported nothing"
    assert rig().fabrik.retarget.source.name == "arms"
    g.area().spaces.active.show_region_ui = True
    yield 1.0
    g.region(rtype="UI").active_panel_category = "FABRIK Motion"
    yield 1.0
    yield from g.find_button("fabrik.retarget", xfrac=0.4, step=6)
    g.click()
    for _ in range(60):
        yield 1.0
        if rig().animation_data and rig().animation_data.action:
            break
    assert f"{FRAMES} frames of 'arms'" in rig().fabrik.capture.last_result, rig().fabrik.capture.last_result
    heights = []
    for frame in (1, FRAMES):
        bpy.context.scene.frame_set(frame)
        heights.append(rig().pose.bones["hand.L"].head.z)
    assert heights[0] - heights[1] > 0.3, "the arm is not let down"
    g.goto(*g.center())
    yield 1.0
    g.shot("formats_retargeted.png")


def a_layout_is_asked_for():
    """For 17 points that are no person's, the dialog is shown again with a layout to choose."""
    path = Path(g.OUT) / "odd.npy"
    np.save(path, np.random.default_rng(3).uniform(0.0, 1.7, size=(8, 17, 3)))
    yield from drop(path)
    g.key("RET")
    yield 1.5
    g.shot("formats_layout.png")
    assert "odd" not in bpy.data.collections, "no layout was asked for"
    g.key("RET")
    yield 1.5
    assert len(bpy.data.collections["odd"].objects) == 17, "the layout that was offered imported nothing"


def a_performer_is_asked_for():
    """Two people in one file: each drop offers the next one."""
    names = [f"{person}:{label}" for person in ("Anna", "Ben") for label in ("LASI", "RASI", "LPSI", "RPSI")]
    header = "PathFileType\t4\t(X/Y/Z)\ttwo.trc\nDataRate\tNumFrames\tNumMarkers\tUnits\n100\t2\t8\tmm\n"
    columns = (
        "Frame#\tTime\t" + "\t\t\t".join(names) + "\n\t\t" + "\t".join(f"{a}{n}" for n in range(1, 9) for a in "XYZ")
    )
    rows = [f"{n}\t{n / 100}\t" + "\t".join(str(100 + n + i) for i in range(24)) for n in (1, 2)]
    path = Path(g.OUT) / "two.trc"
    path.write_text(f"{header}{columns}\n\n" + "\n".join(rows) + "\n")
    for person in ("Anna", "Ben"):
        yield from drop(path)
        g.key("RET")
        yield 1.5
        g.shot(f"formats_{person}.png")
        assert f"two {person}" not in bpy.data.collections, "no performer was asked for"
        g.key("RET")
        yield 1.5
        assert len(bpy.data.collections[f"two {person}"].objects) == 4, (
            "the performer that was offered was not imported"
        )


g.run(steps, limit=240.0)
