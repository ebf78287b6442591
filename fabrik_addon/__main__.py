"""`python -m fabrik_addon`: the command line."""

import os
import signal
import sys


def _stop_early(*_arguments: object) -> None:
    """Ctrl-C before there is anything to stop."""
    os.write(2, f"fabrik_{''.join(sys.argv[1:2])}: stopped; nothing was written\n".encode(errors="replace"))
    os._exit(130)


def _run() -> int:
    """The exit status of the command."""
    try:
        from .blender.bake.command_line import main
        from .blender.retarget.command_line import COMMAND
    except ModuleNotFoundError as missing:
        if missing.name != "bpy":
            raise
        sys.exit("fabrik_bake: this needs Blender as a Python module: pip install bpy")
    from . import register, unregister

    return main(register, unregister, [COMMAND])


signal.signal(signal.SIGINT, _stop_early)
status = _run()
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.stdout.flush()
sys.stderr.flush()
# At the end of Python Blender's module waits forever for a thread of its own if the rig has a driver that Python
# evaluates (4.5).
os._exit(status)
