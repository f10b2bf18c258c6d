"""Reports about past runs: facts from the store, the Spark job, and reading what it wrote.

These names are what the module of a report imports, together with `bullpen.reports.functions`.
"""

from bullpen.reports.report import Chart as Chart
from bullpen.reports.report import ChartKind as ChartKind
from bullpen.reports.report import Facts as Facts
from bullpen.reports.report import Report as Report
from bullpen.reports.report import Table as Table
from bullpen.reports.report import View as View
from bullpen.reports.schema import Column as Column
from bullpen.reports.schema import Type as Type
from bullpen.reports.schema import Unit as Unit
