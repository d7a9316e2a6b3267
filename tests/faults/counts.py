"""What a part of the trials found: how much was tried, and every problem in a sentence."""

from dataclasses import dataclass, field


@dataclass
class Count:
    """One line of the table of trials.

    Attributes:
        what: What was tried.
        tried: How often.
        answered: How often the answer was the one that is wanted: a sentence, or the same records.
        problems: Everything else.
    """

    what: str
    tried: int = 0
    answered: int = 0
    problems: list[str] = field(default_factory=list)

    def note(self, name: str, problem: str = "") -> None:
        """One try; a problem if there is one."""
        self.tried += 1
        if problem:
            self.problems.append(f"{name}: {problem}")
        else:
            self.answered += 1

    def __str__(self) -> str:
        return f"{self.what:<44} {self.tried:>6} {self.answered:>6} {len(self.problems):>6}"


HEAD = f"{'what':<44} {'tried':>6} {'good':>6} {'bad':>6}"
