"""Contract suites for components of users: the properties that regard's own stages and mechanisms are tested for.

    from regard.testing import check_component

    for outcome in check_component(L1):
        print(outcome.name, outcome.passed, outcome.reason)

Nothing here needs pytest. A contract is a function of a case that raises AssertionError; `regard check my_scores.py:L1` runs
those of one class and shows each. In a test of one's own: `assert all(outcome.passed for outcome in check_component(L1))`.
"""

from regard.testing.component import Contract, Outcome, check_component, list_contracts, run_contract

__all__ = ["Contract", "Outcome", "check_component", "list_contracts", "run_contract"]
