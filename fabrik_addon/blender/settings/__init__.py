"""What is kept on rigs: property groups and custom properties. Imports `core` alone."""
