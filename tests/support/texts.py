"""Every text of the interface that can be translated: of operators, panels, menus and properties, and in the source."""

import ast
from pathlib import Path

import bpy

from fabrik_addon.blender.registration import CLASSES

UI = Path(__file__).parents[2] / "fabrik_addon" / "blender" / "ui"
# Calls that draw a text, and the argument that contains it.
_DRAWN = ("text", "heading", "title", "confirm_text")
_SAYING = ("draw_lines", "folded", "ui_text", "ui_message")
# A table of texts.
_CONSTANT = "_WORDS"
# The name of an operator's work, for the status bar.
_DOING = "doing"
# Functions whose return values are drawn.
_SENTENCES = ("next_in_pose", "next_in_motion")


def properties_of(about):
    inherited = {each.identifier for each in about.base.properties} if about.base is not None else set()
    inherited |= {"rna_type", "name", "filepath", "directory", "files", "check_existing", "filter_glob", "bl_idname"}
    return [each for each in about.properties if each.identifier not in inherited and not each.is_hidden]


def registered():
    """(where, text) of the registered texts of the add-on's classes and of the scene's properties."""
    scene = [each for each in bpy.types.Scene.bl_rna.properties if each.identifier.startswith("fabrik")]
    scene += [each for each in bpy.types.Object.bl_rna.properties if each.identifier.startswith("fabrik")]
    for cls in CLASSES:
        where, about = cls.__name__, cls.bl_rna
        if issubclass(cls, bpy.types.Operator):
            group, operator = cls.bl_idname.split(".")
            about = getattr(getattr(bpy.ops, group), operator).get_rna_type()
            yield where, about.name
            yield where, about.description
        elif issubclass(cls, (bpy.types.Panel, bpy.types.Menu)):
            yield where, cls.bl_label
            yield where, getattr(cls, "bl_category", "")
        for prop in properties_of(about):
            yield from texts_of(where, prop)
    for prop in scene:
        yield from texts_of("Scene", prop)


def texts_of(where, prop):
    """(where, text) of a property: its name, its tooltip, and those of its enum items."""
    yield f"{where}.{prop.identifier}", prop.name
    yield f"{where}.{prop.identifier}", prop.description
    for item in getattr(prop, "enum_items_static", ()) if prop.type == "ENUM" else ():
        yield f"{where}.{prop.identifier}.{item.identifier}", item.name
        yield f"{where}.{prop.identifier}.{item.identifier}", item.description


def drawn():
    """(where, text) of the fixed texts in the source of panels and menus."""
    for path in sorted(UI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found = [keyword.value for keyword in node.keywords if keyword.arg in _DRAWN]
                called = ast.unparse(node.func).rpartition(".")[2]
                if called in _SAYING:
                    found += node.args[:1] if called in {"ui_text", "ui_message"} else node.args[1:2]
                yield from ((f"{path.name}:{node.lineno}", text) for value in found for text in fixed(value))
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == _CONSTANT:
                yield from ((f"{path.name}:{node.lineno}", text) for each in node.value.values for text in fixed(each))
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == _DOING:
                yield f"{path.name}:{node.lineno}", node.value.value
            if isinstance(node, ast.FunctionDef) and node.name in _SENTENCES:
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value is not None:
                        yield from (
                            (f"{path.name}:{each.lineno}", text) for text in fixed(each.value) if "fabrik." not in text
                        )


def fixed(node):
    """The fixed texts that an expression may have as values, without parts of joined texts and idnames of operators."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.startswith("fabrik."):
        yield node.value
    if isinstance(node, ast.Tuple):
        yield from (text for each in node.elts for text in fixed(each))
    if isinstance(node, ast.IfExp):
        yield from (*fixed(node.body), *fixed(node.orelse))
    if isinstance(node, ast.BoolOp):
        yield from (text for value in node.values for text in fixed(value))


def all_texts():
    """Each text, with the place of its first use."""
    found = {}
    for where, text in (*registered(), *drawn()):
        if any(map(str.isalpha, text)):
            found.setdefault(text, where)
    return found
