"""The directive `mermaid`, for the one picture of that kind: the floors of the architecture.

GitHub draws it. Here it becomes a table, because the program that draws it would have to come from
another host. Of a picture without floors it shows the source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FLOOR = re.compile(r'subgraph \w+\["(.*?): (.*?)"\]\n(.*?)\n  end', re.DOTALL)
_ROOM = re.compile(r'\["(.*?)"\]')


class Floors(SphinxDirective):
    """The subgraphs as rows: the floor, what it is for, its modules."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        floors = _FLOOR.findall(text)
        if not floors:
            return [nodes.literal_block(text, text, language="text")]
        group = nodes.tgroup(cols=3)
        group += [nodes.colspec(colwidth=width) for width in (20, 40, 40)]
        head, body = nodes.thead(), nodes.tbody()
        head += _row([[nodes.Text(one)] for one in ("floor", "what it is for", "modules")])
        for name, purpose, rooms in floors:
            modules: list[nodes.Node] = []
            for room in _ROOM.findall(rooms):
                modules += [nodes.Text(" ")] if modules else []
                modules.append(nodes.literal("", room))
            body += _row([[nodes.strong("", name)], [nodes.Text(purpose)], modules])
        group += [head, body]
        return [nodes.table("", group)]


def _row(cells: list[list[nodes.Node]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", Floors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
