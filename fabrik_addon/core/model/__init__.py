"""What is solved: bones, effectors, their targets, options. Imports what stands directly in `core`."""
