"""Warnings that a retargeted motion may not match its source, one sentence each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ..core import Effector, Skeleton, Solution, forward_kinematics
from ..core.arrays import ROUNDING, FloatArray, IntArray, evenly_spread
from ..core.limits import Limit
from ..core.rotations import angle_between, conjugate, product, quaternion_from_matrix
from ..human.naming_schemes import match
from ..human.preset import bend_axes
from ..human.rest_body import RestBody, degrees_between
from ..markers.doubts import LOOKED_AT, limbs_without_markers, listed, median_angle, named_figures
from ..markers.person import cadence_doubts
from .alignment import MAX_TILT, USUAL_LEG, Reference, facing, leg_length, limb_length
from .goals import Fold
from .motion import Motion
from .pairs import Pair

# The lines that are compared, each between the heads of two parts: on one side, or across both sides. They are written
# out, so that they can be translated.
_LIMBS: Final = (
    ("the left upper arm", "upper_arm", "forearm", "L"),
    ("the right upper arm", "upper_arm", "forearm", "R"),
    ("the left forearm", "forearm", "hand", "L"),
    ("the right forearm", "forearm", "hand", "R"),
    ("the left thigh", "thigh", "shin", "L"),
    ("the right thigh", "thigh", "shin", "R"),
    ("the left shin", "shin", "foot", "L"),
    ("the right shin", "shin", "foot", "R"),
)
_ACROSS: Final = (("the line across the hips", "thigh"), ("the line across the shoulders", "upper_arm"))
# Median degrees over the frames. In three takes of people on six rigs with limits, this is at most 5.4 for trunks, 5.8
# for the lines across hips or shoulders, and 6.8 for limbs.
_FAR_TRUNK: Final = 18.0
_FAR_LIMB: Final = 25.0
_OPPOSITE: Final = 100.0
# RMS of a target's errors, as a fraction of the legs' length. It is at most 3 % in these three takes.
_MISSED: Final = 0.06
# A limit holds a bone if the bone is at it on more than this fraction of the frames.
_MOSTLY: Final = 0.5
# Arms or trunk differ in size if they differ by more than this factor after scaling to equal legs.
_OTHER_SIZE: Final = 2.5
# Degrees: if the axis of a hinge is farther from the axis of the knee or elbow, the bone had another roll. Human limits
# use hinges only up to 20 degrees.
_ROLLED: Final = 30.0
# Feet point backward if the cosine of their angle to the body's back exceeds this.
_BACKWARD: Final = 0.3
# Degrees: if the largest rotation of any joint from rest is in this range, radians (at most 2 pi) may have been read as
# degrees. Even people who stand still have larger rotations from most rest poses.
_HARDLY: Final = (0.1, 6.3)
# Hips of a person who is lying down travel at most this many leg lengths perpendicular to the trunk.
_WALKS: Final = 2.0
# In leg lengths: hips are at most _HIGH above the origin. The units of the root's positions are too large if hips are
# never below the origin, but less than _LOW above it, with feet that are _BELOW lower than the origin.
_HIGH: Final = 6.0
_LOW, _BELOW = 0.15, 0.5
# Radians: it shows if a body moves in a direction that is off by more.
_ASIDE: Final = 0.1


def retarget_doubts(
    motion: Motion,
    bodies: tuple[RestBody, RestBody],
    reference: Reference,
    skeleton: Skeleton,
    solution: Solution,
    effectors: Sequence[Effector],
    pairs: Sequence[Pair],
    turned_off: FloatArray,
    axes: FloatArray,
    limits: Mapping[str, Limit],
) -> Iterator[str]:
    """Warnings that a rig's poses may not match those of a source.

    bodies: the source's and the rig's at rest. turned_off: (F, pairs) radians, see `Retargeted`. axes: (3, 3) from the
    source's world to the rig's armature space.
    """
    target = bodies[1]
    if bare := list(limbs_without_markers({pair.bone for pair in pairs}, {**match(skeleton.names), **target.roles})):
        yield f"No bone of the source is known for {listed(bare)}: map their bones, or they stay at rest"
    if _feet_backward(reference.body, reference.axes.up):
        yield "The source's feet point backward: check that left and right are not swapped in bone names or in the map"
        return
    if target.axes is not None and _feet_backward(target, target.axes.up):
        yield "The rig's feet point backward: check that left and right are not swapped in its bone names"
        return
    folds = {name: (axis, Fold.of(limits.get(name))) for name, axis in bend_axes(target).items()}
    rolled = {name: float(degrees_between(fold.axis, axis)) for name, (axis, fold) in folds.items() if fold is not None}
    if hinges := named_figures({name: min(off, 180.0 - off) for name, off in rolled.items()}, _ROLLED, "°"):
        yield f"Hinge axes differ from those of the joints: {hinges}; apply Human Limits again if bone rolls changed"
    if reference.trunk_tilt > MAX_TILT:
        yield (
            f"The source leans by {reference.trunk_tilt:.0f}° in the pose that is compared with the rig's rest pose: "
            "set Rest Frame to a frame on which it is upright"
        )
    is_ahead = -reference.axes.forward[1] > np.cos(_ASIDE)
    if reference.frame is None and abs(motion.heading) > _ASIDE and not is_ahead:
        yield (
            f"The source's object is rotated by {np.degrees(motion.heading):.0f}° about Z, which was ignored: rotate "
            "the rig's object as well if it should move in the same direction"
        )
    if reference.frame is not None and reference.axes.up[2] < ROUNDING and not _walks(motion, bodies[0], reference):
        yield (
            "On most frames the source points sideways or down, but was assumed to be upright: if it is lying down, "
            "export it with a T pose as its rest pose"
        )
    if len(motion) > 1 and _HARDLY[0] < (turned := np.degrees(_most_turned(motion))) < _HARDLY[1]:
        yield (
            f"The source's joints rotate by at most {turned:.1f}° from its rest pose: if it moves farther, export its "
            "rotations in degrees, not radians"
        )
    yield from _size_doubts(bodies)
    yield from _unit_doubts(motion, bodies[0], reference)
    names = list(motion.names)
    left, right, hips = (
        [motion.heads[:, names.index(name)] for part in parts for name in bodies[0].named(part, side)]
        for side, parts in (("L", ("foot", "toe")), ("R", ("foot", "toe")), (None, ("thigh",)))
    )
    # Assume the leg length of an adult, since the units of motion files are often unknown.
    yield from cadence_doubts(motion.name, left, right, hips, reference.axes.up, motion.rate, USUAL_LEG)
    places = evenly_spread(len(motion), LOOKED_AT)
    far = np.degrees(np.median(turned_off, axis=0)) > _FAR_TRUNK
    held = [
        pair.bone
        for pair, is_far in zip(pairs, far, strict=True)
        if is_far and solution.binding[:, skeleton.index(pair.bone)].mean() > _MOSTLY
    ]
    yield from _direction_doubts(motion.heads[places] @ axes.T, motion, bodies, skeleton, solution, places, held)
    missed = np.sqrt((solution.errors**2).mean(axis=0)) / leg_length(target)
    if (missed > _MISSED).any():
        worst = np.argsort(-missed)[: int((missed > _MISSED).sum())]
        names = [f"{effectors[place].bone} ({100.0 * missed[place]:.0f} % of the legs' length)" for place in worst]
        yield f"Far from their positions in the source: {listed(names)}; check whether limits or locks restrict the rig"


def _unit_doubts(motion: Motion, source: RestBody, reference: Reference) -> Iterator[str]:
    """A warning if the positions of the root seem to have different units from the lengths of the bones."""
    heights = motion.heads @ (reference.axes.up / leg_length(source))
    hips = heights[:, np.isin(motion.names, source.named("hips"))].mean(axis=1)
    height, lowest = float(np.median(hips)), float(np.median(heights.min(axis=1)))
    is_low = np.ptp(hips) > 0.0 and hips.min() > 0.0 and height < _LOW and lowest < -_BELOW
    if is_low or height > _HIGH:
        yield (
            f"The hips are {height:.3g} times the legs' length above the origin: if locations and bone lengths have "
            "different units, export both in the same units"
        )


def _walks(motion: Motion, source: RestBody, reference: Reference) -> bool:
    """Whether the hips travel farther, perpendicular to up, than the hips of a person who is lying down."""
    hips, up = motion.heads[:, np.isin(motion.names, source.named("hips"))].mean(axis=1), reference.axes.up
    travelled = np.linalg.norm(np.ptp(hips - (hips @ up)[:, None] * up, axis=0))
    return bool(travelled > _WALKS * leg_length(reference.body))


def _direction_doubts(
    heads: FloatArray,
    motion: Motion,
    bodies: tuple[RestBody, RestBody],
    skeleton: Skeleton,
    solution: Solution,
    places: IntArray,
    held: Sequence[str],
) -> Iterator[str]:
    """Warnings if trunk, hips, shoulders or limbs point in directions other than the source's.

    heads: (F, N, 3) of the source on some frames, in the rig's space. held: bones whose limits keep them far from the
    source's rotation on most frames.
    """
    matrices = forward_kinematics(skeleton, solution.rotations[places], solution.root_location[places])
    of_bone = [{name: heads[:, place] for place, name in enumerate(motion.names)}]
    of_bone.append({name: matrices[:, place, :3, 3] for place, name in enumerate(skeleton.names)})

    def off(one: tuple[str, str], other: tuple[str, str]) -> float:
        """The median angle in degrees between a line in the rig and in the source; 0 if a body lacks an end of it."""
        lines = []
        for body, place in zip(bodies, of_bone, strict=True):
            ends = [body.named(part, side or None) for part, side in (one, other)]
            if not all(ends):
                return 0.0
            lines.append(np.subtract(*(np.mean([place[name] for name in names], axis=0) for names in ends[::-1])))
        return median_angle(*lines)

    top = "neck" if all(body.named("neck") for body in bodies) else "head"
    trunk = {"the trunk": off(("thigh", ""), (top, ""))}
    trunk |= {words: off((part, "R"), (part, "L")) for words, part in _ACROSS}
    if any(angle > _OPPOSITE for angle in trunk.values()):
        yield (
            f"The rig and the source face different directions: {named_figures(trunk, _FAR_TRUNK, '°')} off; check "
            "that left and right are not swapped in bone names or in the map, and that both bodies face forward at rest"
        )
        return
    limbs = {words: off((upper, side), (lower, side)) for words, upper, lower, side in _LIMBS}
    far = {name: angle for name, angle in trunk.items() if angle > _FAR_TRUNK}
    far |= {name: angle for name, angle in limbs.items() if angle > _FAR_LIMB}
    if far and held:
        yield (
            f"Far from the source's directions: {named_figures(far, 0.0, '°')}; check that the limits of "
            f"{listed(held)} allow these rotations"
        )
    elif far:
        yield (
            f"Far from the source's directions: {named_figures(far, 0.0, '°')}; check the bone mapping, "
            "or set Rest Frame to a frame on which the source's pose is like the rig's rest pose"
        )


def _size_doubts(bodies: tuple[RestBody, RestBody]) -> Iterator[str]:
    """A warning if arms or trunk of rig and source differ in size, relative to the legs."""
    legs, other = leg_length(bodies[1]) / leg_length(bodies[0]), []
    for words, side, parts in (
        ("the arms", "L", ("upper_arm", "forearm", "hand")),
        ("the trunk", None, ("thigh", "upper_arm")),
    ):
        sizes = [limb_length(body, parts, side) for body in bodies]
        if min(sizes) > 0.0 and not 1.0 / _OTHER_SIZE < (ratio := sizes[1] / sizes[0] / legs) < _OTHER_SIZE:
            other.append(f"{words} ({ratio:.1f} times the source's)")
    if other:
        yield (
            f"Compared with the legs, the rig's sizes differ from the source's: {listed(other)}; check that hips, "
            "knees and feet are mapped to the right bones"
        )


def _most_turned(motion: Motion) -> float:
    """The largest rotation of a joint from rest, relative to its parent, in radians."""
    world = product(motion.rotations, conjugate(quaternion_from_matrix(motion.rest[:, :3, :3])))
    at_rest = np.tile([1.0, 0.0, 0.0, 0.0], (len(motion), 1, 1))
    return float(angle_between(world, np.append(world, at_rest, axis=1)[:, motion.parents]).max())


def _feet_backward(body: RestBody, up: FloatArray) -> bool:
    ahead = facing(body, up)[:, 0]
    feet = [body.direction(name) @ ahead for name in body.named("foot")]
    return bool(feet) and float(np.mean(feet)) < -_BACKWARD
