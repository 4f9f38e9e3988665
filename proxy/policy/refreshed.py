"""How does a policy's text read with other data?

The values of `source.path` and `source.data_version` alone are written anew; every other character stays.
"""

from __future__ import annotations

import json

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from proxy.errors import ConfigError


def with_data(text: str, *, version: str, path: str = "") -> str:
    """The text of a policy, that can be read, with this label of its data and, unless "", with this file.

    Raises ConfigError where the source has no path, or a value has no place of its own in the text.
    """
    (source,) = _values(YAML(typ="rt", pure=True).compose(text), "source")
    places = [(_plain(source, "data_version"), version)]
    if path:
        if not _values(source, "path"):
            raise ConfigError(
                "the source of this policy has no path",
                hint="Put new files in the place of the old ones, by renaming, and leave out --path.",
            )
        places.append((_plain(source, "path"), path))
    for node, value in sorted(places, key=lambda place: -int(place[0].start_mark.index)):
        text = f"{text[: node.start_mark.index]}{json.dumps(value)}{text[node.end_mark.index :]}"
    return text


def _values(of: Node | None, name: str) -> list[Node]:
    return [value for key, value in of.value if key.value == name] if isinstance(of, MappingNode) else []


def _plain(source: Node, name: str) -> ScalarNode:
    """The one value of a key that is written where it stands. Raises ConfigError."""
    match _values(source, name):
        case [ScalarNode() as node] if not node.anchor:
            return node
        case _:
            raise ConfigError(
                f"source.{name} has no plain value in the policy's text", hint="Write it without an alias."
            )
