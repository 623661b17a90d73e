"""Rules for the code: short cells that call the library, and nothing that only works in one front end."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator

from nemolab.notebook.rules.subject import Hit, Rules, Subject

RULES = Rules()
CELL_LINES, NOTEBOOK_LINES = 15, 120
LIBRARIES = ("pandas", "plotly", "__future__")
_SHELL = re.compile(r"^\s*(?:[!%?].*|pip3?\s.*|conda\s.*)|\?\s*$|^\s*[\w, ]+=\s*[!%]", re.MULTILINE)
_SHELL_CALLS = ("get_ipython", "system", "popen", "Popen", "check_output", "check_call", "exec", "eval")
_BUILT_IN = frozenset(dir(builtins)) | {"__name__"}


def lines(code: str) -> int:
    """Lines of code that are not blank."""
    return sum(1 for line in code.splitlines() if line.strip())


@RULES.add("N040", "the code is Python", "correct it; magics and shell lines are not Python")
def _python(subject: Subject) -> Iterator[Hit]:
    for cell in subject.code:
        if cell.number not in subject.trees and not _SHELL.search(cell.source):
            yield cell, "the cell is not Python"


@RULES.add("N041", f"at most {CELL_LINES} lines a code cell", "move the logic into lib/nemolab, or split the cell")
def _cell_length(subject: Subject) -> Iterator[Hit]:
    for cell in subject.code:
        if (count := lines(cell.source)) > CELL_LINES:
            yield cell, f"{count} lines of code in one cell, at most {CELL_LINES}"


@RULES.add("N042", f"at most {NOTEBOOK_LINES} lines of code in all", "move the logic into lib/nemolab")
def _length(subject: Subject) -> Iterator[Hit]:
    if (count := sum(lines(cell.source) for cell in subject.code)) > NOTEBOOK_LINES:
        yield None, f"{count} lines of code, at most {NOTEBOOK_LINES}"


@RULES.add("N043", "no definitions", "move it into lib/nemolab, where tests reach it")
def _definitions(subject: Subject) -> Iterator[Hit]:
    for cell, node in subject.nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield cell, f"{node.name} is defined here"
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and isinstance(node.value, ast.Lambda):
            yield cell, "a lambda is given a name here"


@RULES.add("N044", "no magics, no shell", "call a function of lib/nemolab; set-up belongs to `make`")
def _shell(subject: Subject) -> Iterator[Hit]:
    for cell in subject.code:
        if cell.number not in subject.trees and (found := _SHELL.search(cell.source)):
            yield cell, f"a magic or a shell line: {found[0].strip()!r}"
    for cell, node in subject.nodes():
        if isinstance(node, ast.Call) and _called(node) in _SHELL_CALLS:
            yield cell, f"{_called(node)}() runs code that no test sees"


@RULES.add("N045", "no questions to the reader", "make it a parameter")
def _input(subject: Subject) -> Iterator[Hit]:
    for cell, node in subject.nodes():
        if isinstance(node, ast.Call) and _called(node) in ("input", "getpass"):
            yield cell, f"{_called(node)}() waits for ever in a headless run"


@RULES.add("N046", "outputs go through `show`", "use show.figure, show.table, show.text, or nothing")
def _outputs(subject: Subject) -> Iterator[Hit]:
    for cell in subject.code:
        tree = subject.trees.get(cell.number)
        if tree is None:
            continue
        if cell.source.rstrip().endswith(";"):
            yield cell, "a trailing `;` hides an output from the reader, not from nbval"
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call | ast.Await | ast.Constant):
            yield cell, f"the cell ends in the bare expression `{ast.unparse(last)}`, whose repr becomes an output"
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant):
            yield cell, "the cell ends in a constant, which becomes an output"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in ("print", "display"):
                yield cell, f"{_called(node)}() goes around `show`"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "show":
                yield cell, "fig.show() writes plotly.js into the notebook"


@RULES.add(
    "N047",
    "imports: nemolab.notebook, one domain package, pandas, plotly",
    "import what you need from one package of lib/nemolab; put the rest there",
)
def _imports(subject: Subject) -> Iterator[Hit]:
    domains: dict[str, None] = {}
    for cell, node in subject.nodes():
        modules: list[str] = []
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            modules = [f"{module}.{alias.name}" for alias in node.names] if module == "nemolab" else [module]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            top, *rest = module.split(".")
            if top == "nemolab" and rest and rest[0] not in ("notebook", "core"):
                domains[rest[0]] = None
                if len(domains) == 2:
                    yield cell, f"two domain packages: {' and '.join(domains)}"
            elif top != "nemolab" and top not in LIBRARIES:
                yield cell, f"imports {module}"
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            yield cell, f"imports everything from {node.module}"


@RULES.add("N048", "every name is defined above its use", "define or import it in an earlier cell")
def _undefined(subject: Subject) -> Iterator[Hit]:
    known = set(_BUILT_IN)
    for cell in subject.code:
        tree = subject.trees.get(cell.number)
        if tree is None:
            return  # what this cell defines is not known
        for statement in tree.body:
            used, bound = _names(statement)
            for name in sorted(used - known - bound):
                yield cell, f"{name} is not defined here"
                known.add(name)
            known |= bound


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Names that a statement takes from the notebook's namespace, and names that it puts there."""
    # A bare `await` is no Python outside a notebook; symtable needs it out of the way.
    tree = _Unawait().visit(statement)
    table = symtable.symtable(ast.unparse(tree), "<cell>", "exec")
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    used = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    open_tables = list(table.get_children())
    while open_tables:
        inner = open_tables.pop()
        used |= {s.get_name() for s in inner.get_symbols() if s.is_global() and s.is_referenced()}
        open_tables += inner.get_children()
    return used, bound


class _Unawait(ast.NodeTransformer):
    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.visit(node.value)  # type: ignore[no-any-return]

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.generic_visit(node)
        return ast.For(**{name: getattr(node, name) for name in ("target", "iter", "body", "orelse", "lineno")})

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        return ast.With(items=node.items, body=node.body, lineno=node.lineno)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
