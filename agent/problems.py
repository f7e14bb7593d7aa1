"""What stops a command or a turn before it begins: always one sentence for a person."""

QUESTION_LIMIT = 20_000  # characters


class Problem(Exception):
    """Wrong usage or unreadable input: says what is wrong, what was not done, and what to do."""


def check_question(question: str) -> None:
    """Raises Problem where a question is not asked at all."""
    if problem := question_problem(question):
        raise Problem(problem[1])


def question_problem(question: str) -> tuple[str, str] | None:
    """Why a question is not asked at all: (kind, sentence for the operator)."""
    from tools.locales import clean  # with all languages: commands that fail early need none

    if not clean(question):
        return "empty_question", "The question is empty. Nothing was asked."
    if len(question) > QUESTION_LIMIT:
        return (
            "long_question",
            f"The question has {len(question)} characters; {QUESTION_LIMIT} are allowed."
            " Nothing was asked.",
        )
    try:
        question.encode()
    except UnicodeEncodeError:
        return "broken_question", "The question is not text (broken encoding). Nothing was asked."
    return None
