"""Draw pictures of pages and terminals for the docs with a browser, and store them with few colours."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image, ImageChops
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME

from toolkit.errors import UserError

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_COLOURS = 128

#: rich fills it in with str.format, so its own braces are doubled.
_TERMINAL_PAGE = """\
<!DOCTYPE html><meta charset="utf-8"><style>
body {{ margin: 0; background: #ffffff }}
pre {{ display: inline-block; margin: 0; padding: 18px 22px; border-radius: 10px; background: #1b1f27;
  color: #d5dae3; font: 15px/1.45 "DejaVu Sans Mono", monospace }}
</style><pre>{code}</pre>
"""


def terminal_page(console: Console) -> str:
    """Return the output of a console with record=True as a web page that looks like a terminal."""
    return console.export_html(theme=SVG_EXPORT_THEME, inline_styles=True, code_format=_TERMINAL_PAGE)


def save(page: str, target: Path, *, width: int, height: int) -> None:
    """Draw a page with a browser, crop the empty margin, and store it with few colours."""
    with tempfile.TemporaryDirectory() as folder:
        source, screenshot = Path(folder, "page.html"), Path(folder, "page.png")
        source.write_text(page, encoding="utf-8")
        command = [_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        subprocess.run(
            [*command, f"--screenshot={screenshot}", source.as_uri()],
            check=True,
            capture_output=True,
            timeout=120,
        )
        with Image.open(screenshot) as image:
            store(_trimmed(image.convert("RGB")), target)


def store(image: Image.Image, target: Path) -> None:
    """Write a picture with few colours, and print its size."""
    target.parent.mkdir(parents=True, exist_ok=True)
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target}: {target.stat().st_size // 1000} KB")


def _trimmed(image: Image.Image) -> Image.Image:
    """Return the image without the white margin below and to the right; no page itself is white."""
    box = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    return image.crop((0, 0, *box[2:])) if box else image


def _browser() -> str:
    """Return the path of the first installed browser. Raises UserError without one."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        raise UserError("drawing the pictures needs chromium: apt-get install chromium")
    return found
