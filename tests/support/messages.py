"""The messages of the extension, as written in the source: errors, results, warnings."""

import ast
import re
from functools import cache
from pathlib import Path

ADDON = Path(__file__).parents[2] / "fabrik_addon"
# Notes inside a sentence, such as why a bone is left out; these are not errors for the user.
NOTES = {"UnplacedError"}
# Errors that only scripts can cause, and texts of the command line.
BY_SCRIPTS = re.compile(r"core/(model|kernel/bodies|fabrik|chains|backend)|command_line|batch\.py")
WHY_NOT = re.compile(r"_?why_(no|not)(_|$)")
# Functions that assemble sentences shown in the window.
TELLING = (
    "core/errors.py",
    "blender/[!su]*/**/*.py",
    "blender/retarget.py",
    "blender/ui/operators/**/*.py",
    "human/preset.py",
    "markers/person.py",
    "markers/doubts.py",
    "markers/report.py",
    "markers/files/[!_]*.py",
    "retarget/[amt]*.py",
    "retarget/files/*.py",
)
# Names, headings of tables, types, patterns, and the text of files.
NAMES = re.compile(
    r"FABRIK|LMB|^\{\} (target|pin|edit)$|^Object Transforms$|^(mean|rms|max) mm$|^(worst frame|seen %)$|Long unseen"
    r"|^[{}a-z0-9 ]+_[a-z0-9_ ]+$|^\{\} \{\} to \{\}$|^(\{\} )?frames$| \| |^\^|^\(\?|\nFrames: "
)
_LOGGING = {"warning", "info", "debug"}


def text_of(node):
    """A message as written in the source, with {} for each value; "" if it is only a value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def refusals():
    """(where, message) of each error raised with its own text; without those that repeat the text of another error."""
    for kind, where, text in _raised("**/*.py"):
        if kind not in NOTES and text.strip("{}:, '\""):
            yield where, text


def reasons():
    """(where, sentence) of each return value of functions whose names say that they give reasons."""
    for path, tree in _sources("blender/**/*.py"):
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and WHY_NOT.match(function.name):
                returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
                for value in [part for node in returned if node for part in (node, *vars(node).values())]:
                    text = text_of(value) if isinstance(value, ast.expr) else ""
                    if text.strip("{}:, '\""):
                        yield f"{path}:{value.lineno}", text


def told():
    """(where, text) of all results and warnings: sentences and parts of sentences, of two words or more."""
    for pattern in TELLING:
        for path, tree in _sources(pattern):
            for node in _spoken(tree):
                text = text_of(node)
                if (
                    " " in text.strip(" ,;")
                    and re.search("[a-z]{2}", text.replace("{}", ""))
                    and not NAMES.search(text)
                ):
                    yield f"{path}:{node.lineno}", text


def notes():
    """(where, text) of the notes on bones inside sentences."""
    return ((where, text) for kind, where, text in _raised("human/*.py") if kind in NOTES)


@cache
def all_messages():
    """Each pattern that Blender may show, {} for each value, with the place of its first use."""
    found = {}
    for where, text in (*refusals(), *reasons(), *notes(), *told()):
        if not BY_SCRIPTS.search(where):
            found.setdefault(text.strip(" ,;"), where)
    return found


def _raised(pattern):
    """(kind, where, text) of each error raised with an argument; text is "" if it has no text of its own."""
    for path, tree in _sources(pattern):
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                kind = ast.unparse(node.exc.func).rpartition(".")[2]
                if kind.endswith("Error"):
                    yield kind, f"{path}:{node.lineno}", text_of(node.exc.args[0])


def _sources(pattern):
    for path in sorted(ADDON.glob(pattern)):
        yield path.relative_to(ADDON).as_posix(), parsed(path)


@cache
def parsed(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _spoken(node):
    """The nodes of the source that may be messages: no docstrings, types, labels, tooltips, or enum items."""
    no_message = _OUTRIGHT.get(type(node), lambda _: [])(node)
    passed = {id(each) for each in no_message}
    if id(node) not in passed:
        yield node
        for child in ast.iter_child_nodes(node):
            if id(child) not in passed:
                yield from _spoken(child)


def _of_call(node):
    if isinstance(node.func, ast.Attribute) and node.func.attr in _LOGGING:
        return [node]
    if ast.unparse(node.func) == "ui_text":
        return [node]
    return [
        each for each in node.keywords if each.arg in ("name", "description", "title", "confirm_text", "placeholder")
    ]


_OUTRIGHT = {
    ast.Expr: lambda node: [node] if isinstance(node.value, ast.Constant) else [],
    ast.Raise: lambda node: [node],
    ast.JoinedStr: lambda node: [part for part in node.values if isinstance(part, ast.Constant)],
    ast.FormattedValue: lambda node: [node.format_spec],
    ast.ClassDef: lambda node: [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)],
    ast.Module: lambda node: [
        each for each in node.body if isinstance(each, ast.Assign) and not isinstance(each.value, ast.Dict)
    ],
    ast.arg: lambda node: [node.annotation],
    ast.AnnAssign: lambda node: [node.annotation],
    ast.FunctionDef: lambda node: [node.returns],
    ast.Call: _of_call,
}
