"""Bakes marker files and retargets motions without a window, and saves .blend files: `python -m fabrik_addon bake …`.

`blender --command fabrik_bake …` does the same. `retarget` is the other command.
"""

import argparse
import errno
import math
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import bpy
from bpy.props import BoolProperty, IntProperty, IntVectorProperty
from bpy.types import Object, Scene

from .. import batch
from ..core.errors import FabrikError
from ..markers.calibrate.calibrate import positions_of
from ..markers.calibrate.size import first_scale, guessed_offsets
from ..markers.clip import Clip, part_of
from ..markers.files import ADVICE, ARMATURE_SUFFIXES, SUFFIXES
from ..markers.files.any_file import read_markers
from ..markers.mapping.marker_map import check_map, read_map
from ..markers.mapping.marker_sets import PRESETS
from ..markers.report import table_text
from ..markers.signals import Timing
from ..markers.steps import finish
from ..markers.whole_files import prepared
from ..retarget.motion import RetargetError
from ..retarget.pairs import read_bone_map
from .bake.bake import BakeResult, BakeSettings, bake_steps, timed
from .capture.calibrate import calibrate_markers_steps
from .capture.import_markers import choose_performer, import_clip, key_take, remove_take
from .capture.matching import marked_skeletons, match_and_guess, set_entry
from .control.set_up import set_up_first
from .goals.places import UNKEYED
from .retarget import is_file, retarget_from
from .rig.armature import check_editable, check_rig, meters_per_unit
from .rig.keyframes import set_aside
from .settings.in_use import add_item
from .settings.motion import CALIBRATION_OPTIONS, IMPORT_OPTIONS, KEY_OPTIONS, MARKER_NAME, OPTIONS, RETARGET_OPTIONS
from .settings.rig import follow_take, rig_settings
from .settings.why_not import mapped_markers


def bake_file(chosen: argparse.Namespace, take: batch.BatchTake) -> tuple[BakeResult, list[str]]:
    """Open the rig, import the markers, assign them to bones, calibrate, bake and save.

    chosen: the arguments of the command. Replaces the markers of the rig, so that the saved file can be baked again by
    hand. Also returns lines about the recording, its markers and the calibration. Raises a FabrikError, with no file
    written, if anything is wrong.
    """
    UNKEYED.clear()
    clip = _read(chosen, take.recording)
    if chosen.samples is not None:
        clip = part_of(clip, *chosen.samples)
    static = None if chosen.static is None else _read(chosen, chosen.static)
    entries = None if chosen.mapping is None else read_map(chosen.mapping)
    (rig, notes), context = open_rig(chosen.rig, chosen.armature), bpy.context
    scale, timing, start = chosen.scale or 1.0, _TIMINGS[chosen.timing], chosen.start_frame
    if entries is not None:
        check_map(entries, clip.names, rig.data.bones.keys())
        meters = meters_per_unit(rig)
        entries = tuple(entry.scaled(1.0 / meters) for entry in entries)
        if chosen.scale is None:
            skeleton, own = marked_skeletons(rig, entries)[0]
            scale = meters * first_scale(skeleton, own, guessed_offsets(skeleton, own), positions_of(clip, own))
    recorded = import_clip(context, clip, timing=timing, start_frame=start, scale=scale, keyed=False)
    what = f"{clip.source}: {len(clip.names)} markers, {clip.frame_count} frames at {clip.rate:g} Hz, {clip.units}"
    last = start + len(UNKEYED[recorded.objects[0].name_full].locations) - 1
    # Don't keep all samples in memory twice.
    clip = part_of(clip, 1, 1)
    capture, lines = rig_settings(rig).capture, list[str]()
    if entries is None:
        lines.append(match_and_guess(context, rig, recorded, preset=chosen.preset)[0])
        if not mapped_markers(rig):
            raise FabrikError(f"{take.recording}: no label is known: map the markers to bones with --map")
    else:
        # The map's markers replace those of the rig.
        targets = {empty[MARKER_NAME]: empty for empty in recorded.objects}
        follow_take(rig, recorded)
        for entry in entries:
            set_entry(add_item(capture.markers, name=entry.marker, target=targets[entry.marker]), entry)
    calibrating = dict[str, float]()
    if chosen.calibrate or (chosen.calibrate is None and entries is None):
        # A static recording is removed from the file afterwards.
        other = None if static is None else import_clip(context, static, timing="KEEP_FRAMES", keyed=False)
        try:
            how = chosen_options(chosen, CALIBRATION_OPTIONS)
            with timed(calibrating, "calibrate"):
                calibration = finish(calibrate_markers_steps(context, rig, static=other, **how))
        finally:
            if other is not None:
                remove_take(other)
        scale *= calibration.scale
        lines.append(calibration.line)
    if chosen.keep_markers:
        key_take(recorded)
        set_aside(list(recorded.objects))
    rig_settings(rig).root = chosen.root.upper()
    frames, options = chosen.frame_range or (start, last), chosen_options(chosen, _BAKED)
    settings = BakeSettings(*frames, action_name=chosen.action_name, is_shown=False, source="MARKERS", **options)
    result = finish(bake_steps(context, rig, settings, (*clip.notes, *notes)))
    result = replace(result, timings=calibrating | result.timings)
    _show_range(context.scene, *frames)
    if not chosen.keep_markers:
        remove_take(recorded)
    _write_files(result, take)
    return result, [f"{what}, {clip.up_axis} up, scaled by {scale:.4g}", *lines]


def _read(chosen: argparse.Namespace, path: Path) -> Clip:
    suffix = path.suffix.lower()
    if suffix in ARMATURE_SUFFIXES:
        raise FabrikError(f"{path.name}: has an armature but no markers: use the command retarget")
    if suffix in ADVICE and suffix not in SUFFIXES:
        raise FabrikError(f"{path.name}: {ADVICE[suffix]}")
    units, up_axis, layout = _asked(chosen, "units", "up_axis", "keypoints")
    return choose_performer(read_markers(path, units, up_axis, layout, chosen.rate), chosen.performer)


def _asked(chosen: argparse.Namespace, *names: str) -> list[Any]:
    """Import options by name; None for those that are determined from the file."""
    found = chosen_options(chosen, {name: IMPORT_OPTIONS[name] for name in names})
    return [None if value == "AUTO" else value for value in found.values()]


def open_rig(path: Path, name: str) -> tuple[Object, list[str]]:
    """Open a .blend and find its armature: the one with the given name, or the only one.

    Also returns sentences about the setup of a control rig, which is set up if it has not been. Python in the file is
    not run. Raises a FabrikError if the file can't be opened or the armature can't be posed.
    """
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path.resolve()), load_ui=False, use_scripts=False)
    except RuntimeError:
        raise FabrikError(
            f"{path}: Blender {bpy.app.version_string} can't open it: choose a .blend, or save it again in this version"
        ) from None
    scene = bpy.context.scene
    # Objects of this file come last, so that they replace linked objects with the same name.
    things = sorted(scene.objects, key=lambda thing: thing.library is None)
    armatures = {found.name: found for found in things if found.type == "ARMATURE"}
    listed = ", ".join(map(repr, armatures))
    if not armatures:
        raise FabrikError(f"There is no armature in scene {scene.name!r}: choose a file with one")
    if name and name not in armatures:
        raise FabrikError(f"There is no armature {name!r} in scene {scene.name!r}: choose one of {listed}")
    if not name and len(armatures) > 1:
        raise FabrikError(f"There are several armatures, {listed}: choose one with --armature")
    rig = armatures.get(name) or next(iter(armatures.values()))
    check_rig(rig)
    check_editable(rig)
    notes = []
    if bpy.app.autoexec_fail:
        notes.append(
            f"Python in {path.name} was not run ({bpy.app.autoexec_fail_message}): drivers that use it have no effect"
        )
    line, left = set_up_first(bpy.context, rig)
    return rig, [*notes, *filter(None, [line]), *left]


def _show_range(scene: Scene, first: int, last: int) -> None:
    scene.frame_start, scene.frame_end = first, last
    scene.frame_set(first)


def _write_files(result: BakeResult, take: batch.BatchTake) -> None:
    """Write the .blend and the report, or neither; raises FabrikError if that fails.

    Like Blender when it saves, this keeps a .blend from before the call as .blend1.
    """
    libraries: Any = bpy.data.libraries
    for library in libraries:
        path = Path(bpy.path.abspath(library.filepath, library=library.parent))
        if batch.identity(path) in map(batch.identity, take.files):
            raise FabrikError(f"{path}: is linked by the rig's file and would be replaced: choose another name")
    paths, kept = take.files, bpy.context.preferences.filepaths.save_version > 0
    try:
        with prepared(*paths, keep_previous=kept and take.previous == batch.modified(take.output)) as parts:
            if take.report is not None:
                text = rig_settings(result.trees[0].problem.rig).capture.report.as_string()
                parts[1].write_text(text, encoding="utf-8", newline="")
            bpy.ops.wm.save_as_mainfile(filepath=str(parts[0]), compress=True, copy=True)
            # Blender reports success even if the disk is full. It can't list the contents of an incomplete file.
            try:
                with libraries.load(str(parts[0])):
                    pass
            except OSError:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            if batch.INTERRUPTED.is_set():
                raise KeyboardInterrupt
    except (OSError, RuntimeError) as trouble:
        reason = " ".join(str(getattr(trouble, "strerror", None) or trouble).split())
        names = " and ".join(str(path) for path in paths)
        raise FabrikError(f"{names}: cannot be written ({reason}): choose another folder, or free space") from None


_USAGE: Final = 2
_FLAGS: Final = {
    "key_angle": "--simplify",
    "robust": "--ignore-outliers",
    "on_floor": "--feet-on-floor",
    "keypoints": "--layout",
    "places": "--match-positions",
}
_TIMINGS: Final[dict[str, Timing]] = {
    "set-rate": "SET_SCENE_RATE",
    "keep-time": "KEEP_TIME",
    "keep-frames": "KEEP_FRAMES",
}
# Leave out `source`, because on the command line a bake always follows markers.
_BAKED: Final = {name: declared for name, declared in OPTIONS.items() if name != "source"}
# A switch that is neither turned on nor off is automatic.
_SWITCHED: Final = {None: "AUTO", True: "ON", False: "OFF"}
_UNITS: Final = {"ANGLE": "DEGREES", "LENGTH": "METERS"}


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        self.exit(_USAGE, f"{self.prog}: {message} (see --help)\n")


class Command(NamedTuple):
    """A command of the command line.

    description: one sentence. add_own: adds its own arguments to a parser. work: processes one take, writes its
    files, and returns the result and lines to print above it; raises a FabrikError, with no file written, if anything
    is wrong.
    """

    description: str
    add_own: Callable[[argparse.ArgumentParser], None]
    work: Callable[[argparse.Namespace, batch.BatchTake], tuple[BakeResult, list[str]]]


def main(register: Callable[[], None], unregister: Callable[[], None]) -> int:
    """Run `python -m fabrik_addon`; returns the exit status: 0, 1 (failed), 2 (wrong arguments) or 130 (Ctrl C).

    register, unregister: switch the add-on on and off.
    """
    parser = Parser(prog="python -m fabrik_addon", description="FABRIK for Blender without a window.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(COMMANDS), parser_class=Parser)
    for name, command in COMMANDS.items():
        add_arguments(commands.add_parser(name, help=command.description, description=command.description), command)
    # `--jobs` uses this command; users don't.
    commands.add_parser(batch.WORKER)
    chosen = parser.parse_args()
    register()
    try:
        if chosen.command == batch.WORKER:
            batch.serve(_carry_out)
        return batch.run(chosen.command, chosen, _carry_out)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        unregister()


def run_command(arguments: list[str], name: str = "bake") -> int:
    """Run `blender --command fabrik_…`, in a Blender with the extension enabled; returns the exit status."""
    if name == batch.WORKER:
        # Processes takes for a process that was started with `--jobs`.
        batch.serve(_carry_out)
    parser = Parser(prog=f"blender --command fabrik_{name}", description=COMMANDS[name].description)
    add_arguments(parser, COMMANDS[name])
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else _USAGE
    return batch.run(name, chosen, _carry_out)


def _carry_out(call: batch.Call) -> batch.Outcome:
    """Process one take in this process; any error becomes its outcome, so that the other takes continue."""
    try:
        with batch.quiet():
            result, found = COMMANDS[call.command].work(call.chosen, call.take)
    except FabrikError as error:
        return batch.Outcome(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001
        return batch.Outcome(batch.unexpected(error))
    times = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in result.timings.items())
    details = (*found, table_text(result.report), result.line, *result.figures, f"Took: {times}")
    return batch.Outcome("", result.line, tuple(result.report.notes), tuple(result.report.doubts), details)


def _add_bake_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Markers and their bones")
    text = f"the marker set: {', '.join(PRESETS)} (default: the one that fits best)"
    group.add_argument("--marker-set", dest="preset", choices=PRESETS, default="AUTO", metavar="NAME", help=text)
    text = "keep the animated markers in the output; without them, long takes need a third of the space (default: on)"
    group.add_argument("--keep-markers", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "measure the positions of the markers on their bones, even if there is a map"
    group.add_argument("--calibrate", action="store_true", default=None, help=text)
    text = "recording of the same person standing, to calibrate from"
    group.add_argument("--static", type=Path, metavar="FILE", help=text)
    add_options(group, CALIBRATION_OPTIONS)
    text = "the person whose markers are baked, if there are several"
    group.add_argument("--performer", default="", metavar="NAME", help=text)
    group = parser.add_argument_group("Frames and frame rates")
    add_options(group, {"start_frame": IMPORT_OPTIONS["start_frame"]})
    text = "first and last frame of the recording, counted from 1 (default: all)"
    group.add_argument("--samples", type=int, nargs=2, metavar=("A", "B"), help=text)
    text = "set the scene to the recording's rate (default), resample to the scene's rate, or keep one sample per frame"
    group.add_argument("--timing", choices=tuple(_TIMINGS), default="set-rate", help=text)
    group = parser.add_argument_group("Positions in the file")
    add_options(group, {name: IMPORT_OPTIONS[name] for name in ("units", "keypoints")})
    text = "scale factor for positions, or auto to scale the person to the size of the rig (default: 1)"
    group.add_argument("--scale", type=_scale, default=1.0, metavar="auto|FACTOR", help=text)
    group = parser.add_argument_group("Poses and keys")
    add_options(group, _BAKED)
    roots = ("fixed", "free")
    group.add_argument("--root", choices=roots, default="free", help="whether the root bone moves (default: free)")


def _add_retarget_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser.add_argument_group("Poses"), RETARGET_OPTIONS)
    add_options(parser.add_argument_group("Keys"), KEY_OPTIONS)


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the arguments of both commands, then those of one."""
    parser.add_argument("rig", type=Path, metavar="RIG.blend", help="file with the armature")
    text = "the recording; several recordings are written to a file each"
    parser.add_argument("recordings", type=Path, nargs="+", metavar="RECORDING", help=text)
    text = "file to write; a folder if there are several recordings or it ends with /"
    parser.add_argument("--output", required=True, metavar="OUT", help=text)
    text = "CSV file for the errors of markers or bones; a folder as for --output"
    parser.add_argument("--report", metavar="OUT.csv", help=text)
    text = "let the output replace the rig's own file"
    parser.add_argument("--overwrite", action="store_true", help=text)
    parser.add_argument("--armature", default="", metavar="NAME", help="the armature object, if there are several")
    text = "map of markers or source bones to the rig's bones; without it, they are matched by name"
    parser.add_argument("--map", dest="mapping", type=Path, metavar="MAP.json", help=text)
    text = "first and last scene frame to write (default: all frames of the recording)"
    parser.add_argument("--range", dest="frame_range", type=int, nargs=2, metavar=("A", "B"), help=text)
    add_options(parser, {"up_axis": IMPORT_OPTIONS["up_axis"]})
    text = "frames per second of the recording (default: the file's rate, or 30)"
    parser.add_argument("--rate", type=_positive, metavar="HZ", help=text)
    parser.add_argument("--action-name", default="", metavar="NAME", help="name of the new action")
    text = "exit with status 1 if there are warnings, for example about unassigned markers; files are still written"
    parser.add_argument("--strict", action="store_true", help=text)
    text = "number of takes to process at the same time, each in its own process (default: 1)"
    count = partial(_positive, kind=int, wanted="a whole number above zero")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help=text)
    text = (
        "process the takes on a Dask cluster with this scheduler, such as tcp://host:8786; its workers need the files"
    )
    parser.add_argument("--dask", default="", metavar="ADDRESS", help=text)
    command.add_own(parser)


def add_options(group: Any, options: Mapping[str, Any]) -> None:
    """Add arguments for options that are declared as Blender properties."""
    for name, declared in options.items():
        words = declared.keywords
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        items, shown = words.get("items", ()), " (default: %(default)s)"
        choices = [_word(identifier) for identifier, *_ in items]
        if declared.function is BoolProperty or "on" in choices:
            default = None if choices else words.get("default", False)
            shown = f" (default: {_SWITCHED[default].lower()})"
            how: dict[str, Any] = {"action": argparse.BooleanOptionalAction, "default": default}
        elif choices:
            how = {"type": _word, "choices": choices, "default": choices[0]}
        elif declared.function is IntVectorProperty:
            shown, how = "", {"type": int, "nargs": 2, "default": (0, 0), "metavar": ("A", "B")}
        else:
            unit = _UNITS.get(words.get("subtype", words.get("unit", "")), "N")
            kind = int if declared.function is IntProperty else float
            how = {"type": kind, "default": words["default"], "metavar": unit}
        # Explain words that are less clear than their labels.
        texts = [("", words["description"]), *((f"{_word(key)}: ", text) for key, label, text in items if " " in label)]
        text = "; ".join(f"{word}{text[0].lower()}{text[1:]}" for word, text in texts)
        group.add_argument(flag, dest=name, help=text + shown, **how)


def _word(identifier: str) -> str:
    """The spelling of a Blender enum identifier on the command line, such as "keep-frames"."""
    return identifier.lower().replace("_", "-")


def _positive(text: str, kind: type[float] = float, wanted: str = "a number above zero") -> float:
    """Parse a positive number; wanted: its description in the error message."""
    try:
        number = kind(text)
    except ValueError:
        number = kind(0)
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}")
    return number


def _scale(text: str) -> float | None:
    return None if text == "auto" else _positive(text, wanted="auto or a number above zero")


def chosen_options(chosen: argparse.Namespace, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `add_options` has added, as values of Blender properties."""
    options = {name: getattr(chosen, name) for name in declared}
    for name, value in options.items():
        if "items" in declared[name].keywords:
            items = [identifier for identifier, *_ in declared[name].keywords["items"]]
            options[name] = _SWITCHED.get(value) or next(each for each in items if _word(each) == value)
        elif declared[name].keywords.get("subtype") == "ANGLE":
            options[name] = math.radians(value)
    return options


def _retarget(chosen: argparse.Namespace, take: batch.BatchTake) -> tuple[BakeResult, list[str]]:
    motion, suffix = take.recording, take.recording.suffix.lower()
    if suffix in SUFFIXES and not is_file(str(motion)):
        raise RetargetError(f"{motion.name}: has markers but no armature: use the command bake")
    if not is_file(str(motion)):
        other = "can't be imported: choose a .bvh, .fbx, .glb, .usd, .npz or .mvnx file"
        raise RetargetError(f"{motion.name}: {ADVICE.get(suffix, other)}")
    pairs = () if chosen.mapping is None else read_bone_map(chosen.mapping)
    (rig, notes), context = open_rig(chosen.rig, chosen.armature), bpy.context
    how: dict[str, Any] = chosen_options(chosen, RETARGET_OPTIONS)
    bake = {**chosen_options(chosen, KEY_OPTIONS), "action_name": chosen.action_name, "is_shown": False}
    frames = chosen.frame_range or (None, None)
    (up_axis,) = _asked(chosen, "up_axis")
    steps = retarget_from(context, rig, str(motion.resolve()), frames, how, bake, pairs, up_axis, chosen.rate, notes)
    result = finish(steps)
    _show_range(context.scene, int(result.frames[0]), int(result.frames[-1]))
    _write_files(result, take)
    return result, []


COMMANDS: Final = {
    "bake": Command(
        f"Bake mocap recordings ({' or '.join(SUFFIXES)}) to keyframes on a rig in new .blend files and report errors.",
        _add_bake_arguments,
        bake_file,
    ),
    "retarget": Command(
        "Retarget .bvh, .fbx, .glb, .usd, .npz (SMPL) or .mvnx files to keyframes on a rig, in new .blend files.",
        _add_retarget_arguments,
        _retarget,
    ),
}
