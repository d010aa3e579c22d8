"""The five commands of a maintainer: nox -s test, lint, docs, bench, wheel."""

import nox

nox.options.sessions = ["lint", "test"]


@nox.session
def test(session: nox.Session) -> None:
    """Run the tests, or those that are named after --."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, words and types."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", ".ci/words.py", "casadi_hybrid")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into output/site."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict")


@nox.session
def bench(session: nox.Session) -> None:
    """Compare warm steps with other solvers on a small set; arguments after -- go to the script."""
    session.install("-e", ".")
    session.run("python", "benchmarks/warm_peers.py", *(session.posargs or ["--quick"]))


@nox.session
def wheel(session: nox.Session) -> None:
    """Make the wheels of the platforms named after --, or of all, and the sdist."""
    session.run(".ci/wheels", *session.posargs, external=True)
