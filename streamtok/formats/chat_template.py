"""Chat templates: the template's own text is control text, and everything else is plain text.

A chat template (Jinja, as in `tokenizer_config.json`) renders messages into one text. In that text,
a token written by the template looks like one written by a user. So the template is run with its
literals marked: the code generator makes each literal a `Marked`, and the result is a Prompt. All
strings in messages, tools and documents are plain text, except for Prompts and the usual names of
roles.

The template is also run without marks. It is an error if the two texts differ, for example because
a string marked as `safe` escapes the strings that are joined to it.

A third run (`conversation`) finds the assistant's characters. Instead of the literals, it marks the
text inside `{% generation %}`, or the contents of the assistant's messages if the template has no
such block.

Templates are untrusted, so all environments are Jinja's sandbox for immutable data, with the
further restrictions of transformers.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import MissingLibraryError, VocabularyError
from ..prompts import Control, Prompt
from .marked_text import Marked, unmarked, with_prompts
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
    import numpy.typing as npt

    from .._types import IdArray
    from ..encoding import Encoding

__all__ = ["ChatTemplate", "Conversation"]

# Roles are control, because templates insert them into tokens: '<|' + role + '|>'.
_ROLES = {"system", "developer", "user", "assistant", "model", "tool", "function", "observation"}
_ROLES |= {"ipython", "environment"}
_REASONING = ("reasoning_content", "thinking", "reasoning")  # names of the same field
_NO_DATE = (
    "it asks for today's date, on which the ids must not depend: write a date into the template"
)
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "  # transformers' own; a template may strip the space
_SIMPLE = re.compile(r"(?:[^{}]|\{\w*\})*")  # for `str.format`, without access to attributes


class Conversation(NamedTuple):
    """A rendered conversation. assistant: the spans of the assistant's text, in characters."""

    prompt: Prompt
    assistant: tuple[tuple[int, int], ...]


class ChatTemplate:
    """A chat template and its model's encoding. Immutable, except for a cache."""

    def __init__(
        self, source: str, encoding: Encoding, tokens: Mapping[str, Control] | None = None
    ) -> None:
        """tokens: variables of the template, such as `bos_token`.

        Raises jinja2.TemplateSyntaxError.
        """
        plain, marking, assistant = _environments()
        self._plain, self._marking = plain.from_string(source), marking.from_string(source)
        self._assistant = functools.cache(lambda: assistant.from_string(source))
        tree = plain.parse(source)
        called = tree.find_all(nodes.ExtensionAttribute)
        self._has_generation = any(one.identifier == _Generation.identifier for one in called)
        self._tokens = {**(tokens or {})}
        self._encoding = encoding
        written = [
            getattr(node, "data", None) or getattr(node, "value", "")
            for node in tree.find_all((nodes.TemplateData, nodes.Const))
        ]
        literals = "\0".join(text for text in written if isinstance(text, str))
        control = encoding.control_tokens
        is_special = encoding.special_tokens_set.__contains__
        self._control = frozenset(
            text for text in control if is_special(text) or _is_in(text, literals)
        )
        others = control - self._control
        self._others = {encoding.encode_single_token(text): text for text in others}
        self._with_control = functools.lru_cache(maxsize=8)(_with_control)

    @staticmethod
    def from_folder(folder: str, encoding: Encoding) -> ChatTemplate:
        """ChatTemplate: from `chat_template.jinja` or `tokenizer_config.json` in a model's folder.
        Tokens that the folder's files name by role, such as `bos_token`, are variables of the
        template.

        Raises OSError, and VocabularyError if there is no template or it is not valid Jinja.
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
        """Prompt: the rendered text, in which the template's own strings are control text.

        The arguments are those of transformers' `apply_chat_template`: JSON values, in which a
        Prompt may replace any string. variables: `tools`, `documents` and whatever else the
        template uses. expected: the text that the Prompt must have; if None, the text rendered
        without marks. Raises jinja2.TemplateError, and ValueError if the Prompt has a different
        text.
        """
        data = self._data(variables)
        if expected is None:
            messages = [*map(_with_all_names, messages)]
        data["messages"] = [_with_role(message) for message in messages]
        data["add_generation_prompt"] = add_generation_prompt
        if expected is None:
            plain = with_prompts(data, str)
            if continue_final_message:
                plain["messages"][-1:] = map(_with_tag, plain["messages"][-1:])
            expected = self._plain.render(plain)
            if continue_final_message:
                expected = _before_tag(expected)
        prompt: Prompt = unmarked(self._marking.render(with_prompts(data, Marked)))
        if continue_final_message:
            prompt = prompt[: len(expected)]
        _check_same(prompt, expected)
        return prompt

    def _data(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        known = {"tools": None, "documents": None, "strftime_now": datetime.now().strftime}
        return {**known, **self._tokens, **variables}

    def conversation(
        self, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
    ) -> Conversation:
        """Conversation: the result of `prompt`, and the spans of the assistant's text. These are
        the `{% generation %}` blocks if the template has any, otherwise the contents of the
        assistant's messages.

        The template cannot read the date, because ids for training must not depend on the day.
        Raises the errors of `prompt`, and ValueError if the template has no such blocks and renders
        no content of the assistant unchanged.
        """
        variables = {"strftime_now": jinja2.Undefined(_NO_DATE), **variables}
        prompt = self.prompt(messages, variables)
        data = with_prompts(self._data(variables), str)
        messages = [*map(_with_all_names, messages)]
        data["add_generation_prompt"] = False
        data["messages"] = messages if self._has_generation else [*map(_with_speech, messages)]
        said: Prompt = unmarked(self._assistant().render(data))
        _check_same(said, str(prompt))
        spans, at = [], 0
        for text, is_said in said.spans:
            if is_said:
                spans.append((at, at + len(text)))
            at += len(text)
        if not spans and not self._has_generation and any(map(_speaks, messages)):
            raise ValueError(
                "the chat template renders no content of the assistant unchanged: expected "
                "{% generation %} … {% endgeneration %} around the assistant's text"
            )
        return Conversation(prompt, tuple(spans))

    def encode_with_mask(self, conversation: Conversation) -> tuple[IdArray, npt.NDArray[np.uint8]]:
        """(ids, mask): the ids of a conversation, and a mask that is 1 for ids of the assistant's
        text.

        Without `{% generation %}`, the mask is also 1 for the control token that ends the
        assistant's message, and for white space before this token.
        """
        encoding, control = self._encoding_for(conversation.prompt)
        ids, spans = encoding.encode_with_offsets(conversation.prompt)
        starts, stops = spans[:, 0], spans[:, 1]
        mask = np.zeros(len(ids), np.uint8)
        text = str(conversation.prompt)
        for start, stop in conversation.assistant:
            found = np.flatnonzero((stops > start) & (starts < stop))
            mask[found] = 1
            if self._has_generation or not len(found):
                continue
            closing = after = int(found[-1]) + 1
            while closing < len(ids) and text[starts[closing] : stops[closing]].isspace():
                closing += 1
            if closing < len(ids) and int(ids[closing]) in control:
                mask[after : closing + 1] = 1
        return ids, mask

    def encode(self, prompt: Prompt, errors: str = "strict") -> list[int]:
        """list[int]: the ids of a rendered prompt. errors: as for `Encoding.encode`."""
        return self._encoding_for(prompt)[0].encode(prompt, errors=errors)

    def _encoding_for(self, prompt: Prompt) -> tuple[Encoding, frozenset[int]]:
        """The encoding for a rendered prompt, and the ids of its control tokens.

        Control tokens are the special tokens and the added tokens that the template writes, which
        often include `<think>`. Other added tokens, such as HTML tags, are found in contents, too.
        """
        # The template may have built a token from parts.
        control = [Control(text) for text, is_control in prompt.spans if is_control]
        ids = self._encoding.encode(Prompt("").join(control)) if self._others else ()
        found = [self._others[id] for id in self._others.keys() & ids]
        return self._with_control(self._encoding, self._control.union(found))


def _with_control(encoding: Encoding, control: frozenset[str]) -> tuple[Encoding, frozenset[int]]:
    """The encoding with these control tokens, and their ids."""
    encoding = encoding.with_control_tokens(control)
    return encoding, frozenset(map(encoding.encode_single_token, encoding.control_tokens))


def _with_all_names(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as transformers passes it to a template: without null values, and with the
    reasoning under each name that templates use.
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


def _with_speech(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with the assistant's text marked."""
    if message.get("role") != "assistant":
        return message
    names = message.keys() & {"content", *_REASONING}
    return {**message, **{name: _marked_speech(message[name]) for name in names}}


def _marked_speech(value: Any) -> Any:
    """The content, marked as the assistant's: a text, or a list of parts that may contain text."""
    if isinstance(value, list):
        return [
            {**part, "text": _marked_speech(part["text"])}
            if isinstance(part, dict) and "text" in part
            else part
            for part in value
        ]
    return Marked(Control(str.__str__(value))) if isinstance(value, str) else value


def _speaks(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    is_text = isinstance(content, str) and not content.isspace()
    return message.get("role") == "assistant" and is_text and bool(content)


def _is_in(token: str, literals: str) -> bool:
    """Whether a template may write this token: whole, or in halves around a role."""
    if token in literals:
        return True
    halves = (token.split(role, 1) for role in _ROLES if role in token)
    return any(all(half and half in literals for half in pair) for pair in halves)


def _with_tag(message: dict[str, Any]) -> dict[str, Any]:
    """The message with `_TAG` at the end of its content."""
    content = message.get("content")
    if isinstance(content, list) and content and "text" in content[-1]:
        last = {**content[-1], "text": content[-1]["text"] + _TAG}
        return {**message, "content": [*content[:-1], last]}
    if not isinstance(content, str):
        raise ValueError("the final message has no content to continue")
    return {**message, "content": content + _TAG}


def _before_tag(rendered: str) -> str:
    """The rendered text before the last `_TAG`."""
    text, tag, rest = rendered.rpartition(_TAG.strip())
    if not tag:
        raise ValueError("the template does not render the end of the final message")
    return text if rest.startswith(" ") else text.rstrip()  # the template has stripped the content


def _check_same(prompt: Prompt, expected: str) -> None:
    """Raise ValueError if the texts differ."""
    rendered = str(prompt)
    if rendered == expected:
        return
    pairs = enumerate(zip(rendered, expected, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(rendered), len(expected)))
    raise ValueError(
        "the chat template renders another text when its literals are marked, so its own text "
        f"cannot be told from contents: at character {at} {rendered[at : at + 40]!r}, expected "
        f"{expected[at : at + 40]!r}"
    )


class _Generation(Extension):
    """`{% generation %}` as in transformers: a block around the assistant's text."""

    tags = {"generation"}  # noqa: RUF012  # as in Jinja's class

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller: Callable[[], str]) -> str:
        return self.environment.generated(caller())  # type: ignore[attr-defined, no-any-return]


class _Namespace(Namespace):
    """Jinja's namespace, without names that lead to Python's internals."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # so that `self` may be a name
        self: Any = args[0]
        Namespace.__init__(self)
        for name, value in dict(*args[1:], **kwargs).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a namespace has no attribute {name!r}")
        super().__setitem__(name, value)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """The filter `tojson` of transformers, which does not escape HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)  # a function has no methods that a template could call


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


class _Plain(ImmutableSandboxedEnvironment):
    """The environment that transformers gives to chat templates."""

    # Marks the text of `{% generation %}`; in this class, it does nothing.
    generated: Callable[[str], str] = str

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            optimized=False,  # constant folding would hide the literals in lists
        )
        self.filters["tojson"] = _to_json
        self.globals["raise_exception"] = _raise_exception
        self.globals["dict"] = _make_dict
        self.globals["namespace"] = _Namespace


class _MarkedLiterals(CodeGenerator):
    """Jinja's code generator, with `environment.literal(text)` in place of each literal."""

    def visit_Const(self, node: nodes.Const, frame: Any) -> None:
        if isinstance(node.value, str):
            self.write(f"environment.literal({node.value!r})")
        else:
            super().visit_Const(node, frame)

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


class _Marking(_Plain):
    """An environment whose templates have marked literals."""

    code_generator_class = _MarkedLiterals
    concat = staticmethod(
        lambda parts: Marked(*parts)
    )  # joins the output of a template, a macro or a block
    literal = staticmethod(_literal)

    def __init__(self) -> None:
        super().__init__()
        self.filters["join"] = _join  # Jinja's own filter joins with a str, which is text

    def wrap_str_format(self, value: Any) -> Any:
        """The method `format` of a str, as a template sees it."""
        control = unmarked(getattr(value, "__self__", None))
        is_format = isinstance(control, Control) and value.__name__ == "format"
        if is_format and _SIMPLE.fullmatch(str(control)):
            return value
        return super().wrap_str_format(value)


@functools.cache
def _environments() -> tuple[_Plain, _Marking, _Marking]:
    """(plain, marking, assistant): environments; the last one marks only the assistant's text."""
    assistant = _Marking()
    assistant.literal = functools.lru_cache(maxsize=10_000)(Marked)
    assistant.generated = _marked_speech
    return _Plain(), _Marking(), assistant
