"""The data stored with rigs: property groups and custom properties. Imports only `core`."""
