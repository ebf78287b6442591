"""What people are told when something is refused: one sentence, and in it what to do."""

import ast
import re
from pathlib import Path

import pytest

ADDON = Path(__file__).parents[1] / "fabrik_addon"
# Notes inside a sentence, why a bone is left out: nobody is refused anything.
NOTES = {"UnplacedError", "BakeStoppedError"}
# What a refusal ends with: a command, or what the value has to be.
COMMANDS = (
    "add|apply|bake|choose|click|drag|enable|export|give|import|lean|leave|list|make|map|match|mend|move|name|pick|pose|press|"
    "put|remove|save|say|select|set|solve|start|switch|use"
)
WANTED = re.compile(rf"(?:[:;,] (?:or )?|^)(?:{COMMANDS})\b|\bmust\b|\b(?:is|are) needed\b", re.IGNORECASE)

WHY_NOT = re.compile(r"_?why_(no|not)(_|$)")
# Where another sentence ends it, which says so itself.
HANDED_ON = re.compile(r"(: \{\}(; \{\})?|property \{\} \{\})$")


def text_of(node):
    """A message as it stands in the source, each value in it as {}; "" for one that is a value as a whole."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def refusals():
    """(where, message) of each error that is raised with a text of its own; not those that hand another's on."""
    for path in sorted(ADDON.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                kind, text = ast.unparse(node.exc.func).rpartition(".")[2], text_of(node.exc.args[0])
                if kind.endswith("Error") and kind not in NOTES and text.strip("{}:, '\""):
                    yield f"{path.relative_to(ADDON)}:{node.lineno}", text


def reasons():
    """(where, sentence) of each that a function returns whose name says that it tells why not."""
    for path in sorted((ADDON / "blender").rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and WHY_NOT.match(function.name):
                returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
                for value in [part for node in returned if node for part in (node, *vars(node).values())]:
                    text = text_of(value) if isinstance(value, ast.expr) else ""
                    if text.strip("{}:, '\""):
                        yield f"{path.relative_to(ADDON)}:{value.lineno}", text


REFUSALS = [*refusals(), *reasons()]


def test_there_are_refusals():
    assert len(REFUSALS) > 300


@pytest.mark.parametrize(("where", "text"), REFUSALS, ids=[where for where, _ in REFUSALS])
def test_a_refusal_is_one_sentence_without_a_full_stop(where, text):
    assert not text.endswith(".")
    assert ". " not in text


def test_a_refusal_says_what_to_do():
    assert not {where: text for where, text in REFUSALS if not WANTED.search(text) and not HANDED_ON.search(text)}
