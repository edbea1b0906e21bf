"""Films with Matplotlib: animations in Python, and the same as GIF and MP4."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, cast

from matplotlib import rc_context, rcParams
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, FuncAnimation, PillowWriter
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hdica.errors import HdicaError
from hdica.report.place import TITLE
from hdica.report.printed import HEIGHT, STYLE, WIDTH, draw_on, legend_below, own_style
from hdica.show.panel import Film
from hdica.store.paths import refuse_own

DOTS = 150  # dots an inch
FEWER = (100, 70)  # dots an inch for films that are larger than :data:`MOST` otherwise
SECONDS = 6.0
SLOWEST, FASTEST = 1.0, 10.0
"""A film takes so long if that takes no fewer and no more frames a second than these."""
MOST = 2_000_000  # bytes of a film in a report
PROGRAM = "ffmpeg"
NO_PROGRAM = f"the program {PROGRAM} is not installed (install it for MP4; GIF needs nothing)"


def has_program() -> bool:
    """Whether MP4 can be written."""
    return shutil.which(PROGRAM) is not None


def pace(film: Film) -> float:
    """Frames a second."""
    return min(max(len(film.frames) / SECONDS, SLOWEST), FASTEST)


class Animation(FuncAnimation):
    """A film on Matplotlib axes, of which nothing else is touched; ``save`` writes GIF and MP4."""

    def __init__(self, film: Film, axes: Axes) -> None:
        if len(film.frames) < 2:
            raise HdicaError(
                f"{film.key}: {len(film.frames)} snapshot is no animation (two or more are needed)"
            )
        figure = axes.get_figure(root=True)
        assert figure is not None
        self.film = film
        self.axes = axes
        self.figure = figure
        self._own: list[Artist] = []
        # Frames are drawn later, when the style in which the figure was made has ended.
        self._style = {key: rcParams[cast(Any, key)] for key in STYLE}
        self.show(0)
        super().__init__(
            figure, self.show, frames=len(film.frames), interval=1000 / pace(film), blit=False
        )

    def show(self, frame: int) -> list[Artist]:
        """Draw a frame in the place of the one that is there, and return what is drawn."""
        for artist in self._own:
            artist.remove()
        others = set(self.axes.get_children())
        with rc_context(cast(Any, self._style)):
            draw_on(self.axes, self.film.frames[frame])
        self._own = [one for one in self.axes.get_children() if one not in others]
        return self._own

    def save(  # type: ignore[override]
        self, filename: str | Path, writer: str | AbstractMovieWriter | None = None,
        fps: float | None = None, dpi: float = DOTS, **more: Any,
    ) -> None:  # fmt: skip
        """Write a file, ``.gif``, or ``.mp4`` where the program ffmpeg is installed.

        ``fps`` are frames a second; by default all take six seconds, if that is between one and
        ten. ``dpi`` are dots an inch; ``writer`` and ``more`` are as of Matplotlib's
        ``Animation.save``. Another ending without a writer, or no ffmpeg, is an ``HdicaError``.
        """
        refuse_own(filename, "filename")
        fps = pace(self.film) if fps is None else fps
        if writer is not None:
            super().save(filename, writer=writer, fps=cast(Any, fps), dpi=dpi, **more)
            return
        self._draw_was_started = True  # else Matplotlib warns that nothing was drawn
        own = _writer(Path(filename), fps, self.film.key)
        # Not by way of Matplotlib's loop, which draws every frame once more for a screen.
        with (
            rc_context(cast(Any, self._style | {"savefig.bbox": None})),
            own.saving(self.figure, filename, dpi),
        ):
            for frame in range(len(self.film.frames)):
                self.show(frame)
                own.grab_frame(**more)


def _writer(path: Path, fps: float, key: str) -> AbstractMovieWriter:
    if path.suffix == ".gif":
        return PillowWriter(fps=cast(Any, fps))
    if path.suffix != ".mp4":
        raise HdicaError(f"filename = {str(path)!r} is not allowed (*.gif, or *.mp4)")
    if not has_program():
        raise HdicaError(f"{path.name}: {NO_PROGRAM}")
    # Every browser plays this kind of pixels; without a date and versions, equal films are equal.
    return FFMpegWriter(
        fps=cast(Any, fps), codec="h264", metadata={"title": f"{TITLE}{key}"},
        extra_args=["-pix_fmt", "yuv420p", "-fflags", "+bitexact", "-flags:v", "+bitexact",
                    "-movflags", "+faststart"],
    )  # fmt: skip


def animated(film: Film, figure: Figure, legend: bool = True) -> Animation:
    """A film on axes that a figure gets, laid out once for all frames."""
    made = Animation(film, figure.add_subplot())
    # The legend of a frame that has all curves stands for all frames.
    made.show(max(range(len(film.frames)), key=lambda k: len(film.frames[k].items)))
    if legend:
        legend_below(figure, made.axes)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    made.show(0)
    return made


def files(film: Film) -> dict[str, bytes]:
    """A film as ``<key>.gif`` and, where the program ffmpeg is, ``<key>.mp4``; both below 2 MB.

    Equal films give equal bytes of the GIF.
    """
    kinds = ("gif", "mp4") if has_program() else ("gif",)
    with own_style(), tempfile.TemporaryDirectory() as folder:
        made = animated(film, Figure(figsize=(WIDTH, HEIGHT), dpi=DOTS, layout="constrained"))
        return {f"{film.key}.{kind}": _content(made, Path(folder) / f"a.{kind}") for kind in kinds}


def _content(made: Animation, path: Path) -> bytes:
    for dots in (DOTS, *FEWER):
        made.save(path, dpi=dots)
        if path.stat().st_size <= MOST:
            break
    content = path.read_bytes()
    if path.suffix != ".gif":
        return content
    # A comment before the last byte says which figure it is.
    text = f"{TITLE}{made.film.key}".encode()
    return content[:-1] + b"\x21\xfe" + bytes([len(text)]) + text + b"\x00" + content[-1:]
