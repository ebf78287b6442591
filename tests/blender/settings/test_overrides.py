"""All data that the add-on stores on a rig survives saving and opening on a library override."""

import bpy
import pytest
from support import limited, scenes

pytestmark = pytest.mark.usefixtures("clean_scene")

ITEMS = 3


def properties(group):
    return [each for each in group.bl_rna.properties if each.identifier not in {"rna_type", "name"}]


def another(group, each):
    """A value that is not the property's default."""
    value = getattr(group, each.identifier)
    if each.type == "ENUM" and each.is_enum_flag:
        return {item.identifier for item in each.enum_items} - value
    if each.type == "ENUM":
        return next(item.identifier for item in each.enum_items if item.identifier != value)
    if each.type == "BOOLEAN":
        return not value
    if each.type == "STRING":
        return f"{each.identifier} of a test"
    if each.type == "INT" and each.is_array:
        return [number + 2 for number in value]
    if getattr(each, "is_array", False):
        return [0.25 * (place + 1) for place in range(each.array_length)]
    return min(value + 2, each.hard_max) if value < each.hard_max else each.hard_min


def things():
    """A data-block of each kind, to which pointers can be set."""
    collection = bpy.data.collections.new("Take")
    bpy.context.scene.collection.children.link(collection)
    return {
        "Object": scenes.empty_at((1, 2, 3)),
        "Collection": collection,
        "Action": bpy.data.actions.new("baked"),
        "Text": bpy.data.texts.new("report.csv"),
    }


def fill(group, pointed):
    """Give everything in a group, and in the groups in it, a value that it does not have at first."""
    for each in properties(group):
        if each.type == "POINTER" and each.fixed_type.identifier in pointed:
            # Only armatures may hold markers.
            usual = pointed[each.fixed_type.identifier]
            setattr(group, each.identifier, group.id_data if each.identifier == "take_armature" else usual)
        elif each.type == "POINTER":
            fill(getattr(group, each.identifier), pointed)
        elif each.type == "COLLECTION":
            for place in range(ITEMS):
                item = getattr(group, each.identifier).add()
                item.name = f"item {place}"
                fill(item, pointed)
        elif each.identifier != "live":
            setattr(group, each.identifier, another(group, each))


def contents(group):
    """All values of a group by name, also of the groups in it."""
    found = {}
    for each in properties(group):
        value = getattr(group, each.identifier)
        if each.type == "COLLECTION":
            value = [(item.name, contents(item)) for item in value]
        elif isinstance(value, bpy.types.PropertyGroup):
            value = contents(value)
        elif each.type == "POINTER":
            value = value and value.name
        elif getattr(each, "is_array", False):
            value = tuple(value)
        found[each.identifier] = value
    return found


@pytest.mark.parametrize("known", [False, True], ids=["plain-library", "library-with-settings"])
def test_all_settings_survive_saving_and_opening_twice(tmp_path, known):
    rig = scenes.make_rig()
    if known:
        rig.fabrik.capture.refine, rig.fabrik.bake.step = False, 2
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
    own = limited.override(tmp_path / "source.blend", "Rig")
    fill(own.fabrik, things())
    before = contents(own.fabrik)
    assert len(before["capture"]["markers"]) == ITEMS
    for _ in range(2):
        path = str(tmp_path / "shot.blend")
        bpy.ops.wm.save_as_mainfile(filepath=path)
        bpy.ops.wm.open_mainfile(filepath=path)
        rig = limited.the_override()
        assert contents(rig.fabrik) == before
