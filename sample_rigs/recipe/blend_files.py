"""Turn recipes into .blend files with Blender."""

from __future__ import annotations

from collections.abc import Iterable
from math import radians
from pathlib import Path

import bpy
import numpy as np
from mathutils import Euler, Vector

from .bones import Bone, FloatArray
from .skin import Skin

# Workspaces that are useful with rigs. The layouts of the others would double the size of the file.
WORKSPACES = ("Layout", "Animation")
# The view's rotation, and its distance as a multiple of the rig's largest extent. A viewport of 1500 × 900 pixels
# then shows a person 700 pixels tall.
_VIEW = (radians(80.0), 0.0, radians(25.0))
_AWAY = 1.5


def start_file() -> None:
    """Start an empty file with factory settings, in meters."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.data.batch_remove([each for each in bpy.data.workspaces if each.name not in WORKSPACES])
    bpy.data.batch_remove([each for each in bpy.data.screens if each.name not in WORKSPACES])


def frame(rig: bpy.types.Object) -> None:
    """Show the whole rig in each viewport, from the front, slightly from the side and from above."""
    corners = [rig.matrix_world @ end for bone in rig.data.bones for end in (bone.head_local, bone.tail_local)]
    low, high = (Vector(map(pick, zip(*corners, strict=True))) for pick in (min, max))
    for screen in bpy.data.screens:
        for area in screen.areas:
            if area.type == "VIEW_3D":
                view = area.spaces.active.region_3d
                view.view_perspective = "PERSP"
                view.view_rotation = Euler(_VIEW).to_quaternion()
                view.view_location, view.view_distance = (low + high) / 2, _AWAY * max(high - low)


def show_text(name: str, content: str) -> None:
    """Show a text at the right of the layout that is opened, in place of the Properties editor.

    name: with a suffix such as ".txt"; without one, Blender colors words as in Python.
    """
    text = bpy.data.texts.new(name)
    text.write(content)
    text.cursor_set(0)
    window = bpy.context.window
    (area,) = (area for area in window.screen.areas if area.type == "PROPERTIES")
    with bpy.context.temp_override(window=window, area=area):
        bpy.ops.screen.space_type_set_or_cycle(space_type="TEXT_EDITOR")
    editor = area.spaces.active
    editor.text, editor.show_line_numbers, editor.show_word_wrap, editor.font_size = text, False, True, 14


def save_file(path: Path) -> None:
    """Save compressed, without a backup of an older file."""
    bpy.context.preferences.filepaths.save_version = 0
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True, check_existing=False)


def add_armature(bones: Iterable[Bone], name: str = "Rig") -> bpy.types.Object:
    """An armature in Object mode with these bones, parents first, connected if they start at their parent's tail."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in bones:
        _add_bone(rig.data, bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.show_in_front = True
    return rig


def _add_bone(armature: bpy.types.Armature, bone: Bone) -> None:
    edit_bone = armature.edit_bones.new(bone.name)
    edit_bone.head, edit_bone.tail = bone.head, bone.tail
    edit_bone.align_roll(Vector(bone.rotation[:, 2]))
    if bone.parent:
        edit_bone.parent = armature.edit_bones[bone.parent]
        edit_bone.use_connect = edit_bone.parent.tail == edit_bone.head


def add_skin(skin: Skin, rig: bpy.types.Object, name: str = "Human") -> bpy.types.Object:
    """The smooth mesh, bound to the rig with vertex groups and an Armature modifier."""
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(skin.points.tolist(), [], skin.quads.tolist())
    mesh.polygons.foreach_set("use_smooth", np.ones(len(skin.quads), dtype=bool))
    mesh.materials.append(_clay())
    person = bpy.data.objects.new(name, mesh)
    bpy.context.collection.objects.link(person)
    person.parent = rig
    modifier = person.modifiers.new("Armature", "ARMATURE")
    modifier.object = rig
    for group, weights in zip(skin.groups, skin.weights.T, strict=True):
        _add_group(person, group, weights)
    return person


def _add_group(person: bpy.types.Object, name: str, weights: FloatArray) -> None:
    group = person.vertex_groups.new(name=name)
    for vertex in np.flatnonzero(weights):
        group.add([int(vertex)], float(weights[vertex]), "REPLACE")


def _clay() -> bpy.types.Material:
    """A warm, matte material that looks the same in the viewport and in renders."""
    material = bpy.data.materials.new("Clay")
    color = (0.62, 0.36, 0.24, 1.0)
    material.diffuse_color = color
    material.use_nodes = True
    shader = material.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = color
    shader.inputs["Roughness"].default_value = 0.6
    return material
