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


@pytest.fixture(scope="module")
def errors():
    """(where, message) of each error."""
    return [*refusals(), *reasons()]


def test_an_error_is_one_sentence_without_a_full_stop(errors):
    assert len(errors) > 300
    assert not {where: text for where, text in errors if text.endswith(".") or ". " in text}


def test_an_error_names_the_remedy(errors):
    assert not {where: text for where, text in errors if not WANTED.search(text) and not HANDED_ON.search(text)}
