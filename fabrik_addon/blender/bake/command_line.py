"""The command line: `python -m fabrik_addon bake …`, and the same as `blender --command fabrik_bake …`."""

import argparse
import math
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from bpy.props import BoolProperty, IntProperty, IntVectorProperty

from ...core.errors import FabrikError
from ...markers.files.suffixes import SUFFIXES
from ...markers.mapping.labels import PRESETS
from ...markers.report.text import table_text
from ..capture.import_markers import Timing
from ..settings.bake_options import OPTIONS
from ..settings.markers import CALIBRATION_OPTIONS, IMPORT_OPTIONS
from .bake import BakeResult
from .batch import (
    INTERRUPTED,
    WORKER,
    BatchTake,
    Call,
    Outcome,
    dask_executor,
    local_executor,
    outcomes,
    planned,
    quiet,
    serve,
    unexpected,
)
from .file import BakeFileRequest, BakeFileResult, bake_file

_FAILURE = 1
_USAGE = 2
# The exit status for Ctrl-C, as in shells.
_STOPPED = 130
_DESCRIPTION = "Bake mocap recordings to keyframes on a rig, in new .blend files, and report the errors."


# Flags whose names differ from their options.
_FLAGS: Final = {
    "key_angle": "--simplify",
    "robust": "--ignore-outliers",
    "on_floor": "--feet-on-floor",
    "keypoints": "--layout",
    "places": "--match-positions",
}
# Former names of flags, so that existing scripts still run.
_FORMER: Final = {
    "--contacts": "--plant-feet",
    "--no-contacts": "--no-plant-feet",
    "--fewer-keys": "--simplify",
    "--floor": "--feet-on-floor",
    "--no-floor": "--no-feet-on-floor",
    "--keypoints": "--layout",
    "--places": "--match-positions",
    "--preset": "--marker-set",
    "--robust": "--ignore-outliers",
    "--no-robust": "--no-ignore-outliers",
    "--all-markers": "--no-ignore-outliers",
    "--write": "--action",
}
_TIMINGS: Final[dict[str, Timing]] = {
    "set-rate": "SET_SCENE_RATE",
    "keep-time": "KEEP_TIME",
    "keep-frames": "KEEP_FRAMES",
}
# Without `source`: on the command line a bake always follows markers.
_BAKED: Final = {name: declared for name, declared in OPTIONS.items() if name != "source"}
# A switch that is neither turned on nor off is automatic.
_SWITCHED: Final = {None: "AUTO", True: "ON", False: "OFF"}
_UNITS: Final = {"ANGLE": "DEGREES", "LENGTH": "METERS"}


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, and accepts former names of flags."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments; see `argparse`."""
        pairs = [each.partition("=") for each in (sys.argv[1:] if args is None else args)]
        current = ["".join((_FORMER.get(flag, flag), equals, value)) for flag, equals, value in pairs]
        return super().parse_known_args(current, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        self.exit(_USAGE, f"{self.prog}: {message} (see --help)\n")


class Command(NamedTuple):
    """A command of the command line.

    name: the name on the command line. description: one sentence. add_arguments: adds the command's arguments to a
    parser. recordings: the argument with the recordings. work: processes one take, writes its files, and returns the
    result and lines to print above it; raises a FabrikError, with no file written, if anything is wrong.
    """

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    recordings: str
    work: Callable[[argparse.Namespace, BatchTake], tuple[BakeResult, list[str]]]


def main(register: Callable[[], None], unregister: Callable[[], None], more: Sequence[Command] = ()) -> int:
    """Run `python -m fabrik_addon`; returns the exit status: 0, 1 (failed), 2 (wrong arguments) or 130 (Ctrl C).

    register, unregister: switch the add-on on and off. more: commands in addition to the bake.
    """
    known = {command.name: command for command in (BAKE, *more)}
    parser = Parser(prog="python -m fabrik_addon", description="FABRIK for Blender without a window.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(known), parser_class=Parser)
    for name, command in known.items():
        command.add_arguments(commands.add_parser(name, help=command.description, description=command.description))
    # Only for `--jobs`, not for users.
    commands.add_parser(WORKER)
    chosen = parser.parse_args()
    register()
    try:
        if chosen.command == WORKER:
            serve_takes(known.values())
        return _run(known[chosen.command], chosen)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        unregister()


def run_command(arguments: list[str], command: Command | None = None) -> int:
    """Run `blender --command fabrik_bake`, in a Blender with the extension enabled; returns the exit status.

    command: a command other than the bake.
    """
    command = command or BAKE
    parser = Parser(prog=f"blender --command fabrik_{command.name}", description=command.description)
    command.add_arguments(parser)
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else _USAGE
    return _run(command, chosen)


def serve_takes(commands: Iterable[Command]) -> NoReturn:
    """Process takes from another process until there are no more; does not return."""
    known = {command.name: command for command in commands}
    serve(lambda call: _carry_out(known[call.command], call.chosen, call.take))


def _run(command: Command, chosen: argparse.Namespace) -> int:
    """Process all takes of a command, print the result of each as it ends, and return the exit status."""
    before = signal.signal(signal.SIGINT, _stop)
    try:
        takes = planned(chosen, getattr(chosen, command.recordings))
        several, failures, doubted = len(takes) > 1, [], 0
        with closing(_outcomes(command, chosen, takes)) as ended:
            for take, outcome in ended:
                name = take.recording.name
                doubted += bool(outcome.doubts)
                if outcome.failure and not several:
                    failures.append(outcome.failure)
                    fail(outcome.failure, command.name)
                elif outcome.failure:
                    failures.append(f"{name}: FAILED: {outcome.failure.removeprefix(f'{name}: ')}")
                    _say(failures[-1])
                elif several:
                    warnings = [f"{name}: Warning: {doubt}" for doubt in outcome.doubts]
                    _say("\n".join([f"{name}: {outcome.line} -> {take.output}", *warnings]))
                else:
                    _say("\n".join(outcome.details))
        if several:
            with_doubts = f", {doubted} of them with warnings" if doubted else ""
            _say("\n".join([f"{len(takes) - len(failures)} of {len(takes)} takes written{with_doubts}", *failures]))
    except FabrikError as error:
        return fail(" ".join(str(error).split()), command.name)
    except BrokenPipeError:
        return fail("the output was closed: keep it open", command.name)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        fail("stopped; complete files are kept", command.name)
        return _STOPPED
    finally:
        # None means that the handler was Blender's own, which Python can't restore.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    return _FAILURE if failures or (chosen.strict and doubted) else 0


def _stop(*_arguments: object) -> NoReturn:
    """Stop after Ctrl-C. The flag prevents files from being written even if Blender ignores the exception."""
    INTERRUPTED.set()
    raise KeyboardInterrupt


def _outcomes(
    command: Command, chosen: argparse.Namespace, takes: Sequence[BatchTake]
) -> Generator[tuple[BatchTake, Outcome], None, None]:
    """Yield the takes with their outcomes, processed one by one here, or in parallel in other processes."""
    count = min(chosen.jobs, len(takes))
    if count == 1 and not chosen.dask:
        for take in takes:
            yield take, _carry_out(command, chosen, take)
        return
    chosen = argparse.Namespace(**{name: _absolute(value) for name, value in vars(chosen).items()})
    calls = [Call(command.name, chosen, BatchTake(*map(_absolute, take))) for take in takes]
    back = {call.take: take for call, take in zip(calls, takes, strict=True)}
    with dask_executor(chosen.dask) if chosen.dask else local_executor(count) as (executor, job):
        for take, outcome in outcomes(executor, job, calls):
            yield back[take], outcome


def _carry_out(command: Command, chosen: argparse.Namespace, take: BatchTake) -> Outcome:
    """Process one take in this process; any error becomes its outcome, so that the other takes continue."""
    try:
        with quiet():
            result, found = command.work(chosen, take)
    except FabrikError as error:
        return Outcome(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001
        return Outcome(unexpected(error))
    return Outcome("", result.line, tuple(result.report.doubts), (*found, *_summary(result, take.files)))


def _absolute(value: Any) -> Any:
    """Make an argument absolute if it is a path; others don't change."""
    return value.absolute() if isinstance(value, Path) else value


def _say(text: str, *, to_stderr: bool = False) -> None:
    """Print text; escapes characters that the terminal can't show, and bytes of file names that are not text."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def fail(message: str, command: str) -> int:
    """Print an error in one line."""
    _say(f"fabrik_{command}: {message}", to_stderr=True)
    return _FAILURE


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a bake."""
    parser.add_argument("rig", type=Path, metavar="RIG.blend", help="file with the armature")
    text = f"the recording ({' or '.join(SUFFIXES)}); several recordings are baked to a file each"
    parser.add_argument("markers", type=Path, nargs="+", metavar="MARKERS", help=text)
    add_files(parser, "CSV file for the errors of each marker and frame")
    _add_matching(parser.add_argument_group("Markers and their bones"))
    _add_frames(parser.add_argument_group("Frames and frame rates"))
    _add_positions(parser.add_argument_group("Positions in the file"))
    _add_options(parser.add_argument_group("Poses and keys"))


def add_files(parser: argparse.ArgumentParser, report: str) -> None:
    """Add the arguments for the files to write, the armature, and the number of parallel takes."""
    text = "file to write; a folder if there are several recordings or it ends with /"
    parser.add_argument("--output", required=True, metavar="OUT", help=text)
    parser.add_argument("--report", metavar="OUT.csv", help=f"{report}; a folder as for --output")
    text = "let the output replace the rig's own file"
    parser.add_argument("--overwrite", action="store_true", help=text)
    parser.add_argument("--armature", default="", metavar="NAME", help="the armature object, if there are several")
    text = "exit with status 1 if there are warnings, for example about unassigned markers; files are still written"
    parser.add_argument("--strict", action="store_true", help=text)
    text = "number of takes to process at the same time, each in its own process (default: 1)"
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help=text)
    text = (
        "process the takes on a Dask cluster with this scheduler, such as tcp://host:8786; its workers need the files"
    )
    parser.add_argument("--dask", default="", metavar="ADDRESS", help=text)


def _count(text: str) -> int:
    """Parse a number of processes."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number above zero")
    return int(text)


def _add_matching(group: Any) -> None:
    """Add the arguments for markers and their bones."""
    text = "map of the markers to bones; without it, markers are matched by their labels and calibrated"
    group.add_argument("--map", dest="mapping", type=Path, metavar="MAP.json", help=text)
    text = f"the marker set: {', '.join(PRESETS)} (default: the one that fits best)"
    group.add_argument("--marker-set", dest="preset", choices=PRESETS, default="AUTO", metavar="NAME", help=text)
    text = "measure the positions of the markers on their bones, even if there is a map"
    group.add_argument("--calibrate", action="store_true", default=None, help=text)
    text = "recording of the same person standing, to calibrate from"
    group.add_argument("--static", type=Path, metavar="FILE", help=text)
    add_options(group, CALIBRATION_OPTIONS)
    text = "the person whose markers are baked, if there are several"
    group.add_argument("--performer", default="", metavar="NAME", help=text)


def _add_frames(group: Any) -> None:
    """Add the arguments for frames and frame rates."""
    add_options(group, {"start_frame": IMPORT_OPTIONS["start_frame"]})
    text = "first and last frame of the recording, counted from 1 (default: all)"
    group.add_argument("--samples", type=int, nargs=2, metavar=("A", "B"), help=text)
    text = "first and last scene frame to bake (default: all imported frames)"
    group.add_argument("--range", dest="frame_range", type=int, nargs=2, metavar=("A", "B"), help=text)
    text = "set the scene to the recording's rate (default), resample to the scene's rate, or keep one sample per frame"
    group.add_argument("--timing", choices=tuple(_TIMINGS), default="set-rate", help=text)


def _add_positions(group: Any) -> None:
    """Add the arguments for the positions in the file."""
    add_options(group, {name: declared for name, declared in IMPORT_OPTIONS.items() if name != "start_frame"})
    add_rate(group)
    text = "scale factor for positions, or auto to scale the person to the size of the rig (default: 1)"
    group.add_argument("--scale", type=_scale, default=1.0, metavar="auto|FACTOR", help=text)


def add_rate(group: Any) -> None:
    """Add the argument for the frame rate, for files whose rate is missing or wrong."""
    text = "frames per second of the recording (default: the file's rate, or 30)"
    group.add_argument("--rate", type=_rate, metavar="HZ", help=text)


def _add_options(group: Any) -> None:
    """Add the arguments for poses and keys."""
    add_options(group, _BAKED)
    roots = ("fixed", "free")
    group.add_argument("--root", choices=roots, default="free", help="whether the root bone moves (default: free)")
    group.add_argument("--action-name", default="", metavar="NAME", help="name of the new action")


def add_options(group: Any, options: Mapping[str, Any]) -> None:
    """Add arguments for options that are declared as Blender properties."""
    for name, declared in options.items():
        words = declared.keywords
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        text = f"{words['description'][0].lower()}{words['description'][1:]} (default: %(default)s)"
        if "items" in words:
            choices = [_word(identifier) for identifier, *_ in words["items"]]
            # Explain items whose words say less than their labels.
            unclear = [(_word(key), about) for key, label, about in words["items"] if " " in label]
            explained = "".join(f"; {word}: {about[0].lower()}{about[1:]}" for word, about in unclear)
            text = text.replace(" (default", f"{explained} (default")
            if "on" in choices:
                text = text.replace("%(default)s", "auto")
                group.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=text)
            else:
                group.add_argument(flag, dest=name, type=_word, choices=choices, default=choices[0], help=text)
        elif declared.function is BoolProperty:
            default = words.get("default", False)
            text = text.replace("%(default)s", "on" if default else "off")
            group.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=default, help=text)
        elif declared.function is IntVectorProperty:
            text = text.removesuffix(" (default: %(default)s)")
            group.add_argument(flag, dest=name, type=int, nargs=2, default=(0, 0), metavar=("A", "B"), help=text)
        else:
            kind = int if declared.function is IntProperty else float
            unit = _UNITS.get(words.get("subtype", words.get("unit", "")), "N")
            group.add_argument(flag, dest=name, type=kind, default=words["default"], metavar=unit, help=text)


def _word(identifier: str) -> str:
    """The spelling of a Blender enum identifier on the command line, such as "keep-frames"."""
    return identifier.lower().replace("_", "-")


def _rate(text: str, wanted: str = "a number above zero") -> float:
    """Parse a positive number; wanted: its description in the error message."""
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0.0):
        raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}")
    return rate


def _scale(text: str) -> float | None:
    """Parse a scale factor; None for "auto"."""
    return None if text == "auto" else _rate(text, "auto or a number above zero")


def _bake(chosen: argparse.Namespace, take: BatchTake) -> tuple[BakeResult, list[str]]:
    """Bake one recording."""
    request = {name: value for name, value in vars(chosen).items() if name in BakeFileRequest.__dataclass_fields__}
    request |= {"markers": take.recording, "output": take.output, "report": take.report, "previous": take.previous}
    request |= {"options": chosen_options(chosen, _BAKED), "calibration": chosen_options(chosen, CALIBRATION_OPTIONS)}
    request |= {"root": chosen.root.upper(), "timing": _TIMINGS[chosen.timing]}
    read = chosen_options(chosen, IMPORT_OPTIONS)
    request |= {name: None if value == "AUTO" else value for name, value in read.items()}
    result = bake_file(BakeFileRequest(**request))
    return result.bake, _found(result)


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


def _found(result: BakeFileResult) -> list[str]:
    """The lines to print about the recording, its markers and the calibration."""
    clip = result.clip
    what = f"{clip.source}: {len(clip.names)} markers, {clip.frame_count} frames at {clip.rate:g} Hz, {clip.units}"
    lines = [f"{what}, {clip.up_axis} up, scaled by {result.scale:.4g}"]
    lines += [f"Note: {note}" for note in clip.notes]
    if result.matched is not None:
        guessed = [f"{label} on {bone}" for label, bone in result.guessed.items()]
        free = ", ".join(label for label in result.matched.unmatched if label not in result.guessed)
        lines.append(
            f"Matched by {result.matched.preset or 'label'}: {len(result.matched.markers)} markers assigned to bones"
        )
        lines += [f"Guessed by motion: {', '.join(guessed)}"] if guessed else []
        lines += [f"Without a bone: {free}"] if free else []
    return lines if result.calibration is None else [*lines, result.calibration.line]


def _summary(result: BakeResult, files: Sequence[Path]) -> list[str]:
    """The lines to print about a bake: table, notes, times and files."""
    times = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in result.timings.items())
    return [
        table_text(result.report),
        result.line,
        *result.notes,
        *(f"Note: {warning}" for warning in result.warnings),
        *(f"Warning: {doubt}" for doubt in result.report.doubts),
        f"Took: {times}",
        f"Wrote {' and '.join(map(str, files))}",
    ]


BAKE: Final = Command("bake", _DESCRIPTION, _add_arguments, "markers", _bake)
