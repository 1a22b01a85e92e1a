"""A run as one page: data, splits, training, predictions, uncertainty, molecules, settings."""

from ckgconv.report.page import FILE, write_report

__all__ = ["FILE", "write_report"]
