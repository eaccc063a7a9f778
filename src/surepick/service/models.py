"""The JSON that goes in and out of the service."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from surepick.io.items import Kind
from surepick.registry import NAMES, POLICIES
from surepick.session.contextual import Order
from surepick.store.studies import AnswerForm, State


def _printable(text: str) -> str:
    """Text without control characters, which no label needs and some databases refuse, and without half characters.

    JSON can escape one half of a surrogate pair alone; that is no character, and no database takes it.
    """
    if any(ord(character) < 32 and character not in "\n\t" for character in text):
        raise ValueError("must not hold control characters")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must not hold half of a surrogate pair")
    return text


Text = Annotated[str, AfterValidator(_printable)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
Real = Annotated[float, Field(allow_inf_nan=False)]
Project = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
ProjectChoice = Annotated[
    Project | None, Field(description="By default yours, or `default` if you belong to all projects.")
]
Colour = Annotated[str, Field(pattern=r"^(|#[0-9A-Fa-f]{3,8}|[A-Za-z]{3,30})$")]


class Strict(BaseModel):
    """A body whose unknown fields are refused: they are mistakes."""

    model_config = ConfigDict(extra="forbid")


class ItemIn(Strict):
    """A candidate."""

    name: Name
    label: Annotated[Text, Field(max_length=500)] = ""
    text: Annotated[Text, Field(max_length=20_000)] = ""
    colour: Colour = ""
    image: Annotated[Text, Field(description="A picture as data:image/png;base64,…; PNG, JPEG, GIF or WebP.")] = ""
    features: list[Real] | None = None


class StudySettings(Strict):
    """What a study is to find out and how."""

    title: Name
    kind: Kind = "pairs"
    assume: Annotated[
        Literal["winner", "features", "population"] | None,
        Field(
            description="The claim that ends the study; by default winner for comparisons, else features. The claim "
            "population is about one person, drawn from a population: for a study with one judge."
        ),
    ] = None
    population: Annotated[
        list[Id],
        Field(
            max_length=100,
            description="Ids of earlier studies of the project on the same items: what their judges have answered by "
            "now is the population that tastes are drawn from (claim population; by default usual people), or that "
            "predicts (claim winner).",
        ),
    ] = []
    repeats: Annotated[
        Literal["once", "independent"] | None,
        Field(
            description="Whether only a judge's first answer to a question counts (once, the default for comparisons), "
            "or every answer (independent)."
        ),
    ] = None
    policy: Annotated[
        str | None,
        Field(
            description="Instead of assume: a policy by name.", json_schema_extra={"enum": [*sorted(POLICIES), None]}
        ),
    ] = None
    delta: Real = 0.05
    epsilon: Real = 0.0
    budget: Annotated[int, Field(ge=1, le=10**12)] | None = None
    options: Annotated[
        dict[str, JsonValue], Field(description="Further options of the policy, such as missing or kappa.")
    ] = {}
    lease: Annotated[Real, Field(ge=1, le=30 * 86_400, description="Seconds a judge has for a question.")] = 120.0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    project: ProjectChoice = None
    show: Annotated[
        int, Field(ge=2, le=9, description="Items that a question shows; more than two need pick or rank.")
    ] = 2
    answer: Annotated[
        AnswerForm,
        Field(
            description="choose: which of two; grade: how much better; pick: the best; rank: the order of all shown."
        ),
    ] = "choose"
    blind: Annotated[
        bool | None,
        Field(description="Whether names and labels are kept from judges; by default only those of systems."),
    ] = None
    instructions: Annotated[
        Text, Field(max_length=20_000, description="Markdown that judges can read beside the question.")
    ] = ""


class StudyIn(StudySettings):
    """A study with its items."""

    items: list[ItemIn]


class Created(BaseModel):
    """A new study; of an upload also what was done to the items."""

    id: str
    prepare: dict[str, Any] | None = None


class StateIn(Strict):
    """The state a study is to have."""

    state: State


class ItemsIn(Strict):
    """Items to add and names of items to remove."""

    add: list[ItemIn] = []
    remove: list[Name] = []


class PhaseOut(BaseModel):
    """What a change of the items means."""

    phase: int
    consequence: str


class JudgeIn(Strict):
    """A new judge."""

    name: Annotated[Text, Field(max_length=200)] = ""
    days: Annotated[Real, Field(gt=0, le=3_650, description="How long the link is valid.")] | None = None


class JudgeOut(BaseModel):
    """A judge with the link to send; `token` is the bearer token for programs."""

    id: str
    name: str
    token: str
    link: str
    until: float


class JudgeRow(BaseModel):
    """A judge in the list."""

    id: str
    name: str
    created: float
    revoked: bool
    until: Annotated[float, Field(description="When the link expires.")]
    visitor: Annotated[bool, Field(description="Came by the shared link.")]
    messages: int


class LinkOut(BaseModel):
    """A link to send, and the same as a picture."""

    link: str
    qr: Annotated[str, Field(description="A QR code of the link: SVG as a data: URI.")]
    until: float


class SharedLinkIn(Strict):
    """Who may become a judge by the shared link."""

    most: Annotated[int, Field(ge=1, le=10_000, description="Visitors in all.")] = 100
    phrase: Annotated[Text, Field(max_length=200, description="A pass phrase that visitors must know.")] = ""
    days: Annotated[Real, Field(gt=0, le=3_650, description="How long the link is valid.")] | None = None


class SharedLinkOut(BaseModel):
    """The shared link of a study; null where it is closed."""

    shared: LinkOut | None
    most: int
    visitors: int
    phrase: Annotated[bool, Field(description="Whether visitors must know a pass phrase.")]


class VisitOut(BaseModel):
    """What a shared link is for; `judge_link` is where the visitor goes on who has joined before."""

    title: str
    state: Literal["running", "paused", "over"]
    phrase: Annotated[bool, Field(description="Whether it needs a pass phrase.")]
    judge_link: str | None


class VisitorIn(Strict):
    """A visitor who wants to become a judge."""

    name: Annotated[Text, Field(max_length=200)] = ""
    phrase: Annotated[Text, Field(max_length=200)] = ""


class VisitorOut(BaseModel):
    """The page where the visitor answers as a judge; a link of their own."""

    judge_link: str


class ItemOut(BaseModel):
    """What a judge sees of an item; `image` is a path on this server, or empty. In a blind study it has no name."""

    name: str
    label: str
    text: Annotated[str, Field(description="Markdown.")]
    html: Annotated[str, Field(description="The text as safe HTML.")]
    colour: str
    image: str


class InputOut(BaseModel):
    """What systems were given, of which the question shows the outputs."""

    text: Annotated[str, Field(description="Markdown.")]
    html: Annotated[str, Field(description="The text as safe HTML.")]


class QuestionOut(BaseModel):
    """A question: which of two, the best or the order of several (`items`), or yes/no about one (`b` is null)."""

    id: str
    turn: int
    kind: Literal["compare", "grade", "pick", "rank", "yes/no"]
    a: Annotated[ItemOut, Field(description="The first of `items`.")]
    b: Annotated[ItemOut | None, Field(description="The second of `items`, if there is one.")]
    items: Annotated[list[ItemOut], Field(description="All items shown, in this order.")]
    input: Annotated[InputOut | None, Field(description="In a study of systems, whose outputs the texts are.")]
    answers: Annotated[list[str], Field(description="Words to answer with; of a pick or rank besides places.")]
    top: Annotated[int, Field(description="Places to name, from the best on: 1 for a pick; 0 where words answer.")]
    expires: float


class QuestionsOut(BaseModel):
    """The questions a judge holds."""

    questions: list[QuestionOut]
    open: Annotated[bool, Field(description="False when there is nothing left to ask.")]
    exhausted: Annotated[bool, Field(description="True when you have had every question that would help now.")]
    answered: Annotated[int, Field(description="Answers in this study so far.")]
    remaining: Annotated[int | None, Field(description="Estimated answers left; null if unknown.")]


class AnswerIn(Strict):
    """An answer. Of a pair, a is the one shown first, and a grade is about it; `turn` is needed only after an undo.

    Of several items: places counted from 1 in the order shown, the best first, such as 3 for a pick or 3>1>4.
    """

    question: Id
    answer: Annotated[
        str, Field(pattern=r"^(a|b|yes|no|tie|skip|much better|better|equal|worse|much worse|[1-9](>[1-9]){0,8})$")
    ]
    turn: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class AnswerOut(BaseModel):
    """What is on record now."""

    question: str
    answer: str
    turn: int
    late: Annotated[bool, Field(description="Its stage had been evaluated before: it is kept, but does not count.")]


class InvitationOut(BaseModel):
    """What a judge's link is for."""

    study: str
    title: str
    state: Annotated[
        Literal["running", "paused", "over"], Field(description="Over: decided or closed; nothing more is asked.")
    ]
    name: Annotated[str, Field(description="The name that the admin gave the judge.")]
    answers: Annotated[int, Field(description="Answers of this judge that stand.")]
    instructions: Annotated[str, Field(description="What the admin asks judges to mind, as safe HTML; may be empty.")]


class CommentIn(Strict):
    """What a judge has to say about a question besides the answer; an empty text deletes it."""

    question: Id
    text: Annotated[Text, Field(max_length=5_000)]


class CommentOut(BaseModel):
    """A comment on a question about these items."""

    question: str
    items: list[str]
    judge: str
    name: Annotated[str, Field(description="The judge's name, if they have one.")]
    at: float
    text: str


class UndoIn(Strict):
    """Which answer to take back; without it the last."""

    question: Id | None = None


class UndoOut(BaseModel):
    """What was undone; the question is open again, for the given turn."""

    question: str
    turn: int


class StreamIn(Strict):
    """A stream of contextual decisions. Each policy takes what it needs of delta, norm_bound, horizon, most_arms."""

    title: Name
    dimension: Annotated[int, Field(ge=1, description="Features of an arm.")]
    policy: Annotated[str, Field(json_schema_extra={"enum": list(NAMES)})] = "likelihood-ratio-ucb"
    delta: Real = 0.05
    norm_bound: Annotated[Real | None, Field(description="At least the length of the true parameter.")] = None
    horizon: Annotated[int | None, Field(le=10**12, description="The number of decisions there will be.")] = None
    most_arms: Annotated[int | None, Field(ge=1, le=10**6, description="The most arms offered at once.")] = None
    order: Annotated[Order, Field(description="In which order rewards are learnt; see docs/contextual.md.")] = "arrival"
    patience: Annotated[
        Real | None,
        Field(gt=0, le=3_650 * 86_400, description="Seconds after which a reward that has not come is given up."),
    ] = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    project: ProjectChoice = None


class StreamMade(BaseModel):
    """A new stream; `token` is the bearer token for its decisions and rewards, and for nothing else."""

    id: str
    token: str


class StreamOut(BaseModel):
    """The present state of a stream."""

    id: str
    title: str
    created: float
    policy: str
    configuration: dict[str, Any]
    dimension: int
    order: Order
    patience: Annotated[float | None, Field(description="Seconds until a missing reward is given up; null: never.")]
    seed: int
    guarantee: str
    statement: str
    assumptions: list[str]
    decisions: int
    waiting: Annotated[int, Field(description="Decisions whose reward is neither told nor given up.")]


class DecideIn(Strict):
    """Arms to choose from: rows of features."""

    arms: Annotated[list[list[Real]], Field(min_length=1)]
    context: Annotated[Text, Field(max_length=200)] | None = None


class DecisionOut(BaseModel):
    """The arm to take, counted from 0, and the probability with which the policy chose it."""

    decision: int
    arm: int
    propensity: float
    context: str | None


class RewardIn(Strict):
    """What came of a decision; null gives up on it."""

    decision: Annotated[int, Field(ge=0, le=2**31 - 1)]
    reward: Literal[0, 1] | None


class RewardOut(BaseModel):
    """What is on record now."""

    decision: int
    reward: int | None


class MemberIn(Strict):
    """A new member of a project; without a project, of all projects."""

    name: Name
    project: Project | None = None
    role: Literal["viewer", "editor", "owner"] = "editor"
    email: Annotated[
        str, Field(max_length=200, pattern=r"^([!-?A-~]+@[!-?A-~]+)?$", description="To log in by OpenID Connect.")
    ] = ""


class MemberMade(BaseModel):
    """A new member; the token is shown once."""

    id: str
    token: str


class MemberOut(BaseModel):
    """A member in the list."""

    id: str
    name: str
    project: str | None
    role: str
    email: str
    created: float
    revoked: bool


class NewToken(BaseModel):
    """A token in place of the one before."""

    token: str


class AuditOut(BaseModel):
    """One action of an admin; without a status the process died before it was carried out or told."""

    id: int
    at: float
    member: Annotated[str, Field(description="Id of the member; empty for the service's own token.")]
    name: str
    project: str | None
    action: Annotated[str, Field(description="Method and route.")]
    target: Annotated[str, Field(description="The path, with its ids.")]
    request: Annotated[str, Field(description="Id of the request, as in the logs.")]
    status: int | None


class Readiness(BaseModel):
    """Whether judges are served."""

    ready: bool
    planner_lag_seconds: Annotated[float, Field(description="How long the oldest message not in a log has waited.")]
    waiting: Annotated[int, Field(description="Messages of judges that are not in a log yet.")]


class TokenIn(Strict):
    """The admin's token."""

    token: Annotated[str, Field(max_length=500)]


class Refusal(BaseModel):
    """Why a request was refused."""

    detail: Annotated[str, Field(description="One sentence: what was received, and what to do instead.")]


class Consequence(BaseModel):
    """What was done, and what it means."""

    consequence: str


class Health(BaseModel):
    """Whether the service works. Degraded: it runs, but messages of judges are not counted as they should be."""

    status: Literal["ok", "degraded"]
    database: str
    version: str
    waiting: Annotated[int, Field(description="Messages of judges that are not in a log yet.")]
    quarantined: Annotated[int, Field(description="Messages that cannot enter a log, of studies not archived.")]
