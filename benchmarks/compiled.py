"""The same algorithm in C, compiled on the machine if it has a compiler."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("fabrik.c")
_DOUBLES = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
_INTEGERS = np.ctypeslib.ndpointer(np.int32, flags="C_CONTIGUOUS")


def compiled_fabrik():
    """A function (start, lengths, targets, tolerance, most) → (points, sweeps), or None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "fabrik.so"
        subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-o", library, SOURCE, "-lm"], check=True)
        function = ctypes.CDLL(str(library)).fabrik
    number, integer = ctypes.c_double, ctypes.c_int
    function.argtypes = [integer, integer, _DOUBLES, _DOUBLES, _DOUBLES, number, integer, _DOUBLES, _INTEGERS]
    function.restype = None

    def solve(start, lengths, targets, tolerance, most):
        """(F, n + 1, 3) points and (F,) sweeps for (F, 3) targets."""
        points = np.empty((len(targets), len(lengths) + 1, 3))
        sweeps = np.empty(len(targets), dtype=np.int32)
        function(len(targets), len(lengths), lengths, start, targets, tolerance, most, points, sweeps)
        return points, sweeps

    return solve
