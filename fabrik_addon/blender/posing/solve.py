"""Solves a rig for its current targets, once or live, near its preferred pose; stores poses with a rig.

On the same frame, a live rig continues from its last pose. On another frame it starts from its base pose, so that the
pose does not depend on the frame before. A pose is written only if it differs from the current one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
from bpy.types import Context, Depsgraph, Object, Scene

from ...core import Options, Solution
from ...core.arrays import FloatArray
from ...core.channels import from_channels, to_channels
from ...core.drag import DragPose, DragSolver
from ...core.errors import FabrikError
from ...core.kernel.joint_limits import legal_pose
from ...core.limits import legal_rotations
from ...core.model.effector import path_reaches
from ...core.rotations import IDENTITY, angle_between, slerp
from ..control.posed_rig import PosedRig, posed_rig
from ..control.writer import LimbOnIk, Update, held_by_ik, most_off
from ..goals.body import masses_of
from ..goals.effectors import check_followed, current_point, move_pins_with
from ..goals.places import SampledTargets, current_targets, tree_space
from ..goals.problem import RigProblem, find_problems
from ..rig.armature import (
    Channels,
    Tree,
    check_editable,
    check_rig,
    current_factors,
    floats,
    freeze,
    length_text,
    object_scale,
    property_name,
    read_channels,
    root_place,
    write_stretches,
)
from ..rig.keyframes import RigCurves, curves, strip_curves
from ..rig.pose_writer import HeldChannels, PoseKeeper, WithLocks, channel_groups, pose_key, switches_of, write_switches
from ..settings.control import solved_parents
from ..settings.in_use import add_item
from ..settings.limit_properties import read_limits
from ..settings.rig import rig_settings
from ..settings.why_not import why_no_rig, why_no_solve


def store_base(rig: Object) -> None:
    """Store the current channels of all bones, and a control rig's switches, for the base pose.

    Finds by trial which limbs IK holds, or would hold. Not for handlers: Blender may crash after an evaluation in one.
    """
    stored = rig_settings(rig).stored_pose
    _store(read_channels(rig), stored)
    for limb in held_by_ik(rig, bpy.context.view_layer.update, every=True):
        for control in limb.goes_by.values():
            stored[control].value = 1.0
    for path, value in switches_of(rig).items():
        add_item(stored, name=path, value=value)


def _store(pose: Channels, stored: Any) -> None:
    stored.clear()
    for name, rotation, location in zip(*pose, strict=True):
        add_item(stored, name=name, rotation=rotation, location=location)


def keep_pose(rig: Object) -> str:
    """Store the current pose of a rig as its preferred pose; returns a line to show."""
    settings = rig_settings(rig)
    _store(posed_rig(rig).pose(), settings.kept_pose)
    settings.preferred_pose = "KEPT"
    return f"Stored the preferred pose of {rig.name!r}"


# (J, 4) local rotations and (3,) the head of the root in armature space.
_Pose: TypeAlias = tuple[FloatArray, FloatArray]


def preferred_pose(problem: RigProblem, start: _Pose, bones: Sequence[int] | None = None) -> _Pose:
    """The preferred pose of the rig of a problem.

    start: the preferred pose if no other is chosen or stored, such as the pose at a drag's start. bones: indices in the
    skeleton of the bones to pose, by default those of the problem; the others keep their rotation in `start`.
    """
    rig, settings = problem.rig, rig_settings(problem.rig)
    is_kept = settings.preferred_pose == "KEPT" and len(settings.kept_pose) > 0
    if settings.preferred_pose != "REST" and not is_kept:
        return start
    # Bones that are not in the stored pose are at rest.
    names, kept = problem.tree.skeleton.names, {bone.name: bone for bone in (settings.kept_pose if is_kept else ())}
    rotations = np.array([kept[name].rotation if name in kept else IDENTITY for name in names], dtype=np.float64)
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    mixed, posed = start[0].copy(), list(problem.bones if bones is None else bones)
    mixed[posed] = rotations[posed]
    location = kept[names[0]].location if names[0] in kept else (0.0, 0.0, 0.0)
    return mixed, root_place(rig.pose.bones[names[0]], location) if problem.free_root else start[1]


class BasePose:
    """The base pose of a rig on a frame, from its current action, or else from the stored pose.

    On a control rig, this pose is found by evaluating the rig with its controls' channels.

    Attributes:
        key: the frame and the channels of a control rig that was evaluated. trees: its trees in this pose, by root.
        held: the limbs that IK holds in the base pose.
        frame: the frame. blended: the values of channels that strips blend, by bone, channel and curve values.
    """

    def __init__(self, scene: Scene, rig: Object, update: Update, last: "BasePose | None") -> None:
        """Read the base pose on the current frame.

        update: evaluates the scene without calling handlers. last: the rig's last base pose, which may still be valid.
        """
        self.settings = rig_settings(rig)
        self._rig, self.frame, stored = rig, scene.frame_current_final, self.settings.stored_pose
        self._rows = {name: row for row, name in enumerate(stored.keys())}
        self._rotations, self._locations = floats(stored, "rotation", 4), floats(stored, "location", 3)
        animation = rig.animation_data
        below = strip_curves(rig) if animation is not None and animation.use_nla else []
        every = [*curves(rig), *below]
        self._curves, posed, self._is_layered = RigCurves(rig, every), posed_rig(rig), bool(below)
        # Only Blender can blend strips. It has set their channels when a frame is read for the first time.
        self._is_new = last is None or last.frame != self.frame
        self.blended: dict[tuple[str | float, ...], FloatArray] = {} if last is None or self._is_new else last.blended
        self.key: tuple[float | bytes, ...] = ()
        self.trees: dict[str, Tree] = {}
        self.held: list[LimbOnIk] = []
        parents = {} if posed.by_channels else solved_parents(rig)
        names = list(dict.fromkeys(name for name, _ in posed.keyed([*parents], [*parents][:1])))
        if not names:
            return
        rotations, locations = self._turned(names), np.array([self._moved(name) for name in names])
        self.key = self.frame, rotations.tobytes(), locations.tobytes()
        if last is not None and last.key == self.key:
            self.trees, self.held = last.trees, last.held
            return
        keyed, current = {curve.data_path for curve in every}, switches_of(rig)
        # Live changes switches only if it poses limbs on FK. Other changes are the user's.
        mine = [path for path in current if path in stored and self.settings.control.limbs == "FK"]
        values = {path: stored[path].value for path in mine if path not in keyed}
        groups = channel_groups(rig, names)
        apart = [angle_between(group.rotations, rotations[group.rows]).max() for group in groups]
        apart.append(np.abs(locations - [rig.pose.bones[name].location for name in names]).max())
        if max(apart) > _SAME_TURN or not current.items() >= values.items():
            with PoseKeeper(scene, rig):
                for group in groups:
                    group.write(rig, rotations[group.rows])
                for name, location in zip(names, locations.tolist(), strict=True):
                    rig.pose.bones[name].location = location
                write_switches(rig, values)
                rig.update_tag(refresh={"DATA"})
                update()
                self._read(posed, update)
            update()
        else:
            self._read(posed, update)

    def _read(self, posed: PosedRig, update: Update) -> None:
        """Read a control rig that is in its base pose, and the limbs that IK holds there."""
        self.held = held_by_ik(self._rig, update, {row.name for row in self.settings.stored_pose if row.value})
        self.trees = {tree.skeleton.names[0]: tree for tree in posed.trees()}

    def start(self, problem: RigProblem, current: Tree, last: "LiveSession | None") -> _Pose:
        """(J, 4) local rotations of a tree, and (3,) its root's head, which stays in place unless Live or keys move it.

        current: the tree in its current pose; bones of a plain rig that are not solved keep that pose. last: the tree's
        session.
        """
        root, bones = problem.tree.skeleton.names[0], self._rig.pose.bones
        if root in self.trees:
            place, head = problem.posed.place(root), problem.tree.root_location
            is_keyed = self._is_new and self._curves.channel(place, "location")
            if not problem.free_root and not is_keyed:
                # Controls reproduce poses with slight errors, so the root would creep.
                stays = place in bones and last and (place, "location") not in last.written.changed()
                head = last.wanted[1] if last and last.wanted and stays else current.root_location
            return problem.tree.rotations, head
        rotations, head = current.rotations.copy(), current.root_location
        rotations[problem.bones] = self._turned(problem.bone_names)
        if problem.free_root:
            head = root_place(bones[root], self._moved(root))
        return rotations, head

    def _turned(self, bones: Sequence[str]) -> FloatArray:
        """(B, 4) local rotations by the channels of bones or controls; bones without data are at rest."""
        known = np.concatenate([self._rotations, [IDENTITY]])
        found: FloatArray = known[[self._rows.get(bone, -1) for bone in bones]]
        keyed = [row for row, bone in enumerate(bones) if self._curves.channel(bone)]
        modes = {row: self._rig.pose.bones[bones[row]].rotation_mode for row in keyed}
        for mode in {*modes.values()}:
            rows = [row for row in keyed if modes[row] == mode]
            values = to_channels(mode, found[rows][None])[0]
            for row, own in zip(rows, values, strict=True):
                self._keyed(bones[row], property_name(mode), own)
            found[rows] = from_channels(mode, values)
        return found

    def _moved(self, bone: str) -> FloatArray:
        row = self._rows.get(bone)
        own = self._rig.pose.bones[bone].location if row is None else self._locations[row]
        return self._keyed(bone, "location", np.array(own, dtype=np.float64))

    def _keyed(self, bone: str, channel: str, values: FloatArray) -> FloatArray:
        """Replace a channel's values (n,) by the values of its curves on the frame, if it has curves."""
        found = {curve.array_index: curve.evaluate(self.frame) for curve in self._curves.channel(bone, channel)}
        if self._is_layered and found:
            shown = np.array(getattr(self._rig.pose.bones[bone], channel), dtype=np.float64)
            # If the keys have changed since, they determine the current values.
            shown = self.blended.setdefault((bone, channel, *found.values()), shown)
            found = {index: shown[index] for index in found}
        values[list(found)] = list(found.values())
        return values


# Radians. Smaller errors of locked channels are invisible; solving again for them would take twice as long.
_KEPT: Final = 1e-4


@dataclass(frozen=True)
class FrameResult:
    """The result of solving a frame: errors and reasons.

    errors: (E,) world meters, NaN if a target is not visible. met: the number of targets met within the solver's
    tolerance. left_alone: notes on bones that were not rotated, or that their controls can't pose. why: the reason why
    the worst effector misses its target, such as "foot.L is at its limit"; "" if unknown.
    """

    errors: FloatArray
    met: int
    left_alone: tuple[str, ...] = ()
    why: str = ""

    @property
    def line(self) -> str:
        """The result in one line and the scene's units, such as "5 of 5 targets met, worst 0.2 mm"."""
        unseen = int(np.isnan(self.errors).sum())
        if unseen == len(self.errors):
            return "No target is seen on this frame: the pose was not changed"
        seen = len(self.errors) - unseen
        worst = length_text(float(np.nanmax(self.errors)))
        worst += f": {self.why}" if self.why and self.met < seen else ""
        worst += f", {unseen} not seen" if unseen else ""
        return f"{self.met} of {seen} targets met, worst {worst}"


# The last solve of each rig, by session ID: the pose after it, the goals of each tree, and the rotations and heads of
# bones before it. If the same request is solved again, it starts from the same pose.
_Solved: TypeAlias = tuple[bytes, list[Any], dict[str, FloatArray], dict[str, FloatArray]]
_SOLVED: Final[dict[int, _Solved]] = {}
_UNSOLVED: Final[_Solved] = (b"", [], {}, {})


def solve_frame(context: Context, armature: Object, start: str = "PRESENT") -> FrameResult:
    """Pose the armature for its current targets, starting from its current pose ("PRESENT") or from rest ("REST").

    Bones that no enabled effector needs, and bones that cannot be keyed, don't change. If a FabrikError is raised, the
    pose is unchanged.
    """
    check_followed(context.scene, armature)
    check_rig(armature)
    check_editable(armature)
    context.view_layer.update()
    held = held_by_ik(armature, context.view_layer.update)
    trees = [problem.pins_first() for problem in find_problems(armature, limbs=held)]
    after, before, turns, heads = _SOLVED.get(armature.session_uid, _UNSOLVED)
    if start != "PRESENT" or after != pose_key(armature):
        _, before, turns, heads = _UNSOLVED
    begins = []
    for problem in trees:
        tree, names = problem.tree, problem.tree.skeleton.names
        rotations, location = tree.rotations.copy(), tree.root_location
        for bone in problem.bones:
            rotations[bone] = (1.0, 0.0, 0.0, 0.0) if start == "REST" else turns.get(names[bone], rotations[bone])
        if problem.free_root:
            location = heads.get(names[0], location)
        begins.append(replace(tree, rotations=rotations, root_location=location))
    errors, met, asked, why, worst = [], 0, [], "", 0.0
    left_alone = [sentence for problem in trees for sentence in problem.left_alone]
    for problem, begin in zip(trees, begins, strict=True):
        if problem.carrier:
            # Parents of the targets may have followed bones that were just solved.
            context.view_layer.update()
        places = current_targets(context.evaluated_depsgraph_get(), context.scene, armature, problem)
        # Leave out the ends of limbs on IK: they are held at their current positions, which vary by the errors of IK.
        own = len(problem.names)
        asked.append((depends_on(problem), *(None if each is None else each[:own].tobytes() for each in places)))
        stays = asked[-1] in before and is_by_posture(problem, places)
        found, holds, left = _solve(context, problem, places, begin, stays=stays)
        left_alone += left
        errors.append(found * float(object_scale(tree_space(armature, problem))))
        lengths = path_reaches(problem.tree.skeleton, problem.effectors[:own]).tolerance_lengths
        met += int(np.asarray(found <= Options().tolerance * lengths).sum())
        if (farthest := float(np.nan_to_num(errors[-1]).max())) > worst:
            why, worst = holds, farthest
    result = FrameResult(np.concatenate(errors), met, tuple(left_alone), why)
    if not np.isnan(result.errors).all():
        rows = (row for tree in begins for row in zip(tree.skeleton.names, tree.rotations, strict=True))
        heads = {tree.skeleton.names[0]: tree.root_location for tree in begins}
        _SOLVED[armature.session_uid] = pose_key(armature), asked, dict(rows), heads
        context.view_layer.update()
        move_pins_with(armature, ())
    return result


def _solve(
    context: Context, problem: RigProblem, places: SampledTargets, begin: Tree, *, stays: bool
) -> tuple[FloatArray, str, list[str]]:
    """Pose one tree near its start pose.

    stays: whether the current pose is already the solution. Returns (E,) errors of the targets in armature units, the
    reasons for them, and warnings about misplaced bones.
    """
    rig, own, left = problem.rig, len(problem.names), list[str]()
    unseen = np.isnan(places.points[:own]).any(axis=1)
    solution: Solution | DragPose
    if is_by_posture(problem, places):
        session = session_for(problem, (begin.rotations, begin.root_location), problem.locks(begin.rotations))
        asked, current = (places.points, places.rotations), (problem.tree.rotations, problem.tree.root_location)
        # If the pose does not change, solve again only to find why targets are missed.
        solution = session.solve_from_preferred(*asked, try_passes=True)
        errors, why = session.misses(*current, *asked) if stays else solution.errors, problem.why_short(session)
    else:
        solution = solve_tree(problem, places, begin.rotations, begin.root_location)
        errors, why = solution.errors, ""
        if not unseen.all():
            write_stretches(rig, stretch_factors(problem, solution))
    errors = np.where(unseen, np.nan, errors[:own])
    if not stays and not unseen.all():
        location = solution.root_location if problem.free_root else None
        left = problem.posed.write(context, problem.tree.skeleton, solution.rotations, location, problem.written)
        left += problem.too_short()
        solved, errors = errors, _errors_on_ik(problem, places, errors)
        why = why if np.array_equal(errors, solved, equal_nan=True) else ""
    return errors, why, left


def _errors_on_ik(problem: RigProblem, places: SampledTargets, errors: FloatArray) -> FloatArray:
    """(E,) the solver's errors, or the rig's if these are larger, because IK stretches bones and the solver does not.

    Only elbows and knees are off; the end of a limb on IK is at the solver's position.
    """
    found, on_ik, most = errors.copy(), problem.posed.on_ik, most_off(problem.tree.skeleton.extent)
    for row, effector in enumerate(problem.effectors[: len(errors)]):
        if effector.bone in on_ik and effector.target_bone is None:
            error = float(np.linalg.norm(current_point(problem.rig, effector) - places.points[row]))
            found[row] = error if error > errors[row] + most else errors[row]
    return found


def is_by_posture(problem: RigProblem, places: SampledTargets) -> bool:
    """Whether a tree is solved with the posture term, because it has no poles and no bones that stretch."""
    return not problem.slides and places.bends is None


def session_for(problem: RigProblem, start: _Pose, locks: Mapping[int, WithLocks] | None = None) -> DragSolver:
    """A solver that starts in the rig's preferred pose; by default this is `start`."""
    session = problem.drag_solver(locks=locks)
    preferred = preferred_pose(problem, start)
    session.prefer(*preferred)
    session.begin(*preferred)
    return session


def depends_on(problem: RigProblem) -> tuple[Any, ...]:
    """A value that changes with everything on which a session depends, except rest pose, preferred pose and targets."""
    rig = problem.rig
    masses, settings, up = masses_of(rig, problem.tree.skeleton), rig_settings(rig), rig.matrix_world[2][:]
    weighed = tuple(array.tobytes() for array in (masses.shares, masses.centers, masses.factors))
    floor = (settings.floor_height, up) if settings.use_floor else None
    # The stored pose matters only if it is the preferred pose.
    kept: Any = settings.kept_pose if settings.preferred_pose == "KEPT" else ()
    poses = floats(kept, "rotation", 4).tobytes() + floats(kept, "location", 3).tobytes() if len(kept) else b""
    chosen = settings.preferred_pose, poses, settings.balance, settings.bake.self_collision, up[:3], floor
    return weighed, chosen, problem.effectors, dict(problem.limits), tuple(problem.held), problem.free_root


def solve_tree(problem: RigProblem, places: SampledTargets, start: FloatArray, start_location: FloatArray) -> Solution:
    """Solve one tree from rotations `start` (J, 4) and its root's head (3,), without masses.

    If the result violates locks, it is solved again with those bones fixed.
    """
    solution = places.solve(problem.solver(), start, start_location)
    allowed = {bone: lock(solution.rotations[bone]) for bone, lock in problem.locks(start).items()}
    kept = [bone for bone, turn in allowed.items() if angle_between(turn, solution.rotations[bone]) > _KEPT]
    if not kept:
        return solution
    skeleton = problem.tree.skeleton
    turned = np.array(solution.rotations)
    turned[kept] = [allowed[bone] for bone in kept]
    held = dict.fromkeys((skeleton.names[bone] for bone in kept), "its rotation is locked")
    frozen = freeze(Tree(skeleton, turned, solution.root_location), held)
    others = replace(problem, tree=frozen, held={**problem.held, **held})
    solution = places.solve(others.solver(), frozen.rotations, frozen.root_location)
    rotations = np.array(solution.rotations)
    rotations[kept] = turned[kept]
    return replace(solution, skeleton=skeleton, rotations=rotations)


def stretch_factors(problem: RigProblem, solution: Solution) -> dict[str, float]:
    """The length factors of bones that may stretch, by name, in a single pose."""
    skeleton = problem.tree.skeleton
    rows = {name: skeleton.index(name) for name in problem.slides}
    return {name: float(solution.lengths[row] / skeleton.lengths[row]) for name, row in rows.items()}


# Fraction of the summed bone lengths, and radians. A pose with smaller errors, such as after undo, already meets its
# targets. Channels are in single precision.
_THERE: Final = 1e-5
# Radians. The accuracy with which limbs on IK are placed.
SAME_TURN_ON_IK: Final = 3e-4
# Radians, and fractions of the root bone's length. Controls reproduce the pose of a body within this error.
_SAME_TURN_MADE: Final = 1e-5
# The length to assume for a root bone with almost no length.
_SHORTEST: Final = 1e-3
# Whether joints ease in, and a timer lets them catch up with targets. False in background mode.
IS_EASED = not bpy.app.background
# Radians, and fractions of the root bone's length. A pose with smaller differences is not written again.
_SAME_TURN: Final = 2e-6


class LiveSession:
    """One tree of bones of a live rig, and the data with which its next pose is compared.

    Attributes:
        names: the names of the tree's bones.
        asked: the frame that was posed last, and its targets; the targets are None if they must be solved again.
        is_catching_up: whether joints lag behind the targets and are catching up.
        may_continue: whether to continue toward targets at rest.
        limbs: a control rig's limbs that are placed on IK, by switch.
        wanted: the pose that was written last on this frame; None if no pose was written.
        made: the resulting pose of the rig, which may differ; None until it is evaluated.
        written: the channels of the bones and controls after the last pose was written.
        base: the rig's last base pose.
    """

    def __init__(self, problem: RigProblem, base: _Pose) -> None:
        self.names = problem.tree.skeleton.names
        self.asked: tuple[float, SampledTargets | None] | None = None
        self.limbs: dict[str, LimbOnIk] = {}
        self.wanted: _Pose | None = None
        self.made: _Pose | None = None
        self.written = HeldChannels(problem.rig, ())
        self.base: BasePose | None = None
        self.begin(problem, base)

    def begin(self, problem: RigProblem, base: _Pose) -> None:
        """Solve another problem of the same tree from now on.

        base: the pose without live posing, (J, 4) local rotations and the root's head at (3,).
        """
        self._key, self._problem, self._base = depends_on(problem), problem, base
        self._solver: DragSolver | None = None
        self.is_catching_up = self.may_continue = False
        if self.asked is not None:
            # Changed settings take effect at once, without easing.
            self.asked = self.asked[0], None

    def fits(self, problem: RigProblem) -> bool:
        """Whether this session was made for the same problem of a rig in its current state."""
        is_same_body = self._problem.tree.skeleton.is_like(problem.tree.skeleton)
        if not is_same_body or self._key != depends_on(problem):
            return False
        self._problem = problem
        return True

    def pose(
        self, places: SampledTargets, base: _Pose, locks: Mapping[int, WithLocks], frame: float, current: Tree | None
    ) -> _Pose:
        """(J, 4) local rotations and (3,) the root's head for targets on a frame.

        current: the rig's current pose to start from; None if it is not the result of a session.
        """
        problem = self._problem
        last, self.asked = self.asked, (frame, places)
        if last is not None and frame != last[0]:
            # The animation of the new frame has replaced the pose that was written.
            self.wanted = None
        may_continue, self.may_continue = self.may_continue, False
        if self._solver is None:
            self._solver, self._base = session_for(problem, base), base
        solver, rebased = self._solver, not _same(base, self._base)
        if rebased:
            # Stay near the new base pose. Bones that are not solved take their rotations from it.
            rotations, location = base[0].copy(), solver.location if problem.free_root else base[1]
            rotations[problem.bones] = solver.rotations[problem.bones]
            self._base = base
            solver.prefer(*preferred_pose(problem, base))
            solver.continue_from(rotations, location)
        solver.lock(locks)
        asked = places.points, places.rotations
        if last is None and current is not None and self._is_there(current, asked):
            solver.begin(current.rotations, current.root_location)
            self.is_catching_up = False
        elif last is None and current is not None and not self._is_base(current):
            solver.begin(current.rotations, current.root_location)
            self.is_catching_up = solver.solve(*asked, eased=IS_EASED, settled=not IS_EASED).is_held_back
        elif last is None or last[1] is None or frame != last[0]:
            self.is_catching_up = solver.solve_from_preferred(*asked).is_held_back
        elif rebased or may_continue or not _same(places, last[1]):
            self.is_catching_up = solver.solve(*asked, eased=IS_EASED, settled=not IS_EASED).is_held_back
        return solver.rotations, solver.location

    def _is_base(self, current: Tree) -> bool:
        turned = angle_between(current.rotations, self._base[0]).max()
        return bool(turned <= _THERE and np.allclose(current.root_location, self._base[1], atol=_THERE))

    def _is_there(self, current: Tree, asked: tuple[FloatArray, FloatArray | None]) -> bool:
        """Whether the pose already meets its targets, inside the limits."""
        # IK stretches bones differently in each pose, so measure with the current lengths.
        solver = replace(self._problem, tree=current).drag_solver()
        # Leave out the ends of limbs without a target: their controls hold them.
        others = slice(len(self._problem.names), len(self._problem.effectors))
        misses = np.delete(solver.misses(current.rotations, current.root_location, *asked), others)
        # The pose satisfies IK and locks, even if it is slightly off the hinges that represent them.
        limits = read_limits(self._problem.rig, self._problem.bone_names)
        legal = legal_pose(current.skeleton, limits, current.rotations[None])[0]
        most = _THERE * current.skeleton.lengths.sum()
        return bool(misses.max(initial=0.0) <= most and angle_between(legal, current.rotations).max() <= _THERE)

    def stays(self, tree: Tree, wanted: _Pose, on_ik: Collection[str]) -> bool:
        """Whether a pose need not be written: the rig has it, or it was written last and its result is unchanged.

        tree: the current pose. wanted: (J, 4) local rotations and (3,) the root's head. on_ik: names of bones on IK.
        """
        bones = self._problem.written
        current = tree.rotations, tree.root_location
        length = max(float(tree.skeleton.lengths[0]), _SHORTEST)

        def alike(one: _Pose, other: _Pose, most: FloatArray) -> bool:
            turned = angle_between(one[0][bones], other[0][bones])
            return bool((turned <= most[bones]).all() and np.abs(one[1] - other[1]).max() <= most.min() * length)

        if alike(wanted, current, np.full(len(tree.skeleton), _SAME_TURN)):
            return True
        if self.wanted is None or self.written.changed():
            return False
        self.made = self.made or current
        most = np.array([SAME_TURN_ON_IK if name in on_ik else _SAME_TURN_MADE for name in tree.skeleton.names])
        return alike(wanted, self.wanted, most) and alike(current, self.made, most)

    def why_short(self) -> str:
        """The reasons why effectors miss their targets, as text; "" if all are met."""
        return "" if self._solver is None else self._problem.why_short(self._solver)


def _same(ones: Iterable[FloatArray | None], others: Iterable[FloatArray | None]) -> bool:
    pairs = zip(ones, others, strict=True)
    return all(
        new is old or (new is not None and old is not None and np.array_equal(new, old, equal_nan=True))
        for new, old in pairs
    )


def try_pose(
    graph: Depsgraph, scene: Scene, rig: Object, rigs: dict[int, dict[str, LiveSession]], update: Update
) -> str:
    """Pose a rig that has targets; returns the reason if that fails, else "".

    rigs: the sessions of each rig's trees, by the rig's session ID and the root's name. update: evaluates the scene
    without calling handlers.
    """
    try:
        if not (why_no_rig(rig) or why_no_solve(rig)):
            sessions = rigs.setdefault(rig.session_uid, {})
            check_followed(scene, rig)
            check_editable(rig)
            base = BasePose(scene, rig, update, next((each.base for each in sessions.values()), None))
            for each in find_problems(rig, limbs=base.held, trees=[*base.trees.values()]):
                problem = each.pins_first()
                _pose_tree(problem, base, current_targets(graph, scene, rig, problem), sessions, update)
    except FabrikError as error:
        return str(error)
    return ""


def _pose_tree(
    problem: RigProblem, base: BasePose, places: SampledTargets, sessions: dict[str, LiveSession], update: Update
) -> None:
    """Pose one tree, blended between its base pose and the solved pose by the rig's influence."""
    rig, tree, posed, root = problem.rig, problem.tree, problem.posed, problem.tree.skeleton.names[0]
    # On a control rig, the current pose may depend on that of the frame before, even of bones that are not solved.
    session, share = sessions.get(root), base.settings.influence
    current = tree
    if base.trees:
        current = freeze(next(each for each in posed.trees() if each.skeleton.names[0] == root), problem.held)
    start, head = base.start(problem, current, session)
    if session is None or session.names != tree.skeleton.names:
        session = sessions[root] = LiveSession(problem, (start, head))
    elif not session.fits(problem):
        session.begin(problem, (start, head))
    session.base = base
    stretches: dict[str, float] = {}
    if is_by_posture(problem, places):
        shown = None if share != 1.0 else current if problem.free_root else replace(current, root_location=head)
        solved, solved_head = session.pose(places, (start, head), problem.locks(start), base.frame, shown)
    else:
        solution = solve_tree(problem, places, start, head)
        solved, solved_head = solution.rotations, solution.root_location
        factors = stretch_factors(problem, solution)
        stretches = {name: 1.0 + share * (factor - 1.0) for name, factor in factors.items()}
    rotations = solved if share else start
    if share not in {0.0, 1.0}:
        rotations = slerp(start, solved, np.full(len(start), share))
        for name, limit in problem.limits.items():
            bone = tree.skeleton.index(name)
            # Bones that start inside their limits stay inside.
            if np.array_equal(legal_rotations(limit, start[bone][None])[0], start[bone]):
                rotations[bone] = legal_rotations(limit, rotations[bone][None])[0]
    location = head + share * (solved_head - head)
    factors = current_factors(rig, stretches)
    stretched = any(abs(factors[name] - factor) > _SAME_TURN for name, factor in stretches.items())
    if stretched or not session.stays(current, (rotations, location), posed.on_ik):
        write_stretches(rig, stretches)
        session.wanted, session.made = (rotations, location), None
        writer = posed.writer(update, tree.skeleton, problem.written, moves_root=problem.free_root, known=session.limbs)
        # Limbs that stay on IK continue from their current state.
        session.limbs = dict(writer.limbs)
        writer.write(rotations, location)
        names = {root, *problem.bone_names, *posed.sampled_bones}.intersection(rig.pose.bones.keys())
        session.written = HeldChannels(rig, names)
        rig.update_tag(refresh={"DATA"})
