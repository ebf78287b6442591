"""Sub-panels of panels and dialogs for rarely used options; folded at first."""

from bpy.types import UILayout

from .translations import said


def folded(layout: UILayout, label: str, of: str) -> UILayout | None:
    """A sub-panel that is folded at first; None while it is folded. of: its panel."""
    header, body = layout.panel(f"fabrik_{of}_{label}", default_closed=True)
    header.label(text=said(label), translate=False)
    return body
