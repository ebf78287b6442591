"""Enabling and disabling the add-on: everything added is removed; and the add-on's texts."""

import re
from pathlib import Path

import bpy
import pytest

import fabrik_addon
from fabrik_addon.blender.registration import CLASSES

OWNERS = ("Object", "PoseBone", "Bone", "Armature", "Scene", "WindowManager", "Collection", "Action")
HANDLERS = [name for name in dir(bpy.app.handlers) if isinstance(getattr(bpy.app.handlers, name), list)]


def draw_functions():
    """The functions that add-ons have added to Blender's menus, panels and headers."""
    for name in dir(bpy.types):
        draw = getattr(getattr(bpy.types, name), "draw", None)
        for function in getattr(draw, "_draw_funcs", ()):
            yield name, function.__module__, function.__qualname__


def keymap_items():
    """The keys of add-ons; a Blender without windows may have no such list."""
    keymaps = bpy.context.window_manager.keyconfigs.addon
    for keymap in keymaps.keymaps if keymaps else ():
        yield from ((keymap.name, item.idname, item.type, item.value) for item in keymap.keymap_items)


def property_names(rna):
    """The names of properties in `bl_rna` and `get_rna_type()`."""
    return {each.identifier for each in rna.properties}


def registered():
    """All parts of Blender to which an add-on can add."""
    return {
        "types": set(dir(bpy.types)),
        "operators": {f"{group}.{name}" for group in dir(bpy.ops) for name in dir(getattr(bpy.ops, group))},
        "properties": {
            f"{owner}.{name}" for owner in OWNERS for name in property_names(getattr(bpy.types, owner).bl_rna)
        },
        "handlers": {name: list(getattr(bpy.app.handlers, name)) for name in HANDLERS},
        "menus": sorted(draw_functions()),
        "keys": sorted(keymap_items()),
    }


@pytest.fixture
def switched_off():
    """The add-on is off during the test, and on again after it, however the test ends."""
    fabrik_addon.unregister()
    yield
    if not hasattr(bpy.types.Object, "fabrik"):
        fabrik_addon.register()


def test_three_cycles_leave_blender_as_it_was(switched_off):
    off = registered()
    fabrik_addon.register()
    on = registered()
    for _cycle in range(3):
        fabrik_addon.unregister()
        assert registered() == off
        fabrik_addon.register()
        assert registered() == on


def test_a_disabled_extension_leaves_nothing_behind(switched_off):
    off = registered()
    for kind in ("types", "operators", "properties"):
        assert not [name for name in off[kind] if "fabrik" in name.lower()]
    assert not [entry for entry in off["menus"] if "fabrik" in entry[1]]


def test_an_enabled_extension_is_found():
    on = registered()
    assert {"FABRIK_OT_bake", "FABRIK_OT_import_markers", "FABRIK_OT_solve"} <= on["types"]
    assert "Object.fabrik" in on["properties"]
    assert "TOPBAR_MT_file_import" in {menu for menu, module, _name in on["menus"] if "fabrik" in module}


def test_every_operator_and_menu_that_is_named_in_the_interface_exists():
    known = {cls.bl_idname for cls in CLASSES if issubclass(cls, (bpy.types.Operator, bpy.types.Menu))}
    for path in Path(fabrik_addon.__file__).parent.joinpath("blender", "ui").rglob("*.py"):
        named = re.findall(r'"(fabrik\.\w+|FABRIK_MT_\w+)"', path.read_text(encoding="utf-8"))
        assert set(named) - known <= {"fabrik.drag_tool"}, path.name


def tooltips():
    """The tooltips of operators, properties and enum items, by the name of their owner."""
    found = {}
    for cls in CLASSES:
        about = cls.bl_rna
        if issubclass(cls, bpy.types.Operator):
            about = getattr(bpy.ops.fabrik, cls.bl_idname.partition(".")[2]).get_rna_type()
            found[cls.bl_idname] = about.description
        inherited = {"filepath", "directory", "files", "check_existing"} | property_names(about.base)
        for name in property_names(about) - inherited:
            shown = about.properties[name]
            if not shown.is_hidden:
                found[f"{cls.__name__}.{name}"] = shown.description
                for item in shown.enum_items_static if shown.type == "ENUM" else ():
                    found[f"{cls.__name__}.{name}.{item.identifier}"] = item.description
                assert shown.name, f"{cls.__name__}.{name} has no name"
    return found


def test_tooltips_are_sentences_without_a_full_stop():
    found = tooltips()
    assert len(found) > 300
    # "0 keeps rotations; 1 …" begins with a number.
    begins = {where: text[:1].isupper() or text[:1].isdigit() for where, text in found.items()}
    assert not {where: text for where, text in found.items() if not begins[where] or text.endswith(".")}


@pytest.mark.parametrize(
    ("name", "options", "starts"),
    [
        ("check_action", {"mend": True}, "Insert keys to clamp"),
        ("check_action", {"mend": False}, ""),
        ("solve", {"start": "REST"}, "Start from the rest pose"),
        ("set_limit", {"slide": (1.0, 1.5)}, "Minimum and maximum stretch"),
        ("set_limit", {"type": "BALL"}, ""),
    ],
)
def test_a_button_that_sets_an_option_has_its_tooltip(name, options, starts):
    """Blender shows the operator's own tooltip if this one is empty."""
    given = bpy.context.window_manager.operator_properties_last(f"fabrik.{name}")
    for option in ("mend", "start", "slide", "axis"):
        if option in given.bl_rna.properties:
            given.property_unset(option)
    for option, value in options.items():
        setattr(given, option, value)
    (cls,) = (cls for cls in CLASSES if getattr(cls, "bl_idname", "") == f"fabrik.{name}")
    shown = cls.description(bpy.context, given)
    for option in options:
        given.property_unset(option)
    assert shown.startswith(starts)
    assert bool(shown) == bool(starts)
