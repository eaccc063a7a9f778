"""`surepick find`: ask a program, a language model, recorded votes or a simulated judge until the best is known."""

import json as json_module
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surepick.cli.limits import read_theta
from surepick.cli.output import DROP_BAD_ROWS_HELP, print_json

if TYPE_CHECKING:
    from surepick.identify import Policy, Problem
    from surepick.identify.policy import OldAnswers
    from surepick.io.items import ItemTable, Preparation
    from surepick.judges import World
    from surepick.report import Outcome
    from surepick.session import ReplyingJudge, Session

Kind = Literal["pairs", "items", "both"]
Order = Literal["policy", "file"]
Assumption = Literal["winner", "features", "population"]
Repeats = Literal["independent", "once", "spaced", "tested"]
Elimination = Literal["width", "gap"]

ITEMS_HELP = (
    "Items (CSV or Parquet): column item; every other column except label, image, text and colour is a feature."
)
EPSILON_HELP = "Accept an item that is worse than the best by at most this much (log-odds)."
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
KIND_HELP = "What to ask: which of two (pairs), yes/no about one (items), or both."
POSITION_HELP = "Estimate the effect of being shown first (with --kind pairs)."
PCA_HELP = "Reduce the features to this many principal components."
FEATURES_HELP = "With --no-features every item has its own score."
SEED_HELP = "The same seed and answers give the same questions."
REPORT_HELP = "Write a report with figures to this HTML file."
CERTIFICATE_HELP = (
    "Write the certificate to this JSON file. It proves the arithmetic, not that predictions preceded answers."
)

ASSUME_HELP = (
    "The claim that ends the search: winner (one item wins its comparisons, whatever the features), features (these "
    "explain every answer) or population (the judge's taste is drawn from one). The other claims are shown beside it."
)
POPULATION_HELP = (
    "With --assume population: what earlier people answered about the same items, as logs of sessions or votes with a "
    "column judge; may be given several times. Default: the usual population."
)
REPEATS_HELP = (
    "Which of a judge's answers count: all (independent), only the first to each question (once), later ones too if 20 "
    "other questions came between (spaced), or all if the judge has answered some question in two ways (tested)."
)

LEAST_PER_ITEM = 5
"""Questions per item that the claim "winner" cannot do without: one answer at most doubles the odds against an item."""

MUCH_CHEAPER = 10
"""How many times fewer questions of the other claim are pointed out in the first line."""

ORDER_HELP = (
    "With --answers: use the votes in the order of the file, or let the policy choose among them. Default: file, which "
    "leaves fewer rivals when votes run out, and is valid if the file is in the order of asking; but policy for "
    "anytime with more than 2,000 votes, where one vote at a time would be slow, and for policies that need it."
)

SYSTEMS_HELP = (
    "Outputs to compare: columns system,input,output, or input and a column per system (CSV, JSON lines, Parquet); or "
    "a folder SYSTEM/INPUT.txt. ITEMS may then give features of the systems."
)
INPUTS_HELP = "With --systems: what the judge sees above the outputs, columns input,text; or a folder of text files."
STRATA_HELP = "With --systems: a column of --inputs; each of its values is drawn equally often."

WARM_HELP = (
    "Earlier answers that improve predictions and do not count as evidence, such as those of a language model: votes, "
    "or the log (--state) of an earlier search."
)

SHOW_HELP = "Items that a question shows: 2 (the default), or more with --pick or --rank."
PICK_HELP = "Every question asks for the best of the items shown, 4 unless --show says otherwise."
RANK_HELP = "Every question asks for the order of the items shown, 4 unless --show says otherwise."
TOP_HELP = "With --rank: ask only for this many places of the order, the best first."

COMPARED = "Systems on inputs"
SETS = "Questions that show several items"
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
    from surepick.io.people import learn_population
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
    # A model at temperature 0 says the same again: asking everything once saves questions and loses nothing.
    fixed = repeats == "once" or (repeats is None and llm is not None and temperature == 0)
    if isinstance(table, SystemTable) and table.weights is None and fixed and sets is None:
        problem, repeats = table.problem(kind, seed=seed, position=position, once=True), "independent"
    else:
        problem = problem_of(table, kind, seed, sets, position=position) if votes is None else votes.problem
    named = policy or ending_policy(problem, assume)
    if population:
        require_own_claim(named)
        known["population"] = learn_population(problem, population)
    chosen: Policy[Any] = policy_named(named, **known)
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


def about_sets(show: int | None, top: int | None, *, pick: bool, rank: bool) -> dict[str, Any] | None:
    """How questions about several items are asked, as options of `Problem.from_sets`; None for comparisons."""
    from surepick.errors import InvalidInput

    if pick and rank:
        raise InvalidInput("--pick asks for the best and --rank for the order; choose one of them.")
    if top is not None and not rank:
        raise InvalidInput("--top says how many places of a ranking are asked for; give --rank as well.")
    if show is None and not (pick or rank):
        return None
    if show == 2:
        return None  # a comparison
    return {"show": show or 4, "answer": "pick" if pick else "rank", "top": top}


def problem_of(
    table: "ItemTable", kind: Kind, seed: int, sets: dict[str, Any] | None, *, position: bool = False
) -> "Problem":
    """What is to be asked of the items of a table."""
    from surepick.identify import Problem
    from surepick.io.systems import SystemTable

    if sets is None:
        return table.problem(kind, seed=seed, position=position)
    if isinstance(table, SystemTable):
        return table.problem(**sets)
    return Problem.from_sets(table.features, names=table.names, **sets)


def read_compared(
    items: Path | None,
    systems: Path | None,
    inputs: Path | None,
    strata: str | None,
    *,
    pca: int | None = None,
    features: bool = True,
    drop_bad_rows: bool = False,
) -> "tuple[ItemTable, Path]":
    """What is compared, items or systems on inputs, and the file that other files are named after."""
    from surepick.errors import InvalidInput
    from surepick.io.items import read_items
    from surepick.io.systems import read_systems

    known = None if items is None else read_items(items, pca=pca, features=features, drop_bad_rows=drop_bad_rows)
    if systems is not None:
        return read_systems(systems, inputs, systems=known, strata=strata, drop_bad_rows=drop_bad_rows), systems
    if inputs is not None or strata is not None:
        raise InvalidInput("--inputs and --strata say what systems were given; give their outputs with --systems.")
    if known is None or items is None:
        raise InvalidInput("Name a table of items to choose from, or give outputs of systems with --systems.")
    return known, items


def write_certificate(outcome: "Outcome", path: Path) -> str:
    """Write the certificate if there is one, and say what it is worth."""
    from surepick.certificate import ARITHMETIC_ONLY

    if outcome.certificate is None:
        return f"{path} was not written: only a search that proved its claim has a certificate."
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_module.dumps(outcome.certificate), encoding="utf-8")
    return f"The certificate is in {path}. {ARITHMETIC_ONLY}"


def conclude(outcome: "Outcome", *, state: Path | None, report: Path | None, json: bool, interrupted: bool) -> None:
    """Write the report, print the outcome, and exit with a code that says how the search ended."""
    from surepick.cli.display import print_outcome
    from surepick.report import write_report

    if report is not None:
        write_report(outcome, report)
    if json:
        print_json(outcome.to_json())
    else:
        print_outcome(outcome, state=state, report=report)
    if interrupted:
        raise typer.Exit(130)
    if not outcome.verdict.stands:  # open, or decided on an assumption that the answers contradict
        raise typer.Exit(1)


def ending_policy(problem: "Problem", assume: Assumption | None) -> str:
    """The name of the policy that ends the search by this claim, or by the default one."""
    from surepick.identify.ladder import default_assumption, policy_for

    return policy_for(problem, assume or default_assumption(problem)).name


def announce_preparation(prepared: "Preparation") -> None:
    """Say, before the first question, what was done to the items."""
    for sentence in prepared.sentences:
        typer.echo(sentence, err=True)


def require_own_claim(policy: str) -> None:
    """Refuse a population where another claim ends the search."""
    from surepick.errors import InvalidInput

    if policy != "posterior":
        raise InvalidInput(
            f"--population is for --assume population, and the policy {policy} does not use it; add that option, or "
            "leave --population out."
        )


def announce_costs(problem: "Problem", ends: Assumption, delta: float) -> None:
    """Say, before the first question, what each claim is expected to cost and which one ends the search."""
    from surepick.identify.ladder import compares, expected_costs, has_features
    from surepick.identify.verdict import two_digits

    simple = len(problem.items) > 1 and problem.obstacle is None and compares(problem) and problem.show == 2
    if ends == "population" or not simple:
        return
    if problem.every_pair and not has_features(problem):
        least = LEAST_PER_ITEM * len(problem.items)
        typer.echo(
            f"The search ends when the claim {ends} is proved. For {len(problem.items):,} items this takes more than "
            f"{least:,} questions.",
            err=True,
        )
        return
    costs = expected_costs(problem, delta=delta)
    other: Assumption = "features" if ends == "winner" else "winner"
    if ends == "winner" and costs.get("features", math.inf) * MUCH_CHEAPER < LEAST_PER_ITEM * len(problem.items):
        typer.echo(
            f"--assume features would take far fewer questions (about {two_digits(costs['features'])}): the claim "
            f"winner needs at least {LEAST_PER_ITEM} for each of the {len(problem.items):,} items.",
            err=True,
        )
    parts = [f"The search ends when the claim {ends} is proved"]
    if ends in costs:
        parts[0] += f", after about {two_digits(costs[ends])} questions"
    if other in costs:
        parts.append(f"--assume {other} would take about {two_digits(costs[other])}")
    typer.echo(f"{'; '.join(parts)} (rough estimates).", err=True)


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


def warmed(policy: "Policy[Any]", old: "OldAnswers") -> "Policy[Any]":
    """The policy with old answers to predict from."""
    from dataclasses import replace

    from surepick.errors import InvalidInput
    from surepick.identify import Anytime, Winner

    if not isinstance(policy, Anytime | Winner):
        raise InvalidInput(
            "--warm-start needs the policy winner or anytime, which do not count old votes as evidence; not "
            f"{policy.name}."
        )
    return replace(policy, warm=old)


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


def open_session(
    problem: "Problem", policy: "Policy[Any]", seed: int, path: Path | None, repeats: Repeats = "independent"
) -> "Session":
    """A new session, or the one whose log is `path` if it is the same search."""
    from surepick.errors import InvalidInput
    from surepick.session import Session
    from surepick.session.journal import read_journal
    from surepick.session.session import described

    if path is None or not path.exists() or not path.stat().st_size:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        return Session(problem, policy, repeats=repeats, seed=seed, path=path)
    try:
        head = read_journal(path)[0]  # before the replay, which another policy would not understand
    except (UnicodeDecodeError, IndexError):
        raise InvalidInput(f"{path} is not a log of surepick; name another file with --state.") from None
    for what, logged, wanted in (
        ("items or questions", head.get("problem"), problem.to_json()),
        (
            "policy, delta, epsilon, budget or old votes",
            head.get("policy"),
            json_module.loads(json_module.dumps(described(policy))),
        ),
        ("seed", head.get("seed"), seed),
        ("rule for repeated answers", head.get("repeats", "independent"), repeats),
    ):
        if logged != wanted:
            raise InvalidInput(
                f"{path} is the log of another search: its {what} differ from those given now; pass the same ones to "
                "resume it, or another file with --state."
            )
    return Session.resume(path, policy=policy)
