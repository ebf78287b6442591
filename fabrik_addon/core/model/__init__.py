"""The input of a solve: bones, effectors, targets, options. Imports the modules directly in `core`."""
