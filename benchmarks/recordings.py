"""Real recordings: the walk of OpenSim's example, compared with OpenSim's result."""

import bpy
import numpy as np
from mathutils import Matrix
from support import scenes
from support.limited import write_limit
from support.recordings import DATA, gait_model, gait_targets

from benchmarks.tables import Aim, Part, best_of, table
from fabrik_addon.blender.bake.bake import bake
from fabrik_addon.core import Solver

MODEL_FILE = "gait2354_subject01_simbody.osim"


def measure_gait():
    """Weighted marker RMS, worst marker, distance of the joints from OpenSim's, time."""
    title = "OpenSim's gait2354 walk: 31 weighted markers, 73 frames"
    if not (DATA / MODEL_FILE).exists():
        return f"## {title}\n\nNot measured: FABRIK_TEST_DATA has no {MODEL_FILE}.\n"
    model = gait_model()
    targets = gait_targets(model)
    theirs = model.solve(targets)
    placed = model.place(theirs)
    centers = np.stack([placed[joint.child][1] for joint in model.joints], axis=1)
    errors = np.linalg.norm(model.points(theirs) - targets, axis=2)
    rows = [_row("OpenSim's answer", model, errors, "-", "-")]
    rig = model.rig(theirs)
    for name, limits in (("this solver, joint limits", rig.limits), ("this solver, no limits at all", {})):
        solver = Solver(rig.skeleton, rig.effectors, limits=limits, root="FREE")
        solution = solver.solve(targets)
        seconds = best_of(3, lambda solver=solver: solver.solve(targets))
        away = np.median(np.linalg.norm(solution.heads - centers, axis=2))
        time = f"{1000.0 * seconds / len(targets):.2f}"
        rows.append(_row(name, model, solution.errors, f"{1000.0 * away:.2f}", time))
    errors, heads = keyed_gait(rig, [marker.name for marker in model.markers], targets)
    away = np.median(np.linalg.norm(heads - centers, axis=2))
    rows.append(
        _row("a bake in Blender, joint limits, read from the keyed rig", model, errors, f"{1000.0 * away:.2f}", "-")
    )
    header = ("", "weighted RMS mm", "RMS mm", "maximum mm", "worst marker", "joints from OpenSim's mm", "ms a frame")
    theirs, ours, baked = (float(rows[row][1]) for row in (0, 1, 3))
    aims = [
        Aim.at_most(f"Weighted RMS of markers, {what}", theirs, figure, "mm", other=f"{theirs} mm (OpenSim)")
        for what, figure in (("joint limits", ours), ("baked in Blender", baked))
    ]
    return Part(table(title, header, rows), tuple(aims))


def keyed_gait(model, names, targets):
    """(F, M) errors of the markers and (F, J, 3) heads of the bones of an armature that is keyed by a bake."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    skeleton = model.skeleton
    rig = bpy.data.objects.new("Gait", bpy.data.armatures.new("Gait"))
    bpy.context.scene.collection.objects.link(rig)
    scenes.make_active(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    for bone, name in enumerate(skeleton.names):
        made = rig.data.edit_bones.new(name)
        made.head, made.tail = (0.0, 0.0, 0.0), (0.0, float(skeleton.lengths[bone]), 0.0)
        made.matrix = Matrix(skeleton.rest[bone].tolist())
        parent = int(skeleton.parents[bone])
        made.parent = rig.data.edit_bones[parent] if parent >= 0 else None
    bpy.ops.object.mode_set(mode="OBJECT")
    for name, limit in model.limits.items():
        write_limit(rig.pose.bones[name], limit)
    rig.fabrik.root = "FREE"
    empties = scenes.import_positions(targets, names, rate=60.0)
    for name, effector in zip(names, model.effectors, strict=True):
        entry = rig.fabrik.capture.markers.add()
        entry.name, entry.bone, entry.weight = name, effector.bone, effector.weight
        entry.point, entry.offset, entry.target = "OFFSET", effector.offset, empties[name]
    bake(bpy.context, rig, frame_start=1, frame_end=len(targets))
    found = np.empty((len(targets), len(skeleton), 4, 4))
    for frame in range(len(targets)):
        bpy.context.scene.frame_set(frame + 1)
        found[frame] = [rig.pose.bones[name].matrix for name in skeleton.names]
    on = [skeleton.index(effector.bone) for effector in model.effectors]
    offsets = np.array([(*effector.offset, 1.0) for effector in model.effectors])
    places = (found[:, on] @ offsets[..., None])[..., :3, 0]
    return np.linalg.norm(places - targets, axis=2), found[..., :3, 3]


def _row(name, model, errors, away, time):
    weighted = np.sqrt((model.weights * errors**2).sum(axis=1) / model.weights.sum()).mean()
    plain = np.sqrt((errors**2).mean(axis=1)).mean()
    worst = model.markers[int(errors.max(axis=0).argmax())].name
    figures = (f"{1000.0 * value:.2f}" for value in (weighted, plain, errors.max()))
    return name, *figures, worst, away, time
