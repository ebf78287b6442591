"""From targets that move to keyframes: sample, solve, write, report; the command line. Imports all rooms but `ui`."""
