"""Motion over many frames: how an offset fades out, and poses near to their own that follow it. Imports `core`."""
