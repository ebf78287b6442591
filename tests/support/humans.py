"""A person's skeleton in several rest poses and rolls, with its bones named as in the schemes that rigs use.

Z up, facing -Y, the left side at +X. Both sides are mirrored as Blender's Symmetrize does it.
"""

from dataclasses import dataclass

import numpy as np

from fabrik_addon.human.rest_body import RestBone

FINGERS = ("thumb", "index", "middle", "ring", "pinky")


@dataclass(frozen=True)
class Row:
    """A bone: its plain name, its parent's, its ends, and the direction of its X axis."""

    name: str
    parent: str
    head: np.ndarray
    tail: np.ndarray
    x_axis: np.ndarray

    @property
    def axes(self):
        y = unit(self.tail - self.head)
        x = unit(self.x_axis - (self.x_axis @ y) * y)
        return np.stack([x, y, np.cross(x, y)], axis=1)


def human(arms=0.0, bend=0.0, rolls=None, fingers=True):
    """The rows of a person."""
    rows = _trunk() + _arm(arms, bend) + _leg(bend)
    if fingers:
        rows += _fingers(rows, arms, bend)
    rows = [_rolled(row, rolls) for row in rows]
    return rows + [_mirrored(row) for row in rows if row.name.endswith(".L")]


def in_proportion(rows, legs, arms):
    """The rows with legs and arms scaled by factors, on the same ground."""
    parts = {"thigh": legs, "shin": legs, "foot": legs, "toe": legs, "upper_arm": arms, "forearm": arms, "hand": arms}
    by_name, heads, tails = {row.name: row for row in rows}, {}, {}
    for row in rows:
        above = by_name.get(row.parent)
        heads[row.name] = row.head if above is None else tails[above.name] + (row.head - above.tail)
        tails[row.name] = heads[row.name] + parts.get(row.name.partition(".")[0], 1.0) * (row.tail - row.head)
    lift = np.array([0.0, 0.0, min(row.tail[2] for row in rows) - min(tail[2] for tail in tails.values())])
    return [Row(row.name, row.parent, heads[row.name] + lift, tails[row.name] + lift, row.x_axis) for row in rows]


def named(rows, names):
    """The same rows under the names of a scheme, with its additional bones."""
    known = {row.name: names(row.name) for row in rows}
    return [Row(known[row.name], known.get(row.parent, ""), row.head, row.tail, row.x_axis) for row in rows]


def rest_bones(rows):
    """The rows as rest bones, the input of the preset."""
    return {
        row.name: RestBone(row.parent, row.head, row.axes, float(np.linalg.norm(row.tail - row.head))) for row in rows
    }


def _trunk():
    left = (1.0, 0.0, 0.0)
    points = [(0, 0, 1.0), (0, 0.01, 1.1), (0, 0.02, 1.25), (0, 0.03, 1.45), (0, 0, 1.55), (0, -0.01, 1.75)]
    return _chain(["hips", "spine", "chest", "neck", "head"], points, "", left)


def _arm(drop, bend):
    """Elbow bent forward, palm down and toward the body; X is the hinge's axis."""
    out, ahead = _below_level(drop), np.array([0.0, -1.0, 0.0])
    axis = np.cross(out, ahead)
    shoulder = np.array([0.18, 0.02, 1.42])
    elbow = shoulder + 0.29 * out
    along = _turned_about(out, axis, bend)
    wrist = elbow + 0.25 * along
    collar = Row("shoulder.L", "chest", np.array([0.02, -0.02, 1.42]), shoulder, np.array([0.0, 0.0, -1.0]))
    points = [shoulder, elbow, wrist, wrist + 0.09 * along]
    return [collar, *_chain(["upper_arm.L", "forearm.L", "hand.L"], points, "shoulder.L", axis)]


def _fingers(rows, drop, bend):
    """With the palm down, each finger curls toward it by `bend`; the thumb is in front."""
    hand = next(row for row in rows if row.name == "hand.L")
    along = unit(hand.tail - hand.head)
    down = unit(_below_level(drop + 90.0))
    down = unit(down - (down @ along) * along)
    front = np.cross(down, along)
    result = []
    for place, finger in enumerate(FINGERS):
        if finger == "thumb":
            head = hand.head + 0.03 * along + 0.03 * front + 0.01 * down
            way, axis = unit(along + front + 0.3 * down), unit(np.cross(along + front, down - front))
        else:
            head = hand.head + 0.09 * along + (0.05 - 0.02 * place) * front
            way, axis = along, np.cross(along, down)
        points = [head]
        for number in range(3):
            points.append(points[-1] + 0.035 * _turned_about(way, axis, bend * (number + 1)))
        names = [f"{finger}_{number}.L" for number in (1, 2, 3)]
        result += _chain(names, points, "hand.L", axis)
    return result


def _leg(bend):
    half = np.radians(bend / 2.0)
    hip = np.array([0.09, 0.0, 0.95])
    knee = hip + 0.43 * np.array([0.0, -np.sin(half), -np.cos(half)])
    ankle = knee + 0.42 * np.array([0.0, np.sin(half), -np.cos(half)])
    ball = ankle + np.array([0.02, -0.13, -0.07])
    points = [hip, knee, ankle, ball, ball + np.array([0.0, -0.07, -0.005])]
    return _chain(["thigh.L", "shin.L", "foot.L", "toe.L"], points, "hips", (1.0, 0.0, 0.0))


def _below_level(drop):
    return np.array([np.cos(np.radians(drop)), 0.0, -np.sin(np.radians(drop))])


def _chain(names, points, parent, x_axis):
    points = [np.array(point, dtype=float) for point in points]
    parents = [parent, *names[:-1]]
    return [
        Row(name, above, head, tail, np.array(x_axis, dtype=float))
        for name, above, head, tail in zip(names, parents, points[:-1], points[1:], strict=True)
    ]


def _rolled(row, rolls):
    degrees = rolls.get(row.name, 0.0) if isinstance(rolls, dict) else rolls or 0.0
    x, _, z = row.axes.T
    turned = np.cos(np.radians(degrees)) * x - np.sin(np.radians(degrees)) * z
    return Row(row.name, row.parent, row.head, row.tail, turned)


def _mirrored(row):
    flip = np.array([-1.0, 1.0, 1.0])
    name, parent = (text[:-1] + "R" if text.endswith(".L") else text for text in (row.name, row.parent))
    return Row(name, parent, row.head * flip, row.tail * flip, -row.x_axis * flip)


def _turned_about(vector, axis, degrees):
    """A vector rotated about a perpendicular unit axis."""
    return np.cos(np.radians(degrees)) * vector + np.sin(np.radians(degrees)) * np.cross(unit(axis), vector)


def unit(vector):
    return np.asarray(vector, dtype=float) / np.linalg.norm(vector)


# From plain names to those of each scheme.


def ours(name):
    return name


def _scheme(middle, limbs, finger, side):
    def rename(name):
        stem, _, end = name.partition(".")
        if not end:
            return middle[stem]
        if stem in limbs:
            return side(limbs[stem], end)
        kind, number = stem.split("_")
        return side(finger(kind, int(number)), end)

    return rename


def _table(text):
    keys = ["shoulder", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe"]
    return dict(zip(keys, text.split(), strict=True))


def _middle(text):
    return dict(zip(["hips", "spine", "chest", "neck", "head"], text.split(), strict=True))


def _little(finger):
    return "little" if finger == "pinky" else finger


rigify = _scheme(
    _middle("spine spine.001 spine.003 spine.004 spine.006"),
    _table("shoulder upper_arm forearm hand thigh shin foot toe"),
    lambda finger, number: f"{'' if finger == 'thumb' else 'f_'}{finger}.{number:02}",
    lambda stem, end: f"{stem}.{end}",
)
mixamo = _scheme(
    _middle("mixamorig:Hips mixamorig:Spine mixamorig:Spine1 mixamorig:Neck mixamorig:Head"),
    _table("Shoulder Arm ForeArm Hand UpLeg Leg Foot ToeBase"),
    lambda finger, number: f"Hand{finger.title()}{number}",
    lambda stem, end: f"mixamorig:{'Left' if end == 'L' else 'Right'}{stem}",
)
makehuman = _scheme(
    _middle("root spine05 spine02 neck01 head"),
    _table("clavicle upperarm01 lowerarm01 wrist upperleg01 lowerleg01 foot toe1-1"),
    lambda finger, number: f"finger{FINGERS.index(finger) + 1}-{number}",
    lambda stem, end: f"{stem}.{end}",
)
vrm_bones = _scheme(
    _middle("J_Bip_C_Hips J_Bip_C_Spine J_Bip_C_Chest J_Bip_C_Neck J_Bip_C_Head"),
    _table("Shoulder UpperArm LowerArm Hand UpperLeg LowerLeg Foot ToeBase"),
    lambda finger, number: f"{_little(finger).title()}{number}",
    lambda stem, end: f"J_Bip_{end}_{stem}",
)
vrm_humanoid = _scheme(
    _middle("hips spine upperChest neck head"),
    _table("Shoulder UpperArm LowerArm Hand UpperLeg LowerLeg Foot Toes"),
    lambda finger, number: (
        _little(finger).title()
        + (("Metacarpal", "Proximal", "Distal") if finger == "thumb" else ("Proximal", "Intermediate", "Distal"))[
            number - 1
        ]
    ),
    lambda stem, end: ("left" if end == "L" else "right") + stem,
)
unreal = _scheme(
    _middle("pelvis spine_01 spine_03 neck_01 head"),
    _table("clavicle upperarm lowerarm hand thigh calf foot ball"),
    lambda finger, number: f"{finger}_{number:02}",
    lambda stem, end: f"{stem}_{end.lower()}",
)
SCHEMES = {
    "ours": ours,
    "rigify": rigify,
    "mixamo": mixamo,
    "makehuman": makehuman,
    "vrm_bones": vrm_bones,
    "vrm_humanoid": vrm_humanoid,
    "unreal": unreal,
}
