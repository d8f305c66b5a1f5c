"""`python -m rspmn`."""

from rspmn.cli import main

raise SystemExit(main())
