"""The directive `command-line`: all commands and options, from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def commands() -> dict[str, argparse.ArgumentParser]:
    """The name of each command, and its parser, in the order of --help."""
    from streamtok.cli.main import _parser

    (found,) = (
        action.choices
        for action in _parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(found)


class CommandLine(SphinxDirective):
    """A section for each command: what it does, examples, its options in their groups."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, parser) for name, parser in commands().items()]

    def _section(self, name: str, parser: argparse.ArgumentParser) -> nodes.section:
        section = nodes.section(ids=[f"streamtok-{name}"], names=[f"streamtok {name}"])
        section += nodes.title("", f"streamtok {name}")
        text, *columns = (parser.description or "").split("\n\n")
        section += nodes.paragraph("", text)
        section += [nodes.literal_block(one, one) for one in columns]
        if parser.epilog:
            text = "\n".join(line.strip() for line in parser.epilog.splitlines()[1:])
            section += nodes.literal_block(text, text, language="sh")
        for group in parser._action_groups:
            actions = [one for one in group._group_actions if one.help != argparse.SUPPRESS]
            if not actions:
                continue
            section += nodes.rubric("", (group.title or "").capitalize())
            if group.description:
                section += nodes.paragraph("", group.description)
            section += self._options(parser, actions)
        return section

    def _options(
        self, parser: argparse.ArgumentParser, actions: list[argparse.Action]
    ) -> nodes.definition_list:
        formatter = parser._get_formatter()
        listed = nodes.definition_list(classes=["option-list"])
        for action in actions:
            term = nodes.term()
            for i, spelling in enumerate(_spellings(action, formatter)):
                term += [nodes.Text(", ")] if i else []
                term += nodes.literal("", spelling)
            text = formatter._expand_help(action) if action.help else ""
            body = nodes.definition("", nodes.paragraph("", text))
            listed += nodes.definition_list_item("", term, body)
        return listed


def _spellings(action: argparse.Action, formatter: argparse.HelpFormatter) -> Iterator[str]:
    """Each spelling of an option, with its value."""
    if not action.option_strings:
        yield formatter._format_args(action, str(action.metavar or action.dest))
        return
    for option in action.option_strings:
        if action.nargs == 0:
            yield option
        else:
            default = str(action.metavar or action.dest.upper())
            yield f"{option} {formatter._format_args(action, default)}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
