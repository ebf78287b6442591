"""Bakes moving targets and markers to keyframes; also the command line. Imports all folders except `ui`."""
