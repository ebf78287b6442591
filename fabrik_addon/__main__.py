"""`python -m fabrik_addon`: the command line."""

import sys

from .cli import main

sys.exit(main())
