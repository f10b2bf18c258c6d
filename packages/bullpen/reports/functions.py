"""pyspark.sql.functions, and `Window`, imported at their first use.

Reports are listed, documented and read where Spark is not installed, so a report's module imports
this one instead: `from bullpen.reports import functions as F`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Window as Window
    from pyspark.sql.functions import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        from pyspark.sql import Window, functions

        return Window if name == "Window" else getattr(functions, name)
