"""A substitute for Blender's layout, which needs a window: records texts and their widths."""

import blf
import bpy

# The width of a panel's contents while the sidebar has Blender's initial width.
SIDEBAR = 236.0
_ICON, _PAD, _ARROW = 20.0, 8.0, 16.0
# Property names take this share of the width; their values are to the right.
_NAMES = 0.4
# A list's frame and its scroll bar.
_LIST_FRAME = 30.0


def width_of(text):
    blf.size(0, bpy.context.preferences.ui_styles[0].widget.points)
    return blf.dimensions(0, text)[0] if text else 0.0


class Leaf:
    """A label or a button: its texts, and the width that they need."""

    lines = 1

    def __init__(self, need, *texts):
        self.need, self.texts = need, texts

    def cut(self, width):
        return [] if self.need <= width + 0.5 else [self.texts]

    def leaves(self):
        return [self]


class Split(Leaf):
    """A property whose name is to the left of its value."""

    def __init__(self, name, value):
        self.name, self.value = width_of(name) + _PAD / 2, value
        super().__init__(max(self.name / _NAMES, value / (1 - _NAMES)), name)


class Layout:
    """A row, a column or a split of others."""

    def __init__(self, kind="COLUMN", factor=0.0, *, split=False, within=None):
        self.kind, self.factor, self.use_property_split, self.children = kind, factor, split, []
        # (fold, holder, property or operator) of everything that is drawn; fold: the name of its sub-panel.
        self.controls = [] if within is None else within.controls
        self.fold = "" if within is None else within.fold

    def _sub(self, kind, factor=0.0):
        self.children.append(Layout(kind, factor, split=self.use_property_split, within=self))
        return self.children[-1]

    def row(self, *, heading="", **_options):
        made = self._sub("ROW")
        if heading:
            made.children.append(Leaf(0.0, heading))
        return made

    def column(self, **_options):
        return self._sub("COLUMN")

    def panel(self, name, *, default_closed=False):
        header, body = self.row(), self.column()
        body.fold = name
        return header, body

    def box(self):
        return self._sub("COLUMN")

    def split(self, *, factor=0.5, align=False):
        return self._sub("SPLIT", factor)

    def separator(self, **_options):
        pass

    def label(self, *, text="", icon="NONE", translate=True):
        self._leaf(text, icon)

    def operator(self, name, *, text=None, icon="NONE", **_options):
        kind = _operator(name)
        self.controls.append((self.fold, "", name))
        self._leaf(kind.name if text is None else text, icon)
        return Properties()

    def operator_menu_enum(self, name, prop, *, text=None, icon="NONE"):
        self.controls.append((self.fold, "", name))
        self._leaf(_operator(name).name if text is None else text, icon, more=_ARROW)
        return Properties()

    def menu(self, name, *, text=None, icon="NONE", **_options):
        self.controls.append((self.fold, "", name))
        self._leaf(getattr(bpy.types, name).bl_label if text is None else text, icon, more=_ARROW)

    popover = menu

    def prop(self, holder, name, *, text=None, icon="NONE", toggle=False, expand=False, index=-1, **_options):
        about = holder.bl_rna.properties.get(name)
        self.controls.append((self.fold, holder.bl_rna.identifier, name))
        name_shown = (about.name if about else name) if text is None else text
        values = [item.name for item in about.enum_items] if about is not None and about.type == "ENUM" else []
        if expand:
            self.children.append(Leaf(sum(width_of(value) + _PAD for value in values), *values))
            return
        longest = max(map(width_of, values), default=30.0) + (_ARROW + _PAD if values else 0.0)
        if about is not None and about.type == "BOOLEAN" and not toggle:
            self._leaf(name_shown, icon if icon != "NONE" else "CHECKBOX_HLT")
        elif self.use_property_split and name_shown:
            self.children.append(Split(name_shown, longest))
        else:
            self._leaf(name_shown, icon, more=longest if name_shown else 0.0)

    def prop_search(self, holder, name, *_where, text=None, icon="NONE", **_options):
        self.prop(holder, name, text=text, icon=icon)

    def template_list(self, kind, _name, owner, collection, active_owner, active, *, rows=5, maxrows=5):
        made = self._sub("LIST")
        lists, items = getattr(bpy.types, kind), getattr(owner, collection)
        shown = lists.filter_items(Filter, bpy.context, owner, collection)[0] if hasattr(lists, "filter_items") else []
        chosen = [item for item, is_shown in zip(items, shown, strict=True) if is_shown] if shown else items
        for item in chosen[:rows]:
            line = made.column()
            lists.draw_item(lists, bpy.context, line, owner, item, 0, active_owner, active)

    def _leaf(self, text, icon, more=0.0):
        shown = _ICON if icon != "NONE" else 0.0
        self.children.append(Leaf(width_of(text) + (_PAD if text else 0.0) + shown + more, text))

    @property
    def lines(self):
        """The number of lines; sub-panels are closed."""
        lines = [child.lines for child in self.children if not (isinstance(child, Layout) and child.fold != self.fold)]
        return max(lines, default=0) if self.kind in ("ROW", "SPLIT") else sum(lines)

    @property
    def need(self):
        needs = [child.need for child in self.children] or [0.0]
        if self.kind == "SPLIT" and len(needs) == 2:
            return max(needs[0] / self.factor, needs[1] / (1 - self.factor))
        return sum(needs) if self.kind == "ROW" else max(needs) + (_LIST_FRAME if self.kind == "LIST" else 0.0)

    def cut(self, width):
        """The texts that are cut off at a given width, as tuples of adjacent texts."""
        if self.kind == "ROW":
            return [] if self.need <= width + 0.5 else [tuple(text for leaf in self.leaves() for text in leaf.texts)]
        width -= _LIST_FRAME if self.kind == "LIST" else 0.0
        shares = [1.0] * len(self.children)
        if self.kind == "SPLIT" and len(shares) == 2:
            shares = [self.factor, 1.0 - self.factor]
        return [cut for child, share in zip(self.children, shares, strict=True) for cut in child.cut(share * width)]

    def leaves(self):
        return [leaf for child in self.children for leaf in child.leaves()]

    def texts(self):
        return [text for leaf in self.leaves() for text in leaf.texts if text]


class Properties:
    """Accepts the keyword arguments of an operator's button."""

    def __setattr__(self, name, value):
        pass


class Filter:
    """A substitute for `self` in a list's filter function."""

    bitflag_filter_item = 1


class Stage:
    """A substitute for `self` in a panel's draw function."""

    def __init__(self, panel, layout):
        self.panel, self.layout = panel, layout

    def draw_rig(self, *arguments):
        self.panel.draw_rig(self, *arguments)


def drawn(panel):
    """A panel's layout, as it is drawn now."""
    layout = Layout()
    panel.draw(Stage(panel, layout), bpy.context)
    return layout


def _operator(name):
    group, operator = name.split(".")
    return getattr(getattr(bpy.ops, group), operator).get_rna_type()
