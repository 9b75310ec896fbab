"""``python -m d2lmini.claims``: the ledger of the claims stored in notebooks."""

import sys

from . import main

sys.exit(main())
