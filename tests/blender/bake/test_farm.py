"""The job type for Flamenco, run by node with the API that Flamenco gives to scripts."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fabrik_addon.blender import registration
from fabrik_addon.blender.command_line import run_command

pytestmark = [pytest.mark.one_blender, pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")]
ROOT = Path(__file__).parents[3]
RIGS = ROOT / "sample_rigs"
# The schema AvailableJobSetting of Flamenco's API.
TYPES = {"string", "int32", "float", "bool"}
SUBTYPES = {"file_path", "dir_path", "file_name", "hashed_file_path"}
KEYS = {
    *("key", "type", "subtype", "choices", "propargs", "description", "label", "default", "eval", "evalInfo"),
    *("visible", "required", "editable"),
}


def compiled(**settings):
    """The tasks that the script creates from a job's settings; missing ones have their defaults, as in Flamenco."""
    stub = ROOT / "tests" / "support" / "flamenco.js"
    call = ["node", stub, ROOT / "farm" / "fabrik_bake.js"]

    def run(told):
        done = subprocess.run([*call, json.dumps(told)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    known = run({"takes": ""})["type"]["settings"]
    assert set(settings) <= {setting["key"] for setting in known}
    return run({setting["key"]: setting.get("default", "") for setting in known} | settings)


def test_the_settings_are_those_that_flamenco_knows():
    for setting in compiled(takes="")["type"]["settings"]:
        assert set(setting) <= KEYS
        assert setting["type"] in TYPES
        assert setting.get("subtype", "file_path") in SUBTYPES
        assert setting.get("visible", "web") in {"visible", "hidden", "submission", "web"}
        assert setting.get("default", "") in setting.get("choices", [setting.get("default", "")])


def test_a_task_for_each_take():
    takes = ["/mocap/a.c3d", "/mocap/b c.c3d", "Z:\\mocap\\d.trc"]
    more = {"map": "/mocap/map.json", "armature": "Rig", "strict": True, "options": "--plant-feet  --scale auto"}
    found = compiled(blendfile="/rigs/human.blend", takes=";".join(takes), output="/baked/", **more)["tasks"]
    assert [task["name"] for task in found] == ["a", "b c", "d"]
    for task, take in zip(found, takes, strict=True):
        assert (task["type"], task["dependencies"]) == ("blender", [])
        (command,) = task["commands"]
        assert (command["name"], command["parameters"]["exe"]) == ("exec", "{blender}")
        files = ["/rigs/human.blend", take, "--output", "/baked/", "--report", "/baked/", "--map", "/mocap/map.json"]
        told = [*files, "--armature", "Rig", "--strict", "--plant-feet", "--scale", "auto"]
        assert command["parameters"]["args"] == ["--command", "fabrik_bake", *told]


@pytest.mark.parametrize(
    ("takes", "said"), [("", "There are no recordings"), ("/a/walk.c3d; /b/walk.trc", "Two recordings are named walk")]
)
def test_invalid_jobs_are_refused(takes, said):
    assert said in compiled(blendfile="/rigs/human.blend", takes=takes, output="/baked")["refused"]


def test_the_recordings_are_found_when_a_job_is_submitted(tmp_path):
    """Flamenco's add-on evaluates this in Blender."""
    for name in ("b.c3d", "a.c3d", "a.trc"):
        (tmp_path / name).touch()
    (setting,) = [each for each in compiled(takes="")["type"]["settings"] if each["key"] == "takes"]
    settings = type("Settings", (), {"folder": str(tmp_path), "pattern": "*.c3d"})
    assert eval(setting["eval"], {"settings": settings, "abspath": Path}) == f"{tmp_path}/a.c3d;{tmp_path}/b.c3d"


# Blender's BVH importer leaves its file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("command", "options"), [("bake", "--samples 1 20"), ("retarget", "--range 1 20")])
def test_the_commands_of_the_tasks_work(tmp_path, recording, clean_scene, command, options):
    """With the arguments that `blender --command` passes on."""
    takes = [RIGS / "walk.trc", tmp_path / "again.trc"] if command == "bake" else [recording("bvh/dab.bvh")]
    if command == "bake":
        takes[1].write_bytes(takes[0].read_bytes())
    told = {"command": command, "takes": ";".join(map(str, takes)), "options": options}
    found = compiled(blendfile=str(RIGS / "human.blend"), output=str(tmp_path / "baked"), **told)
    for task in found["tasks"]:
        first, name, *arguments = task["commands"][0]["parameters"]["args"]
        assert first == "--command"
        prefix, _, name = name.partition("_")
        assert prefix == "fabrik"
        assert name in registration.COMMANDS
        assert run_command(arguments, name) == 0
    names = [f"{take.stem}.{end}" for take in takes for end in ("blend", "csv")]
    assert sorted(path.name for path in (tmp_path / "baked").iterdir()) == sorted(names)
