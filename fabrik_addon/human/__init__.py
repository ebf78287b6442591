"""A human body: names of bones, joint ranges, and the limits preset made from them. Imports `core`, not bpy."""
