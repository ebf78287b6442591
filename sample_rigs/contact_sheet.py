"""Render evenly spaced frames of a baked rig and tile them into one picture.

    python sample_rigs/contact_sheet.py BLEND OUT.png [--columns 6] [--rows 3] [--object Rig] [--size 320x360]
                                        [--samples 8] [--title TEXT] [--frames FIRST LAST] [--angle 35] [--targets]

Runs in a Python that has `bpy` and renders with Cycles on the processor. The .blend file is only read. The camera walks
along with the rig, in front of it and to one side; the floor's pattern stays put. A rig without a mesh is drawn as
sticks.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

Picture = NDArray[np.float32]  # rows from the bottom, columns, red green blue alpha

LENS_MM, SENSOR_MM = 70.0, 24.0
CAMERA_DOWN = math.radians(16.0)
MARGIN = 1.16  # width of the picture relative to the figure
TITLE_SHARE = 0.11  # height of the title relative to a picture
TILE, STATURE = 0.5, 1.75  # side of the floor tiles for a person of this height, meters
INK = (0.05, 0.05, 0.06)


class SheetError(Exception):
    """The reason why the pictures can't be made, in one sentence."""


class Extent(NamedTuple):
    """The space that the figure needs on all frames, in world space."""

    ground: float
    height: float
    width: float
    facing: Vector

    @property
    def size(self) -> float:
        """The size of the figure, standing or lying."""
        return max(self.height, 0.5 * self.width)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the picture; returns 0, or 1 after printing one line to standard error."""
    options = _parse(arguments)
    try:
        make_sheet(options)
    except SheetError as trouble:
        print(f"contact_sheet: {trouble}", file=sys.stderr)
        return 1
    print(f"wrote {options.picture}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="contact_sheet.py", description="Tile evenly spaced frames of a baked rig.")
    parser.add_argument("blend", type=Path, metavar="BLEND", help="the file with the rig; it is not changed")
    parser.add_argument("picture", type=Path, metavar="OUT.png", help="the picture to write")
    parser.add_argument("--columns", type=_count, default=6)
    parser.add_argument("--rows", type=_count, default=3)
    parser.add_argument("--object", default="Rig", help="the armature (default: %(default)s, or the only one)")
    parser.add_argument(
        "--size", type=read_size, default=(320, 360), metavar="WIDTHxHEIGHT", help="size of one picture"
    )
    parser.add_argument("--samples", type=_count, default=8, help="samples per pixel (default: %(default)s)")
    parser.add_argument("--title", default="", metavar="TEXT", help="a line above the pictures")
    parser.add_argument("--frames", type=int, nargs=2, metavar=("FIRST", "LAST"), help="default: the action's range")
    parser.add_argument("--angle", type=float, default=40.0, help="degrees from the front (default: %(default)s)")
    parser.add_argument("--targets", action="store_true", help="draw each empty as a small ball")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def read_size(text: str) -> tuple[int, int]:
    """Width and height from WIDTHxHEIGHT."""
    try:
        width, height = (_count(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not WIDTHxHEIGHT, such as 320x360") from None
    return width, height


def make_sheet(options: argparse.Namespace) -> None:
    """Open the file, build a stage around the rig, render the frames and tile them. Raises SheetError."""
    rig = _open(options.blend, options.object)
    scene = bpy.context.scene
    frames = _frames(rig, options.frames, options.columns * options.rows)
    extent = _measure(rig, frames)
    _prepare_render(scene, options.size, options.samples)
    if not _has_skin(rig):
        _add_sticks(rig)
    if options.targets:
        _add_balls(0.008 * extent.size)
    _add_floor(extent)
    _add_light(scene, extent)
    camera = _add_camera(scene, extent, options.size)
    label = _add_label(camera, options.size)
    pictures = []
    for frame in frames:
        _aim(camera, rig, extent, frame, math.radians(options.angle))
        label.data.body = str(frame)
        pictures.append(_render(scene, options.size))
    sheet = _tiled(pictures, options.columns)
    if options.title:
        sheet = np.concatenate([sheet, _title_band(options.title, sheet.shape[1], options.size[1])])
    save(sheet, options.picture)


# --- the contents of the file


def _open(path: Path, name: str) -> bpy.types.Object:
    """Open the file and find the rig."""
    if not path.is_file():
        raise SheetError(f"there is no file {path}")
    try:
        with _quiet():
            bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False)
    except RuntimeError:
        raise SheetError(f"{path} is no .blend file that this Blender can open") from None
    armatures = [item for item in bpy.context.scene.objects if item.type == "ARMATURE"]
    named = [item for item in armatures if item.name == name]
    if not named and len(armatures) != 1:
        names = ", ".join(repr(item.name) for item in armatures) or "none"
        raise SheetError(f"{path} has no armature {name!r}; its armatures: {names}")
    return (named or armatures)[0]


def _frames(rig: bpy.types.Object, wanted: list[int] | None, count: int) -> list[int]:
    """Evenly spaced whole frames of the given range, or else of the rig's action or the scene."""
    scene = bpy.context.scene
    if wanted:
        first, last = wanted
    elif rig.animation_data and rig.animation_data.action:
        first, last = rig.animation_data.action.frame_range
    else:
        first, last = scene.frame_start, scene.frame_end
    return [round(frame) for frame in np.linspace(first, last, count)]


def _measure(rig: bpy.types.Object, frames: list[int]) -> Extent:
    """The space that the figure needs around its root, and the direction that it mostly faces."""
    lowest, highest, width, facing = math.inf, -math.inf, 0.0, Vector()
    for frame in sorted(set(frames)):
        bpy.context.scene.frame_set(frame)
        points = np.array([rig.matrix_world @ end for bone in rig.pose.bones for end in (bone.head, bone.tail)])
        lowest, highest = min(lowest, points[:, 2].min()), max(highest, points[:, 2].max())
        width = max(width, 2.0 * np.linalg.norm(points[:, :2] - _root(rig).xy, axis=1).max())
        facing += _facing(rig)
    height = highest - lowest
    ground = 0.0 if abs(lowest) < 0.1 * height else lowest
    facing.z = 0.0
    return Extent(ground, highest - ground, width, facing.normalized() if facing.length > 0.1 else Vector((0, -1, 0)))


def _root(rig: bpy.types.Object) -> Vector:
    return rig.matrix_world @ rig.pose.bones[0].head


def _facing(rig: bpy.types.Object) -> Vector:
    """The direction in which the figure faces: -Y at rest, rotated with the root."""
    root = rig.pose.bones[0]
    turn = root.matrix.to_quaternion() @ root.bone.matrix_local.to_quaternion().inverted()
    return rig.matrix_world.to_quaternion() @ turn @ Vector((0.0, -1.0, 0.0))


def _has_skin(rig: bpy.types.Object) -> bool:
    return any(
        modifier.type == "ARMATURE" and modifier.object == rig
        for item in bpy.context.scene.objects
        for modifier in item.modifiers
    )


# --- the stage


def _link(data: bpy.types.ID | None, name: str) -> bpy.types.Object:
    item = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(item)
    return item


def _add_sticks(rig: bpy.types.Object) -> None:
    """An octahedron for each bone."""
    wide, knee = 0.10, 0.15
    points = [(0, 0, 0), (wide, knee, 0), (0, knee, wide), (-wide, knee, 0), (0, knee, -wide), (0, 1, 0)]
    faces = [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 1, 4), (5, 1, 2), (5, 2, 3), (5, 3, 4), (5, 4, 1)]
    mesh = bpy.data.meshes.new("Stick")
    mesh.from_pydata(points, [], faces)
    mesh.materials.append(_painted("Stick", (0.62, 0.36, 0.24)))
    for bone in rig.data.bones:
        stick = _link(mesh, "Stick")
        stick.parent, stick.parent_type, stick.parent_bone = rig, "BONE", bone.name
        stick.location.y = -bone.length  # children of a bone are relative to its tail
        stick.scale = (bone.length,) * 3


def _add_balls(radius: float) -> None:
    """A ball on every empty."""
    import bmesh  # noqa: PLC0415  # available only after bpy has started

    mesh = bpy.data.meshes.new("Ball")
    shape = bmesh.new()
    bmesh.ops.create_icosphere(shape, subdivisions=2, radius=radius)
    shape.to_mesh(mesh)
    shape.free()
    mesh.materials.append(_painted("Ball", (0.05, 0.25, 0.7)))
    for empty in [item for item in bpy.context.scene.objects if item.type == "EMPTY"]:
        _link(mesh, "Ball").parent = empty


def _node_tree(owner: bpy.types.Material | bpy.types.World) -> bpy.types.NodeTree:
    """The nodes of a new material or world; Blender 5 creates them itself."""
    if owner.node_tree is None:
        owner.use_nodes = True
    return owner.node_tree


def _painted(name: str, color: tuple[float, float, float]) -> bpy.types.Material:
    material = bpy.data.materials.new(name)
    shader = _node_tree(material).nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*color, 1.0)
    shader.inputs["Roughness"].default_value = 0.8
    return material


def _add_floor(extent: Extent) -> None:
    """A wide floor with tiles, which show how far the figure moves."""
    side = 100.0 * extent.size
    mesh = bpy.data.meshes.new("Floor")
    mesh.from_pydata([(-side, -side, 0), (side, -side, 0), (side, side, 0), (-side, side, 0)], [], [(0, 1, 2, 3)])
    material = _painted("Floor", (0.5, 0.5, 0.5))
    nodes, links = material.node_tree.nodes, material.node_tree.links
    checker, place = nodes.new("ShaderNodeTexChecker"), nodes.new("ShaderNodeMapping")
    place.inputs["Location"].default_value = (0.0, 0.0, 0.5)  # away from the border between two layers of tiles
    checker.inputs["Scale"].default_value = STATURE / (TILE * extent.size)
    checker.inputs["Color1"].default_value = (0.40, 0.43, 0.46, 1.0)
    checker.inputs["Color2"].default_value = (0.28, 0.31, 0.34, 1.0)
    links.new(nodes.new("ShaderNodeTexCoord").outputs["Object"], place.inputs["Vector"])
    links.new(place.outputs["Vector"], checker.inputs["Vector"])
    links.new(checker.outputs["Color"], nodes["Principled BSDF"].inputs["Base Color"])
    mesh.materials.append(material)
    _link(mesh, "Floor").location.z = extent.ground


def _add_light(scene: bpy.types.Scene, extent: Extent) -> None:
    """A broad sun behind the viewer, and ambient light."""
    sun = _link(bpy.data.lights.new("Sun", "SUN"), "Sun")
    sun.data.energy, sun.data.angle = 2.6, math.radians(12.0)
    toward_sun = Matrix.Rotation(math.radians(75.0), 3, "Z") @ extent.facing + Vector((0.0, 0.0, 1.5))
    sun.rotation_mode = "QUATERNION"
    sun.rotation_quaternion = toward_sun.to_track_quat("Z", "Y")
    world = bpy.data.worlds.new("Sky")
    background = _node_tree(world).nodes["Background"]
    background.inputs["Color"].default_value = (0.75, 0.80, 0.86, 1.0)
    background.inputs["Strength"].default_value = 0.6
    scene.world = world


def _add_camera(scene: bpy.types.Scene, extent: Extent, size: tuple[int, int]) -> bpy.types.Object:
    camera = _link(bpy.data.cameras.new("Camera"), "Camera")
    camera.data.sensor_fit, camera.data.sensor_height, camera.data.lens = "VERTICAL", SENSOR_MM, LENS_MM
    camera.data.clip_start, camera.data.clip_end = 0.01 * extent.size, 200.0 * extent.size
    camera.rotation_mode = "QUATERNION"
    scene.camera = camera
    shown = MARGIN * max(extent.height, 0.8 * extent.width * size[1] / size[0])
    camera["distance"] = float(shown * LENS_MM / SENSOR_MM)
    return camera


def _aim(camera: bpy.types.Object, rig: bpy.types.Object, extent: Extent, frame: int, angle: float) -> None:
    """Go to the frame and aim at the middle of the figure, from `angle` to the side of its main direction."""
    bpy.context.scene.frame_set(frame)
    middle = _root(rig)
    middle.z = extent.ground + 0.5 * extent.height
    side = Quaternion((0.0, 0.0, 1.0), angle) @ extent.facing
    toward_camera = math.cos(CAMERA_DOWN) * side + Vector((0.0, 0.0, math.sin(CAMERA_DOWN)))
    camera.location = middle + camera["distance"] * toward_camera
    camera.rotation_quaternion = toward_camera.to_track_quat("Z", "Y")


def _add_label(camera: bpy.types.Object, size: tuple[int, int]) -> bpy.types.Object:
    """A number in the lower left corner, close to the camera."""
    half = 0.5 * SENSOR_MM / LENS_MM
    label = _text("", 0.10 * half * 2.0)
    label.parent = camera
    label.scale = (2.0 * camera.data.clip_start,) * 3
    left, bottom = -half * size[0] / size[1] + 0.06 * half, -half + 0.08 * half
    label.location = 2.0 * camera.data.clip_start * Vector((left, bottom, -1.0))
    for ray in ("diffuse", "glossy", "transmission", "shadow"):
        setattr(label, f"visible_{ray}", False)
    return label


def _text(words: str, height: float) -> bpy.types.Object:
    """Text in a color that does not depend on the light."""
    curve = bpy.data.curves.new("Text", "FONT")
    curve.body, curve.size = words, height
    material = bpy.data.materials.new("Ink")
    tree = _node_tree(material)
    nodes = tree.nodes
    ink = nodes.new("ShaderNodeEmission")
    ink.inputs["Color"].default_value = (*INK, 1.0)
    tree.links.new(ink.outputs["Emission"], nodes["Material Output"].inputs["Surface"])
    curve.materials.append(material)
    return _link(curve, "Text")


# --- pictures


def _prepare_render(scene: bpy.types.Scene, size: tuple[int, int], samples: int) -> None:
    render = scene.render
    render.engine = "CYCLES"
    scene.cycles.device, scene.cycles.samples = "CPU", samples
    scene.cycles.use_denoising = scene.cycles.use_adaptive_sampling = False
    scene.cycles.max_bounces = 1
    scene.view_settings.view_transform = "Standard"
    render.resolution_x, render.resolution_y = size
    render.resolution_percentage = 100
    render.film_transparent = render.use_border = render.use_compositing = render.use_sequencer = False
    if hasattr(render.image_settings, "media_type"):
        render.image_settings.media_type = "IMAGE"
    render.image_settings.file_format, render.image_settings.color_mode = "PNG", "RGB"


def _render(scene: bpy.types.Scene, size: tuple[int, int]) -> Picture:
    """A picture of the current scene; rendered to a file, because Blender without a window keeps no other."""
    with tempfile.TemporaryDirectory() as folder:
        scene.render.filepath = str(Path(folder) / "picture.png")
        with _quiet():
            bpy.ops.render.render(write_still=True, scene=scene.name)
        image = bpy.data.images.load(scene.render.filepath)
        pixels = np.empty(size[0] * size[1] * 4, dtype=np.float32)
        image.pixels.foreach_get(pixels)
        bpy.data.images.remove(image)
    return pixels.reshape(size[1], size[0], 4)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide Blender's own output, which has a line for each sample."""
    sys.stdout.flush()
    kept = os.dup(1)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _title_band(title: str, width: int, picture_height: int) -> Picture:
    """A strip with the title, as wide as the sheet, rendered in its own scene."""
    scene = bpy.data.scenes.new("Title")
    size = (width, max(24, round(TITLE_SHARE * picture_height)))
    words = _text(title, 0.55)
    bpy.context.scene.collection.objects.unlink(words)
    scene.collection.objects.link(words)
    words.location = (0.25, 0.32, 0.0)
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    scene.collection.objects.link(camera)
    camera.data.type, camera.data.sensor_fit, camera.data.ortho_scale = "ORTHO", "VERTICAL", 1.0
    camera.location = (0.5 * size[0] / size[1], 0.5, 1.0)
    scene.camera, scene.world = camera, bpy.context.scene.world
    _prepare_render(scene, size, samples=4)
    return _render(scene, size)


def _tiled(pictures: list[Picture], columns: int) -> Picture:
    """The pictures in rows from the top left, separated by thin lines."""
    framed = [picture.copy() for picture in pictures]
    for picture in framed:
        picture[-1, :, :3] = picture[:, -1, :3] = 1.0
    rows = [np.concatenate(framed[i : i + columns], axis=1) for i in range(0, len(framed), columns)]
    return np.concatenate(rows[::-1], axis=0)


def save(sheet: Picture, path: Path) -> None:
    """Write a picture to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = bpy.data.images.new("Sheet", sheet.shape[1], sheet.shape[0])
    image.pixels.foreach_set(np.ascontiguousarray(sheet, dtype=np.float32).ravel())
    image.filepath_raw, image.file_format = str(path.resolve()), "PNG"
    image.save()


if __name__ == "__main__":
    sys.exit(main())
