"""Real recordings: the walk of OpenSim's example, compared with OpenSim's own result."""

import numpy as np
from support.recordings import DATA, gait_model, gait_targets

from benchmarks.tables import Aim, Part, best_of, table
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
    centres = np.stack([placed[joint.child][1] for joint in model.joints], axis=1)
    errors = np.linalg.norm(model.points(theirs) - targets, axis=2)
    rows = [_row("OpenSim's answer", model, errors, "-", "-")]
    rig = model.rig(theirs)
    for name, limits in (("this solver, joint limits", rig.limits), ("this solver, no limits at all", {})):
        solver = Solver(rig.skeleton, rig.effectors, limits=limits, root="FREE")
        solution = solver.solve(targets)
        seconds = best_of(3, lambda solver=solver: solver.solve(targets))
        away = np.median(np.linalg.norm(solution.heads - centres, axis=2))
        time = f"{1000.0 * seconds / len(targets):.2f}"
        rows.append(_row(name, model, solution.errors, f"{1000.0 * away:.2f}", time))
    header = ("", "weighted RMS mm", "RMS mm", "maximum mm", "worst marker", "joints from OpenSim's mm", "ms a frame")
    theirs, ours = float(rows[0][1]), float(rows[1][1])
    aim = Aim.at_most("Weighted RMS of markers, joint limits", theirs, ours, "mm", other=f"{theirs} mm (OpenSim)")
    return Part(table(title, header, rows), (aim,))


def _row(name, model, errors, away, time):
    weighted = np.sqrt((model.weights * errors**2).sum(axis=1) / model.weights.sum()).mean()
    plain = np.sqrt((errors**2).mean(axis=1)).mean()
    worst = model.markers[int(errors.max(axis=0).argmax())].name
    figures = (f"{1000.0 * value:.2f}" for value in (weighted, plain, errors.max()))
    return name, *figures, worst, away, time
