r"""Awkward replies of language models: each is read rightly or reported as unreadable, none wrongly."""

import math
import re
from itertools import product

import pytest

from surepick.judges.model_replies import read_reply, soft_probability, without_reasoning

A, B, TIE, REFUSED, UNREADABLE = "A", "B", "TIE", "REFUSED", None

REPLIES = [
    # plain letters and what surrounds them
    ("A", A),
    ("b", B),
    ("**B**", B),
    ("(A).", A),
    ('"B"', B),
    ("Option (A)", A),
    ("Response B.", B),
    ("Ｂ", B),
    ("The answer is B.", B),
    # marks
    ("Answer:B", B),
    ("**Final answer:** B", B),
    ("### Verdict: **A**", A),
    ("[[A]]", A),
    ("After careful thought, my verdict is: [[B]].", B),
    (r"\boxed{B}", B),
    (r"Therefore $\boxed{\text{A}}$.", A),
    ("<answer>B</answer>", B),
    ("Winner: A\nLoser: B", A),
    ("A is clear but thin. B covers more.\n\nAnswer: B", B),
    ("I must end with 'Answer: A', 'Answer: B' or 'Answer: TIE'. B is richer.\nAnswer: B", B),
    ("[[A]] or [[B]]", UNREADABLE),
    ("Verdict: A\n\nActually, B is better.", UNREADABLE),
    ("Answer: C", UNREADABLE),
    ("Answer: not A", UNREADABLE),
    (r"\boxed{}", UNREADABLE),
    # JSON
    ('{"answer": "A"}', A),
    ('```json\n{"answer": "B"}\n```', B),
    ('Here you are: {"reason": "A is short", "winner": "B"}', B),
    ('{"answer": "tie"}', TIE),
    ('{"answer": "A", "winner": "B"}', UNREADABLE),
    ('{"answer": null}', UNREADABLE),
    ('{"answer": "A"} Wait, I mean B.', UNREADABLE),
    # sentences
    ("A is better than B", A),
    ("B is slightly better than A.", B),
    ("The second one is better.", B),
    ("I would choose the second", B),
    ("I'd go with Response A over Response B.", A),
    ("Both are fine, and so on.\nOverall, B is better.", B),
    ("B. It is shorter and says the same.", B),
    ("A is better than A", UNREADABLE),
    ("A is not better than B.", UNREADABLE),
    ("A good answer would mention the cost.", UNREADABLE),
    ("A: clear. B: thorough.", UNREADABLE),
    ("A is friendlier, while B is more accurate.", UNREADABLE),
    ("If you want brevity, A is better; otherwise B.", UNREADABLE),
    ("I don't think A is better.", UNREADABLE),
    ("B, but only if cost matters; A otherwise", UNREADABLE),
    ("Option 1", UNREADABLE),
    ("8/10", UNREADABLE),
    # ties
    ("It is a tie", TIE),
    ("TIE", TIE),
    ("Answer: TIE", TIE),
    ("Neither", TIE),
    ("Both are bad", TIE),
    ("They are equally good.", TIE),
    ("It is not a tie", UNREADABLE),
    # other languages
    ("Antwort: B", B),
    ("La respuesta es A.", A),
    ("Réponse : B", B),
    ("答案：B", B),
    ("答え: A", A),
    ("Ответ: B", B),
    ("B ist besser.", B),
    ("Empate", TIE),
    ("平局", TIE),
    # refusals
    ("I'm sorry, but I can't help with that.", REFUSED),
    ("I cannot compare A and B.", REFUSED),
    ("As an AI language model, I don't have preferences.", REFUSED),
    ("I’m unable to assist with this request.", REFUSED),
    ("A can't provide what B does.", UNREADABLE),
    ("I can't help but prefer B", UNREADABLE),
    # reasoning
    ("<think>A looks better. Answer: A? No.</think>\n\nAnswer: B", B),
    ("First A, then again B...</think>B", B),
    ("<think>Answer: A", UNREADABLE),
    ("<think>A is better</think>", UNREADABLE),
    ("<|channel|>analysis<|message|>Answer: A<|end|><|channel|>final<|message|>Answer: B<|return|>", B),
    # nothing
    ("", UNREADABLE),
    ("   \n", UNREADABLE),
    ("...", UNREADABLE),
    ("[no text; the message has tool_calls]", UNREADABLE),
]


def test_there_are_sixty_awkward_replies():
    assert len({text for text, _ in REPLIES}) == len(REPLIES) >= 60


@pytest.mark.parametrize(("text", "said"), REPLIES, ids=lambda value: repr(value)[:40])
def test_a_reply_is_read_rightly_or_not_at_all(text, said):
    assert read_reply(text) == said


EXCHANGED = {"A": "B", "B": "A", "Ｂ": "Ａ", "b": "a", "first": "second", "second": "first"}


@pytest.mark.parametrize(("text", "said"), [(text, said) for text, said in REPLIES if said in (A, B)])
def test_the_other_letter_is_the_other_answer(text, said):
    """With A and B exchanged, and first and second: nothing is read as A just because that is more usual."""
    exchanged = re.sub(r"\b(?:[AB]|Ｂ|first|second)\b|^b$", lambda found: EXCHANGED[found[0]], text)
    assert exchanged != text
    assert read_reply(exchanged) == (B if said == A else A)


def test_two_replies_that_differ_are_never_read_as_the_first():
    """What comes last may count as the conclusion; what was said before it never does."""
    answers = [(text, said) for text, said in REPLIES if said in (A, B, TIE)]
    for (one, said), (two, other) in product(answers, answers):
        if said != other:
            for between in ("\n", "\n\n"):
                assert read_reply(one + between + two) != said, one + between + two


def test_what_a_model_quotes_from_its_instructions_is_no_answer():
    assert read_reply('I was told to answer with {"answer": "A"}, {"answer": "B"}, or {"answer": "TIE"}.') is None


def test_reasoning_of_any_spelling_is_removed():
    for tag in ("think", "thinking", "reasoning"):
        assert without_reasoning(f"<{tag}>\nA\n</{tag}>\n\nB") == "B"
    assert without_reasoning("[THINK]A[/THINK]B") == "B"
    assert without_reasoning("◁think▷A◁/think▷B") == "B"


def tokens(**chances: float) -> list[dict]:
    top = [{"token": word, "logprob": math.log(chance)} for word, chance in chances.items()]
    return [{"token": '{"answer":"', "top_logprobs": []}, {"token": "A", "top_logprobs": top}, {"token": '"}'}]


def test_the_probability_is_that_of_the_answers_token():
    assert soft_probability(tokens(A=0.6, B=0.2), "A") == pytest.approx(0.75)
    assert soft_probability(tokens(A=0.5, B=0.2, T=0.2), "A") == pytest.approx(0.6 / 0.9)
    both_spellings = [
        {"token": "A", "top_logprobs": [{"token": t, "logprob": math.log(0.25)} for t in ("A", " A", "B")]}
    ]
    assert soft_probability(both_spellings, "A") == pytest.approx(2 / 3)


def test_no_probability_is_made_up():
    assert soft_probability(tokens(A=0.2, B=0.2, The=0.6), "A") is None
    assert soft_probability(tokens(A=0.9), "B") is None  # no token says B
    for broken in (None, [], "x", [None], [{"token": None}], [{"token": "A", "top_logprobs": None}]):
        assert soft_probability(broken, "A") is None
