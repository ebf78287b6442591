"""Make the listing's icon, the README's film and pictures of the guide from those of `listing.py`; `make listing`.

    python release/pictures.py FOLDER DOCS

extensions.blender.org asks for an icon of 256 × 256 pixels (PNG), and for a featured image and previews of 1920 × 1080.
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

ICON = 256
FILM_PART = (300, 70, 1540, 1020)  # of each frame: the viewport without the sidebar; left, upper, right, lower edge
FILM_WIDTH = 800
MILLISECONDS = 120  # for each frame of the film
PAUSE = 1000  # milliseconds for the last frame
MOST_BYTES = 3_000_000
# Pictures of the guide: the one that each is cut from, and its left, upper, right and lower edge in pixels.
CUTS = {
    "posture.png": ("posture.png", (960, 100, 1890, 1010)),
    "guesses.png": ("guesses.png", (1550, 100, 1890, 640)),
    "trails.png": ("edit.png", (400, 60, 1400, 960)),
}
CUT_WIDTH = 800  # pixels at most


def main(folder: Path, docs: Path) -> None:
    """Make all pictures, and check their sizes."""
    film = docs / "images" / "film.webp"
    icon(folder / "icon.png")
    for name, (source, box) in CUTS.items():
        with Image.open(folder / source) as image:
            part = image.convert("RGB").crop(box)
            part.thumbnail((CUT_WIDTH, CUT_WIDTH), Image.Resampling.LANCZOS)
            part.quantize(256).save(docs / "guide" / "images" / name, optimize=True)
    animate(sorted(folder.glob("film_*.png")), film)
    for name in ("drag", "limits", "markers", "retarget", "edit"):
        assert Image.open(folder / f"{name}.png").size == (1920, 1080), name
    assert film.stat().st_size <= MOST_BYTES, film.stat().st_size
    print(f"{folder}: icon.png, five previews; {film}: {film.stat().st_size:,} bytes")


def icon(path: Path) -> None:
    """Draw a chain of three bones that reaches for its target."""
    figure = Figure(figsize=(1.0, 1.0), dpi=ICON, facecolor="#2b2b2b")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, 1), ylim=(0, 1), facecolor="#2b2b2b")
    axes.axis("off")
    joints = np.array([(0.22, 0.14), (0.24, 0.50), (0.52, 0.74), (0.82, 0.62)])
    for head, tail in pairwise(joints):
        along = tail - head
        across = 0.16 * np.array([-along[1], along[0]])
        outline = [head, head + 0.2 * along + across, tail, head + 0.2 * along - across]
        axes.fill(*np.array(outline).T, facecolor="#c8c8c8", edgecolor="#101010", linewidth=0.5)
    axes.scatter(*joints[:-1].T, s=26, color="#e8e8e8", edgecolors="#101010", linewidths=0.5, zorder=3)
    axes.scatter(*joints[-1], s=60, marker="D", color="#56b4e9", edgecolors="#101010", linewidths=0.5, zorder=4)
    figure.savefig(path, dpi=ICON)


def animate(frames: list[Path], film: Path) -> None:
    """Join the frames to an animated WebP."""
    images = []
    for path in frames:
        with Image.open(path) as image:
            part = image.convert("RGB").crop(FILM_PART)
            part.thumbnail((FILM_WIDTH, FILM_WIDTH), Image.Resampling.LANCZOS)
            images.append(part)
    durations = [MILLISECONDS] * (len(images) - 1) + [PAUSE]
    images[0].save(film, save_all=True, append_images=images[1:], duration=durations, loop=0, quality=60, method=6)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
