"""Messages of errors: one sentence, which says what to do."""

import re

import pytest
from support.messages import reasons, refusals

# The end of an error message: a command, or the valid values.
COMMANDS = (
    "add|apply|assign|bake|choose|click|drag|enable|export|fix|give|import|leave|list|make|map|match|move|mute|name|pick|pose|press|"
    "put|remove|rename|rotate|save|select|set|solve|start|switch|turn|use"
)
WANTED = re.compile(rf"(?:[:;,] (?:or )?|^)(?:{COMMANDS})\b|\bmust\b|\b(?:is|are) needed\b", re.IGNORECASE)
# The message ends with another sentence, which says what to do itself.
HANDED_ON = re.compile(r"(: \{\}(; \{\})?|property \{\} \{\})$")

REFUSALS = [*refusals(), *reasons()]


def test_there_are_error_messages():
    assert len(REFUSALS) > 300


@pytest.mark.parametrize(("where", "text"), REFUSALS, ids=[where for where, _ in REFUSALS])
def test_an_error_is_one_sentence_without_a_full_stop(where, text):
    assert not text.endswith(".")
    assert ". " not in text


def test_an_error_names_the_remedy():
    assert not {where: text for where, text in REFUSALS if not WANTED.search(text) and not HANDED_ON.search(text)}
