"""Processes the takes of a command here, or in other processes with Blender, on this machine or on a cluster.

A call is sent to another process as plain values, `Call`, and returns as plain values, `Outcome`. Each take is one job
of a `concurrent.futures.Executor`: a pool of threads on this machine, or a Dask cluster. Each thread has its own
Blender process, because Blender can do only one thing at a time. A crash then affects only one take. This module does
not need Blender, so workers of a cluster start without it.
"""

import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from .core.errors import FabrikError
from .markers.whole_files import remove_parts

# The command that makes a process accept calls.
WORKER: Final = "worker"
INTERRUPTED: Final = threading.Event()
# Seconds to wait for a Dask cluster.
_DASK_TIMEOUT: Final = 20
# Exit statuses. That for Ctrl-C is the same as in shells.
_FAILURE: Final = 1
_STOPPED: Final = 130
# Blender prints before Python runs. The output before this line is ignored.
_READY: Final = b"fabrik: ready for takes\n"


class BatchTake(NamedTuple):
    """A recording to process, and the files to write for it.

    previous: the time at which the output was last changed before the call; None if it did not exist. If a worker
    is lost, a cluster may process a take twice.
    """

    recording: Path
    output: Path
    report: Path | None = None
    previous: int | None = None

    @property
    def files(self) -> list[Path]:
        """The files to write: the output, and the report if there is one."""
        return [path for path in (self.output, self.report) if path is not None]


class Call(NamedTuple):
    """One take of a command, with all of the command's arguments."""

    command: str
    chosen: Namespace
    take: BatchTake


class Outcome(NamedTuple):
    """The outcome of a take.

    failure: one sentence with the reason if nothing was written, else "". line: the result in one line. notes, doubts:
    as in a report. details: more lines to print if the take is the only one.
    """

    failure: str = ""
    line: str = ""
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


Job = Callable[[Call], Outcome]


def planned(chosen: Namespace, recordings: Sequence[Path]) -> list[BatchTake]:
    """The takes of a command. Makes their folders; raises FabrikError if a file would overwrite another one.

    chosen: the file arguments of all commands (rig, mapping, output, report, overwrite), and `static` of a bake.
    Output and report are folders if there are several recordings, or if they end with a slash.
    """
    several = len(recordings) > 1
    stem, count = Counter(recording.stem for recording in recordings).most_common(1)[0]
    if count > 1:
        raise FabrikError(
            f"two recordings are named {stem!r}, so their files would have the same name: rename one of them"
        )
    separators = tuple(filter(None, (os.sep, os.altsep)))
    folders = {Path(path) for path in (chosen.output, chosen.report) if path and (several or path.endswith(separators))}

    def place(wanted: str, name: str) -> Path:
        return Path(wanted) / name if Path(wanted) in folders else Path(wanted)

    takes = [
        BatchTake(
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
        raise FabrikError(f"{trouble.filename}: can't be used ({trouble.strerror}): choose another name") from None
    return takes


def _check_files(chosen: Namespace, takes: Sequence[BatchTake], folders: Collection[Path]) -> None:
    """Raise FabrikError for a file that can't be written, or that would overwrite another file of the command."""
    read = [path for path in (chosen.rig, chosen.mapping, getattr(chosen, "static", None)) if path is not None]
    for path in read:
        if not path.is_file():
            raise FabrikError(f"{path}: there is no such file: choose another")
    known = {identity(path): path for path in (*(take.recording for take in takes), *read)}
    alone = len(takes) == 1
    for path in (path for take in takes for path in take.files):
        if path.is_dir():
            raise FabrikError(f"{path}: can't be written, because a folder has this name: choose another name")
        if path.exists() and not path.is_file():
            raise FabrikError(f"{path}: is not a file that can be replaced: choose another name")
        if path.parent not in folders and not path.parent.is_dir():
            raise FabrikError(f"{path}: can't be written: make the folder {path.parent} first")
        place = Path(os.path.realpath(path))
        # The name to which a previous .blend is renamed.
        kept = [place.with_name(f"{place.name}1")] if place.suffix == ".blend" and place.exists() else []
        for written in (path, *kept):
            other = known.setdefault(identity(written), written)
            is_rig = alone and other == chosen.rig and written == takes[0].output
            if other is not written and not (is_rig and chosen.overwrite):
                remedy = ", or add --overwrite" if is_rig else ""
                raise FabrikError(f"{written}: would overwrite {other}: choose another name{remedy}")
    for take in takes:
        if take.output.suffix != ".blend":
            raise FabrikError(f"{take.output}: does not end in .blend: choose another name")


def modified(path: Path) -> int | None:
    """The time of a file's last change, in nanoseconds; None if the file does not exist."""
    try:
        return path.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None


def identity(path: Path) -> object:
    """A value that is equal for two paths to the same file, even if they differ by links or letter case."""
    try:
        found = path.stat()
    except OSError:
        return os.path.normcase(os.path.realpath(path))
    return found.st_dev, found.st_ino


@contextmanager
def quiet() -> Iterator[None]:
    """Discard everything that is printed in the block, even by Blender itself."""
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
    """End this process at once, without the usual exit of Python.

    During the usual exit, Blender's module (4.5) waits forever for one of its threads if the rig has a scripted driver.
    """
    for stream in (sys.stdout, sys.stderr):
        # The reader may have closed the stream.
        with suppress(OSError):
            stream.flush()
    with suppress(OSError, AttributeError, KeyError):
        # Remove Blender's folder for temporary files, if it is empty.
        Path(sys.modules["bpy"].app.tempdir).rmdir()
    os._exit(status)


def serve(run: Job) -> NoReturn:
    """Read calls from standard input and write their outcomes to standard output, until the input ends.

    The input ends if the other process ends or has no more calls. Then this process ends at once, even during a call.
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
        pickle.dump(tuple(run(Call(command, chosen, BatchTake(*take)))), replies)
        replies.flush()


class _Worker:
    """Another process with Blender, which processes one call after another."""

    def __init__(self) -> None:
        program = getattr(getattr(sys.modules.get("bpy"), "app", None), "binary_path", "")
        package = Path(__file__).parent
        command = [program, "--background", "--command", f"fabrik_{WORKER}"]
        command = command if program else [sys.executable, "-m", package.name, WORKER]
        path = os.pathsep.join(filter(None, (str(package.parent), os.environ.get("PYTHONPATH"))))
        # A second thread would only take a core from another process.
        threads = os.environ.get("OPENBLAS_NUM_THREADS", "1")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": threads},
            # Only this process should handle Ctrl-C in a terminal. On Windows, a flag has this effect.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._pipes: tuple[Any, Any] = self.process.stdin, self.process.stdout
        self._take: BatchTake | None = None
        self._ready = False

    def run(self, call: Call) -> Outcome:
        """Send a call and wait for its outcome."""
        self._take = call.take
        calls, replies = self._pipes
        try:
            while not self._ready:
                line = replies.readline()
                if not line:
                    raise EOFError  # noqa: TRY301
                self._ready = line == _READY
            # Send plain tuples. Classes can't be loaded, because an extension in Blender has other module names.
            pickle.dump((call.command, call.chosen, tuple(call.take)), calls)
            calls.flush()
            outcome = Outcome(*pickle.load(replies))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            # The process has crashed, or another thread has stopped it.
            self.stop()
            return Outcome(f"Blender ended with status {self.process.returncode}: try this take alone")
        self._take = None
        return outcome

    def stop(self) -> None:
        """End the process, and remove its incomplete files."""
        self.process.kill()
        self.process.wait()
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.close()
        for path in () if self._take is None else self._take.files:
            remove_parts(Path(os.path.realpath(path)), self.process.pid)


# The processes of this one that wait for a call, and those that process one.
IDLE: Final = list[_Worker]()
_BUSY: Final = set[_Worker]()


def start_early(arguments: Sequence[str]) -> None:
    """Start the processes for `--jobs` before this process imports Blender, because both take about a second.

    They end with this process, even if they are not used.
    """
    jobs = re.search(r"\0--jobs[\0=](\d+)\0", "\0".join(["", *arguments, ""]))
    takes = sum(map(os.path.isfile, arguments)) - 1
    count = 0 if jobs is None or "--dask" in arguments else min(int(jobs[1]), takes)
    IDLE.extend(_Worker() for _ in range(count if count > 1 else 0))


def run_call(call: Call) -> Outcome:
    """Process a call in a Blender process that this process has started, here or as a worker of a cluster."""
    try:
        worker = IDLE.pop()
    except IndexError:
        worker = _Worker()
    _BUSY.add(worker)
    outcome = Outcome("stopped") if INTERRUPTED.is_set() else worker.run(call)
    _BUSY.discard(worker)
    if worker.process.poll() is None:
        IDLE.append(worker)
    return outcome


@contextmanager
def local_executor(count: int) -> Iterator[tuple[Executor, Job]]:
    """An executor with `count` processes here, which end with the block, and the function that processes a call."""
    with ThreadPoolExecutor(count) as executor:
        try:
            yield executor, run_call
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            for worker in (*_BUSY, *IDLE):
                worker.stop()
            IDLE.clear()


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, Job]]:
    """An executor for a Dask cluster, and the function that processes a call there.

    Raises FabrikError if there is no cluster, or if the package `distributed` is missing.
    """
    try:
        from distributed import Client  # noqa: PLC0415  # only needed here
    except ModuleNotFoundError:
        raise FabrikError("--dask needs the package distributed: use pip install distributed") from None
    try:
        client = Client(address, timeout=_DASK_TIMEOUT)
    except (OSError, ValueError, TypeError) as trouble:
        raise FabrikError(f"{address}: there is no Dask scheduler ({trouble}): start one there") from None
    with client:
        # If calls were pure, Dask would return the result of an earlier equal call.
        yield client.get_executor(pure=False), run_call


def unexpected(trouble: BaseException) -> str:
    """A sentence about an unexpected error."""
    what = " ".join(f"{type(trouble).__name__}: {trouble}".split())
    return f"stopped by an unexpected error ({what}): report it, with this file if you can"


def run(command: str, chosen: Namespace, here: Job) -> int:
    """Process all takes of a command, print the result of each as it ends, and return the exit status.

    here: processes a call in this process.
    """
    before = signal.signal(signal.SIGINT, _stop)
    try:
        takes = planned(chosen, chosen.recordings)
        several, failures, doubted = len(takes) > 1, [], 0
        with closing(_outcomes(command, chosen, takes, here)) as ended:
            for take, outcome in ended:
                name = take.recording.name
                doubted += bool(outcome.doubts)
                if outcome.failure and not several:
                    failures.append(outcome.failure)
                    _fail(outcome.failure, command)
                elif outcome.failure:
                    failures.append(f"{name}: FAILED: {outcome.failure.removeprefix(f'{name}: ')}")
                    _say(failures[-1])
                else:
                    remarks = [f"Note: {note}" for note in outcome.notes]
                    remarks += [f"Warning: {doubt}" for doubt in outcome.doubts]
                    lines = [*outcome.details, *remarks, f"Wrote {' and '.join(map(str, take.files))}"]
                    if several:
                        lines = [f"{name}: {line}" for line in (f"{outcome.line} -> {take.output}", *remarks)]
                    _say("\n".join(lines))
        if several:
            with_doubts = f", {doubted} of them with warnings" if doubted else ""
            _say("\n".join([f"{len(takes) - len(failures)} of {len(takes)} takes written{with_doubts}", *failures]))
    except FabrikError as error:
        return _fail(" ".join(str(error).split()), command)
    except BrokenPipeError:
        return _fail("the output was closed: keep it open", command)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fail("stopped; complete files are kept", command)
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
    command: str, chosen: Namespace, takes: Sequence[BatchTake], here: Job
) -> Generator[tuple[BatchTake, Outcome], None, None]:
    """Yield the takes with their outcomes, processed one by one here, or in parallel in other processes."""
    count = min(chosen.jobs, len(takes))
    if count == 1 and not chosen.dask:
        for take in takes:
            yield take, here(Call(command, chosen, take))
        return
    chosen = Namespace(**{name: _absolute(value) for name, value in vars(chosen).items()})
    with dask_executor(chosen.dask) if chosen.dask else local_executor(count) as (executor, job):
        calls = {take: Call(command, chosen, BatchTake(*map(_absolute, take))) for take in takes}
        futures = {executor.submit(job, call): take for take, call in calls.items()}
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


def _absolute(value: Any) -> Any:
    return value.absolute() if isinstance(value, Path) else value


def _say(text: str, *, to_stderr: bool = False) -> None:
    """Print text; escapes characters that the terminal can't show, and bytes of file names that are not text."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def _fail(message: str, command: str) -> int:
    _say(f"fabrik_{command}: {message}", to_stderr=True)
    return _FAILURE
