"""`surepick find`: ask a program, a language model, recorded votes or a simulated judge until the best is known."""

import json as json_module
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surepick.cli.limits import read_theta
from surepick.cli.output import DROP_BAD_ROWS_HELP
from surepick.cli.search import (
    about_sets,
    announce_costs,
    announce_preparation,
    conclude,
    knowing_people,
    open_session,
    problem_of,
    read_compared,
    warmed,
)
from surepick.cli.search_options import (
    ASSUME_HELP,
    COMPARED,
    EPSILON_HELP,
    FEATURES_HELP,
    INPUTS_HELP,
    ITEMS_HELP,
    KIND_HELP,
    PCA_HELP,
    PICK_HELP,
    POPULATION_HELP,
    POSITION_HELP,
    RANK_HELP,
    REPEATS_HELP,
    REPORT_HELP,
    SEED_HELP,
    SETS,
    SHOW_HELP,
    STRATA_HELP,
    SYSTEMS_HELP,
    TOP_HELP,
    WARM_HELP,
    Assumption,
    Kind,
    Repeats,
)

if TYPE_CHECKING:
    from surepick.identify import Policy, Problem
    from surepick.io.items import ItemTable
    from surepick.judges import World
    from surepick.report import Outcome
    from surepick.session import ReplyingJudge

Order = Literal["policy", "file"]
Elimination = Literal["width", "gap"]

KAPPA_HELP = (
    "A lower bound of the variance of every answer, p(1 - p); policies other than anytime and rage-linear use it, and "
    "most need it or --norm-bound."
)
NORM_BOUND_HELP = (
    "An upper bound of the norm of theta, in units of the standardised features; for the policies that use --kappa."
)
ELIMINATION_HELP = (
    "The elimination rule of rage-glm-printed: of the supplement (width, its default) or main text (gap)."
)

CERTIFICATE_HELP = (
    "Write the certificate to this JSON file. It proves the arithmetic, not that predictions preceded answers."
)
ORDER_HELP = (
    "With --answers: use the votes in the order of the file, or let the policy choose among them. Default: file, which "
    "leaves fewer rivals when votes run out, and is valid if the file is in the order of asking; but policy for "
    "anytime with more than 2,000 votes, where one vote at a time would be slow, and for policies that need it."
)

WHO = "Who answers (exactly one)"
MODEL = "With --llm"
JUDGE = "With --judge, and in part with --llm"
TOLD = "With --answers or --simulate"
PROOF = "What is proved, and when to stop"
QUESTIONS = "Items and questions"
POLICY = "Other policies"
OUTPUT = "Log and output"


def find(
    items: Annotated[Path | None, typer.Argument(help=ITEMS_HELP)] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A program that reads questions and writes answers, one JSON object per line.", rich_help_panel=WHO
        ),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            help="A language model at any OpenAI-compatible server, by the model's name.", rich_help_panel=WHO
        ),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Recorded votes: item_a,item_b,winner or item,answer.", rich_help_panel=WHO)
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate", help="A simulated judge with the taste --theta or a random one.", rich_help_panel=WHO
        ),
    ] = False,
    delta: Annotated[
        float, typer.Option(help="Allowed probability of naming the wrong item.", rich_help_panel=PROOF)
    ] = 0.05,
    epsilon: Annotated[float, typer.Option(help=EPSILON_HELP, rich_help_panel=PROOF)] = 0.0,
    budget: Annotated[int | None, typer.Option(help="Ask at most this many questions.", rich_help_panel=PROOF)] = None,
    assume: Annotated[
        Assumption | None,
        typer.Option(help=f"{ASSUME_HELP} By default winner for comparisons, else features.", rich_help_panel=PROOF),
    ] = None,
    population: Annotated[list[Path] | None, typer.Option(help=POPULATION_HELP, rich_help_panel=PROOF)] = None,
    repeats: Annotated[
        Repeats | None,
        typer.Option(
            help=f"{REPEATS_HELP} By default once for votes that name their judges and for systems compared by a "
            "language model at temperature 0, else independent.",
            rich_help_panel=PROOF,
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option(help=KIND_HELP, rich_help_panel=QUESTIONS)] = "pairs",
    position: Annotated[bool, typer.Option("--position", help=POSITION_HELP, rich_help_panel=QUESTIONS)] = False,
    pca: Annotated[int | None, typer.Option(help=PCA_HELP, rich_help_panel=QUESTIONS)] = None,
    features: Annotated[
        bool, typer.Option("--features/--no-features", help=FEATURES_HELP, rich_help_panel=QUESTIONS)
    ] = True,
    drop_bad_rows: Annotated[
        bool, typer.Option("--drop-bad-rows", help=DROP_BAD_ROWS_HELP, rich_help_panel=QUESTIONS)
    ] = False,
    show: Annotated[int | None, typer.Option(min=2, help=SHOW_HELP, rich_help_panel=SETS)] = None,
    pick: Annotated[bool, typer.Option("--pick", help=PICK_HELP, rich_help_panel=SETS)] = False,
    rank: Annotated[bool, typer.Option("--rank", help=RANK_HELP, rich_help_panel=SETS)] = False,
    top: Annotated[int | None, typer.Option(min=1, help=TOP_HELP, rich_help_panel=SETS)] = None,
    judges: Annotated[
        int,
        typer.Option(
            min=1, help="With --judge: how many copies of the program run in parallel.", rich_help_panel=JUDGE
        ),
    ] = 1,
    retries: Annotated[
        int | None,
        typer.Option(
            min=0, help="How often a failed question is asked again [--judge: 2, --llm: 6].", rich_help_panel=JUDGE
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds to wait for an answer [--judge: 60, --llm: 120].", rich_help_panel=JUDGE),
    ] = None,
    cost_per_question: Annotated[
        float,
        typer.Option(min=0.0, help="With --judge: cost of an answer without a field cost.", rich_help_panel=JUDGE),
    ] = 0.0,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0.0, help="With --judge or --llm: stop before the cost exceeds this.", rich_help_panel=JUDGE),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="The server's base URL or full path [OPENAI_BASE_URL].", rich_help_panel=MODEL),
    ] = None,
    rubric: Annotated[
        Path | None, typer.Option(help="A text file that says by which criteria to judge.", rich_help_panel=MODEL)
    ] = None,
    swap: Annotated[
        bool,
        typer.Option(
            "--swap", help="Ask in both orders; answers that differ are a tie. Twice the calls.", rich_help_panel=MODEL
        ),
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, help="How many questions may be open at the same time.", rich_help_panel=MODEL)
    ] = 8,
    temperature: Annotated[
        float,
        typer.Option(
            min=0.0, max=2.0, help="At 0 a repeated question is answered from the cache.", rich_help_panel=MODEL
        ),
    ] = 0.0,
    price_in: Annotated[
        float | None, typer.Option(min=0.0, help="Price of a million tokens sent.", rich_help_panel=MODEL)
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0.0, help="Price of a million tokens received.", rich_help_panel=MODEL)
    ] = None,
    calls_per_minute: Annotated[
        float | None, typer.Option(min=0.001, help="Most calls per minute.", rich_help_panel=MODEL)
    ] = None,
    max_unreadable: Annotated[
        int, typer.Option(min=1, help="End the search after this many unreadable replies.", rich_help_panel=MODEL)
    ] = 20,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Keep every reply here, and take it from here in another run [ITEMS.replies.jsonl].",
            rich_help_panel=MODEL,
        ),
    ] = None,
    order: Annotated[Order | None, typer.Option(help=ORDER_HELP, show_default=False, rich_help_panel=TOLD)] = None,
    theta: Annotated[
        Path | None,
        typer.Option(
            help="With --simulate: the taste, as columns feature,theta in the table's units.", rich_help_panel=TOLD
        ),
    ] = None,
    with_others: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="With --simulate: also show what other methods need, and the lower bound.",
            rich_help_panel=TOLD,
        ),
    ] = False,
    warm_start: Annotated[Path | None, typer.Option(help=WARM_HELP, rich_help_panel=TOLD)] = None,
    systems: Annotated[Path | None, typer.Option(help=SYSTEMS_HELP, rich_help_panel=COMPARED)] = None,
    inputs: Annotated[Path | None, typer.Option(help=INPUTS_HELP, rich_help_panel=COMPARED)] = None,
    strata: Annotated[str | None, typer.Option(help=STRATA_HELP, rich_help_panel=COMPARED)] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="The policy that chooses the questions; by default that of --assume.", rich_help_panel=POLICY
        ),
    ] = None,
    kappa: Annotated[float | None, typer.Option(min=0.0, max=0.25, help=KAPPA_HELP, rich_help_panel=POLICY)] = None,
    norm_bound: Annotated[float | None, typer.Option(min=0.0, help=NORM_BOUND_HELP, rich_help_panel=POLICY)] = None,
    elimination: Annotated[Elimination | None, typer.Option(help=ELIMINATION_HELP, rich_help_panel=POLICY)] = None,
    seed: Annotated[int, typer.Option(min=0, help=SEED_HELP, rich_help_panel=OUTPUT)] = 0,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Log every question and answer here; the same command resumes from it.", rich_help_panel=OUTPUT
        ),
    ] = None,
    ranks: Annotated[
        bool,
        typer.Option(
            "--ranks", help="Also show intervals for the scores and ranks of all items.", rich_help_panel=OUTPUT
        ),
    ] = False,
    report: Annotated[Path | None, typer.Option(help=REPORT_HELP, rich_help_panel=OUTPUT)] = None,
    certificate: Annotated[Path | None, typer.Option(help=CERTIFICATE_HELP, rich_help_panel=OUTPUT)] = None,
    with_certificate: Annotated[
        bool, typer.Option("--with-certificate", help="Include the certificate in the JSON.", rich_help_panel=OUTPUT)
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Find the best item with few questions, and say how sure it is. Exit code 1 if undecided."""
    import time
    from importlib.util import find_spec

    from surepick.cli.display import BackgroundForecast, LiveDisplay
    from surepick.errors import InvalidInput, MissingExtra
    from surepick.identify.ladder import LADDER_POLICIES, default_assumption
    from surepick.io.systems import SystemTable
    from surepick.judges import (
        LanguageModel,
        ModelFailed,
        RecordedJudge,
        ReproducibleJudge,
        only_recorded,
    )
    from surepick.judges.earlier import earlier_answers
    from surepick.judges.program import ProgramJudge
    from surepick.judges.recorded_orders import RecordedOrders, only_recorded_orders
    from surepick.registry import policy_named
    from surepick.report import Outcome, compare
    from surepick.session import AskLoop, FunctionJudge

    if (judge is not None) + (llm is not None) + (answers is not None) + simulate != 1:
        raise InvalidInput(
            "Choose who answers with exactly one of --judge CMD (a program), --llm MODEL (a language model), --answers "
            "FILE (recorded votes) or --simulate."
        )
    if llm is not None:
        assume = assumption_for_model(assume, policy, kind, position=position, temperature=temperature)
        if max_cost is not None and price_in is None:
            raise InvalidInput("--max-cost needs to know what a call costs; give --price-in and --price-out.")
    if position and (answers is not None or warm_start is not None):
        raise InvalidInput(
            "--position needs pairs whose order the search chooses; recorded votes (--answers, --warm-start) were "
            "shown in an order of their own. Leave one of them out."
        )
    if answers is not None and warm_start is not None and _same_content(answers, warm_start):
        raise InvalidInput(
            "--warm-start and --answers hold the same votes. Votes that count as evidence must not be known to the "
            "predictions beforehand; leave --warm-start out, or split the votes into two files."
        )
    if answers is not None and any(_same_content(answers, path) for path in population or ()):
        raise InvalidInput(
            "--population and --answers hold the same votes. Votes that count as evidence must not be known to the "
            "predictions beforehand; leave --population out, or give the votes of other people."
        )
    if report is not None and find_spec("matplotlib") is None:  # said before anything is asked and paid for
        raise MissingExtra("A report has figures, which need Matplotlib; install surepick[plots].")
    if systems is not None and answers is not None:
        raise InvalidInput("--answers are votes without inputs, so they cannot go with --systems; leave one out.")
    table, named_by = read_compared(
        items, systems, inputs, strata, pca=pca, features=features, drop_bad_rows=drop_bad_rows
    )
    sets = about_sets(show, top, pick=pick, rank=rank)
    if sets is not None and (kind != "pairs" or position or swap):
        raise InvalidInput(
            "--show, --pick and --rank ask about several items at once, without --kind, --position or --swap; leave "
            "these out."
        )
    model = llm and LanguageModel(
        llm,
        table,
        url=url,
        rubric="" if rubric is None else read_rubric(rubric),
        swap=swap,
        at_once=concurrency,
        temperature=temperature,
        price_in=price_in,
        price_out=price_out,
        cache=cache or named_by.with_suffix(".replies.jsonl"),
        timeout=timeout or 120.0,
        retries=6 if retries is None else retries,
        calls_per_minute=calls_per_minute,
        most_unreadable=max_unreadable,
        seed=seed,
    )
    if assume is not None and policy is not None:
        raise InvalidInput(f"--assume chooses the policy, so it cannot go with --policy {policy}; leave one out.")
    given = {"budget": budget, "kappa": kappa, "norm_bound": norm_bound, "elimination": elimination}
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    known |= {"delta": delta, "epsilon": epsilon}
    by_features = None if assume is None and policy is None else assume == "features" or policy not in (None, "winner")
    votes: RecordedJudge | RecordedOrders | None = None
    if answers is not None:
        votes = (
            RecordedJudge.of(table, answers, by_features=by_features, drop_bad_rows=drop_bad_rows)
            if sets is None
            else RecordedOrders.of(table, answers, show=sets["show"], drop_bad_rows=drop_bad_rows)
        )
    # A model at temperature 0 says the same again: comparing everything once saves questions and loses nothing. With
    # rankings the claim is then about one order of display for each input and its reverse, so they are drawn once only
    # if asked for; and picks are never.
    fixed = repeats == "once" or (repeats is None and llm is not None and temperature == 0 and sets is None)
    ranked = sets is None or (sets["answer"] == "rank" and sets["top"] != 1)
    if isinstance(table, SystemTable) and table.weights is None and fixed and ranked:
        problem, repeats = table.problem(kind, seed=seed, position=position, once=True, **(sets or {})), "independent"
    else:
        problem = problem_of(table, kind, seed, sets, position=position) if votes is None else votes.problem
    named = policy or ending_policy(problem, assume)
    chosen: Policy[Any] = policy_named(named, **known)
    if population:
        chosen = knowing_people(chosen, problem, population)
    if repeats is None:
        repeats = "once" if votes is not None and votes.names_judges and named in LADDER_POLICIES else "independent"
    announce_preparation(table.prepared(problem))
    if votes is None and policy is None:
        announce_costs(problem, assume or default_assumption(problem), delta)
    world = simulated_world(table, theta, kind=kind, position=position, seed=seed) if simulate else None
    unused = () if votes is None else votes.unused
    if warm_start is not None:
        old, left_out = earlier_answers(warm_start, problem, table.names, drop_bad_rows=drop_bad_rows)
        chosen = warmed(chosen, old)
        unused = (*unused, *left_out)
    if isinstance(votes, RecordedOrders):
        chosen = only_recorded_orders(chosen, votes, order)
    elif votes is not None:
        chosen = only_recorded(chosen, votes, order)
    session = open_session(problem, chosen, seed, state, repeats)
    answering: ReplyingJudge
    if votes is not None:
        votes.resume(session)
        answering = votes
    elif world is not None:
        answering = FunctionJudge(ReproducibleJudge(world, seed))
    elif model:
        model.resume(session)
        answering = model
    else:
        assert judge is not None
        retries = 2 if retries is None else retries
        answering = ProgramJudge(judge, table, judges, timeout or 60.0, retries, cost_per_question)
    began = time.perf_counter()
    loop = AskLoop(session, answering, cost_per_question, max_cost)
    # Recorded votes end when they end, whatever more it would take.
    forecast = BackgroundForecast(chosen) if votes is None else None
    interrupted = False
    with LiveDisplay(table, delta=delta, forecast=forecast) as display:
        try:
            loop.run(display)
        except KeyboardInterrupt:
            interrupted = True
        except ModelFailed as failed:
            if not session.answered:
                raise
            loop.troubles.append(str(failed))
            loop.ended = "judges failed"
    if model:
        typer.echo(f"{model.summary} Replies are kept in {model.cache}.", err=True)
    outcome = Outcome(
        session,
        table,
        command=shlex.join(["surepick", *sys.argv[1:]]),
        seconds=time.perf_counter() - began,
        ended="interrupted" if interrupted else loop.ended or (None if votes is None else "votes ran out"),
        unused=unused,
        troubles=tuple(loop.troubles),
        spent=loop.spent,
        truth=None if world is None else world.best,
        comparison=compare(world, delta=delta, seed=seed) if world is not None and with_others else None,
        recorded=None if votes is None else votes.as_shown(),
        remaining=None if votes is None else votes.remaining,
        forecast=None if forecast is None else forecast.known(session),
        ranks=ranks,
        with_certificate=with_certificate,
    )
    if certificate is not None:
        typer.echo(write_certificate(outcome, certificate), err=True)
    conclude(outcome, state=state, report=report, json=json, interrupted=interrupted)


def write_certificate(outcome: "Outcome", path: Path) -> str:
    """Write the certificate if there is one, and say what it is worth."""
    from surepick.certificate import ARITHMETIC_ONLY

    if outcome.certificate is None:
        return f"{path} was not written: only a search that proved its claim has a certificate."
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_module.dumps(outcome.certificate), encoding="utf-8")
    return f"The certificate is in {path}. {ARITHMETIC_ONLY}"


def ending_policy(problem: "Problem", assume: Assumption | None) -> str:
    """The name of the policy that ends the search by this claim, or by the default one."""
    from surepick.identify.ladder import default_assumption, policy_for

    return policy_for(problem, assume or default_assumption(problem)).name


def assumption_for_model(
    assume: Assumption | None, policy: str | None, kind: Kind, *, position: bool, temperature: float
) -> Assumption | None:
    """What is assumed of a language model's answers; repeats at temperature 0 need the assumption "winner"."""
    from surepick.errors import InvalidInput

    if kind != "pairs":
        raise InvalidInput(f"--llm compares two items, so it cannot go with --kind {kind}; leave --kind out.")
    if assume is None and policy is None and not position:
        return "winner"
    if temperature == 0 and assume != "winner" and policy != "winner":
        raise InvalidInput(
            "At temperature 0 a model repeats itself, and only --assume winner allows for that; leave out --assume, "
            "--policy and --position, or use --temperature 1."
        )
    return assume


def read_rubric(path: Path) -> str:
    """The criteria in a text file."""
    from surepick.errors import InvalidInput

    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The rubric {path} cannot be read ({error}); give a text file.") from None
    if not text:
        raise InvalidInput(f"The rubric {path} is empty; write down by which criteria to judge.")
    return text


def _same_content(one: Path, other: Path) -> bool:
    """Whether two paths are the same file, or files of the same bytes."""
    if not (one.is_file() and other.is_file()):
        return False  # whoever reads them says what is missing
    return one.samefile(other) or one.read_bytes() == other.read_bytes()


def simulated_world(items: "ItemTable", theta: Path | None, *, kind: Kind, position: bool, seed: int) -> "World":
    """A judge's hidden taste: from the file, or random with log-odds of a usual spread; position is worth nothing.

    It is a taste for the features before --pca reduced them, so the model of the search may leave out some of it.
    """
    from dataclasses import replace

    import numpy as np

    from surepick.errors import InvalidInput
    from surepick.identify.simulation import USUAL_LOGIT
    from surepick.judges import World

    if items.unreduced is not None:
        items = replace(items, features=items.unreduced)
    problem = items.problem(kind, seed=seed, position=position)
    if theta is None:
        taste = np.asarray(np.random.default_rng([seed, 5]).normal(size=items.features.shape[1]))
        spread = float(np.std((items.features - items.features.mean(axis=0)) @ taste))
        taste = taste * (USUAL_LOGIT / spread if spread > 0 else 1.0)
    elif items.per_unit.shape[0] != items.per_unit.shape[1]:
        raise InvalidInput("--theta refers to columns of the table, which --pca combines; leave one of them out.")
    else:
        taste = np.asarray(np.linalg.solve(items.per_unit, read_theta(theta, list(items.columns))))
    extra = problem.items.shape[1] - len(taste)  # an intercept comes first, the position last
    return World("simulated", problem, np.pad(taste, (0, extra) if problem.position else (extra, 0)))
