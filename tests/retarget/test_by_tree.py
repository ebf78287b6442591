"""Bodies without names: the roles of their bones from the tree."""

from dataclasses import replace

import numpy as np
import pytest
from support import humans, motions
from support.steps import retarget

from fabrik_addon.retarget.goals import RetargetSettings
from fabrik_addon.retarget.motion import RetargetError
from fabrik_addon.retarget.pairs import find_pairs, tree_body


def unnamed(rows):
    places = {row.name: f"part {place}" for place, row in enumerate(rows)}
    return humans.named(rows, places.get), places


@pytest.mark.parametrize("arms", [0.0, 45.0])
@pytest.mark.parametrize("fingers", [False, True])
def test_a_person_without_bone_names_is_recognized(arms, fingers):
    rows, places = unnamed(humans.human(arms=arms, fingers=fingers))
    found = tree_body(humans.rest_bones(rows))
    assert not found.on_four
    for name, place in places.items():
        stem, _, side = name.partition(".")
        if stem in {"hips", "head", "thigh", "shin", "foot", "toe", "shoulder", "upper_arm", "forearm", "hand"}:
            assert (found.roles[place].part, found.roles[place].side) == (stem, side), name


def test_a_motion_without_names_is_retargeted_to_a_named_rig():
    rows, places = unnamed(humans.human(arms=45.0, fingers=False))
    source, target = motions.skeleton_of(rows), motions.skeleton_of(humans.human(arms=45.0, fingers=False))
    rotations, roots = motions.swaying(source)
    found = retarget(motions.motion_of(source, rotations, roots), target, RetargetSettings())
    wanted = motions.turned_by(source, rotations, roots)[1][:, [source.index(places[name]) for name in target.names]]
    heads = motions.turned_by(target, found.solution.rotations, found.solution.root_location)[1]
    assert np.abs(heads - wanted).max() < 1e-4


@pytest.mark.parametrize(
    "untold", [{"spine": "L5", "chest": "T12", "upper_chest": "T8"}, {"upper_arm.L": "LUArm", "upper_arm.R": "RUArm"}]
)
def test_the_tree_shows_roles_that_names_do_not(untold):
    rows = humans.human(fingers=False)
    whole, part = (
        motions.skeleton_of(rows),
        motions.skeleton_of(humans.named(rows, lambda name: untold.get(name, name))),
    )
    told = {pair.bone: pair.source for pair in find_pairs(motions.motion_of(part, *motions.swaying(part)), whole)}
    assert told == {name: untold.get(name, name) for name in whole.names}


def dog():
    """The rows of a body with four legs, along Y."""
    rows = humans.human(fingers=False)
    lying = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])

    def placed(point, limb):
        if limb:
            return point
        return lying @ (point - (0.0, 0.0, 1.0)) + (0.0, 0.0, 1.0)

    found = []
    for row in rows:
        stem = row.name.partition(".")[0]
        if stem in {"shoulder", "upper_arm", "forearm", "hand"}:
            continue
        leg = stem in {"thigh", "shin", "foot", "toe"}
        found.append(humans.Row(row.name, row.parent, placed(row.head, leg), placed(row.tail, leg), row.x_axis))
    chest = next(row for row in found if row.name == "chest")
    for row in rows:
        stem, _, side = row.name.partition(".")
        if stem in {"thigh", "shin", "foot"}:
            front = {"thigh": "front_a", "shin": "front_b", "foot": "front_c"}
            shift = (0.0, chest.tail[1], 0.0)
            parent = "chest" if stem == "thigh" else f"{front[row.parent.partition('.')[0]]}.{side}"
            name = f"{front[stem]}.{side}"
            found.append(humans.Row(name, parent, row.head + shift, row.tail + shift, row.x_axis))
    return found


def test_a_quadruped_is_not_retargeted_to_a_biped():
    rows, _ = unnamed(dog())
    source = motions.skeleton_of(rows)
    assert tree_body(humans.rest_bones(rows)).on_four
    motion = motions.motion_of(source, *motions.swaying(source))
    with pytest.raises(RetargetError, match="two legs, the other on four"):
        find_pairs(motion, motions.skeleton_of(humans.human()))
    onto_another = find_pairs(motion, source)
    assert {pair.bone for pair in onto_another} == {pair.source for pair in onto_another}
    assert len(onto_another) > 14


def test_hips_below_a_neck_are_a_name_for_something_else():
    """Rigify numbers a wolf's bones from the hips forward and a person's upward, so hips may be called neck."""
    backward = {"hips": "neck", "spine": "chest", "chest": "spine", "neck": "hips", "head": "ear"}
    rig = motions.skeleton_of(humans.named(dog(), lambda name: backward.get(name, name)))
    person = motions.skeleton_of(humans.human())
    with pytest.raises(RetargetError, match="two legs, the other on four"):
        find_pairs(motions.motion_of(person, *motions.swaying(person)), rig)


@pytest.mark.parametrize("up", [(0, 1, 0), (0, -1, 0), (1, 0, 0)], ids=["Y up", "Y down", "X up"])
def test_a_body_without_names_is_recognized_in_any_orientation(up):
    """The body may lie along any axis, as in files with another up axis than Blender's importer assumes."""
    rows, places = unnamed(humans.human(arms=0.0, fingers=False))
    aside = np.roll(np.abs(up), 1)
    lying = np.stack([aside, np.cross(up, aside), up], axis=1)
    bones = {
        name: replace(bone, head=lying @ bone.head, axes=lying @ bone.axes)
        for name, bone in humans.rest_bones(rows).items()
    }
    found = tree_body(bones)
    for name in ("thigh.L", "foot.R", "upper_arm.L", "hand.R"):
        stem, _, side = name.partition(".")
        assert (found.roles[places[name]].part, found.roles[places[name]].side) == (stem, side)
