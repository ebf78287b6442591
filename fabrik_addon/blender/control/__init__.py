"""Control rigs: the controls of a body's bones, found by trying them, and posing that body through them."""
