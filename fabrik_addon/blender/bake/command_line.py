"""The command line: `python -m fabrik_addon bake …`, and the same as `blender --command fabrik_bake …`."""

import argparse
import math
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from bpy.props import BoolProperty, IntProperty

from ...core.errors import FabrikError
from ...markers.files.suffixes import LAYOUTS, SUFFIXES
from ...markers.mapping.labels import PRESETS
from ...markers.report.text import table_text
from ..capture.import_markers import Timing
from ..settings.bake_options import OPTIONS
from .batch import (
    INTERRUPTED,
    WORKER,
    Call,
    Outcome,
    Take,
    dask_executor,
    local_executor,
    outcomes,
    planned,
    quiet,
    serve,
    unexpected,
)
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
    """One of the commands.

    name: what it is called by. description: what it does, in a sentence. add_arguments: adds what it can be told to a
    parser. recordings: the argument that has the recordings. work: carries out one of its takes, writes its files, and
    returns the result and lines to print above it; raises a FabrikError, with no file written, if anything is wrong.
    """

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    recordings: str
    work: Callable[[argparse.Namespace, Take], tuple[BakeResult, list[str]]]


def main(register: Callable[[], None], unregister: Callable[[], None], more: Sequence[Command] = ()) -> int:
    """Run `python -m fabrik_addon`; returns the exit status: 0, 1 it failed, 2 it was called wrongly, 130 by Ctrl C.

    register, unregister: switch the add-on on and off. more: commands beside the bake.
    """
    known = {command.name: command for command in (BAKE, *more)}
    parser = Parser(prog="python -m fabrik_addon", description="FABRIK for Blender without a window.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(known), parser_class=Parser)
    for name, command in known.items():
        command.add_arguments(commands.add_parser(name, help=command.description, description=command.description))
    # For `--jobs`; people have no use for it.
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
    """Run `blender --command fabrik_bake`, inside a Blender with the extension switched on; returns the exit status.

    command: another one.
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
    """Carry out takes that another process gives, until there are no more; does not return."""
    known = {command.name: command for command in commands}
    serve(lambda call: _carry_out(known[call.command], call.chosen, call.take))


def _run(command: Command, chosen: argparse.Namespace) -> int:
    """Carry out all takes of a command, print how each went as it ends, and return the exit status."""
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
        return fail("nobody reads what is printed: keep the output open", command.name)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        fail("stopped; what was written before is kept", command.name)
        return _STOPPED
    finally:
        signal.signal(signal.SIGINT, before)
    return _FAILURE if failures or (chosen.strict and doubted) else 0


def _stop(*_arguments: object) -> NoReturn:
    """Ctrl-C: stop. Where Blender calls Python it swallows the exception; then nothing is written."""
    INTERRUPTED.set()
    raise KeyboardInterrupt


def _outcomes(
    command: Command, chosen: argparse.Namespace, takes: Sequence[Take]
) -> Generator[tuple[Take, Outcome], None, None]:
    """The takes and what came of them: one after the other here, or as they end in other processes."""
    count = min(chosen.jobs, len(takes))
    if count == 1 and not chosen.dask:
        for take in takes:
            yield take, _carry_out(command, chosen, take)
        return
    chosen = argparse.Namespace(**{name: _absolute(value) for name, value in vars(chosen).items()})
    calls = [Call(command.name, chosen, Take(*map(_absolute, take))) for take in takes]
    back = {call.take: take for call, take in zip(calls, takes, strict=True)}
    with dask_executor(chosen.dask) if chosen.dask else local_executor(count) as (executor, job):
        for take, outcome in outcomes(executor, job, calls):
            yield back[take], outcome


def _carry_out(command: Command, chosen: argparse.Namespace, take: Take) -> Outcome:
    """Carry out one take in this process; whatever goes wrong is its outcome, so that the others go on."""
    try:
        with quiet():
            result, found = command.work(chosen, take)
    except FabrikError as error:
        return Outcome(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001
        return Outcome(unexpected(error))
    return Outcome("", result.line, tuple(result.report.doubts), (*found, *_summary(result, take.files)))


def _absolute(value: Any) -> Any:
    """An argument; a path as it is called in any folder."""
    return value.absolute() if isinstance(value, Path) else value


def _say(text: str, *, to_stderr: bool = False) -> None:
    """Print text; what the terminal has no letters for, or is no text at all in a file's name, is escaped."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def fail(message: str, command: str) -> int:
    """Say in one line what went wrong."""
    _say(f"fabrik_{command}: {message}", to_stderr=True)
    return _FAILURE


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a bake is told."""
    parser.add_argument("rig", type=Path, metavar="RIG.blend", help="file with the armature")
    text = f"the recording, {' or '.join(SUFFIXES)}; of several each is baked to a file of its own"
    parser.add_argument("markers", type=Path, nargs="+", metavar="MARKERS", help=text)
    add_files(parser, "CSV to write with the errors of each marker and frame")
    for add in (_add_matching, _add_frames, _add_positions, _add_options):
        add(parser.add_argument_group(add.__doc__.rstrip(".") if add.__doc__ else ""))


def add_files(parser: argparse.ArgumentParser, report: str) -> None:
    """Arguments on the files that are written, on the armature, and on how many takes are carried out at once."""
    text = "file to write; of several recordings, or with a / at its end, the folder to write to"
    parser.add_argument("--output", required=True, metavar="OUT", help=text)
    parser.add_argument("--report", metavar="OUT.csv", help=f"{report}; a folder as for --output")
    text = "let the output replace the rig's own file"
    parser.add_argument("--overwrite", action="store_true", help=text)
    parser.add_argument("--armature", default="", metavar="NAME", help="the armature object, where there are several")
    text = "a warning makes the exit status 1, such as that few markers are on bones; files are written all the same"
    parser.add_argument("--strict", action="store_true", help=text)
    text = "how many takes to carry out at once, each in a process of its own (default: 1)"
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help=text)
    text = (
        "carry the takes out on a Dask cluster, by its scheduler, such as tcp://host:8786; its workers need the files"
    )
    parser.add_argument("--dask", default="", metavar="ADDRESS", help=text)


def _count(text: str) -> int:
    """A number of processes."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number above zero")
    return int(text)


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
    layouts = tuple(key.lower() for key in LAYOUTS)
    text = "the order of keypoints that have no names in the file (default: found by their number and the limbs)"
    group.add_argument("--layout", choices=("auto", *layouts), default="auto", help=text)
    add_rate(group)
    text = "factor on positions, or auto to make the person as large as the rig (default: 1)"
    group.add_argument("--scale", type=_scale, default=1.0, metavar="auto|FACTOR", help=text)


def add_rate(group: Any) -> None:
    """The frames a second of a file that does not say them, or says them wrongly."""
    text = "frames a second of the recording (default: the file's; 30 if it says none)"
    group.add_argument("--rate", type=_rate, metavar="HZ", help=text)


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


def _rate(text: str, wanted: str = "a number above zero") -> float:
    """A positive number; wanted: what the error says that it must be."""
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0.0):
        raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}")
    return rate


def _scale(text: str) -> float | None:
    """A factor, None for "auto"."""
    return None if text == "auto" else _rate(text, "auto or a number above zero")


def _bake(chosen: argparse.Namespace, take: Take) -> tuple[BakeResult, list[str]]:
    """Bake one recording."""
    result = bake_file(_request(chosen, take))
    return result.bake, _found(result)


def _request(chosen: argparse.Namespace, take: Take) -> BakeFileRequest:
    """The arguments as the Blender side takes them."""
    told = {name: value for name, value in vars(chosen).items() if name in BakeFileRequest.__dataclass_fields__}
    told |= {"markers": take.recording, "output": take.output, "report": take.report, "previous": take.previous}
    told |= {"options": chosen_options(chosen, _BAKED)}
    told |= {"root": chosen.root.upper(), "proportions": chosen.proportions.upper(), "timing": _TIMINGS[chosen.timing]}
    told |= {name: None for name in ("up_axis", "units", "layout") if told[name] == "auto"}
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


def _summary(result: BakeResult, files: Sequence[Path]) -> list[str]:
    """What to print of a bake: the table, what is to be noted, the times and the files."""
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
