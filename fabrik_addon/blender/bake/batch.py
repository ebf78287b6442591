"""Takes in other processes: Blenders beside this one, which take one recording after another, and clusters of them.

A call goes to another process as plain values, `Call`, and comes back as plain values, `Outcome`. Every take is one
job for a `concurrent.futures.Executor`. That is a pool of threads for the cores of this machine, or a Dask cluster.
Either way a thread hands the job to a Blender of its own, since Blender can do one thing at a time only, and since a
crash then costs one take. Nothing here needs Blender, so that a cluster's workers start without it.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from ...core.errors import FabrikError
from ...markers.whole_files import remove_parts

# The name of the command that makes a process take calls.
WORKER: Final = "worker"
# Set once Ctrl-C is pressed.
INTERRUPTED: Final = threading.Event()
# Seconds.
_DASK_TIMEOUT: Final = 20
# Blender prints before Python runs: what comes before this line is no outcome.
_READY: Final = b"fabrik: ready for takes\n"


class BatchError(FabrikError):
    """A call that cannot be carried out as a whole; the sentence says why."""


class Take(NamedTuple):
    """One recording of a call, and the files to write of it.

    previous: when the output was last changed before the call, None if there was none; a cluster may carry a take out
    twice, if a worker is lost.
    """

    recording: Path
    output: Path
    report: Path | None = None
    previous: int | None = None

    @property
    def files(self) -> list[Path]:
        """The files to write."""
        return [path for path in (self.output, self.report) if path is not None]


class Call(NamedTuple):
    """One take of a command, with all of the command's arguments."""

    command: str
    chosen: Namespace
    take: Take


class Outcome(NamedTuple):
    """What came of a take.

    failure: why nothing was written, one sentence; "" if files were written. line: the result in one line. doubts: what
    may be wrong with it. details: lines to print of a take that is the only one.
    """

    failure: str = ""
    line: str = ""
    doubts: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


Job = Callable[[Call], Outcome]


def planned(chosen: Namespace, recordings: Sequence[Path]) -> list[Take]:
    """The takes of a call, whose folders are made; raises BatchError if files to read or write get in each other's way.

    chosen: what all commands are told on files: rig, mapping, output, report, overwrite; of a bake also static.
    Output and report are folders if there are several recordings, or if they end with a slash.
    """
    several = len(recordings) > 1
    stem, count = Counter(recording.stem for recording in recordings).most_common(1)[0]
    if count > 1:
        raise BatchError(f"two recordings are called {stem!r}, as their files would be: give one another name")
    separators = tuple(filter(None, (os.sep, os.altsep)))
    folders = {Path(told) for told in (chosen.output, chosen.report) if told and (several or told.endswith(separators))}

    def place(told: str, name: str) -> Path:
        return Path(told) / name if Path(told) in folders else Path(told)

    takes = [
        Take(
            recording,
            place(chosen.output, f"{recording.stem}.blend"),
            None if chosen.report is None else place(chosen.report, f"{recording.stem}.csv"),
        )
        for recording in recordings
    ]
    try:
        takes = [take._replace(previous=modified(take.output)) for take in takes]
        _check_files(chosen, takes, folders)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise BatchError(f"{trouble.filename}: can't be used ({trouble.strerror}): choose another name") from None
    return takes


def _check_files(chosen: Namespace, takes: Sequence[Take], folders: Collection[Path]) -> None:
    """Raise BatchError, naming the file, for one that would be written over another of the call, or can't be."""
    read = [path for path in (chosen.rig, chosen.mapping, getattr(chosen, "static", None)) if path is not None]
    for path in read:
        if not path.is_file():
            raise BatchError(f"{path}: there is no such file: choose another")
    known = {identity(path): path for path in (*(take.recording for take in takes), *read)}
    alone = len(takes) == 1
    for path in (path for take in takes for path in take.files):
        if path.is_dir():
            raise BatchError(f"{path}: cannot be written, as there is a folder of that name: choose another name")
        if path.exists() and not path.is_file():
            raise BatchError(f"{path}: is no file that could be replaced: choose another name")
        if path.parent not in folders and not path.parent.is_dir():
            raise BatchError(f"{path}: cannot be written: make the folder {path.parent} first")
        for written in (path, *_kept_as(path)):
            other = known.setdefault(identity(written), written)
            is_rig = alone and other == chosen.rig and written == takes[0].output
            if other is not written and not (is_rig and chosen.overwrite):
                remedy = ", or add --overwrite" if is_rig else ""
                raise BatchError(f"{written}: would be written over {other}: choose another name{remedy}")
    for take in takes:
        if take.output.suffix != ".blend":
            raise BatchError(f"{take.output}: is no name of a file of Blender's: choose one that ends in .blend")


def _kept_as(path: Path) -> list[Path]:
    """Where the previous .blend goes, if there is one."""
    place = Path(os.path.realpath(path))
    return [place.with_name(f"{place.name}1")] if place.suffix == ".blend" and place.exists() else []


def modified(path: Path) -> int | None:
    """When a file was last changed, in nanoseconds; None if there is none."""
    return path.stat().st_mtime_ns if path.exists() else None


def identity(path: Path) -> object:
    """What two paths of the same file have in common, whatever links or letters lead there."""
    try:
        found = path.stat()
    except OSError:
        return os.path.normcase(os.path.realpath(path))
    return found.st_dev, found.st_ino


@contextmanager
def quiet() -> Iterator[None]:
    """Discard what is printed meanwhile, also by Blender itself: on files, errors of importers, memory."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(descriptor, os.dup(descriptor)) for descriptor in (1, 2)]
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            for descriptor, _ in kept:
                os.dup2(nowhere.fileno(), descriptor)
            with redirect_stdout(nowhere), redirect_stderr(nowhere):
                yield
    finally:
        for descriptor, before in kept:
            os.dup2(before, descriptor)
            os.close(before)


def leave(status: int) -> NoReturn:
    """End this process at once, and not by the end of Python.

    There Blender's module waits forever for a thread of its own if the rig has a driver that Python evaluates (4.5).
    """
    for stream in (sys.stdout, sys.stderr):
        # Nobody may be reading any more.
        with suppress(OSError):
            stream.flush()
    with suppress(OSError, AttributeError, KeyError):
        # Blender's folder for temporary files; if there is something in it, it stays.
        Path(sys.modules["bpy"].app.tempdir).rmdir()
    os._exit(status)


def serve(run: Job) -> NoReturn:
    """Take calls from standard input and send their outcomes to standard output, until the input ends.

    The input ends with the process that gives the calls, or when that has no more of them. Then this process ends at
    once, whatever it is doing.
    """
    calls, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    waiting: queue.Queue[tuple[str, Namespace, tuple[Any, ...]]] = queue.Queue()

    def read() -> None:
        with suppress(EOFError, OSError):
            while True:
                waiting.put(pickle.load(calls))
        leave(0)

    replies.write(_READY)
    replies.flush()
    threading.Thread(target=read, daemon=True).start()
    while True:
        command, chosen, take = waiting.get()
        pickle.dump(tuple(run(Call(command, chosen, Take(*take)))), replies)
        replies.flush()


class _Worker:
    """Another process with a Blender, which takes one call after another."""

    def __init__(self) -> None:
        program = getattr(getattr(sys.modules.get("bpy"), "app", None), "binary_path", "")
        package = Path(__file__).parents[2]
        command = [program, "--background", "--command", f"fabrik_{WORKER}"]
        command = command if program else [sys.executable, "-m", package.name, WORKER]
        path = os.pathsep.join(filter(None, (str(package.parent), os.environ.get("PYTHONPATH"))))
        # The matrices are small: a second thread in each process would only take its core from another process.
        threads = os.environ.get("OPENBLAS_NUM_THREADS", "1")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": threads},
            # Ctrl-C in a terminal is for the process that gives the calls; on Windows a flag says so.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._take: Take | None = None
        self._ready = False

    def run(self, call: Call) -> Outcome:
        """Hand over a call and wait for what comes of it."""
        self._take = call.take
        calls, replies = self._process.stdin, self._process.stdout
        try:
            while not self._ready:
                line = replies.readline()
                if not line:
                    raise EOFError  # noqa: TRY301
                self._ready = line == _READY
            # Plain tuples: in a Blender with the extension installed the classes have other names.
            pickle.dump((call.command, call.chosen, tuple(call.take)), calls)
            calls.flush()
            outcome = Outcome(*pickle.load(replies))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            # It has crashed, or another thread has stopped it.
            self.stop()
            return Outcome(f"Blender ended with status {self._process.returncode}: try this take alone")
        self._take = None
        return outcome

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """End the process, and remove what it has not completed."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()
        for path in () if self._take is None else self._take.files:
            remove_parts(Path(os.path.realpath(path)), self._process.pid)


class _Workers:
    """Processes with a Blender, one for each thread that has calls."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._all: list[_Worker] = []
        self._stopped = False
        self._lock = threading.Lock()

    def run(self, call: Call) -> Outcome:
        """Have a call carried out by this thread's process."""
        with self._lock:
            if self._stopped:
                return Outcome("stopped")
            worker: _Worker | None = getattr(self._own, "worker", None)
            if worker is None or worker.ended:
                worker = self._own.worker = _Worker()
                self._all.append(worker)
        return worker.run(call)

    def stop(self) -> None:
        """End all processes, whatever they are doing."""
        with self._lock:
            self._stopped = True
        for worker in self._all:
            worker.stop()


# Those of a process of a cluster; they end with it.
_OF_THIS_PROCESS: Final = _Workers()


def run_call(call: Call) -> Outcome:
    """Carry out a call on a cluster: in a Blender beside the cluster's worker."""
    return _OF_THIS_PROCESS.run(call)


@contextmanager
def local_executor(count: int) -> Iterator[tuple[Executor, Job]]:
    """`count` processes on this machine, which end with the block, and the function to give calls to."""
    workers = _Workers()
    with ThreadPoolExecutor(count) as executor:
        try:
            yield executor, workers.run
        finally:
            workers.stop()
            executor.shutdown(cancel_futures=True)


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, Job]]:
    """The workers of a Dask cluster, and the function to give calls to.

    Raises BatchError if there is no cluster, or if the package `distributed` is missing.
    """
    try:
        from distributed import Client  # noqa: PLC0415  # nobody else needs it
    except ModuleNotFoundError:
        raise BatchError("--dask needs the package distributed: use pip install distributed") from None
    try:
        client = Client(address, timeout=_DASK_TIMEOUT)
    except (OSError, ValueError, TypeError) as trouble:
        raise BatchError(f"{address}: there is no Dask scheduler ({trouble}): start one there") from None
    with client:
        # Not pure: a take that was baked before is baked again.
        yield client.get_executor(pure=False), run_call


def outcomes(executor: Executor, job: Job, calls: Iterable[Call]) -> Iterator[tuple[Take, Outcome]]:
    """The takes of calls and what came of them, each as soon as it has ended."""
    futures = {executor.submit(job, call): call.take for call in calls}
    try:
        for future in as_completed(futures):
            try:
                outcome = Outcome(*future.result())
            except Exception as trouble:  # noqa: BLE001  # a cluster may lose a job for any reason
                outcome = Outcome(unexpected(trouble))
            yield futures[future], outcome
    finally:
        for future in futures:
            future.cancel()


def unexpected(trouble: BaseException) -> str:
    """A sentence on an error that nobody has foreseen."""
    what = " ".join(f"{type(trouble).__name__}: {trouble}".split())
    return f"stopped by an error that is not expected ({what}): report it, with this file if you can"
