"""Facts of tasks in `tests.tasks.cases` explain their assertions, as test files do."""

import pytest

pytest.register_assert_rewrite("tests.tasks.cases")
