"""Annotations of the fields of dataclasses, resolved."""

from dataclasses import fields
from typing import Any, get_type_hints


def kinds_of(part: type) -> dict[str, Any]:
    """Annotation of each field of a dataclass."""
    hints = get_type_hints(part, include_extras=True)
    return {field.name: hints[field.name] for field in fields(part)}
