"""Which marker is where on which bone: labels, marker sets, the map file. Imports `human`."""
