"""Many takes at once: in processes of this machine, and on a Dask cluster of two workers."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import bpy
import pytest

from fabrik_addon import batch
from fabrik_addon.blender.command_line import run_command

pytestmark = [
    pytest.mark.one_blender,
    pytest.mark.skipif(bool(bpy.app.binary_path), reason="this Blender is a program, and no module of Python"),
]
TAKES = 4
SHORT = ("--samples", "1", "120")


@pytest.fixture
def call(request, tmp_path):
    """The arguments of a bake of several takes, of which one fails and the others take a few seconds each."""
    rigs = request.config.rootpath / "sample_rigs"
    takes = [tmp_path / f"take{number}.trc" for number in range(TAKES)]
    for take in takes:
        take.write_bytes((rigs / "walk.trc").read_bytes())
    bad = tmp_path / "bad.trc"
    bad.write_text("rubbish")
    out = ["--output", tmp_path / "out", "--report", tmp_path / "out"]
    return [*map(str, [rigs / "human.blend", bad, *takes, "--map", rigs / "walk_map.json", *out])]


def check_lines(lines, call):
    """Check that there is a line for each take in any order, one for all, and the failures."""
    takes, end = lines[: TAKES + 1], lines[TAKES + 1 :]
    assert sorted(line.split(":")[0] for line in takes) == ["bad.trc", *(f"take{n}.trc" for n in range(TAKES))]
    # Each line names its own take.
    assert len({re.sub(r"^(take\d)\.trc: (.* of )'\1'(.*)-> .*", r"\2\3", line) for line in takes}) == 2
    assert end == [f"{TAKES} of {TAKES + 1} takes written", next(line for line in takes if line.startswith("bad"))]
    assert end[1].startswith("bad.trc: FAILED: this is not a TRC file")


def check_files(folder):
    """All files exist and are complete, and there are no others."""
    names = [f"take{number}.{end}" for number in range(TAKES) for end in ("blend", "csv")]
    assert sorted(path.name for path in (folder / "out").iterdir()) == names
    for name in names[::2]:
        bpy.ops.wm.open_mainfile(filepath=str(folder / "out" / name))
        assert bpy.context.scene.frame_end > 100


def processes(parent):
    """The IDs of all processes that a process has started, directly or not."""
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Any process of the machine may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = path.read_text().rpartition(")")[2].split()
            if stat[1] == str(parent) and stat[0] != "Z":
                children.append(int(path.parent.name))
    return [*children, *(each for child in children for each in processes(child))]


class TestJobs:
    def test_takes_are_baked_in_two_processes_as_in_one(self, call, tmp_path, capfd, monkeypatch):
        """None of the processes imports Dask."""
        (tmp_path / "distributed.py").write_text("raise SystemExit('loaded')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.delitem(sys.modules, "distributed", raising=False)
        call += SHORT
        assert run_command([*call, "--jobs", "2"]) == 1
        check_lines(capfd.readouterr().out.splitlines(), call)
        check_files(tmp_path)
        reports = {path.name: path.read_text() for path in (tmp_path / "out").glob("*.csv")}
        assert run_command(call) == 1
        assert {path.name: path.read_text() for path in (tmp_path / "out").glob("*.csv")} == reports

    def test_processes_that_were_started_early_are_used(self, call, tmp_path):
        """`python -m` starts them before it imports Blender, which takes as long."""
        batch.start_early(["bake", *call, "--jobs", "1"])
        batch.start_early(["bake", call[0], call[1], "--jobs=2"])
        assert not batch.IDLE
        batch.start_early(["bake", *call, "--jobs=2"])
        early = list(batch.IDLE)
        assert [worker.process.poll() for worker in early] == [None, None]
        assert run_command([*call, *SHORT, "--jobs", "2"]) == 1
        check_files(tmp_path)
        assert not batch.IDLE
        assert all(worker.process.poll() is not None for worker in early)

    def test_motions_are_retargeted_in_two_processes(self, request, recording, tmp_path, capfd):
        rig = request.config.rootpath / "sample_rigs" / "human.blend"
        arguments = [rig, recording("bvh/dab.bvh"), tmp_path / "none.bvh", "--range", 1, 10, "--jobs", 2]
        assert run_command([*map(str, arguments), "--output", str(tmp_path / "out")], "retarget") == 1
        lines = capfd.readouterr().out.splitlines()
        assert "1 of 2 takes written" in lines
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["dab.blend"]

    def test_a_crashed_process_fails_one_take(self, call, addon_folder, tmp_path):
        running = start(call, "--jobs", "2", folder=addon_folder)
        first = next(line for line in running.stdout if line.startswith("take"))
        # By then both workers are running again.
        time.sleep(0.3)
        os.kill(processes(running.pid)[0], signal.SIGKILL)
        out, err = running.communicate(timeout=300)
        assert (running.returncode, err) == (1, "")
        assert f"{first.split(':')[0]}: FAILED" not in out
        assert "Blender ended with status -9: try this take alone" in out
        assert f"{TAKES - 1} of {TAKES + 1} takes written" in out
        assert len(list((tmp_path / "out").iterdir())) == 2 * (TAKES - 1)

    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_stopping_stops_all(self, call, addon_folder, tmp_path, how):
        running = start(call, "--jobs", "2", folder=addon_folder)
        assert any(line.startswith("take") for line in running.stdout)
        children = processes(running.pid)
        assert len(children) == 2
        running.send_signal(how)
        _, err = running.communicate(timeout=60)
        wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
        files = {path.name for path in (tmp_path / "out").iterdir()}
        temporary = {name for name in files if re.fullmatch(r"\..*\.part@?", name)}
        whole = files - temporary
        # If it is killed between the two replacements of a take, one of its files still has its temporary name.
        not_yet = {name[1:].rsplit(".", 2)[0] for name in temporary}
        if how == signal.SIGINT:
            assert (running.returncode, err) == (130, "fabrik_bake: stopped; complete files are kept\n")
            assert not temporary
        stems = {name.split(".")[0] for name in whole}
        assert 0 < len(stems) < TAKES
        assert {f"{stem}.{end}" for stem in stems for end in ("blend", "csv")} - not_yet <= whole


def start(call, *more, folder):
    """Start a bake in a separate process and session, as a terminal does."""
    command = [sys.executable, "-m", "fabrik_addon", "bake", *call, *more]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(found, seconds=60):
    """Call a function until its result is true, and return the result."""
    until = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < until, "it has not come"
        time.sleep(0.05)
    return result


@pytest.fixture(scope="module")
def cluster(addon_folder, tmp_path_factory):
    """The address of a scheduler, and its two workers with one thread each."""
    pytest.importorskip("distributed")
    tmp_path = tmp_path_factory.mktemp("cluster")
    path = os.pathsep.join([str(addon_folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "DASK_TEMPORARY_DIRECTORY": str(tmp_path / "dask")}
    begun = []

    def begin(*arguments):
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        log = (tmp_path / f"{len(begun)}.log").open("w")
        begun.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=tmp_path))
        log.close()
        return begun[-1]

    file = tmp_path / "scheduler.json"
    begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    address = wait_for(lambda: file.exists() and re.search('"(tcp://[^"]*)"', file.read_text()))[1]
    worker = ("worker", address, "--nthreads", "1", "--nworkers", "1", "--no-nanny", "--no-dashboard")
    workers = [begin(*worker) for _ in range(2)]
    yield address, workers
    for process in reversed(begun):
        process.kill()
        process.wait()


class TestDask:
    def test_ctrl_c(self, cluster, call, addon_folder, tmp_path):
        running = start(call, "--dask", cluster[0], folder=addon_folder)
        # This one fails at once, so that most of the others have not been started yet.
        assert next(running.stdout).startswith("bad")
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        assert (running.returncode, err) == (130, "fabrik_bake: stopped; complete files are kept\n")
        # Takes that have been started are finished, and no others are started.
        time.sleep(2)
        wait_for(lambda: not any(".part" in path.name for path in (tmp_path / "out").iterdir()))
        time.sleep(2)
        assert len(list((tmp_path / "out").iterdir())) < 2 * TAKES

    def test_a_killed_worker_is_replaced(self, cluster, call, addon_folder, tmp_path):
        """Another worker takes over: no take is lost, and none is processed twice. Must be the last test."""
        address, workers = cluster
        running = start([*call, *SHORT], "--dask", address, folder=addon_folder)
        # This one fails at once. Then both workers have a take.
        bad = next(running.stdout)
        child = processes(workers[0].pid)
        assert child
        assert running.poll() is None
        workers[0].kill()
        out, err = running.communicate(timeout=300)
        check_lines((bad + out).splitlines(), call)
        assert running.returncode == 1, err
        check_files(tmp_path)
        wait_for(lambda: not any(Path(f"/proc/{each}").exists() for each in child))

    def test_a_missing_scheduler_is_named(self, call, capfd):
        pytest.importorskip("distributed")
        assert run_command([*call, "--dask", "nonsense"]) == 1
        assert "nonsense: there is no Dask scheduler" in capfd.readouterr().err

    def test_without_the_package(self, call, addon_folder):
        code = f"import sys; sys.modules['distributed'] = None; import runpy; sys.argv[1:] = {['bake', *call]!r}"
        code += "; sys.argv += ['--dask', 'tcp://127.0.0.1:1']; runpy.run_module('fabrik_addon', run_name='__main__')"
        done = subprocess.run([sys.executable, "-c", code], cwd=addon_folder, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "fabrik_bake: --dask needs the package distributed: use pip install distributed\n"
