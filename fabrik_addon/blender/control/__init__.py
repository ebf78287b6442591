"""Control rigs: which controls carry the bones of a body, found by trying, and posing that body through them."""
