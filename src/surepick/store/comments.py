"""What judges write about questions besides answering them: one comment for each question, for the admin to read."""

import sqlalchemy as sa

from surepick.store.database import Database, Forbidden, NotFound
from surepick.store.schema import comments, judges, questions


def write_comment(database: Database, study: str, judge: str, question: str, text: str) -> None:
    """Keep a judge's comment on a question they got, instead of an earlier one; an empty text deletes it."""
    with database.writing() as connection:
        wanted = (
            sa.select(questions.c.study, questions.c.judge, judges.c.revoked)
            .join(judges, judges.c.id == questions.c.judge)
            .where(questions.c.id == question)
            .with_for_update(of=judges, key_share=True)  # of two comments at once the second waits
        )
        row = connection.execute(wanted).first()
        if row is None or (row.study, row.judge) != (study, judge):
            raise NotFound(f"Question {question!r} was not handed out to you in this study.")
        if row.revoked:
            raise Forbidden("This judge's link was revoked.")
        connection.execute(sa.delete(comments).where(comments.c.question == question))
        if text.strip():
            at = database.now(connection)
            connection.execute(
                sa.insert(comments).values(question=question, study=study, judge=judge, at=at, text=text.strip())
            )


def count(connection: sa.Connection, study: str) -> int:
    """How many comments there are."""
    wanted = sa.select(sa.func.count()).where(comments.c.study == study)
    return int(connection.execute(wanted).scalar_one())


def comments_of(connection: sa.Connection, study: str) -> list[sa.RowMapping]:
    """All comments on a study, the newest first, with the items they are about and the judge's name."""
    wanted = (
        sa.select(comments, questions.c.first, questions.c.second, questions.c.others, judges.c.name)
        .join(questions, questions.c.id == comments.c.question)
        .join(judges, judges.c.id == comments.c.judge)
        .where(comments.c.study == study)
        .order_by(comments.c.at.desc(), comments.c.question)
    )
    return list(connection.execute(wanted).mappings())
