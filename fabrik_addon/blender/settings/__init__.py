"""The data stored on rigs: property groups and custom properties. Imports `core` alone."""
