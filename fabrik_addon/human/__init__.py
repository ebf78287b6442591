"""A human body: names of bones, joint ranges, the preset made from them. Imports `core`, never bpy."""
