r"""What a language model said: which of A and B, a tie, a refusal, or nothing that can be read.

Models do not keep to a format. The rule here is to read a reply rightly or not at all: a sentence counts only where all
of it is understood, and two statements that differ make the reply unreadable. In this order:

1. reasoning (`<think>…</think>` and the like) is removed;
2. a JSON object with a field such as `answer`;
3. a last line such as `Answer: B`, which is what the prompt asks for;
4. marks such as `[[B]]`, `\boxed{B}` and `<answer>B</answer>`, where all of them agree;
5. a refusal;
6. one sentence, such as "I would choose the second", or a last line that begins with "Overall, …";
7. a letter with an explanation that mentions no other choice, such as "B. It is shorter."
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

Said = Literal["A", "B", "TIE", "REFUSED"]
"""What a reply says, where it can be read."""

FIELDS = ("answer", "winner", "choice", "verdict", "preference", "preferred", "better", "best", "selection", "decision")
"""Names of JSON fields that hold the answer."""

LEAST_MASS = 0.5
"""A probability is read only where the choices have at least this share of the next token's distribution."""

_REASONING = ("think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis")
_TAGS = "|".join(_REASONING)
_CLOSED = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>|\[think\].*?\[/think\]|◁think▷.*?◁/think▷", re.S | re.I)
_ENDED = re.compile(rf"^.*(?:</(?:{_TAGS})\s*>|\[/think\]|◁/think▷)", re.S | re.I)
_BEGUN = re.compile(rf"(?:<(?:{_TAGS})\b[^>]*>|\[think\]|◁think▷).*$", re.S | re.I)
_CHANNEL = re.compile(r"^.*<\|channel\|>\s*final[^<]*<\|message\|>|<\|(?:end|return|eot_id|im_end)\|>\s*$", re.S)

# The pieces of the sentences that are understood. Single letters are capitals, or "a" would be an article.
_KIND = r"(?i:option|response|answer|assistant|candidate|text|item|output|model|choice|version|réponse|antwort|opción)"
_LETTER = rf"(?:(?i:the\s+)?{_KIND}\s*)?[\(\[\"'“‘«]*(?P<{{}}>[AB])[\)\]\"'”’»]*"
_ORDINAL = (
    r"(?i:(?:the\s+)?(?P<{}>first|1st|second|2nd)"
    r"(?:\s+(?:one|option|response|answer|text|item|candidate|output|version))?)"
)
_NOUN = (
    r"(?i:answer|verdict|choice|winner|preference|decision|judge?ment|vote|pick|conclusion|selection|"
    r"(?:better|best|preferred|stronger)(?:\s+(?:one|option|response|answer|text|candidate|output))?|"
    r"antwort|ergebnis|entscheidung|réponse|respuesta|risposta|resposta|antwoord|odpowiedź|svar|cevap|ответ|"
    r"答案|回答|答え|결론|정답|답)"
)
_ADVERB = (
    r"(?i:(?:clearly|slightly|much|definitely|probably|somewhat|marginally|a\s+(?:bit|little)|far|just|simply)\s+)*"
)
_BETTER = (
    r"(?i:better|best|stronger|superior|preferable|preferred|the\s+winner|the\s+(?:better|best|stronger)"
    r"(?:\s+(?:one|option|response|answer|text|candidate|output|choice))?)"
)
_TIE = (
    r"(?i:(?:it(?:'s|\s+is)|this\s+is|i(?:'d|\s+would)\s+call\s+it|they\s+are|(?:the\s+two|both)(?:\s+\w+)?\s+are)?\s*"
    r"(?:a\s+|an\s+)?(?:tie|tied|draw|equal|equally\s+(?:good|bad)|about\s+equal|both\s+bad|tie\s*\(?both\s*bad\)?|"
    r"the\s+same|no\s+(?:clear\s+)?(?:difference|preference|winner))"
    r"|neither(?:\s+(?:one|of\s+them|response|answer|option))?(?:\s+is\s+(?:better|good|preferable))?"
    r"|both|both(?:\s+\w+)?\s+are\s+(?:equally\s+)?(?:bad|good|fine|poor|wrong|correct|the\s+same|equal)"
    r"|unentschieden|gleichstand|égalité|empate|pareggio|remis|gelijkspel|ничья|平局|平手|引き分け|무승부)"
)
_LEAD = (
    r"(?i:therefore|thus|so|hence|overall|in\s+conclusion|in\s+summary|to\s+conclude|to\s+sum\s+up|all\s+in\s+all|"
    r"in\s+the\s+end|finally|on\s+balance)"
)
_IS = r"(?i:\s*(?:[:=–—-]+|is\s*:?|would\s+be|goes\s+to|ist|est|es|è|é|是|は|:是)\s*)"


def _side(name: str) -> str:
    """A pattern for either item, under group names that begin with `name`."""
    return f"(?:{_LETTER.format(name + 'l')}|{_ORDINAL.format(name + 'o')})"


_VERDICTS = [
    re.compile(pattern)
    for pattern in (
        _side("x"),
        rf"{_side('x')}\s+(?i:is|was|seems|looks|appears\s+to\s+be|would\s+be)\s+{_ADVERB}{_BETTER}"
        rf"(?:\s+(?i:than|over|to)\s+{_side('y')})?(?i:\s+overall)?",
        rf"{_side('x')}\s+{_ADVERB}(?i:wins|beats\s+{_side('y')})(?i:\s+overall)?",
        rf"{_side('x')}\s+(?i:est\s+meilleure?|ist\s+besser|es\s+mejor|è\s+migliore|é\s+melhor|лучше)",
        rf"(?i:i|i'd|i'll|i\s+would|i\s+will|we)\s+{_ADVERB}(?i:choose|pick|prefer|select|go\s+with|go\s+for|vote\s+for|"
        rf"favou?r|say)\s+{_side('x')}(?:\s+(?i:over|to)\s+{_side('y')})?",
        rf"(?i:(?:my|the|die|la|le|il)\s+)?(?i:final\s+)?{_NOUN}{_IS}{_side('x')}",
    )
]
_TIES = re.compile(rf"(?:(?i:(?:my|the)\s+)?(?i:final\s+)?{_NOUN}{_IS})?{_TIE}")
_MARKED_LINE = re.compile(
    rf"^[^\w\n]*(?i:(?:my|the|die|la|le)\s+)?(?i:final\s+)?{_NOUN}[^\S\n]*[:=][^\S\n]*(?P<value>[^\s].*)$", re.M
)
_MARKS = re.compile(
    r"\[\[(?P<m1>[^\[\]\n]{1,40})\]\]|\\boxed\{\s*(?:\\(?:text|mathrm|mathbf)\{)?(?P<m2>[^{}\n]{0,40})\}|"
    r"<(?P<tag>answer|verdict|choice|winner|final)>\s*(?P<m3>[^<\n]{0,40}?)\s*</(?P=tag)>",
    re.I,
)
_REFUSAL = re.compile(
    r"(?:\bI(?:'m|\s+am)?\b|\bwe\b|^(?:sorry|apologies|unfortunately)\b)[^.\n]{0,40}?\b(?:can(?:no|')t|can\s+not|won't|"
    r"will\s+not|unable\s+to|not\s+able\s+to|decline\s+to|refuse\s+to|not\s+comfortable)\s+(?:\w+ly\s+)?"
    r"(?:help(?!\s+but)|assist|compar|judg|answer|provide|evaluat|comply|cho+s|fulfil|do\s+(?:that|this)|continue|"
    r"engage|rat[ei]|pick|decide|determine|say|make|view|see)"
    r"|\bas\s+an\s+ai(?:\s+language\s+model)?,?\s+i\s+(?:do\s+not|don't|cannot|can't)|\bno\s+puedo\b|\bje\s+ne\s+peux\s+pas\b|"
    r"\bich\s+kann\s+(?:das\s+)?nicht\b|我无法|我不能|申し訳",
    re.I,
)
_RETRACTION = re.compile(
    r"\b(?:actually|wait|correction|on second thought|on reflection|change my|instead|rather)\b", re.I
)
_OTHERS = re.compile(
    r"\b[AB]\b|\b(?i:first|second|1st|2nd|tie|draw|neither|both|other|former|latter|equal\w*|but|however|although|not|"
    r"unless|if|or)\b"
)
_OPENING = re.compile(r"(?P<label>[^.,:;\n–—]{1,30}?)\s*(?:[.,:;\n–—]|\s-\s)\s*(?P<rest>.+)", re.S)


def read_reply(text: str) -> Said | None:
    r"""What the reply says, or None where it cannot be read for certain.

    >>> [read_reply(text) for text in ("It is a tie", r"\boxed{B}", "A good question!", "I can't help with that.")]
    ['TIE', 'B', None, 'REFUSED']
    """
    said = _tidy(without_reasoning(text))
    if not said:
        return None
    plain = without_markup(said)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    if not lines:
        return None
    fields = [
        (value, end) for found, end in objects_in(said) for name, value in found.items() if name.lower() in FIELDS
    ]
    if fields:
        values = [_value(value) if isinstance(value, str) else None for value, _ in fields]
        return _unanimous(values, said[fields[-1][1] :])
    if last := _MARKED_LINE.fullmatch(lines[-1]):
        return _value(last["value"])
    marks = [_Mark(next(filter(None, mark.group("m1", "m2", "m3")), ""), mark.end()) for mark in _MARKS.finditer(plain)]
    marks += [_Mark(mark["value"], mark.end()) for mark in _MARKED_LINE.finditer(plain)]
    if marks:
        return _unanimous([_value(mark.value) for mark in marks], plain[max(mark.end for mark in marks) :])
    if _REFUSAL.search(plain.replace("’", "'")):
        # With a word about one of the two it may be an answer after all: "I can't see why A was chosen; B is better."
        return None if re.search(r"\b[AB]\b", re.sub(r"\bA\b (?:and|or|with) \bB\b", "", plain)) else "REFUSED"
    return _sentence(" ".join(lines)) or _last_word(lines[-1]) or _with_explanation(plain)


class _Mark(NamedTuple):
    value: str
    end: int


def without_reasoning(text: str) -> str:
    """The reply without what a reasoning model thought first; empty where the reasoning never ended.

    >>> [without_reasoning(text) for text in ("<think>A or B?</think>B", "A seems fine</think>B", "<think>A")]
    ['B', 'B', '']
    """
    # A server may keep the opening tag to itself, so whatever comes before a closing tag goes too.
    return _BEGUN.sub("", _ENDED.sub("", _CLOSED.sub("", _CHANNEL.sub("", text)))).strip()


def soft_probability(tokens: Any, said: Said) -> float | None:
    """The probability of A that the log-probabilities of the answer's token give, half of a tie's included.

    `tokens` is `choices[0].logprobs.content` of a reply that says `said`. Of the tokens that can be the answer, the
    last one is taken, as in a reply that ends with it. None where there is none, or where the choices share less than
    half of the distribution there.
    """
    for token in reversed(tokens if isinstance(tokens, list) else []):
        if not isinstance(token, dict) or _of_token(token.get("token")) != said:
            continue
        mass = {"A": 0.0, "B": 0.0, "TIE": 0.0}
        for other in token.get("top_logprobs") or ():
            choice, logarithm = _of_token(other.get("token")), other.get("logprob")
            if choice is not None and isinstance(logarithm, int | float):
                mass[choice] += math.exp(min(0.0, logarithm))
        total = sum(mass.values())
        return (mass["A"] + mass["TIE"] / 2) / total if total >= LEAST_MASS else None
    return None


def _of_token(token: Any) -> Literal["A", "B", "TIE"] | None:
    """The choice that a token begins: "TIE" may be cut into "T" and "IE"."""
    word = token.strip(" \t\r\n\"'*_`[](){}<>.:,").upper() if isinstance(token, str) else ""
    if word in ("A", "B"):
        return "A" if word == "A" else "B"
    return "TIE" if word and "TIE".startswith(word) else None


def _tidy(text: str) -> str:
    """Full-width letters become ordinary ones, and what cannot be seen goes."""
    return "".join(
        sign for sign in unicodedata.normalize("NFKC", text) if sign in "\n\t" or unicodedata.category(sign)[0] != "C"
    ).strip()


def without_markup(text: str) -> str:
    r"""Without Markdown's emphasis, headings and quotes, and without LaTeX's \text and dollars."""
    text = re.sub(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}", r"\1", text)
    return re.sub(r"^[ \t]*(?:#+|>+)[ \t]*|[*`$]+|(?<!\w)_+|_+(?!\w)", "", text, flags=re.M)


def objects_in(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The JSON objects in a text, such as one inside a code fence, and where each ends."""
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            if isinstance(found, dict):
                yield found, end
        place = text.find("{", end)


def _value(text: str) -> Said | None:
    """A field or a mark: a choice or a sentence; here "a" is a letter and not an article."""
    text = without_markup(text).strip()
    bare = text.strip(" .,;:!\"'()[]{}")
    return _sentence(bare.upper() if bare in ("a", "b") else text)


def _sentence(text: str) -> Said | None:
    """One sentence that is understood as a whole."""
    text = text.replace("’", "'").strip(" \t\n.!。\"'")
    if len(text) > 200:
        return None  # no sentence of the grammar is that long
    text = re.sub(rf"{_LEAD}\s*[,:]?\s+", "", text, count=1) if re.match(_LEAD, text) else text
    if text in ("a", "b"):
        text = text.upper()
    if _TIES.fullmatch(text):
        return "TIE"
    for pattern in _VERDICTS:
        if found := pattern.fullmatch(text):
            sides = [_named(name[1], word) for name, word in sorted(found.groupdict().items(), reverse=True) if word]
            # "A is better than A" makes no sense; in "A is better than B" the first one named is meant.
            return None if len(sides) == 2 and sides[0] == sides[1] else _first_named(found)
    return None


def _first_named(found: re.Match[str]) -> Said | None:
    word = found["xl"] or found["xo"]
    return _named("l" if found["xl"] else "o", word)


def _named(kind: str, word: str) -> Literal["A", "B"]:
    """The item of a letter (kind "l") or of "first" and "second"."""
    return "A" if (word == "A" if kind == "l" else word.lower() in ("first", "1st")) else "B"


def _last_word(line: str) -> Said | None:
    """A last line, or the last sentence of it, that draws a conclusion from what came before."""
    last = re.split(r"(?<=[.!?])\s+", line)[-1]
    return _sentence(last) if re.match(rf"{_LEAD}\b", last) else None


def _with_explanation(text: str) -> Said | None:
    """A choice followed by an explanation, unless the explanation mentions another choice or takes something back."""
    opening = _OPENING.fullmatch(text)
    if opening is None or _OTHERS.search(opening["rest"]):
        return None
    said = _sentence(opening["label"])
    return said if said in ("A", "B") and not _contradicts(opening["rest"], said) else None


def _unanimous(said: Sequence[Said | None], after: str) -> Said | None:
    """What all statements say, unless the text after the last one takes it back."""
    return said[0] if len(set(said)) == 1 and not _contradicts(after, said[0]) else None


def _contradicts(text: str, said: Said | None) -> bool:
    """Whether a text that comes after a statement takes it back, as a whole or with one of its sentences."""
    sentences = re.split(r"(?<=[.!?])\s+|\n", without_markup(text))
    others = {read_reply(text), *map(_sentence, sentences)} - {None, said}
    return bool(others or _RETRACTION.search(text))
