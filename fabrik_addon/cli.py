"""The command line: `python -m fabrik_addon bake …`, and the same as `blender --command fabrik_bake …`."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .core.errors import FabrikError

if TYPE_CHECKING:
    from .blender.bake_file import BakeFileRequest, BakeFileResult
    from .blender.import_markers import Timing

_FAILURE = 1
_USAGE = 2
_DESCRIPTION = "Bake a motion-capture file onto a rig: keyframes into a new .blend, a report of how well it fits."


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it and leave."""
        self.exit(_USAGE, f"{self.prog}: {message} (see --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m fabrik_addon`; returns the exit status: 0, 1 when it failed, 2 when it was called wrongly."""
    parser = _Parser(prog="python -m fabrik_addon", description="FABRIK for Blender without a window.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="bake", parser_class=_Parser)
    _add_arguments(commands.add_parser("bake", help=_DESCRIPTION, description=_DESCRIPTION))
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as leaving:
        return _status(leaving)
    try:
        from . import register, unregister  # noqa: PLC0415  needs Blender, which asking for help does not

        register()
    except ModuleNotFoundError as missing:
        if missing.name != "bpy":
            raise
        return _fail("this needs Blender as a Python module: pip install bpy")
    try:
        return _bake(chosen)
    finally:
        # What is still registered when Python ends crashes Blender.
        unregister()


def run_command(arguments: list[str]) -> int:
    """Run `blender --command fabrik_bake`, inside a Blender with the extension switched on; returns the exit status."""
    parser = _Parser(prog="blender --command fabrik_bake", description=_DESCRIPTION)
    _add_arguments(parser)
    try:
        chosen = parser.parse_args(arguments)
    except SystemExit as leaving:
        return _status(leaving)
    return _bake(chosen)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a bake is told."""
    parser.add_argument("rig", type=Path, metavar="RIG.blend", help="file with the armature")
    parser.add_argument("markers", type=Path, metavar="MARKERS.trc", help="the recording")
    parser.add_argument("--map", type=Path, required=True, metavar="MAP.json", help="which marker is on which bone")
    parser.add_argument("--output", type=Path, required=True, metavar="OUT.blend", help="file to write")
    parser.add_argument("--report", type=Path, metavar="OUT.csv", help="errors for each marker and frame")
    parser.add_argument("--armature", default="", metavar="NAME", help="the armature object, where there are several")
    parser.add_argument("--action", default="", metavar="NAME", help="name of the action that is written")
    _add_frame_arguments(parser)
    _add_marker_arguments(parser)
    choices = ("fixed", "free")
    parser.add_argument("--root", choices=choices, default="free", help="whether the root bone moves (default: free)")
    starts = ("rest", "previous")
    text = "pose that each frame is solved from (default: rest)"
    parser.add_argument("--start", choices=starts, default="rest", help=text)


def _add_frame_arguments(parser: argparse.ArgumentParser) -> None:
    """Which frames, and how the recording's rate meets the scene's."""
    text = "frame of the first sample (default: 1)"
    parser.add_argument("--start-frame", type=int, default=1, metavar="N", help=text)
    text = "first and last frame to bake (default: all of the recording)"
    parser.add_argument("--range", type=int, nargs=2, metavar=("A", "B"), help=text)
    parser.add_argument("--step", type=int, default=1, metavar="N", help="frames from key to key (default: 1)")
    timings = ("set-rate", "keep-time", "keep-frames")
    text = "set the scene's rate to the recording's (default), keep the time, or keep one sample a frame"
    parser.add_argument("--timing", choices=timings, default="set-rate", help=text)


def _add_marker_arguments(parser: argparse.ArgumentParser) -> None:
    """How to read the positions."""
    parser.add_argument("--up", choices=("auto", "Y", "Z"), default="auto", help="axis that points up (default: auto)")
    units = ("auto", "mm", "cm", "m")
    parser.add_argument("--units", choices=units, default="auto", help="units of positions (default: the file's)")
    text = "factor on positions, or auto to make the person as large as the rig (default: 1)"
    parser.add_argument("--scale", type=_scale, default=1.0, metavar="auto|FACTOR", help=text)


def _scale(text: str) -> float | None:
    """A factor, None for "auto"."""
    if text == "auto":
        return None
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor > 0.0):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a number above zero")
    return factor


def _bake(chosen: argparse.Namespace) -> int:
    """Bake, print how it went, and return the exit status."""
    from .blender.bake_file import bake_file  # noqa: PLC0415  needs Blender

    try:
        result = bake_file(_request(chosen))
    except FabrikError as error:
        return _fail(" ".join(str(error).split()))
    print("\n".join(_summary(chosen, result)))
    return 0


def _request(chosen: argparse.Namespace) -> "BakeFileRequest":
    """The arguments as the Blender side takes them."""
    from .blender.bake_file import BakeFileRequest  # noqa: PLC0415  needs Blender

    timings: dict[str, Timing] = {
        "set-rate": "SET_SCENE_RATE",
        "keep-time": "KEEP_TIME",
        "keep-frames": "KEEP_FRAMES",
    }
    return BakeFileRequest(
        rig=chosen.rig,
        markers=chosen.markers,
        mapping=chosen.map,
        output=chosen.output,
        report=chosen.report,
        armature=chosen.armature,
        start_frame=chosen.start_frame,
        frame_range=tuple(chosen.range) if chosen.range else None,
        step=chosen.step,
        timing=timings[chosen.timing],
        up_axis=None if chosen.up == "auto" else chosen.up,
        units=None if chosen.units == "auto" else chosen.units,
        scale=chosen.scale,
        root=chosen.root.upper(),
        start=chosen.start.upper(),
        action_name=chosen.action,
    )


def _summary(chosen: argparse.Namespace, result: "BakeFileResult") -> list[str]:
    """What to print: the recording, the table, the times and the files."""
    clip, baked = result.clip, result.bake
    times = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in baked.timings.items())
    files = [str(path) for path in (chosen.output, chosen.report) if path is not None]
    what = f"{clip.source}: {len(clip.names)} markers, {clip.frame_count} frames at {clip.rate:g} Hz, {clip.units}"
    return [
        f"{what}, {clip.up_axis} up, scaled by {result.scale:.4g}",
        baked.report.table(),
        baked.line,
        *(f"Note: {warning}" for warning in baked.warnings),
        f"Took: {times}",
        f"Wrote {' and '.join(files)}",
    ]


def _fail(message: str) -> int:
    """Say in one line what went wrong."""
    print(f"fabrik_bake: {message}", file=sys.stderr)
    return _FAILURE


def _status(leaving: SystemExit) -> int:
    """The exit status that the parser leaves with."""
    return leaving.code if isinstance(leaving.code, int) else _USAGE
