"""`python -m fabrik_addon`: the command line."""

import os
import signal
import sys
import traceback


def _stop_early(*_arguments: object) -> None:
    """Handle Ctrl-C before there is anything to stop; a second one is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(2, f"fabrik_{''.join(sys.argv[1:2])}: stopped; nothing was written\n".encode(errors="replace"))
    os._exit(130)


def _run() -> None:
    try:
        from .batch import leave, start_early

        start_early(sys.argv[1:])
        from .blender.command_line import main
    except ModuleNotFoundError as missing:
        if missing.name != "bpy":
            raise
        sys.exit("fabrik_bake: this needs Blender as a Python module: pip install bpy")
    from . import register, unregister

    status = 1
    try:
        status = main(register, unregister)
    except SystemExit as done:
        # The parser exits for help, or for wrong arguments.
        status = done.code if isinstance(done.code, int) else status
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        leave(status)


signal.signal(signal.SIGINT, _stop_early)
# The matrices are small, so more threads of NumPy's BLAS would cost a fifth of the processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_run()
