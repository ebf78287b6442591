"""How well a recording was matched: figures, and the texts made from them."""
