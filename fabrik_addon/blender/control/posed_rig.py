"""One interface for posing plain rigs, by their bones' channels, and control rigs, by their controls.

`posed_rig` chooses the class for a rig, so that code that reads and writes poses works with both.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from bpy.types import Context, Object, PoseBone

from ...core import Hinge, Solution, forward_kinematics
from ...core.arrays import FloatArray, IntArray, times
from ...core.channels import from_channels
from ...core.model.skeleton import Skeleton
from ...core.rotations import (
    IDENTITY,
    angle_between,
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    rotation_between,
)
from ..rig import armature as plain
from ..rig import pose_writer
from ..rig.armature import local_rotation, property_name
from ..rig.keyframes import ROTATION_CHANNELS
from ..settings.control import FabrikCarrier, FabrikControlRig, control_rig, solved_parents
from . import writer as writing
from .switches import keyed_switches, with_linked_values

# A control's axis equals its bone's if the cosine between them is at least this.
_ALONG: Final = 0.9994
# Radians. A control and its bone share one limit if their axes differ by at most this.
_OTHER_AXES: Final = 1e-3
# Radians. Smaller rotations of a control without keys are ignored.
_UNKEYED: Final = 1e-4
# Radians. A control that rotates by less is not changed by a bake.
_STILL: Final = 1e-5
# The number of joints of a limb, from its root to the bone that IK holds.
_BENT_BY_IK: Final = 2
# The number of frames on which the result of a bake is checked.
_LOOKED_AT: Final = 9

_Pair: TypeAlias = tuple[str, str]
Changed: TypeAlias = dict[_Pair, tuple[float, ...]]
# (F, J, 4) local rotations and (F, 3) root heads.
_Poses: TypeAlias = tuple[FloatArray, FloatArray]
_Writer: TypeAlias = pose_writer.PoseWriter | writing.ControlWriter
_Limbs: TypeAlias = Mapping[str, writing.LimbOnIk]
_NO_LIMBS: Final[_Limbs] = MappingProxyType({})


class PlainRig:
    """A rig whose bones are posed by their own channels.

    Attributes:
        rig: the armature object.
        by_channels: whether the bones' channels, and therefore their curves, determine the pose. Otherwise Blender must
            evaluate each frame.
    """

    by_channels: ClassVar[bool] = True

    def __init__(self, rig: Object) -> None:
        self.rig = rig

    def trees(self, *, at_rest: bool = False) -> list[plain.Tree]:
        """The solved bones and their current pose, like `rig.armature.read_trees`; for a control rig, the body.

        The body's pose is that of the last evaluation. Raises RigError like `read_trees`.
        """
        return plain.read_trees(self.rig, at_rest=at_rest)

    def pose(self) -> plain.Channels:
        """The current pose as channels; for a control rig, the channels that body bones would have without controls."""
        return plain.read_channels(self.rig)

    def local(self, bones: Iterable[str]) -> dict[str, FloatArray]:
        """The current local rotations (4,), w x y z, of bones."""
        found = self.pose()
        posed = dict(zip(found.names, found.rotations, strict=True))
        return {name: posed[name] if name in posed else local_rotation(self.rig.pose.bones[name]) for name in bones}

    def current_matrices(self, tree: plain.Tree) -> FloatArray:
        """(J, 4, 4) current matrices of a tree's bones in armature space, without scale."""
        return plain.bone_matrices(self.rig, tree.skeleton.names)

    @property
    def owned(self) -> dict[str, str]:
        """The bones that constraints move, each with the reason.

        Excludes the bones of a control rig's body, which have controls.
        """
        return pose_writer.constrained_bones(self.rig)

    @property
    def frozen(self) -> dict[str, str]:
        """The bones that are not solved but follow rigidly, each with the reason."""
        return pose_writer.unkeyable_bones(self.rig)

    @property
    def on_ik(self) -> set[str]:
        """The bones that are currently on IK, so that no control rotates them directly."""
        return set()

    def leaves_ik(self, bone: str) -> bool:
        """Whether a bone's limb is on IK now, but is switched to FK if the bone is posed."""
        return False

    def resting_limbs(self, dragged: Collection[str]) -> set[str]:
        """The bones of limbs with IK or FK on which no bone is dragged. The rig poses them, except above pins."""
        return set()

    def lock(self, bone: str, rotation: FloatArray) -> pose_writer.WithLocks | None:
        """The locks on a bone's rotation, its own or its control's, relative to `rotation` (4,); None without locks."""
        return pose_writer.with_locks(self.rig.pose.bones[bone], rotation)

    def locks(
        self, skeleton: Skeleton, bones: Iterable[int], rotations: FloatArray
    ) -> dict[int, pose_writer.WithLocks]:
        """The locks on bones' rotations, by index in the skeleton, relative to rotations (J, 4)."""
        locked = self._with_locks()
        names = {bone: skeleton.names[bone] for bone in bones if skeleton.names[bone] in locked}
        locks = {bone: self.lock(name, rotations[bone]) for bone, name in names.items()}
        return {bone: lock for bone, lock in locks.items() if lock is not None}

    def _with_locks(self) -> set[str]:
        return pose_writer.bones_with_locks(self.rig)

    def hinge(self, bone: str, *, baked: bool = False) -> Hinge | None:
        """The hinge to which locks, or a limb's IK, restrict a joint, such as an elbow or knee.

        baked: for a bake, in which other limbs stay on IK.
        """
        return pose_writer.hinge_of_locks(self.rig.pose.bones[bone])

    def keeps_rotation(self, bone: str) -> bool:
        """Whether locks of an IK control keep a bone from rotating in space."""
        return False

    def limited(self, bone: str) -> PoseBone | None:
        """The bone that stores a limit for posing by hand: itself, or its control if both have the same axes."""
        return self.rig.pose.bones[bone]

    def may_move(self, root: str) -> bool:
        """Whether the root of a tree may be moved along at least one axis."""
        place: PoseBone | None = self.rig.pose.bones.get(self.place(root))
        return place is not None and not all(place.lock_location)

    def may_move_freely(self, top: str) -> bool:
        """Whether the uppermost bone that follows is a root that may be moved along all axes."""
        place: PoseBone | None = self.rig.pose.bones.get(self.place(top))
        is_root = not solved_parents(self.rig).get(top, top)
        return is_root and place is not None and not any(place.lock_location)

    def writer(
        self,
        update: writing.Update,
        skeleton: Skeleton,
        bones: Sequence[int],
        *,
        moves_root: bool,
        known: _Limbs = _NO_LIMBS,
    ) -> _Writer:
        """A writer for many poses of a tree; each result depends only on the pose and the rig's state at the start.

        update: evaluates the rig. bones: the posed bones, as indices in the skeleton. known: limbs that were placed on
        IK before.
        """
        return pose_writer.PoseWriter(self.rig, skeleton, bones, moves_root=moves_root)

    def write(
        self,
        context: Context,
        skeleton: Skeleton,
        rotations: npt.ArrayLike,
        root_location: FloatArray | None = None,
        bones: Sequence[int] | None = None,
    ) -> list[str]:
        """Pose bones once, each in its own rotation mode; returns warnings about bones that their controls can't pose.

        Args:
            context: used to evaluate the rig.
            skeleton: names the bones, in the order of `rotations`.
            rotations: (J, 4) local rotations, w x y z. Angles continue from the channels' current values.
            root_location: (3,) the root's head in armature space; None leaves it unchanged.
            bones: indices in the skeleton of the bones to rotate; None for all.

        Raises:
            RigError: for a linked armature, or a bone that does not exist.
        """
        plain.check_editable(self.rig)
        plain.check_bones(self.rig, *skeleton.names)
        posed = range(len(skeleton)) if bones is None else bones
        writer = self.writer(context.view_layer.update, skeleton, posed, moves_root=root_location is not None)
        writer.write(np.asarray(rotations, dtype=np.float64), root_location)
        self.rig.update_tag(refresh={"DATA"})
        return writer.settle()

    def turn(self, context: Context, rotations: Mapping[str, FloatArray]) -> tuple[list[str], Changed]:
        """Set local rotations (4,) of bones, by name; returns warnings like `write`, and the former channel values."""
        left, changed = list[str](), Changed()
        for tree in self.trees():
            names = tree.skeleton.names
            rows = [row for row, name in enumerate(names) if name in rotations]
            if rows:
                wanted = tree.rotations.copy()
                wanted[rows] = [rotations[names[row]] for row in rows]
                writer = self.writer(context.view_layer.update, tree.skeleton, rows, moves_root=False)
                writer.write(wanted, tree.root_location)
                left += writer.settle()
                changed |= writer.held.changed()
        return left, changed

    def channels(
        self, context: Context, skeleton: Skeleton, poses: _Poses, bones: Sequence[str], *, moves_root: bool
    ) -> Generator[float, None, writing.TakeChannels]:
        """The channels to key for poses over F frames; a generator that places limbs on IK in small steps."""
        yield from ()
        rotations, heads = poses
        root = self.rig.pose.bones[skeleton.names[0]]
        locations = {root.name: plain.root_location_channel(root, heads)} if moves_root else {}
        turned = {bone: rotations[:, skeleton.index(bone)] for bone in bones}
        return writing.TakeChannels(turned, {bone: bone for bone in bones}, locations, {})

    def written(self, skeleton: Skeleton, bones: Collection[str], *, moves_root: bool) -> set[str]:
        """The data paths that may get keys from `channels`."""
        return self._paths(bones, skeleton.names[:1] if moves_root else ())

    def _paths(self, turned: Iterable[str], moved: Iterable[str]) -> set[str]:
        channels = [(name, channel) for name in turned for channel in ROTATION_CHANNELS]
        channels += [(name, "location") for name in moved]
        bones = self.rig.pose.bones
        return {bones[name].path_from_id(channel) for name, channel in channels if name in bones}

    def off(self, context: Context, solution: Solution, frames: IntArray) -> list[str]:
        """Check on some of the frames (F,) that bones match the solution; returns a warning for each that doesn't.

        Changes the scene's current frame.
        """
        return []

    def place(self, root: str) -> str:
        """The bone whose location moves the root of a tree; "" for none."""
        return root

    def holders(self, bone: str) -> list[str]:
        """The bones whose channels pose a bone: itself, its control, or the controls of its limb on IK."""
        return [bone]

    def shown(self, bone: str) -> str:
        """The name that users see for a bone: its own, or that of its control."""
        return bone

    @property
    def sampled_bones(self) -> set[str]:
        """The bones whose matrices on each frame are needed by `channels_for_edit`."""
        return set()

    def channels_for_edit(
        self, context: Context, old: writing.RigMotion, new: _Poses
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray], tuple[str, ...]]:
        """The channels for new poses that replace the old ones of a rig over F frames.

        Returns (F, 4) rotations and (F, 3) locations by bone or control with keys, and the controls that would rotate
        but have no keys.
        """
        root = self.rig.pose.bones[old.skeleton.names[0]]
        shift = plain.root_location_channel(root, new[1]) - plain.root_location_channel(root, old.roots)
        turned = {name: new[0][:, old.skeleton.index(name)] for name in old.own}
        return turned, {name: before + shift for name, before in old.locations.items()}, ()

    def keyed(self, bones: Sequence[str], roots: Sequence[str]) -> Iterator[_Pair]:
        """The (bone, property) pairs to key for a pose of some bones and of moved roots."""
        turned, moved = self._holders(bones, roots)
        there = [self.rig.pose.bones[name] for name in turned if name in self.rig.pose.bones]
        yield from ((bone.name, property_name(bone.rotation_mode)) for bone in there)
        yield from ((name, "location") for name in moved if name in self.rig.pose.bones)

    def _holders(self, bones: Sequence[str], roots: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """The bones whose rotation, and those whose location, store a pose."""
        return bones, roots

    def switches(self, posed: Collection[str]) -> list[str]:
        """The paths of the switches to key with a pose of some bones: those of the limbs that contain these bones."""
        return []


class ControlRig(PlainRig):
    """A control rig, whose body is posed by its controls."""

    by_channels = False

    def __init__(self, rig: Object, setup: FabrikControlRig) -> None:
        super().__init__(rig)
        self._setup = setup

    def trees(self, *, at_rest: bool = False) -> list[plain.Tree]:
        rig = self.rig
        plain.check_rig(rig)
        self._check_names()
        if not at_rest:
            plain.check_near(rig)
        members: dict[str, list[FabrikCarrier]] = {}
        for row in self._setup.carriers:
            members[row.name] = members.get(row.parent, [])
            members[row.name].append(row)
        on_ik = self.on_ik
        return [
            _tree(rig, rows, on_ik, at_rest=at_rest) for rows in {id(rows): rows for rows in members.values()}.values()
        ]

    def _check_names(self) -> None:
        """Raise RigError if a bone or a switch that was found at setup no longer exists."""
        rig, setup = self.rig, self._setup
        gone = [row.name for row in setup.carriers if row.name not in rig.pose.bones]
        paths = [*(row.path for row in setup.switches), *(row.name for row in setup.along)]
        gone += [path for path in paths if not pose_writer.has_property(rig, path)]
        if gone:
            raise plain.RigError(
                f"{rig.name!r} no longer has {gone[0]!r} (was a bone renamed?): press Set Up Control Rig again"
            )

    def pose(self) -> plain.Channels:
        trees, bones = self.trees(), self.rig.pose.bones
        names = [name for tree in trees for name in tree.skeleton.names]
        locations = np.zeros((len(names), 3))
        for tree in trees:
            root = tree.skeleton.names[0]
            locations[names.index(root)] = plain.root_location_channel(bones[root], tree.root_location)
        return plain.Channels(names, np.concatenate([tree.rotations for tree in trees]), locations)

    def current_matrices(self, tree: plain.Tree) -> FloatArray:
        """As in `PlainRig`, but from the tree's pose, because limbs on IK may be stretched."""
        return forward_kinematics(tree.skeleton, tree.rotations, tree.root_location)

    @property
    def owned(self) -> dict[str, str]:
        return {}

    @property
    def frozen(self) -> dict[str, str]:
        bones = self.rig.pose.bones
        return {row.name: "no control moves it" for row in self._setup.carriers if row.control not in bones}

    @property
    def on_ik(self) -> set[str]:
        off = {row.name for row in self._setup.switches if pose_writer.read_switch(self.rig, row.path) != row.fk}
        return {row.name for row in self._setup.carriers if row.switch in off}

    def resting_limbs(self, dragged: Collection[str]) -> set[str]:
        rows = self._setup.carriers
        posed = {rows[bone].switch for bone in dragged}
        return {row.name for row in rows if row.switch and row.switch not in posed}

    def lock(self, bone: str, rotation: FloatArray) -> pose_writer.WithLocks | None:
        """As in `PlainRig`, with the locks of the controls that rotate the bone relative to its parent.

        The parent's control rotates in the opposite direction if it follows the bone's, as in the lower spine of
        Rigify. Ignores controls of limbs that stay on IK.
        """
        setup, row, locks = self._setup, self._setup.carriers[bone], list[pose_writer.WithLocks]()
        above = setup.carriers[row.parent] if row.parent else None
        over = {above.control, *(() if above.parent else (setup.place,))} if above else {""}
        for each, leaders in ((row, over), *(((above, {row.control}),) if above else ())):
            control: PoseBone | None = self.rig.pose.bones.get(each.control)
            own = setup.controls.get(each.control)
            if control and own and own.turns_with in leaders and not own.shares_turn and not self._stays_on_ik(each):
                found = _lock_of(control, self._axes(bone, each.control), each is above, rotation)
                locks += [] if found is None else [found]
        return (lambda turned: reduce(lambda so_far, lock: lock(so_far), locks, turned)) if locks else None

    def _with_locks(self) -> set[str]:
        rows, locked = self._setup.carriers, pose_writer.bones_with_locks(self.rig)
        return {row.name for row in rows if locked & {row.control, row.parent and rows[row.parent].control}}

    def keeps_rotation(self, bone: str) -> bool:
        row = self._setup.carriers[bone]
        control: PoseBone | None = self.rig.pose.bones.get(row.goes_by)
        return control is not None and any(control.lock_rotation) and self._stays_on_ik(row)

    def hinge(self, bone: str, *, baked: bool = False) -> Hinge | None:
        """As in `PlainRig`, from the control's locks, or from the limb's IK if it bends the joint about one axis."""
        row, found = self._setup.carriers.get(bone), self._control_of(bone)
        stays = row is not None and self._stays_on_ik(row, baked=baked)
        # A limb that stays on IK ignores the locks of its FK controls.
        hinge = None if found is None or stays else pose_writer.hinge_of_locks(found[0])
        if found is not None and hinge is not None:
            axis = np.abs(matrix_from_quaternion(found[1])[:, "XYZ".index(hinge.axis)])
            along: Any = "XYZ"[int(np.argmax(axis))]
            if axis.max() > _ALONG:
                return Hinge(along, hinge.low, hinge.high)
        if row is None or not row.hinge or not stays:
            return None
        own: Any = row.hinge
        return Hinge(own, row.hinge_low, row.hinge_high)

    def _stays_on_ik(self, row: FabrikCarrier, *, baked: bool = False) -> bool:
        return bool(row.switch and writing.kept_on_ik(self.rig, self._setup, (row.switch,), baked=baked))

    def _control_of(self, bone: str) -> tuple[PoseBone, FloatArray] | None:
        """The control that rotates relative to its parent like a body bone, and (4,) its axes in the bone's frame.

        None if it does not exist, or if bone and control follow different bones, so that their channels don't match.
        """
        rig, setup = self.rig, self._setup
        row = setup.carriers.get(bone)
        control: PoseBone | None = None if row is None else rig.pose.bones.get(row.control)
        if row is None or control is None or row.found == "SWINGS":
            return None
        stored = setup.controls.get(row.control)
        above = setup.carriers[row.parent].control if row.parent else ""
        if stored is None or stored.turns_with != above or stored.shares_turn:
            return None
        return control, self._axes(bone, row.control)

    def _axes(self, bone: str, control: str) -> FloatArray:
        """(4,) the axes of a control at rest, in the frame of a bone at rest."""
        one, other = plain.rest_matrices(self.rig, (bone, control))[:, :3, :3]
        return quaternion_from_matrix(one.T @ other)

    def limited(self, bone: str) -> PoseBone | None:
        found = self._control_of(bone)
        return None if found is None or angle_between(found[1], IDENTITY) > _OTHER_AXES else found[0]

    def writer(
        self,
        update: writing.Update,
        skeleton: Skeleton,
        bones: Sequence[int],
        *,
        moves_root: bool,
        known: _Limbs = _NO_LIMBS,
    ) -> _Writer:
        top = skeleton.names[0]
        # Controls of bones above a part may turn with those of the part, as in the lower spine of Rigify.
        others = self.trees() if self._setup.carriers[top].parent else []
        whole = next((tree for tree in others if top in tree.skeleton.names), None)
        return writing.ControlWriter(update, self.rig, self._setup, skeleton, bones, within=whole, known=known)

    def channels(
        self, context: Context, skeleton: Skeleton, poses: _Poses, bones: Sequence[str], *, moves_root: bool
    ) -> Generator[float, None, writing.TakeChannels]:
        """The channels of controls to key for poses over F frames; limbs switch to FK, except those that stay on IK.

        The steps place the IK controls. Those of limbs on FK are placed too, so that the limbs can be switched to IK. A
        limb that misses its pose on any frame is on FK on all frames. Controls without a solved bone are included if
        the body's pose needs them. The rig keeps the pose of the last frame.
        """
        rig, setup, (rotations, heads) = self.rig, self._setup, poses
        writer = writing.ControlWriter(context.view_layer.update, rig, setup, skeleton, baked=True)
        model = writer.ready_model()
        wanted = forward_kinematics(skeleton, rotations, heads)
        turns, location = model.pose(wanted)
        moved = {}
        for index, name in enumerate(model.controls):
            turned = turns[:, index]
            if angle_between(turned, local_rotation(rig.pose.bones[name])).max() > _STILL:
                moved[name] = turned
        writer.switch((*writer.limbs, *writer.matching), to_ik=True)
        placed, left = yield from self._placed_over(context, writer, (wanted, turns, location))
        writer.switch(writer.matching, to_ik=False)
        idle = {row.control for row in setup.carriers if row.switch in writer.limbs}
        moved = {name: turned for name, turned in moved.items() if name not in idle}
        locations = {} if location is None else {model.place: location}
        for name, channels in placed.items():
            locations[name], moved[name] = np.split(channels, [3], axis=1)
        bodies = {row.control: row.name for row in setup.carriers}
        bodies |= {name: setup.controls[name].stands_for for name in placed}
        values = writer.on_fk | {limb: setup.switches[limb].ik for limb in writer.limbs}
        return writing.TakeChannels(
            moved, bodies, locations, keyed_switches(setup, with_linked_values(setup, values)), tuple(left)
        )

    def _placed_over(
        self, context: Context, writer: writing.ControlWriter, poses: tuple[FloatArray, FloatArray, FloatArray | None]
    ) -> Generator[float, None, tuple[dict[str, FloatArray], list[str]]]:
        """The (F, 7) locations and rotations of IK controls, by name, and warnings about limbs that left IK.

        All frames follow from the pose in which the limb is bent most. Limbs that miss their pose on some of the
        checked frames, and limbs that stay on IK, are also placed frame by frame. poses: the matrices (F, J, 4, 4) of
        the tree's bones, and the channels of the controls for them.
        """
        rig, update, (wanted, turns, location) = self.rig, context.view_layer.update, poses
        limbs, left, count = writer.limbs | writer.matching, list[str](), len(wanted)
        bones = {path: writer.bones_of(limb, wanted) for path, limb in limbs.items()}

        def pose(row: int, paths: Collection[str]) -> tuple[list[writing.LimbOnIk], list[FloatArray]]:
            """Write the channels on a frame, without limbs that are not placed yet; the limbs and their matrices."""
            writer.pose_body(wanted[row], turns[row], None if location is None else location[row])
            names = [name for path in paths for name in limbs[path].controls if name in placed]
            for group in pose_writer.channel_groups(rig, names):
                group.write(rig, np.array([placed[names[each]][row, 3:] for each in group.rows]))
            for name in names:
                rig.pose.bones[name].location = placed[name][row, :3].tolist()
            return [limbs[path] for path in paths], [bones[path][row] for path in paths]

        turned = {name: turns[:, row] for row, name in enumerate(writer.ready_model().controls)}
        placed, checked = dict[str, FloatArray](), np.linspace(0, count - 1, _LOOKED_AT).astype(int)
        for path, limb in limbs.items():
            reach = bones[path][:, limb.end, :3, 3] - bones[path][:, 0, :3, 3]
            bent = int(np.linalg.norm(reach, axis=1).argmin())
            writing.place_limbs(update, *pose(bent, [path]))
            if not limb.pole:
                writing.find_pole(update, limb, bones[path][bent])
            placed |= {name: np.tile(writing.channels_of(rig.pose.bones[name]), (count, 1)) for name in limb.controls}
            motion = writer.motion_above(limb, wanted, bent)
            placed |= limb.channels_over(bones[path], motion, turned)
            checked = np.append(checked, limb.doubtful(bones[path], motion))
        missed = [*writer.limbs]
        for row in np.unique(checked).tolist() if writer.matching else ():
            off = [path for path in writer.matching if path not in missed]
            writing.evaluate(update, pose(row, off)[0])
            before = {path: limbs[path].errors(bones[path][row])[writing.BAKED] for path in off}
            off = [path for path in off if (before[path] > 1.0).any()]
            writing.place_limbs(update, [limbs[path] for path in off], [bones[path][row] for path in off])
            after = {path: limbs[path].errors(bones[path][row])[writing.BAKED] for path in off}
            missed += [path for path in off if (before[path] - after[path] > 1.0).any()]
            yield 0.5 * row / count
        for row in range(count) if missed else ():
            writing.place_limbs(update, *pose(row, missed))
            left += [f"{sentence} on one frame" for sentence in writer.leave_ik()]
            missed = [path for path in missed if path in writer.limbs or path in writer.matching]
            for name in [name for path in missed for name in limbs[path].controls]:
                placed[name][row] = writing.channels_of(rig.pose.bones[name])
            yield 0.5 + 0.5 * row / count
        staying = {name for limb in (writer.limbs | writer.matching).values() for name in limb.controls}
        return {name: channels for name, channels in placed.items() if name in staying}, left

    def written(self, skeleton: Skeleton, bones: Collection[str], *, moves_root: bool) -> set[str]:
        setup = self._setup
        moved = {setup.place, *(row.name for row in setup.controls if row.limb)}
        turned = {row.control for row in setup.carriers if row.name in skeleton.names}
        switches = {row.path for row in setup.switches} | {row.name for row in setup.along}
        return self._paths(turned | moved, moved) | switches

    def off(self, context: Context, solution: Solution, frames: IntArray) -> list[str]:
        """Sentences about bones that controls can't move to their poses on frames (F,)."""
        worst: dict[str, writing.Deviation] = {}
        rows = np.unique(np.linspace(0, len(frames) - 1, _LOOKED_AT).astype(int))
        for frame, wanted in zip(frames[rows].tolist(), solution.part(rows).matrices, strict=True):
            context.scene.frame_set(int(frame))
            for each in writing.deviations(self.rig, self._setup, solution.skeleton.names, wanted):
                worst[each.bone] = max(worst.get(each.bone, each), each, key=lambda one: one.distance)
        return [writing.deviation_warning(self._setup, each) for each in worst.values()]

    def place(self, root: str) -> str:
        return self._setup.place

    def leaves_ik(self, bone: str) -> bool:
        return bone in self.on_ik and not self._stays_on_ik(self._setup.carriers[bone])

    def holders(self, bone: str) -> list[str]:
        row = self._setup.carriers[bone]
        limb = [each.name for each in self._setup.controls if each.limb == row.switch] if bone in self.on_ik else []
        return [name for name in limb or [row.control] if name in self.rig.pose.bones]

    def shown(self, bone: str) -> str:
        row: FabrikCarrier | None = self._setup.carriers.get(bone)
        if row is None:
            return bone
        by_ik = row.goes_by in self.rig.pose.bones and bone in self.on_ik
        return row.goes_by if by_ik else row.control if row.control in self.rig.pose.bones else bone

    @property
    def sampled_bones(self) -> set[str]:
        names = {self._setup.place}
        for carrier in self._setup.carriers:
            names |= {carrier.name, carrier.control}
        for control in self._setup.controls:
            names |= {control.name, control.turns_with, control.shares_turn}
        return names

    def channels_for_edit(
        self, context: Context, old: writing.RigMotion, new: _Poses
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray], tuple[str, ...]]:
        """The channels of controls for new poses, as in `PlainRig`.

        Each control rotates, in its own frame, by the change of the body's pose. Rounding errors are the same in both
        poses, so they don't change keys. The controls of limbs on IK are placed frame by frame.
        """
        rig, setup, on_ik = self.rig, self._setup, self.on_ik
        model = writing.ControlModel(rig, setup, old.skeleton, over=old)
        was, wanted = (forward_kinematics(old.skeleton, *each) for each in ((old.rotations, old.roots), new))
        (before, start), (after, end) = model.pose(was), model.pose(wanted)
        found, unkeyed, locations = {}, [], dict(old.locations)
        idle = {row.control for row in setup.carriers if row.name in on_ik}
        for row, name in enumerate(model.controls):
            if name in old.own:
                found[name] = product(old.own[name], product(conjugate(before[:, row]), after[:, row]))
            elif name not in idle and angle_between(before[:, row], after[:, row]).max() > _UNKEYED:
                unkeyed.append(name)
        if start is not None and end is not None:
            locations[model.place] = old.locations[model.place] + end - start
        turned = (new[0] != old.rotations).any(axis=2)
        posed = np.flatnonzero(turned.any(axis=0)).tolist()
        writer = writing.ControlWriter(context.view_layer.update, rig, setup, old.skeleton, posed)
        names = [name for limb in writer.limbs.values() for name in limb.controls]
        # IK may stretch a limb on some frames.
        posed_before = plain.unscaled(np.stack([old.matrices[name] for name in old.skeleton.names], axis=1))
        wanted = wanted @ np.linalg.inv(was) @ posed_before
        found |= {name: old.own[name].copy() for name in names if name in old.own}
        locations |= {name: old.locations[name].copy() for name in names if name in old.locations}
        with pose_writer.PoseKeeper(context.scene, rig):
            for row in np.flatnonzero(turned.any(axis=1)).tolist() if names else ():
                context.scene.frame_set(int(old.frames[row] // 1), subframe=old.frames[row] % 1)
                writer.apply(wanted[row], after[row], None if end is None else end[row])
                # A limb that is on FK on this frame keeps the keys of its IK controls.
                on_ik = self.on_ik
                placed = [limb for limb in writer.limbs.values() if limb.bones[0] in on_ik]
                for name in [name for limb in placed for name in limb.controls]:
                    bone: Any = rig.pose.bones[name]
                    if name in old.own:
                        values = np.array(getattr(bone, property_name(bone.rotation_mode)))
                        found[name][row] = from_channels(bone.rotation_mode, values)
                    if name in old.locations:
                        locations[name][row] = bone.location
        return found, locations, tuple(unkeyed)

    def _holders(self, bones: Sequence[str], roots: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """As in `PlainRig`, with the controls of limbs on FK or IK.

        Includes the root control, which also rotates and moves when the body's root rotates about its own head.
        """
        self._check_names()
        setup, on_ik = self._setup, self.on_ik
        limbs = {setup.carriers[name].switch for name in bones if name in on_ik}
        has_root = bool(roots) or any(not setup.carriers[name].parent for name in bones)
        moved = [setup.place] * has_root + [row.name for row in setup.controls if row.limb in limbs]
        return [*(setup.carriers[bone].control for bone in bones if bone not in on_ik), *moved], moved

    def switches(self, posed: Collection[str]) -> list[str]:
        self._check_names()
        setup = self._setup
        limbs = {row.limb for row in setup.controls if row.name in posed}
        limbs |= {row.switch for row in setup.carriers if row.control in posed}
        paths = [row.path for row in setup.switches if row.name in limbs]
        paths += [row.name for row in setup.along if row.switch in limbs]
        return [*keyed_switches(setup, {path: pose_writer.read_switch(self.rig, path) for path in paths})]


PosedRig: TypeAlias = PlainRig


def posed_rig(rig: Object) -> PosedRig:
    """A rig as a `PlainRig` or a `ControlRig`."""
    setup = control_rig(rig)
    return PlainRig(rig) if setup is None else ControlRig(rig, setup)


def _lock_of(control: PoseBone, axes: FloatArray, is_inverse: bool, start: FloatArray) -> pose_writer.WithLocks | None:
    """The effect of a control's locks on the local rotation (4,) of a body bone, which is currently `start` (4,).

    None without locks. axes: (4,) the control's axes in the bone's frame. is_inverse: whether the control rotates in
    the opposite direction.
    """
    current = local_rotation(control)
    lock = pose_writer.with_locks(control, current)
    if lock is None:
        return None

    def in_axes(turned: FloatArray) -> FloatArray:
        return product(conjugate(axes), product(conjugate(turned) if is_inverse else turned, axes))

    # The control may follow a leader that is rotated relative to the bone's parent.
    apart = product(current, conjugate(in_axes(start)))

    def locked(turned: FloatArray) -> FloatArray:
        back = product(conjugate(apart), lock(product(apart, in_axes(turned))))
        back = product(axes, product(back, conjugate(axes)))
        return conjugate(back) if is_inverse else back

    return locked


def _tree(rig: Object, rows: Sequence[FabrikCarrier], on_ik: set[str], *, at_rest: bool) -> plain.Tree:
    names = [row.name for row in rows]
    bones = [rig.pose.bones[name] for name in names]
    indices = {name: index for index, name in enumerate(names)}
    parents = [indices.get(row.parent, -1) for row in rows]
    rest, posed = plain.rest_matrices(rig, names), plain.bone_matrices(rig, names)
    # Controls above may be scaled. Measure the scale at the root, because IK scales the bones that it stretches.
    size = float(plain.object_scale(plain.as_array(bones[0].matrix)))
    if at_rest:
        posed = rest.copy()
        posed[:, :3, 3] *= size
    limbs: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if row.name in on_ik and not at_rest:
            limbs.setdefault(row.switch, []).append(index)
    at_fk_length = set[int]()
    for bones_of_limb in limbs.values():
        # IK moves the bones down to the last one that a control holds. It bends those down to the first one.
        places = [place for place, index in enumerate(bones_of_limb) if rows[index].goes_by] or [len(bones_of_limb) - 1]
        limb, held = bones_of_limb[: places[-1] + 1], places[0]
        arms, now = (np.diff(each[limb, :3, 3], axis=0) for each in (size * rest, posed))
        lengths = np.linalg.norm(arms, axis=1)
        # IK shortens bent limbs. The pose is written at their lengths on FK. A limb that IK has lengthened keeps its
        # lengths, because its end would otherwise pull the body.
        if np.linalg.norm(now, axis=1).sum() <= (1.0 + writing.PLACED) * lengths.sum():
            at_fk_length.update(limb[1:])
            if held == _BENT_BY_IK:
                # The bones of a paw keep their rotation.
                paw = posed[limb[held:-1], :3, :3] @ np.swapaxes(rest[limb[held:-1], :3, :3], 1, 2)
                joint = posed[limb[-1], :3, 3] - times(paw, arms[held:]).sum(axis=0)
                _keep_end(posed, limb[: held + 1], lengths[:held], joint)
    turned = posed[:, :3, :3] @ np.swapaxes(rest[:, :3, :3], 1, 2)
    carried, heads, still = turned[parents], posed[:, :3, 3], size * rest[:, :3, 3]
    carried[[parent < 0 for parent in parents]] = np.eye(3)
    local = np.swapaxes(carried @ rest[:, :3, :3], 1, 2) @ posed[:, :3, :3]
    arms = times(np.swapaxes(carried, 1, 2), heads - heads[parents])
    for index, parent in enumerate(parents):
        arm = still[index] - still[parent] if index in at_fk_length else arms[index]
        rest[index, :3, 3] = rest[parent, :3, 3] + arm if parent >= 0 else heads[index]
    skeleton = Skeleton(names, parents, rest, size * np.array([bone.bone.length for bone in bones]))
    return plain.Tree(skeleton, quaternion_from_matrix(local), rest[0, :3, 3].copy())


def _keep_end(posed: FloatArray, limb: Sequence[int], lengths: FloatArray, end: FloatArray) -> None:
    """Bend a limb that IK has shortened until it ends at a point (3,) with its lengths on FK.

    posed: (J, 4, 4) matrices; the rotations of the limb's two bones change. limb: their indices, and that of the end.
    lengths: (2,) of the two bones.
    """
    root, *_ = heads = posed[list(limb), :3, 3]
    arms, upper, lower = np.diff(heads, axis=0), float(lengths[0]), float(lengths[1])
    distance = max(float(np.linalg.norm(end - root)), 1e-12)
    along = (end - root) / distance
    side = arms[0] - along * (arms[0] @ along)
    if np.abs(np.linalg.norm(arms, axis=1) - lengths).max() <= writing.PLACED * (upper + lower) or not side.any():
        return
    reach = min(max(distance, abs(upper - lower)), upper + lower)
    share = (upper**2 + reach**2 - lower**2) / (2.0 * upper * reach)
    joint = upper * (share * along + np.sqrt(max(1.0 - share**2, 0.0)) * side / np.linalg.norm(side))
    turns = matrix_from_quaternion(rotation_between(arms, np.array([joint, reach * along - joint])))
    posed[limb[:2], :3, :3] = turns @ posed[limb[:2], :3, :3]
