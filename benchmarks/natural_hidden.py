"""Hidden joints from few goals: recorded people, of whom the solver only gets hips, wrists, ankles and head."""

import numpy as np
from support.recordings import DATA

from benchmarks.bvh import read_recording
from benchmarks.tables import Aim, Part, table
from fabrik_addon.core import Effector, Solver, forward_kinematics
from fabrik_addon.core.drag import DragSolver
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.limits import excess
from fabrik_addon.human.masses import body_masses
from fabrik_addon.human.naming_schemes import match
from fabrik_addon.human.preset import human_limits

# Files, and whether zero rotations are a T pose with Z up in them.
RECORDINGS = {"dab": True, "dance": False, "wave_hello": True}
GIVEN = ("Hips", "LeftHand", "RightHand", "LeftFoot", "RightFoot", "Head")
# Joints that move with the hips, and joints that are not evaluated.
NOT_HIDDEN = (*GIVEN, "Spine", "LeftUpLeg", "RightUpLeg", "LeftToeBase", "RightToeBase")
FRAMES_A_SECOND = 10.0
# Degrees: smaller angles outside a limit may be errors of the calibration.
OUTSIDE = 1.0


def measure_hidden():
    """Both solvers on every recording: distances of hidden joints from their recorded positions."""
    if not all((DATA / "bvh" / f"{name}.bvh").exists() for name in RECORDINGS):
        return "## Natural: hidden joints\n\nNot measured: FABRIK_TEST_DATA has no bvh folder.\n"
    people = {name: read_recording(DATA / "bvh" / f"{name}.bvh", zero) for name, zero in RECORDINGS.items()}
    rows, means, aims = [], {}, []
    for name, person in people.items():
        chosen = np.arange(0, len(person.local), max(1, round(person.rate / FRAMES_A_SECOND)))
        limits = human_limits(person.bones).limits
        for method, solve in METHODS.items():
            heads = solve(person, limits, chosen)
            apart = 1000.0 * np.linalg.norm(heads - person.heads[chosen], axis=2)
            hidden, given = _columns(person.skeleton.names)
            means[name, method] = apart[:, hidden].mean()
            rows.append((name, len(chosen), method, f"{apart[:, hidden].mean():.1f}",
                         f"{np.median(apart[:, hidden]):.1f}", f"{np.percentile(apart[:, hidden], 95):.0f}",
                         f"{np.median(apart[:, given]):.2f}"))  # fmt: skip
        today, new = (means[name, method] for method in METHODS)
        aims.append(
            Aim.at_most("Error of hidden joints, relative to the bake's solve", 1.0, new / today, "×", case=name)
        )
    today, new = (np.mean([means[name, method] for name in people]) for method in METHODS)
    aims.append(
        Aim.at_most(
            "Error of hidden joints, mean of all recordings, relative to the bake's solve", 0.99, new / today, "×"
        )
    )
    header = ("recording", "frames", "solved", "mean mm", "median mm", "95th percentile mm", "given, median mm")
    title = "Natural: hidden joints of recorded people, told by hips, wrists, ankles and head"
    return Part("\n".join([table(title, header, rows), _limits_table(people)]), tuple(aims))


def _columns(names):
    hidden = [bone for bone, name in enumerate(names) if name not in NOT_HIDDEN]
    return hidden, [names.index(name) for name in GIVEN]


def _effectors():
    return [Effector(name, (0.0, 0.0, 0.0), rotation_weight=float(name == "Hips")) for name in GIVEN]


def _targets(person, chosen):
    """(F, E, 3) and (F, E, 4)."""
    rotations = np.full((len(chosen), len(GIVEN), 4), np.nan)
    rotations[:, 0] = person.hips[chosen]
    return person.heads[chosen][:, [person.skeleton.names.index(name) for name in GIVEN]], rotations


def by_bake(person, limits, chosen):
    """(F, J, 3) heads by the solver of bakes, every frame from rest."""
    targets, rotations = _targets(person, chosen)
    solver = Solver(person.skeleton, _effectors(), limits=limits, root="FREE")
    return solver.solve(targets, target_rotations=rotations).heads


def by_posture(person, limits, chosen):
    """(F, J, 3) heads by least mass: each frame starts from the last and prefers the rest pose, moved with the hips."""
    skeleton = person.skeleton
    targets, rotations = _targets(person, chosen)
    masses = body_masses(dict(zip(skeleton.names, skeleton.lengths.tolist(), strict=True)))
    shares, centers, keeps, bends, _, eased = np.array([masses[name] for name in skeleton.names]).T
    weighed = Masses(shares, centers, keeps, bends, eased=eased)
    solver = DragSolver(skeleton, _effectors(), weighed, limits=limits, root="FREE")
    pose, heads = np.tile([1.0, 0.0, 0.0, 0.0], (len(skeleton), 1)), []
    rest = pose.copy()
    for frame in range(len(chosen)):
        rest[0] = pose[0] = person.local[chosen[frame], 0]
        location = targets[frame, 0]
        solver.prefer(rest, location)
        solver.continue_from(pose, location)
        found = solver.solve(targets[frame], rotations[frame], settled=True)
        pose, location = found.rotations.copy(), found.root_location
        heads.append(forward_kinematics(skeleton, pose, location)[:, :3, 3])
    return np.array(heads)


METHODS = {"as a bake does": by_bake, "by least mass": by_posture}


def _limits_table(people):
    """How far the recorded poses lie outside the preset's limits, joint by joint."""
    outside = {}
    for person in people.values():
        limits, roles = human_limits(person.bones).limits, match(person.skeleton.names)
        for bone, name in enumerate(person.skeleton.names):
            if name in limits:
                off = np.degrees(excess(limits[name], person.local[:, bone]))
                outside.setdefault(roles[name].part, []).append(off)
    rows = [_limit_row(part, np.concatenate(values)) for part, values in outside.items()]
    header = ("joint", f"frames more than {OUTSIDE:g}° outside", "median °", "95th percentile °", "99th percentile °")
    return table("Natural: how far recorded people are outside the human preset", header, rows)


def _limit_row(part, degrees):
    return (
        part, f"{100.0 * (degrees > OUTSIDE).mean():.0f} %",
        *(f"{np.percentile(degrees, share):.1f}" for share in (50, 95, 99)),
    )  # fmt: skip
