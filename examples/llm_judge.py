"""A judge for `surepick find --judge`: asks a language model which of two texts is better, over HTTP.

    export LLM_URL=https://models.example/v1/chat/completions LLM_KEY=secret LLM_MODEL=some-model
    surepick find answers.csv --judge "python examples/llm_judge.py --criterion 'Which answer is more helpful?'"

Works with any endpoint that uses the common chat-completions format. Reads one question per line and writes one answer
per line. An error ends the program with a sentence, and surepick restarts it. Uses only the standard library.
"""

import argparse
import itertools
import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

INSTRUCTION = (
    "You compare two candidates. Answer with one word only: A if the first is better, B if the second is better, TIE "
    "if neither is."
)
YES_OR_NO = "You judge one candidate. Answer with one word only: YES or NO."
ANSWERS = {"A": "a", "B": "b", "TIE": "tie", "YES": "yes", "NO": "no"}
TRY_AGAIN = (408, 409, 429, 500, 502, 503, 504)


def main() -> None:
    """Answer questions until standard input ends."""
    options = _options()
    models = itertools.cycle(options.model)
    for line in sys.stdin:
        question = json.loads(line)
        model = next(models)
        reply = _asked(_messages(question, options.criterion), model, options)
        text = reply["choices"][0]["message"]["content"]
        answer = {"id": question["id"], "answer": _one_word(text), "judge": model}
        used = reply.get("usage", {}).get("total_tokens")
        if used is not None and options.price:
            answer["cost"] = used * options.price / 1e6
        print(json.dumps(answer), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Asks a language model; reads one JSON question per line.")
    parser.add_argument("--criterion", default="Which is better?", help="The question to ask about the candidates.")
    parser.add_argument("--model", action="append", help="Model name [LLM_MODEL]; several models are asked in turn.")
    parser.add_argument(
        "--temperature", type=float, default=1.0, help="Sampling temperature; at 0 answers are not independent."
    )
    parser.add_argument("--price", type=float, default=0.0, help="Price per million tokens, for the field cost.")
    parser.add_argument("--retries", type=int, default=4, help="How often to retry when the server is busy.")
    options = parser.parse_args()
    options.model = options.model or [os.environ.get("LLM_MODEL", "")]
    if "LLM_URL" not in os.environ:
        sys.exit("Set LLM_URL to the address of the endpoint, and LLM_KEY to the key.")
    return options


def _messages(question: dict[str, Any], criterion: str) -> list[dict[str, str]]:
    def shown(place: str) -> str:
        about = question["show"][place]
        return about.get("text") or about.get("label") or question[place]

    if question["kind"] == "item":
        return [
            {"role": "system", "content": YES_OR_NO},
            {"role": "user", "content": f"{criterion}\n\n{shown('first')}"},
        ]
    asked = f"{criterion}\n\n[A]\n{shown('first')}\n\n[B]\n{shown('second')}"
    return [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": asked}]


def _asked(messages: list[dict[str, str]], model: str, options: argparse.Namespace) -> dict[str, Any]:
    """The server's reply; retries with increasing delays while the server is busy."""
    body = {"model": model, "messages": messages, "temperature": options.temperature, "max_tokens": 5}
    request = urllib.request.Request(
        os.environ["LLM_URL"],
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('LLM_KEY', '')}"},
    )
    for attempt in itertools.count():
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                reply: dict[str, Any] = json.load(response)
                return reply
        except urllib.error.HTTPError as error:
            if error.code not in TRY_AGAIN or attempt >= options.retries:
                sys.exit(f"The model server replied {error.code} {error.reason}.")
            time.sleep(float(error.headers.get("Retry-After") or 0.5 * 2**attempt))
        except urllib.error.URLError as error:
            sys.exit(f"The model server cannot be reached ({error.reason}); check LLM_URL.")
    raise AssertionError


def _one_word(text: str) -> str:
    """The first word that is an answer; if there is none, skip the question."""
    words = (word.strip(".,:;!*\"'()[]").upper() for word in text.split())
    return next((ANSWERS[word] for word in words if word in ANSWERS), "skip")


if __name__ == "__main__":
    main()
