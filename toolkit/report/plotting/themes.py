"""Themes of the plots: colours and matplotlib's settings, as values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

#: Fonts with other scripts, used where they are installed; a missing character is drawn as a box.
_FALLBACK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Emoji",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours of a plot; the colours of `series` can be told apart with every kind of colour blindness.

    Okabe and Ito, "Color Universal Design" (2008), without yellow, which is hard to see on white.
    """

    background: str
    ink: str
    quiet: str
    grid: str
    series: tuple[str, ...]


LIGHT = Theme(
    background="#ffffff",
    ink="#1f2328",
    quiet="#667080",
    grid="#e4e7eb",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"),
)
DARK = Theme(
    background="#171b21",
    ink="#e6e9ee",
    quiet="#98a2b0",
    grid="#2b323c",
    series=("#56b4e9", "#f0803c", "#2fc797", "#e59cc4", "#f0b429", "#7f9cf5", "#b8c0cc"),
)


def settings(theme: Theme, installed_fonts: Collection[str]) -> dict[str, Any]:
    """Return matplotlib's settings for a theme and the fonts of this machine."""
    return {
        "font.family": ["DejaVu Sans", *(font for font in _FALLBACK_FONTS if font in installed_fonts)],
        "font.size": 10,
        "figure.constrained_layout.w_pad": 0.12,
        "figure.constrained_layout.h_pad": 0.12,
        # A label such as "$x^" is text, never a formula.
        "text.parse_math": False,
        "figure.facecolor": theme.background,
        "axes.facecolor": theme.background,
        "axes.edgecolor": theme.quiet,
        "axes.labelcolor": theme.ink,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlecolor": theme.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": theme.grid,
        "grid.linewidth": 0.8,
        "text.color": theme.ink,
        "xtick.color": theme.quiet,
        "ytick.color": theme.quiet,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.solid_capstyle": "round",
    }
