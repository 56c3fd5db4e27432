"""The links of the package, from the one setting that holds the repository's address:
``[tool.bench] address`` in pyproject.toml.

It is empty until the repository has a public address; then the package's links, the site's
repository and edit links appear.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def repository_address() -> str:
    """Return the repository's address without a slash at its end; empty if none is set."""
    settings = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    return str(settings["tool"]["bench"]["address"]).rstrip("/")


def project_urls(address: str) -> dict[str, str]:
    """Return the links that a package index shows; none without an address."""
    if not address:
        return {}
    return {
        "Repository": address,
        "Documentation": f"{address}/blob/main/docs/README.md",
        "Leaderboards": f"{address}/blob/main/leaderboards/README.md",
        "Changes": f"{address}/blob/main/CHANGES.md",
        "Issues": f"{address}/issues",
    }


class ProjectUrls(MetadataHookInterface):
    """Adds the links while the package is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["urls"] = project_urls(repository_address())
