"""The command line: `python -m fabrik_addon bake …`, and the same as `blender --command fabrik_bake …`."""

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from bpy.props import BoolProperty, IntProperty

from ...core.errors import FabrikError
from ...markers.files.suffixes import SUFFIXES
from ...markers.mapping.labels import PRESETS
from ...markers.report.text import table_text
from ..capture.import_markers import Timing
from ..settings.bake_options import OPTIONS
from .file import BakeFileRequest, BakeFileResult, bake_file
from .report import BakeResult

_FAILURE = 1
_USAGE = 2
# What shells give for Ctrl C.
_STOPPED = 130
_DESCRIPTION = "Bake motion-capture files onto a rig: keyframes into new .blend files, a report of how well they fit."


# Flags that are not called as the option is, and what numbers are in.
_FLAGS: Final = {"action": "--write", "key_angle": "--fewer-keys"}
_TIMINGS: Final[dict[str, Timing]] = {
    "set-rate": "SET_SCENE_RATE",
    "keep-time": "KEEP_TIME",
    "keep-frames": "KEEP_FRAMES",
}
# A recording is always baked by its markers.
_BAKED: Final = {name: declared for name, declared in OPTIONS.items() if name != "source"}
_UNITS: Final = {"ANGLE": "DEGREES", "LENGTH": "METRES"}


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it and leave."""
        self.exit(_USAGE, f"{self.prog}: {message} (see --help)\n")


class Command(NamedTuple):
    """One of the commands: its name, what it does in a sentence, what it is told, and what runs it."""

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(register: Callable[[], None], unregister: Callable[[], None], more: Sequence[Command] = ()) -> int:
    """Run `python -m fabrik_addon`; returns the exit status: 0, 1 it failed, 2 it was called wrongly, 130 by Ctrl C.

    register, unregister: switch the add-on on and off. more: commands beside the bake.
    """
    known = (Command("bake", _DESCRIPTION, _add_arguments, _bake), *more)
    parser = Parser(prog="python -m fabrik_addon", description="FABRIK for Blender without a window.")
    names = "|".join(command.name for command in known)
    commands = parser.add_subparsers(dest="command", required=True, metavar=names, parser_class=Parser)
    for command in known:
        added = commands.add_parser(command.name, help=command.description, description=command.description)
        command.add_arguments(added)
        added.set_defaults(run=command.run)
    chosen = parser.parse_args()
    register()
    try:
        status: int = chosen.run(chosen)
    except KeyboardInterrupt:
        fail("stopped; what was written before is kept", chosen.command)
        return _STOPPED
    else:
        return status
    finally:
        # What is still registered when Python ends crashes Blender.
        unregister()


def run_command(arguments: list[str], command: Command | None = None) -> int:
    """Run `blender --command fabrik_bake`, inside a Blender with the extension switched on; returns the exit status.

    command: another one.
    """
    command = command or Command("bake", _DESCRIPTION, _add_arguments, _bake)
    parser = Parser(prog=f"blender --command fabrik_{command.name}", description=command.description)
    command.add_arguments(parser)
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else _USAGE
    return command.run(chosen)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a bake is told."""
    parser.add_argument("rig", type=Path, metavar="RIG.blend", help="file with the armature")
    text = f"the recording, {' or '.join(SUFFIXES)}; several are baked one after the other, each to a file of its own"
    parser.add_argument("markers", type=Path, nargs="+", metavar="MARKERS", help=text)
    text = "file to write; of several recordings the folder to write to"
    parser.add_argument("--output", type=Path, required=True, metavar="OUT", help=text)
    text = "CSV to write with the errors of each marker and frame; of several recordings the folder"
    parser.add_argument("--report", type=Path, metavar="OUT.csv", help=text)
    parser.add_argument("--armature", default="", metavar="NAME", help="the armature object, where there are several")
    add_strict(parser)
    for add in (_add_matching, _add_frames, _add_positions, _add_options):
        add(parser.add_argument_group(add.__doc__.rstrip(".") if add.__doc__ else ""))


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Whether doubts count."""
    text = "a warning makes the exit status 1, such as that few markers are on bones; files are written all the same"
    parser.add_argument("--strict", action="store_true", help=text)


def _add_matching(group: Any) -> None:
    """Which marker is where on which bone."""
    text = "a map that says it; without one markers are matched by their labels and calibrated"
    group.add_argument("--map", dest="mapping", type=Path, metavar="MAP.json", help=text)
    text = f"the set of labels: {', '.join(PRESETS)} (default: the one that fits)"
    group.add_argument("--preset", choices=PRESETS, default="AUTO", metavar="NAME", help=text)
    text = "measure where the markers are, also with a map"
    group.add_argument("--calibrate", action="store_true", default=None, help=text)
    text = "recording of the same person standing, to calibrate from"
    group.add_argument("--static", type=Path, metavar="FILE", help=text)
    text = "first and last scene frame to calibrate from (default: the stillest)"
    group.add_argument("--reference", type=int, nargs=2, metavar=("A", "B"), help=text)
    text = "one scale, each limb's own length, the rig's rest pose fitted, or as recorded (default: limbs)"
    group.add_argument("--proportions", choices=("uniform", "limbs", "rest", "none"), default="limbs", help=text)
    text = "move the recording up or down so that feet stand on the rig's floor (default: %(default)s)"
    group.add_argument("--floor", dest="on_floor", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "whose markers, where there are several people's"
    group.add_argument("--performer", default="", metavar="NAME", help=text)


def _add_frames(group: Any) -> None:
    """Which frames, and how the recording's rate meets the scene's."""
    text = "frame of the first sample (default: 1)"
    group.add_argument("--start-frame", type=int, default=1, metavar="N", help=text)
    text = "first and last frame of the recording, counted from 1 (default: all)"
    group.add_argument("--samples", type=int, nargs=2, metavar=("A", "B"), help=text)
    text = "first and last scene frame to bake (default: all that was imported)"
    group.add_argument("--range", dest="frame_range", type=int, nargs=2, metavar=("A", "B"), help=text)
    text = "set the scene's rate to the recording's (default), resample to the scene's, or keep one sample a frame"
    group.add_argument("--timing", choices=tuple(_TIMINGS), default="set-rate", help=text)


def _add_positions(group: Any) -> None:
    """How to read the positions."""
    group.add_argument(
        "--up", dest="up_axis", choices=("auto", "Y", "Z"), default="auto", help="axis that points up (default: auto)"
    )
    units = ("auto", "mm", "cm", "m", "in", "ft")
    group.add_argument("--units", choices=units, default="auto", help="units of positions (default: the file's)")
    text = "factor on positions, or auto to make the person as large as the rig (default: 1)"
    group.add_argument("--scale", type=_scale, default=1.0, metavar="auto|FACTOR", help=text)


def _add_options(group: Any) -> None:
    """How the poses are found, and which keys are written."""
    add_options(group, _BAKED)
    roots = ("fixed", "free")
    group.add_argument("--root", choices=roots, default="free", help="whether the root bone moves (default: free)")
    text = "let outliers count like the others: the same as --no-robust"
    group.add_argument("--all-markers", dest="robust", action="store_false", help=text)
    group.add_argument("--action", dest="action_name", default="", metavar="NAME", help="name of the action to write")


def add_options(group: Any, options: Mapping[str, Any]) -> None:
    """Arguments for options as Blender's properties declare them."""
    for name, declared in options.items():
        words = declared.keywords
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        text = f"{words['description'][0].lower()}{words['description'][1:]} (default: %(default)s)"
        if "items" in words:
            choices = [identifier.lower().replace("_", "-") for identifier, *_ in words["items"]]
            group.add_argument(flag, dest=name, choices=choices, default=choices[0], help=text)
        elif declared.function is BoolProperty:
            default = words.get("default", False)
            group.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=default, help=text)
        else:
            kind = int if declared.function is IntProperty else float
            unit = _UNITS.get(words.get("subtype", words.get("unit", "")), "N")
            group.add_argument(flag, dest=name, type=kind, default=words["default"], metavar=unit, help=text)


def _scale(text: str) -> float | None:
    """A factor, None for "auto"."""
    if text == "auto":
        return None
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor > 0.0):
        raise argparse.ArgumentTypeError(f"{text!r} must be auto or a number above zero")
    return factor


def _bake(chosen: argparse.Namespace) -> int:
    """Bake, print how it went, and return the exit status."""

    def bake(markers: Path, output: Path, report: Path | None) -> tuple[BakeResult, list[str]]:
        result = bake_file(_request(chosen, markers, output, report))
        return result.bake, _found(result)

    return run_each("bake", chosen, chosen.markers, bake)


def run_each(
    command: str,
    chosen: argparse.Namespace,
    recordings: Sequence[Path],
    work: Callable[[Path, Path, Path | None], tuple[BakeResult, list[str]]],
) -> int:
    """Take recordings one after the other, print how each went, and return 0 only where all went well.

    work: given a recording, the file and the report to write, does it; what came of it, and lines to print above that.
    Of several recordings each has one line, and one for each warning.
    """
    several = len(recordings) > 1
    trouble = _batch_trouble(chosen, recordings) if several else ""
    if trouble:
        return fail(trouble, command)
    failed = 0
    for recording in recordings:
        files = _files(chosen, recording) if several else (chosen.output, chosen.report)
        try:
            result, found = work(recording, *files)
        except FabrikError as error:
            failed += 1
            why = " ".join(str(error).split())
            if several:
                print(f"{recording.name}: FAILED: {why.removeprefix(f'{recording.name}: ')}", flush=True)
            else:
                fail(why, command)
            continue
        if several:
            warnings = [f"{recording.name}: Warning: {doubt}" for doubt in result.report.doubts]
            print("\n".join([f"{recording.name}: {result.line} -> {files[0]}", *warnings]), flush=True)
        else:
            print("\n".join([*found, *_summary(result, files)]))
        failed += chosen.strict and bool(result.report.doubts)
    if several:
        print(f"{len(recordings) - failed} of {len(recordings)} takes written")
    return _FAILURE if failed else 0


def _files(chosen: argparse.Namespace, recording: Path) -> tuple[Path, Path | None]:
    """What is written of one of several recordings."""
    report = None if chosen.report is None else chosen.report / f"{recording.stem}.csv"
    return chosen.output / f"{recording.stem}.blend", report


def _batch_trouble(chosen: argparse.Namespace, recordings: Sequence[Path]) -> str:
    """What keeps several recordings from being written to folders; "" where nothing does."""
    for folder in (chosen.output, chosen.report):
        if folder is not None and not folder.is_dir():
            return f"{folder}: there is no such folder to write several takes to: make it first"
    names = [recording.stem for recording in recordings]
    twice = next((name for name in names if names.count(name) > 1), None)
    return f"two recordings are called {twice!r}, as their files would be: rename one" if twice else ""


def _request(chosen: argparse.Namespace, markers: Path, output: Path, report: Path | None) -> BakeFileRequest:
    """The arguments as the Blender side takes them."""
    told = {name: value for name, value in vars(chosen).items() if name in BakeFileRequest.__dataclass_fields__}
    told |= {"markers": markers, "output": output, "report": report, "options": chosen_options(chosen, _BAKED)}
    told |= {"root": chosen.root.upper(), "proportions": chosen.proportions.upper(), "timing": _TIMINGS[chosen.timing]}
    told |= {name: None for name in ("up_axis", "units") if told[name] == "auto"}
    return BakeFileRequest(**told)


def chosen_options(chosen: argparse.Namespace, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `add_options` has added, as Blender's properties have them."""
    options = {name: getattr(chosen, name) for name in declared}
    for name, value in options.items():
        if "items" in declared[name].keywords:
            options[name] = value.upper().replace("-", "_")
        elif declared[name].keywords.get("subtype") == "ANGLE":
            options[name] = math.radians(value)
    return options


def _found(result: BakeFileResult) -> list[str]:
    """What to print of the recording, how its markers came on bones, and the calibration."""
    clip = result.clip
    what = f"{clip.source}: {len(clip.names)} markers, {clip.frame_count} frames at {clip.rate:g} Hz, {clip.units}"
    lines = [f"{what}, {clip.up_axis} up, scaled by {result.scale:.4g}"]
    lines += [f"Note: {note}" for note in clip.notes]
    if result.matched is not None:
        guessed = [f"{label} on {bone}" for label, bone in result.guessed.items()]
        free = ", ".join(label for label in result.matched.unmatched if label not in result.guessed)
        lines.append(f"Matched by {result.matched.preset or 'label'}: {len(result.matched.markers)} markers on bones")
        lines += [f"Guessed by motion: {', '.join(guessed)}"] if guessed else []
        lines += [f"Without a bone: {free}"] if free else []
    return lines if result.calibration is None else [*lines, result.calibration.line]


def _summary(result: BakeResult, files: Sequence[Path | None]) -> list[str]:
    """What to print of a bake: the table, what is to be noted, the times and the files."""
    times = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in result.timings.items())
    return [
        table_text(result.report),
        result.line,
        *result.notes,
        *(f"Note: {warning}" for warning in result.warnings),
        *(f"Warning: {doubt}" for doubt in result.report.doubts),
        f"Took: {times}",
        f"Wrote {' and '.join(str(path) for path in files if path is not None)}",
    ]


def fail(message: str, command: str = "bake") -> int:
    """Say in one line what went wrong."""
    print(f"fabrik_{command}: {message}", file=sys.stderr)
    return _FAILURE
