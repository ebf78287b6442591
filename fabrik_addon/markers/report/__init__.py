"""How well a recording was met: figures, and the texts made of them."""
