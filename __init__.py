"""Lets the project's own folder be the extension; a plain `import` of this file does nothing."""

if __package__:
    from .fabrik_addon import register as register
    from .fabrik_addon import unregister as unregister
