"""All code that uses Blender: reading and writing rigs, operators, panels, drawing."""
