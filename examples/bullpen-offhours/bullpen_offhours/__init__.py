"""A report for Bullpen: work, failures and cost outside working hours."""

from bullpen import ReportInfo

OFFHOURS = ReportInfo(name="offhours", factory="bullpen_offhours.report:OFFHOURS")
