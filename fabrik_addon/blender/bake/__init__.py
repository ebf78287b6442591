"""Bakes moving targets and markers to keyframes; also batches of takes. Imports all folders except `ui`."""
