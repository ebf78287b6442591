"""Everything that touches Blender: reading and writing rigs, operators, panels, drawing."""
