"""The channels of the static website: their versions, and installing and updating from them with Blender's own tool."""

import importlib.util
import tomllib
from pathlib import Path

import pytest
from support.processes import extension_tool

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("channels", ROOT / "release" / "channels.py")
channels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(channels)


@pytest.mark.parametrize(
    ("heading", "expected"),
    [("## 0.1.0 – Unreleased", ("0.1.0", False)), ("## 1.2.3 – 2026-11-22", ("1.2.3", True))],
)
def test_a_version_with_a_date_is_released(heading, expected):
    assert channels.version_of(f"# Changelog\n\n{heading}\n\n- …\n\n## 0.0.9 – 2025-01-01\n") == expected


def test_a_heading_without_a_date_is_an_error():
    with pytest.raises(ValueError, match="no heading"):
        channels.version_of("# Changelog\n\n## Next\n")


def test_blender_installs_and_updates_from_a_channel(tmp_path):
    built, channel, local = tmp_path / "built.zip", tmp_path / "latest", tmp_path / "extensions"
    channel.mkdir()
    local.mkdir()
    extension_tool("build", "--source-dir", ROOT / "fabrik_addon", "--output-filepath", built)
    remote = ["--local-dir", local, "--remote-url", (channel / "index.json").as_uri()]
    for version in ("9.0.0-dev.1", "9.0.0"):
        for old in channel.glob("*.zip"):
            old.unlink()
        channels.with_version(built, channel / f"fabrik-{version}.zip", version)
        extension_tool("validate", channel / f"fabrik-{version}.zip")
        extension_tool("server-generate", "--repo-dir", channel)
        extension_tool("sync", *remote)
        extension_tool("install", "fabrik", *remote, "--local-cache=0", "--blender-version=4.5.0")
        installed = tomllib.loads((local / "fabrik" / "blender_manifest.toml").read_text(encoding="utf-8"))
        assert installed["version"] == version
