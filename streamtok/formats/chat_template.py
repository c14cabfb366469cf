"""Chat templates, in which what the template itself writes is control and all else is text.

A chat template (Jinja, as in `tokenizer_config.json`) makes one text of messages. In that text, a
token that the template wrote looks like one that a user wrote. So the template is run with its
literals marked: an environment whose code generator makes each of them `Marked`, and a Prompt of
what is rendered. All strings of messages, tools and documents are text, but for Prompts.

It is run plainly, too. Where the two texts differ, as where `safe` escapes what it is joined with,
that is an error.

Templates come from strangers: both environments are Jinja's sandbox for immutable data, without
what transformers takes away from it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import MissingLibraryError, VocabularyError
from ..prompts import Control, Prompt
from .marked_text import Marked, as_prompt, formatting, joined, with_prompts
from .model_folder import read_chat_template

try:
    import jinja2
except ImportError as error:
    raise MissingLibraryError("chat templates", "jinja2", "hf", error) from error

# isort: split
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.ext import Extension, loopcontrols
from jinja2.filters import do_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_eval_context

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["ChatTemplate"]

# These are control, because templates put them between the halves of a token: '<|' + role + '|>'.
_ROLES = {"system", "developer", "user", "assistant", "model", "tool", "function", "observation"}
_ROLES |= {"ipython", "environment"}
_REASONING = ("reasoning_content", "thinking", "reasoning")  # names of one field
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "  # transformers' own; a template may strip the space


class ChatTemplate:
    """A chat template and the encoding of its model."""

    def __init__(
        self, source: str, encoding: Encoding, tokens: Mapping[str, Control] | None = None
    ) -> None:
        """tokens: variables of the template, such as `bos_token`.

        Raises jinja2.TemplateSyntaxError.
        """
        plain, marking = _environments()
        self._plain, self._marking = plain.from_string(source), marking.from_string(source)
        self._tokens = {**(tokens or {})}
        self._encoding = encoding
        literals = "\0".join(_literals(plain.parse(source)))
        control = encoding.control_tokens
        is_special = encoding.special_tokens_set.__contains__
        self._control = frozenset(
            text for text in control if is_special(text) or _is_in(text, literals)
        )
        others = control - self._control
        self._others = {encoding.encode_single_token(text): text for text in others}
        self._encodings: dict[frozenset[str], Encoding] = {}

    @staticmethod
    def from_folder(folder: str, encoding: Encoding) -> ChatTemplate:
        """ChatTemplate: of a model's folder: `chat_template.jinja`, or the one that its
        `tokenizer_config.json` has, with the tokens that this file names.

        Raises VocabularyError if there is none or it is no Jinja, and OSError.
        """
        source, tokens = read_chat_template(folder)
        try:
            return ChatTemplate(source, encoding, {name: Control(tokens[name]) for name in tokens})
        except jinja2.TemplateSyntaxError as error:
            raise VocabularyError(
                f"{folder}: the chat template, line {error.lineno}: {error.message}"
            ) from None

    def prompt(
        self,
        messages: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        expected: str | None = None,
    ) -> Prompt:
        """Prompt: what the template writes as control, all strings that it was given as text.

        The arguments are those of transformers' `apply_chat_template`, and values of JSON in which
        a Prompt may be in the place of a string. variables: `tools`, `documents` and what else the
        template knows. expected: the text that the Prompt must have; None: the one that is rendered
        plainly. Raises ValueError if it has another, and jinja2.TemplateError.
        """
        data: dict[str, Any] = {"tools": None, "documents": None, **self._tokens, **variables}
        data["strftime_now"] = datetime.now().strftime
        if expected is None:
            messages = [*map(_with_all_names, messages)]
        data["messages"] = [_with_role(message) for message in messages]
        data["add_generation_prompt"] = add_generation_prompt
        tag = ""
        if continue_final_message:
            tag = _TAG
            field = "content" if continue_final_message is True else continue_final_message
            data["messages"][-1:] = [_tagged(data["messages"][-1], field)]
        if expected is None:
            expected = _before(self._plain.render(with_prompts(data, str)), tag)
        rendered = _before(self._marking.render(with_prompts(data, Marked)), tag)
        if rendered != expected:
            raise ValueError(_difference(rendered, expected))
        return as_prompt(rendered)

    def encode(self, prompt: Prompt) -> list[int]:
        """list[int]: the ids of what the template made.

        Control tokens are the special ones, and those added ones that the template writes. So a tag
        of HTML that is an added token is one in a content as well, and `<think>` may not be.
        """
        # The template may have put a token together of parts.
        control = [Control(text) for text, is_control in prompt.spans if is_control]
        ids = self._encoding.encode(Prompt("").join(control)) if self._others else ()
        found = self._others.keys() & ids
        texts = self._control.union([self._others[id] for id in found])
        if texts not in self._encodings:
            if len(self._encodings) == 8:
                self._encodings.clear()
            self._encodings[texts] = self._encoding.with_control_tokens(texts)
        return self._encodings[texts].encode(prompt)


def _with_all_names(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as transformers gives it to a template: without null, and its reasoning by the
    names that templates ask for.
    """
    message = {name: value for name, value in message.items() if value is not None}
    reasoning = next((message[name] for name in _REASONING if name in message), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


def _with_role(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    if isinstance(role, str) and role in _ROLES:
        return {**message, "role": Control(role)}
    return {**message}


def _is_in(token: str, literals: str) -> bool:
    """Whether a template may write this token: at once, or around a role."""
    if token in literals:
        return True
    halves = (token.split(role, 1) for role in _ROLES if role in token)
    return any(all(half and half in literals for half in pair) for pair in halves)


def _tagged(message: dict[str, Any], field: str) -> dict[str, Any]:
    """A message that ends with the tag, in this field."""
    text = message.get(field)
    if isinstance(text, list):
        at = max((i for i, part in enumerate(text) if "text" in part), default=-1)
        if at >= 0:
            part = text[at]
            text = [*text[:at], {**part, "text": part["text"] + _TAG}, *text[at + 1 :]]
            return {**message, field: text}
        text = None
    if text is None:
        raise ValueError(f"the final message has no {field} to continue")
    names = [field, *(name for name in _REASONING if field in _REASONING)]
    return {**message, **{name: text + _TAG for name in names if message.get(name) == text}}


def _before(rendered: str, tag: str) -> str:
    """What is rendered before the tag, the last one; all of it if there is no tag to look for."""
    if not tag:
        return rendered
    at = rendered.rfind(tag.strip())
    if at < 0:
        raise ValueError("the template does not render the end of the final message")
    is_whole = rendered.startswith(tag, at)  # or else the template has stripped the content
    return rendered[:at] if is_whole else rendered[:at].rstrip()


def _difference(rendered: str, expected: str) -> str:
    pairs = enumerate(zip(rendered, expected, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(rendered), len(expected)))
    return (
        "the chat template renders another text when its literals are marked, so what it writes "
        f"cannot be told from contents: at character {at} {rendered[at : at + 40]!r}, expected "
        f"{expected[at : at + 40]!r}"
    )


def _literals(template: nodes.Template) -> Iterable[str]:
    """The texts that are written in a template."""
    for node in template.find_all((nodes.TemplateData, nodes.Const)):
        text = getattr(node, "data", None) or getattr(node, "value", None)
        if isinstance(text, str):
            yield text


class _Generation(Extension):
    """`{% generation %}`, which transformers knows: it has no effect on the text."""

    tags = {"generation"}  # noqa: RUF012  # as in Jinja's class

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller: Callable[[], str]) -> str:
        return caller()


class _Namespace(Namespace):
    """Jinja's, without names that lead to Python's internals."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # so that `self` may be a name
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace has no attribute {name!r}")


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """transformers' filter, which escapes no HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)  # a function has no methods that a template could call


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


class _Plain(ImmutableSandboxedEnvironment):
    """The environment that transformers gives to chat templates."""

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            optimized=False,  # folded, lists of literals would be no literals
        )
        self.filters["tojson"] = _to_json
        self.globals["raise_exception"] = _raise_exception
        self.globals["dict"] = _make_dict
        self.globals["namespace"] = _Namespace


class _MarkedLiterals(CodeGenerator):
    """Jinja's, whose templates have `environment.literal(text)` for each literal."""

    def visit_Const(self, node: nodes.Const, frame: Any) -> None:
        if isinstance(node.value, str):
            self.write(f"environment.literal({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Any) -> None:
        self.write(f"environment.literal({node.data!r})")

    def _output_const_repr(self, group: Iterable[Any]) -> str:
        return f"environment.literal({''.join(map(str, group))!r})"

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:
        self.write("concat((")
        for part in node.nodes:
            self.write("str(")
            self.visit(part, frame)
            self.write("), ")
        self.write("))")


@functools.lru_cache(maxsize=10_000)
def _literal(text: str) -> Marked:
    return Marked(Control(text))


@pass_eval_context
def _join(context: Any, value: Any, separator: str = "", attribute: Any = None) -> str:
    return do_join(context, value, Marked(separator), attribute)  # type: ignore[no-any-return]


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    margin = width if isinstance(width, str) else _literal(" " * width)
    begin, *lines = Marked(text).split("\n")
    lines = [margin + line if line or blank else line for line in lines]
    return _literal("\n").join([margin + begin if first else begin, *lines])


class _Marking(_Plain):
    """The environment in which literals are control."""

    code_generator_class = _MarkedLiterals
    concat = staticmethod(joined)  # of all that a template, a macro or a block writes
    literal = staticmethod(_literal)

    def __init__(self) -> None:
        super().__init__()
        # Jinja's own join with a str, which is text.
        self.filters["join"] = _join
        self.filters["indent"] = _indent

    def wrap_str_format(self, value: Any) -> Any:
        """What a template gets for the attribute `format` of a str."""
        template = getattr(value, "__self__", None)
        if isinstance(template, Marked) and value.__name__ == "format":
            found = formatting(template)
            if found is not None:
                return found
        return super().wrap_str_format(value)


@functools.cache
def _environments() -> tuple[_Plain, _Marking]:
    return _Plain(), _Marking()
