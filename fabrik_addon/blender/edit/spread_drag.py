"""Drags a bone over time: the frames around the current one follow by fractions that a falloff defines.

A span has the frames that an edit changes, the bones that it holds, and the contacts of feet with the floor. While the
mouse moves, only the dragged frame and the viewport's frame are solved. On release, all frames with keys follow the
dragged frame smoothly, and are written.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object, PoseBone, Scene

from ...core import Effector, forward_kinematics
from ...core.arrays import BoolArray, FloatArray, IntArray, falloff
from ...core.drag import DragPose, DragSolver
from ...core.edit import EditSolver, KnownPose
from ...core.kernel.bounds import Floor
from ...core.model.effector import effector_offset
from ...core.model.skeleton import Skeleton
from ...core.rotations import matrix_from_quaternion, product, quaternion_from_rotation_vector
from ...human.naming_schemes import match
from ...markers.feet import FOOT_PARTS, Contact, find_contacts, foot_of, span_of_contact
from ..bake.bake import check_still
from ..capture.matching import scene_rate
from ..control.writer import RigMotion
from ..goals.body import floor_of
from ..goals.effectors import core_effector, move_pins_with, pins
from ..goals.problem import RigProblem, rig_problem, root_mode
from ..posing.drag import Drag, DragBase, DragSettings, DragSetup, StepResult, begin_drag, mirrored_turn
from ..rig.armature import BONE_HEAD, SHOWN, RigError, bone_offset, check_unscaled, length_text
from ..rig.keyframes import SAME_FRAME, check_action, check_not_shared
from ..rig.keying import is_auto_keying
from ..rig.pose_writer import OTHERWISE
from ..settings.control import solved_parents
from ..settings.rig import rig_settings
from .take import EditedTake, changed_channels, changes_of, copies_in_holds, is_animated, write_changes, write_layer

# Seconds to examine before and after a frame: enough for a foot's lowest position and a few steps.
_LOOK = 3.0


def contacts_on(scene: Scene, armature: Object, take: EditedTake, frames: FloatArray) -> list[Contact]:
    """The contacts of a human's feet with the floor on frames (F,), sorted by foot; empty if no bone is a foot."""
    if len(frames) < 2 or not any(role.part in FOOT_PARTS for role in match(take.skeleton.names).values()):
        return []
    motion = take.motion(frames)
    posed = np.array(armature.matrix_world) @ forward_kinematics(take.skeleton, motion.rotations, motion.roots)
    return find_contacts(take.skeleton, posed, frames, scene_rate(scene))


def contacts_near(scene: Scene, armature: Object, take: EditedTake, frame: float) -> list[Contact]:
    """The contacts of the feet within some seconds before and after a frame."""
    about = np.ceil(_LOOK * scene_rate(scene))
    keys = take.key_frames(take.skeleton.names)
    if not len(keys):
        return []
    frames = np.arange(max(frame - about, keys[0]), min(frame + about, keys[-1]) + 1.0)
    return contacts_on(scene, armature, take, frames)


_LEG = frozenset({"thigh", "shin", "foot", "toe"})
_ARM = frozenset({"shoulder", "upper_arm", "forearm", "hand", "palm", "finger"})
# The cap of the force that holds a chest, as a fraction of the dragged hand's force. The trunk still follows a hand
# beyond the arm's reach, but a walker's head stays within 1 cm if a hand is raised by 40 cm. With 0.35, a hand stops 8
# mm short of its target instead.
_CHEST: Final = 0.2
# The cap of the force that pulls a dragged point, as a fraction of that in a drag of one frame. With 1, knees of a walk
# jump if the hips are dragged out of reach. With a third of it, hips stop short of targets within reach.
_SOFT: Final = 0.1


def held_effectors(armature: Object, names: Sequence[str], dragged: set[str]) -> Iterator[Effector]:
    """The points that keep their paths: pins, holds and a human's feet, except those on the dragged bone or its leg.

    names: the solved bones.
    """
    roles = match(names)
    legs = {roles[bone].side for bone in dragged if bone in roles and roles[bone].part in _LEG}
    pinned = [pin for pin in pins(armature) if pin.bone not in dragged]
    for pin in pinned:
        offset = bone_offset(armature.pose.bones[pin.bone], pin.point, pin.offset)
        yield replace(core_effector(pin), offset=offset, priority=0)
    taken = {pin.bone for pin in pinned} | dragged
    for hold in rig_settings(armature).holds:
        bone: PoseBone | None = armature.pose.bones.get(hold.bone)
        if bone is not None and hold.bone not in taken and not (hold.bone in roles and roles[hold.bone].side in legs):
            taken.add(hold.bone)
            yield Effector(hold.bone, bone_offset(bone, hold.point), rotation_weight=float(hold.hold_rotation))
    for name, role in roles.items():
        if role.part == "foot" and role.side not in legs and name not in taken:
            yield Effector(name, BONE_HEAD, rotation_weight=1.0)


def chest_above(skeleton: Skeleton, dragged: Collection[str]) -> Iterator[Effector]:
    """The bone above which the neck begins, held softly while only bones of arms are dragged; none without a neck."""
    roles = match(skeleton.names)
    if all(bone in roles and roles[bone].part in _ARM for bone in dragged):
        necks = [skeleton.index(name) for name, role in roles.items() if role.part in {"neck", "head"}]
        if necks and (chest := int(skeleton.parents[min(necks)])) >= 0:
            yield Effector(skeleton.names[chest], weight=_CHEST, rotation_weight=1.0, priority=1)


def room_above(floor: Floor, skeleton: Skeleton, posed: FloatArray, bone: str) -> FloatArray:
    """(F,) distance from a bone or its lowest child down to the floor; infinite if the floor is ignored.

    posed: (F, J, 4, 4) in armature space. Bones that are already below the floor go no deeper.
    """
    own = skeleton.index(bone)
    near = {own, *np.flatnonzero(skeleton.parents == own).tolist()}
    points = [(skeleton.index(name), point) for name, point in floor.points if name in skeleton.names]
    places = [posed[:, body] @ (*point, 1.0) for body, point in points if body in near]
    if not places:
        return np.full(len(posed), np.inf)
    heights = np.array(places)[..., :3] @ np.array(floor.normal) - floor.height
    return np.asarray(np.maximum(heights.min(axis=0), 0.0))


# If a contact continues beyond the span, the foot returns to its old position over this fraction of the spread.
_GOES_BACK: Final = 0.25


@dataclass(frozen=True)
class Spread:
    """The extent of a change: the number of frames before and after the dragged one.

    frame: the dragged frame; None for the current one. to: "MARKERS" or "CONTACTS": the change ends at the next marker
    or contact on the timeline, if there is one; "LAYER": it is written to a separate layer.
    """

    frames: float
    frame: float | None = None
    to: Collection[str] = ()


@dataclass(frozen=True)
class Span:
    """F frames that are solved together.

    Attributes:
        take: the action. motion: its poses on the frames with keys, the current frame and the ends.
        problem: the bones that follow; the dragged points come first in its effectors.
        shares: (F,) the fraction of the change on each frame. now: the index of the dragged frame.
        ends: the first frame and the last, which do not change.
        left_alone: sentences about bones that do not follow.
    """

    take: EditedTake
    motion: RigMotion
    problem: RigProblem
    shares: FloatArray
    now: int
    ends: tuple[float, float]
    left_alone: tuple[str, ...] = ()

    def solver(self, rows: IntArray | slice) -> EditSolver:
        """A solver for the frames with indices `rows`, (R,) or a slice."""
        rotations, roots = self.motion.rotations[rows], self.motion.roots[rows]
        return EditSolver(self.problem.edit_model(), rotations, roots, self.shares[rows])

    @cached_property
    def posed(self) -> FloatArray:
        """(F, J, 4, 4) original poses of the frames, in armature space."""
        return forward_kinematics(self.skeleton, self.motion.rotations, self.motion.roots)

    @property
    def skeleton(self) -> Skeleton:
        """The bones of the edited tree."""
        return self.problem.tree.skeleton


def make_span(scene: Scene, setup: DragSetup, spread: Spread, frame: float) -> Span:
    """The span of a drag around a frame. A planted foot moves by the same distance on all frames of its contact.

    Raises RigError if no bone can follow.
    """
    armature, bone = setup.armature, next(iter(setup.dragged))
    take = EditedTake.of_bone(armature, bone)
    foot = foot_of(match(take.skeleton.names), bone)
    contacts = contacts_near(scene, armature, take, frame) if foot or "CONTACTS" in spread.to else []
    first, last = span_of_contact(contacts, foot, frame)
    times: list[float] = []
    if "MARKERS" in spread.to:
        times += [float(marker.frame) for marker in scene.timeline_markers]
    if "CONTACTS" in spread.to:
        times += [time for each in contacts for time in (each.first, each.last) if not first <= time <= last]
    before = max((time for time in times if time < frame), default=frame - spread.frames)
    after = min((time for time in times if time > frame), default=frame + spread.frames)
    room = 1.0 - _GOES_BACK
    whole = max(first, frame - room * (frame - before)), min(last, frame + room * (after - frame))
    span = span_over(setup, take, whole, (before, after), also=(frame,))
    if whole == (first, last):
        return span
    sentence = (
        f"Bone {setup.posed.shown(bone)!r} is in contact from frame {first:g} to {last:g}, longer than the edited "
        "range: it returns before the contact ends"
    )
    return replace(span, left_alone=(*span.left_alone, sentence))


def span_over(
    setup: DragSetup,
    take: EditedTake,
    whole: tuple[float, float],
    ends: tuple[float, float],
    also: tuple[float, ...],
    *,
    held: Sequence[Effector] = (),
) -> Span:
    """The span of a change. It includes the frames `also`, of which the first is the dragged frame.

    whole: the first and last frame of the change at full strength. ends: the frames at which it fades to nothing.
    held: the points of a new hold, instead of a dragged point; they have priority over other held points.

    Raises RigError if no bone can follow.
    """
    armature, tree = setup.armature, take.tree
    names = tree.skeleton.names
    found = [
        Effector(name, bone_offset(armature.pose.bones[name], setup.point), rotation_weight=1.0, priority=1)
        for name in setup.dragged
        if name in names and not held
    ]
    # The ends of limbs on IK stay in place without goals.
    posed = take.posed
    free = set(names) - posed.on_ik
    about = {*setup.dragged, *(each.bone for each in held)}
    others = [*held_effectors(armature, names, about), *(() if held else chest_above(tree.skeleton, about))]
    effectors = [*(held or found), *(effector for effector in others if effector.bone in free)]
    turning = _turning(setup, effectors, take)
    ends, within = _within_a_round(take, turning, whole, ends)
    # Solve the frames with keys between the ends, and the given frames.
    keys = take.key_frames(turning, within=ends)
    inside = keys[(keys > ends[0] + SAME_FRAME) & (keys < ends[1] - SAME_FRAME)]
    more = np.array([*also, *whole, *ends])
    apart = np.abs(inside[:, None] - more).min(axis=1) > SAME_FRAME
    motion = take.motion(np.unique([*inside[apart], *more]))
    check_still(armature, turning, motion.frames, take.place)
    root, free_root = names[0], False
    is_keyed = take.read.channel(take.place, "location") and posed.may_move_freely(root)
    if root in setup.tops and root not in setup.frozen and is_keyed:
        # Points that are held softly don't count as pins.
        pinned = sum(each.priority == 0 or each.bone in setup.dragged for each in effectors) > len(setup.dragged)
        top = root if root in setup.dragged else next(iter(setup.dragged))
        free_root = root_mode(armature, pinned=pinned, dragged=top, top=root, setting=setup.settings.root) != "FIXED"
    bones = [tree.skeleton.index(name) for name in turning]
    problem = rig_problem(posed, tree, effectors, bones, free_root=free_root, poses=motion.rotations)
    first, last = whole
    shares = falloff(motion.frames, first, last, first - ends[0], ends[1] - last)
    return Span(take, motion, problem, shares, int(np.argmin(np.abs(motion.frames - also[0]))), ends, within)


def _within_a_round(
    take: EditedTake, turning: list[str], whole: tuple[float, float], ends: tuple[float, float]
) -> tuple[tuple[float, float], tuple[str, ...]]:
    """The ends of a span, shortened to one cycle if the motion is cyclic, and a sentence if the span was shortened.

    Raises RigError if the frames with the full change are longer than one cycle.
    """
    (first, last), (before, after) = whole, ends
    length = take.round_length(turning)
    if after - before <= length:
        return ends, ()
    if last - first >= length:
        raise RigError(f"Frames {first:g} to {last:g} are more than one cycle of {length:g} frames: choose fewer")
    share = (length - (last - first)) / (after - before - (last - first))
    sentence = f"The motion repeats every {length:g} frames: the change fades out within one cycle"
    return (first - share * (first - before), last + share * (after - last)), (sentence,)


def _turning(setup: DragSetup, effectors: list[Effector], take: EditedTake) -> list[str]:
    """The bones that may rotate. Raises RigError if there are none, or if something else moves bones of the chain."""
    skeleton = take.skeleton
    bones = {bone for each in effectors for bone in skeleton.path(skeleton.index(each.bone))}
    names = [skeleton.names[bone] for bone in sorted(bones)]
    if (owned := next((name for name in names if name in setup.owned), None)) is not None:
        raise RigError(f"Bone {owned!r} can't be edited over time: {setup.owned[owned]}; {OTHERWISE}")
    check_unscaled(setup.armature, names)
    tops = {skeleton.index(top) for top in setup.tops if top in skeleton.names}
    below = [name for name in names if tops & set(skeleton.path(skeleton.index(name)))]
    posed, open_ = take.posed, []
    for name in below:
        # Bones whose locks restrict them more than their limit don't rotate.
        here = take.tree.rotations[skeleton.index(name)]
        if name not in setup.frozen and (posed.hinge(name) is not None or posed.lock(name, here) is None):
            open_.append(name)
    dragged = next(iter(setup.dragged))
    # A hold has no point on the other side.
    for name in [name for name in setup.dragged if any(each.bone == name for each in effectors)]:
        check_on_ik(take, name)
    turning = [name for name in open_ if name in take.keyed]
    if not turning:
        raise RigError(f"No bone that follows {posed.shown(dragged)!r} has keys: bake or key some motion first")
    return turning


def check_on_ik(take: EditedTake, bone: str) -> None:
    """Raise RigError if a bone, or one above it, is on IK, but would be switched to FK, or has no keys on IK."""
    posed, parents = take.posed, solved_parents(take.posed.rig)
    above = [bone]
    while above[-1]:
        above.append(parents[above[-1]])
    on_ik = next((name for name in above if name in posed.on_ik), "")
    if on_ik and posed.leaves_ik(on_ik):
        raise RigError(
            f"Bone {posed.shown(on_ik)!r} is on IK here, but would be posed on FK: switch its limb to FK and key it, "
            "or set Limbs on IK to Automatic"
        )
    if on_ik and on_ik not in take.keyed:
        raise RigError(f"{posed.shown(on_ik)!r} has no keys to edit: bake or key some motion first")


# Frames on each side over which a drag fades out if no spread is set.
_FADES: Final = 10
AnyDrag: TypeAlias = "Drag | SpreadDrag"


class SpreadDrag(DragBase):
    """A drag that spreads over frames; `begin_spread` creates it. Limbs stay on IK or FK."""

    def __init__(self, context: Context, setup: DragSetup, spread: Spread) -> None:
        scene, here, self._layer = context.scene, context.scene.frame_current_final, "LAYER" in spread.to
        super().__init__(scene, setup)
        self._span = span = make_span(scene, setup, spread, here if spread.frame is None else spread.frame)
        # If a point of a trail is dragged, the dragged frame is not the frame in the viewport.
        now, shown = span.now, np.flatnonzero(np.abs(span.motion.frames - here) < SAME_FRAME)
        self._rows = np.unique([now, *shown])
        self._row = int(np.searchsorted(self._rows, now))
        self._shown = np.searchsorted(self._rows, shown).tolist()
        self._own = span.solver(self._rows)
        self._solvers = {turning: self._drag_solvers(setup, turning=turning) for turning in (False, True)}
        self._last: list[DragPose] = []
        problem, skeleton = span.problem, span.skeleton
        self._writer = setup.posed.writer(
            context.view_layer.update, skeleton, problem.bones, moves_root=problem.free_root
        )
        self._is_dragged: BoolArray = np.array([each.bone in setup.dragged for each in problem.effectors])
        self._is_held: BoolArray = np.array([each.priority == 0 for each in problem.effectors])
        self._floor = floor = floor_of(setup.armature)
        dragged = [bone for bone in setup.dragged if bone in skeleton.names]
        self._rooms = {bone: room_above(floor, skeleton, span.posed, bone) for bone in dragged} if floor else {}
        # (F, 3) positions of the first dragged point in the original poses, in world space.
        effector = problem.effectors[0]
        posed = span.posed[:, skeleton.index(effector.bone)] @ np.append(effector_offset(skeleton, effector), 1.0)
        self._own_path = posed[:, :3] @ self._world[:3, :3].T + self._world[:3, 3]
        self.left_alone += span.left_alone
        self.start = self._own_path[now]
        self._asked: tuple[npt.ArrayLike, npt.ArrayLike | None] = self.start, None
        self.axes = self._rotation_to_world @ matrix_from_quaternion(self._own.own_rotations[self._row, 0])

    def _drag_solvers(self, setup: DragSetup, *, turning: bool) -> list[DragSolver]:
        """A solver for each posed frame, in the frame's original pose.

        turning: whether the dragged bones get a target rotation.
        """
        motion, problem, root = self._span.motion, self._span.problem, self._span.skeleton.names[0]
        effectors = []
        for each in problem.effectors:
            kept, share = each.rotation_weight, _SOFT if each.priority else 1.0
            if each.bone in setup.dragged:
                stays = each.bone == root and not problem.free_root
                kept = setup.rotation_weight(each.bone, turning=turning, stays=stays)
            effectors.append(replace(each, weight=share * each.weight, rotation_weight=kept))
        found = []
        for row in self._rows:
            solver = replace(problem, effectors=tuple(effectors)).drag_solver()
            solver.prefer(motion.rotations[row], motion.roots[row])
            solver.begin(*solver.preferred)
            found.append(solver)
        return found

    def keep_orientation(self, _context: Context, *, keep: bool) -> None:
        """Set whether dragged feet and heads keep their orientation from now on."""
        setup = self._setup
        setup.settings = replace(setup.settings, keep_orientation=keep)
        self._solvers[False] = self._drag_solvers(setup, turning=False)

    def step(
        self, location: npt.ArrayLike, turn: npt.ArrayLike | None = None, _depth: npt.ArrayLike | None = None
    ) -> StepResult:
        """Pose the rig on the current frame so that the dragged point is at a location (3,), in world space.

        turn: (3,) rotation vector of its bone in radians, in world space; None: the settings determine whether the bone
        keeps its orientation. `_depth` is ignored: the point always follows the location.
        """
        self._asked = location, turn
        self._posed(settled=False)
        for row in self._shown:
            self._writer.write(self._last[row].rotations, self._last[row].root_location)
        return self.result

    def _posed(self, *, settled: bool) -> list[DragSolver]:
        """Pose the dragged frame and the viewport's frame for the last location of the mouse; returns their solvers."""
        solvers = self._solvers[self._asked[1] is not None]
        for solver, last in zip(solvers, self._last, strict=False):
            solver.continue_from(last.rotations, last.root_location)
        goals = zip(solvers, *self._goals(self._own, self._rows), strict=True)
        self._last = [
            solver.solve(points, rotations, eased=not settled, settled=settled) for solver, points, rotations in goals
        ]
        found, why = self._last[self._row], self._span.problem.why_short(solvers[self._row])
        error, held = (self._scale * found.errors[own].max(initial=0.0) for own in (self._is_dragged, self._is_held))
        self.result = StepResult(error, held, any(each.is_held_back for each in self._last), why=why)
        return solvers

    def paths_before_and_after(self) -> tuple[FloatArray, FloatArray]:
        """The original and the new path of the dragged point on the span's frames, (F, 3) each, in world space."""
        shift = np.asarray(self._asked[0], dtype=np.float64) - self.start
        return self._own_path, self._own_path + self._span.shares[:, None] * shift

    def finish(self, context: Context) -> int:
        """Solve all frames, and write the changes to the keys; returns the number of changed bones."""
        if not self._last:
            return 0
        solvers = self._posed(settled=True)
        span, last = self._span, self._last[self._row]
        solver, ease = span.solver(slice(None)), 0.5 * (span.ends[1] - span.ends[0])
        known = KnownPose(span.now, last.rotations, last.root_location)
        targets, rotations = self._goals(solver, slice(None))
        # Bones whose orientation is not kept on the dragged frame rotate freely on the others too.
        kept = np.array([each.rotation_weight > 0.0 for each in solvers[self._row].effectors])
        rotations[:, ~kept] = np.nan
        found = solver.over_time(targets, rotations, span.motion.frames, ease, known)
        slips = self._scale * np.nan_to_num(found.errors).max(axis=0) * self._is_held
        if slips.max() > SHOWN:
            bone = span.problem.posed.shown(span.problem.effectors[int(np.argmax(slips))].bone)
            self.left_alone.append(f"Bone {bone!r} is held, but is up to {length_text(slips.max())} off its path")
        armature = self._armature
        changed, unkeyed = changed_channels(context, armature, span.motion, found.rotations, found.roots)
        self.left_alone += [f"Control {name!r} has no keys and was not changed: key it first" for name in unkeyed]
        if self._layer or span.take.is_layered:
            write_layer(armature, span.motion.frames, changed)
        else:
            changes = changes_of(span.take, span.motion.frames, changed)
            write_changes(changes, (span.motion.frames[span.now],), span.ends, copies_in_holds(armature))
        keyed = {each.bone.name for each in changed}
        # Keyed bones get their animated pose, and their other channels the values before the drag.
        self._keeper.restore()
        self._keeper.restore(keyed)
        context.view_layer.update()
        move_pins_with(armature, self._dragged)
        return len(keyed)

    def _goals(self, solver: EditSolver, rows: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """(F, E, 3) target positions and (F, E, 4) target rotations on some of the span's frames, in armature space."""
        location, turn = self._asked
        shares = self._span.shares[rows]
        shift, armature_turn = self._armature_shift(location), self._armature_turn(turn)
        targets, rotations = solver.own_points.copy(), solver.own_rotations.copy()
        for index, effector in enumerate(self._span.problem.effectors):
            if effector.bone not in self._dragged:
                continue
            factors = self._dragged[effector.bone]
            shifts = shares[:, None] * (factors * shift)
            if self._floor is not None:
                # Move down by at most the distance to the floor.
                normal, room = np.array(self._floor.normal), self._rooms[effector.bone][rows]
                shifts = shifts + np.maximum(-shifts @ normal - room, 0.0)[:, None] * normal
            targets[:, index] += shifts
            vectors = shares[:, None] * mirrored_turn(armature_turn, factors)
            rotations[:, index] = product(quaternion_from_rotation_vector(vectors), rotations[:, index])
        return targets, rotations


def begin_spread(
    context: Context,
    armature: Object,
    bone: str,
    spread: Spread,
    *,
    point: str = "TAIL",
    settings: DragSettings | None = None,
) -> SpreadDrag:
    """Start dragging a bone's "TAIL" or "HEAD" over time; nothing moves yet. Uses X-mirror, like `begin_drag`.

    Raises FabrikError, with the scene unchanged, if the bone can't be dragged.
    """
    if rig_settings(armature).live:
        raise RigError(f"{armature.name!r} is posed by Live: turn Live off to edit its motion")
    check_action(armature, new=False)
    if "LAYER" not in spread.to:
        check_not_shared(armature)
    context.view_layer.update()
    return SpreadDrag(context, DragSetup(armature, bone, point, settings or DragSettings(), over_time=True), spread)


def begin_any_drag(
    context: Context, armature: Object, bone: str, point: str, settings: DragSettings, spread: Spread
) -> AnyDrag:
    """Start dragging a bone by its "TAIL" or "HEAD"; nothing moves yet.

    If there are no keys, or they can't be changed, only the current frame is dragged. `left_alone` reports this.
    Raises FabrikError, with the scene unchanged, if the bone can't be dragged at all, or not on that frame.
    """
    trouble = "" if is_auto_keying(context) else "Auto Keying is off, so keys can't be changed: enable it"
    if not is_animated(armature):
        trouble = f"{armature.name!r} has no keys to edit: bake or key some motion first"
    if spread.frame is not None and trouble:
        raise RigError(f"Frame {spread.frame:g} can't be edited: {trouble}")
    if spread.frame is not None and not spread.frames:
        spread = replace(spread, frames=_FADES)
    if spread.frames and not trouble:
        return begin_spread(context, armature, bone, spread, point=point, settings=settings)
    drag = begin_drag(context, armature, bone, point=point, settings=settings)
    if spread.frames:
        drag.left_alone.append(f"Only this frame was changed. {trouble}")
    return drag
