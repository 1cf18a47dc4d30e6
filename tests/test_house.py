"""The rules of the house that can be read off the source, each with wrong twins that must be reported."""

import ast
import functools
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "sabre"

BASE, SAMPLER = "errors noise", "targets mcmc processes networks objectives"
ROWS = {  # layers and, of those in rows above, all that each of them may import
    "errors noise memory": "",
    "device storage tape targets": BASE,
    "mcmc metrics processes report": f"{BASE} targets",
    "networks": f"{BASE} targets processes",
    "objectives": f"{BASE} processes networks",
    "evaluation options": f"{BASE} {SAMPLER} metrics storage",
    "presets": f"{BASE} targets options",
    "training": f"{BASE} {SAMPLER} evaluation metrics options storage device memory",
    "run": f"{BASE} targets processes metrics evaluation options storage report training",
    "train": f"{BASE} targets options storage training run",
    "reproduce": f"{BASE} targets mcmc metrics report evaluation options presets storage run train",
    "cli __init__": f"{BASE} targets mcmc processes evaluation options presets storage run train reproduce",
    "__main__": "cli",
}
MAY_IMPORT = {layer: {layer, *below.split()} for row, below in ROWS.items() for layer in row.split()}
# Optional dependencies are imported where they are used, since sabre runs without them; all else is at the top.
EXTRAS = {"arviz", "dimod", "dwave", "huggingface_hub", "matplotlib", "ray", "submitit", "tensorboard"}
OWN_GENERATOR = {"noise.py", "targets/gmm40.py"}  # the streams; the means of the mixture, a part of its definition
ABSTRACT = re.compile(r"class (\w+Error\b|\w+\([^\n]*\bProtocol\b|\w+\([^\n]*\bABC\b(?s:.*)@abstractmethod)")
DRAW = re.compile(r"torch\.((rand|randn|randint)(_like)?|randperm|multinomial|bernoulli|normal|poisson|binomial)")
DRAW_OF_TENSOR = re.compile(r"(uniform|normal|bernoulli|exponential|random|log_normal)_|multinomial|bernoulli")
GLOBAL = re.compile(
    r"(random|secrets|numpy\.random|torch\.(random|distributions|nn\.init))(\..+)?"
    r"|torch\.((manual_|initial_)?seed|default_generator|[gs]et_rng_state|cuda\.\w*(seed|rng)\w*)"
    r"|torch\.nn\.(functional\.)?(\w*[dD]ropout\w*|gumbel_softmax|rrelu|RReLU|Linear|Bilinear|Embedding\w*|Conv\w+)"
)
ONCE = {  # what one function does and no other: what it looks like, and the file of that function
    "a Metropolis probability": (r"clamp\(max=0(\.0)?\)\.exp\(\)|\.exp\(\)\.clamp\(max=1", "mcmc/accept.py"),
    "acceptance": (r"StepInfo\(|\.bernoulli\([^\n]*accept|(?s:log_density\(.*\.bernoulli\()", "mcmc/accept.py"),
    "an optimiser": (r"\boptim\.\w+\(", "training/learner.py"),
    "its step": (r"\.step\(", "training/learner.py"),
    "a backward pass": (r"\.backward\(", "objectives/gradient.py"),
    "an update": (r"\blearner\.update\(", "training/algorithm.py"),
    "Algorithm 1": (r"(?<!def )\balgorithm_1\(", "training/state.py"),
    "the loop around it": (r"\.advance\(", "training/loop.py"),
}


@functools.cache
def parsed(root):
    return {path.relative_to(root).as_posix(): ast.parse(path.read_text()) for path in sorted(root.rglob("*.py"))}


def nodes(tree, *kinds):
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def imports(tree):
    """(local name, full name, node) of every name that is imported."""
    for node in nodes(tree, ast.Import, ast.ImportFrom):
        for name in node.names:
            if isinstance(node, ast.ImportFrom):
                yield name.asname or name.name, f"{'.' * node.level}{node.module or ''}.{name.name}", node
            else:
                yield name.asname or name.name.partition(".")[0], name.name, node


def full_names(tree):
    """(full name, node): torch.nn.functional.elu for F.elu, for all that comes from an import."""
    known = {local: local if full.startswith(f"{local}.") else full for local, full, _ in imports(tree)}
    for node in nodes(tree, ast.Name, ast.Attribute):
        head, dot, rest = ast.unparse(node).partition(".")
        if head in known:
            yield known[head] + dot + rest, node


def wrong_imports(root):
    """Imports go one way along the layers, inside of functions too."""
    for file, tree in parsed(root).items():
        allowed = MAY_IMPORT.get(file.partition("/")[0].removesuffix(".py"), ())
        ours = [full for _, full, _ in imports(tree) if full.partition(".")[0] == "sabre"]
        yield from (f"{file} imports {full}" for full in ours if f"{full}.".split(".")[1] not in allowed)


def hidden_imports(root):
    """At the top of a file stands all that it imports, but for optional dependencies, which stand in functions."""
    for file, tree in parsed(root).items():
        inside = {id(n) for f in nodes(tree, ast.FunctionDef) for n in nodes(f, ast.Import, ast.ImportFrom)}
        for _, full, node in imports(tree):
            if full.startswith(".") or (full.partition(".")[0] in EXTRAS) != (id(node) in inside):
                yield f"{file}: import of {full}"


def large_files(root):
    """No file over 300 lines, no function of 60."""
    for file, tree in parsed(root).items():
        long = [f.name for f in nodes(tree, ast.FunctionDef) if f.end_lineno - f.lineno + 1 >= 60]
        long += ["the file"] * (len((root / file).read_text().splitlines()) > 300)
        yield from (f"{file}: {name} is long" for name in long)


def large_median(root):
    """Half of the files have less than 150 lines."""
    sizes = sorted((len((root / file).read_text().splitlines()), file) for file in parsed(root))
    yield from (f"{file}: {size} lines" for size, file in [sizes[len(sizes) // 2]] if size >= 150)


def bases_that_are_not_abstract(root):
    """Of our own classes only those with abstract methods, protocols and errors have subclasses."""
    classes = [node for tree in parsed(root).values() for node in nodes(tree, ast.ClassDef)]
    final = {node.name for node in classes if not ABSTRACT.search(ast.unparse(node))}
    for file, tree in parsed(root).items():
        foreign = {id(node) for full, node in full_names(tree) if not full.startswith("sabre.")}
        for node in nodes(tree, ast.ClassDef):
            ours = [ast.unparse(base).partition("[")[0] for base in node.bases if id(base) not in foreign]
            yield from (f"{file}: {node.name}({name})" for name in ours if name.rpartition(".")[2] in final)


def global_randomness(root):
    """Every draw has a generator, and generators belong to `Noise`."""
    for file, tree in parsed(root).items():
        calls = nodes(tree, ast.Call)
        seeded = {id(call.func) for call in calls if "generator" in {word.arg for word in call.keywords}}
        yield from (f"{file}: import of {full}" for _, full, _ in imports(tree) if GLOBAL.fullmatch(full))
        for full, node in full_names(tree):
            own = full == "torch.Generator" and file not in OWN_GENERATOR
            if own or GLOBAL.fullmatch(full) or (DRAW.fullmatch(full) and id(node) not in seeded):
                yield f"{file}: {full}"
        for function in (c.func for c in calls if isinstance(c.func, ast.Attribute) and id(c.func) not in seeded):
            if DRAW_OF_TENSOR.fullmatch(function.attr) and "noise" not in ast.unparse(function.value):
                yield f"{file}: {ast.unparse(function)}"


def done_twice(root):
    """Each of `ONCE` is in one function, of the file that it belongs to."""
    texts = []
    for file, tree in parsed(root).items():
        parts = [part for scope in nodes(tree, ast.Module, ast.ClassDef) for part in scope.body]
        texts += [(file, ast.unparse(part)) for part in parts if not isinstance(part, ast.ClassDef)]
    for what, (pattern, place) in ONCE.items():
        found = [file for file, text in texts if re.search(pattern, text)]
        if found != [place]:
            yield f"{what}: {' '.join(found)}"


def wrong_exports(root):
    """`__all__` names what exists, and in an `__init__` all that is public there."""
    for file, tree in parsed(root).items():
        bound = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        values = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
        bound |= {n.id for value in values for n in nodes(value, ast.Name) if isinstance(n.ctx, ast.Store)}
        bound |= {local for local, _, _ in imports(tree)}
        lists = [ast.literal_eval(n.value) for n in values if ast.unparse(n).startswith("__all__ =")]
        stated = {name for names in lists for name in names}
        public = {name for name in bound if not name.startswith("_") and file.endswith("__init__.py")}
        yield from (f"{file}: {name} and __all__" for name in (stated - bound) | (public - stated))


DRAWS = "t.rand(3);f = t.randn;np.random.rand();t.manual_seed(0);t.nn.Linear(2);t.Generator();p.bernoulli();x.normal_()"
AGAIN = "optim.SGD(p);opt.step();loss.backward();learner.update(b);algorithm_1(0);state.advance();a.clamp(max=0).exp()"
TWINS = [
    (wrong_imports, "targets/a.py", "from sabre.training import Learner"),
    (wrong_imports, "storage/a.py", "def f():\n    from sabre import run"),
    (wrong_imports, "unheard_of/a.py", "from sabre.errors import SabreError"),
    (hidden_imports, "run.py", "def f():\n    import json"),
    (hidden_imports, "run.py", "import matplotlib.pyplot as plt"),
    (hidden_imports, "run.py", "from .errors import SabreError"),
    (large_median, "a.py", "x = 1\n" * 150),
    (large_files, "a.py", "x = 1\n" * 301),
    (large_files, "a.py", "def f():\n" + "    x = 1\n" * 59),
    (bases_that_are_not_abstract, "a.py", "class A(nn.Module): ...\nclass B(A): ..."),
    (bases_that_are_not_abstract, "a.py", "class A(ABC): ...\nclass B(A): ..."),
    (bases_that_are_not_abstract, "a.py", "from sabre import b\nclass A(NamedTuple): ...\nclass B(b.A[int]): ..."),
    *((global_randomness, "a.py", f"import torch as t, numpy as np\n{x}") for x in DRAWS.split(";")),
    (global_randomness, "a.py", "import random"),
    *((done_twice, "training/a.py", f"while True:\n    {x}") for x in AGAIN.split(";")),
    (done_twice, "mcmc/a.py", "def propose(x):\n    p = target.log_density(x)\n    return noise.bernoulli(p)"),
    (wrong_exports, "mcmc/__init__.py", "from sabre.mcmc.accept import init, step\n__all__ = ['init']"),
    (wrong_exports, "mcmc/a.py", "__all__ = ['step']"),
]


@pytest.mark.parametrize("check", dict.fromkeys(check for check, _, _ in TWINS))
def test_the_source_keeps_the_rules(check):
    assert not list(check(SRC))


@pytest.mark.parametrize(("check", "file", "code"), TWINS)
def test_wrong_twins_are_reported(check, file, code, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(code)
    assert any(file in report for report in check(tmp_path))


def test_the_layers_go_one_way():
    rows = [set(row.split()) for row in ROWS]
    assert all(set(below.split()) <= set().union(*rows[:n]) for n, below in enumerate(ROWS.values()))
