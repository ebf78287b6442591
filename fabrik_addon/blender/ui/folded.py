"""Sub-panels in panels and dialogs for rarely used settings, closed at first."""

from bpy.types import UILayout

from .translations import said


def folded(layout: UILayout, label: str, of: str) -> UILayout | None:
    """A sub-panel that is closed at first; None while it is closed. of: the panel that contains it."""
    header, body = layout.panel(f"fabrik_{of}_{label}", default_closed=True)
    header.label(text=said(label), translate=False)
    return body
