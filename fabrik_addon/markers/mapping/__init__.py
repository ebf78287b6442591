"""The bone of each marker and its position there: labels, marker sets, the map file. Imports `human`."""
