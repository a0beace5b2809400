"""What every interpreter of scripts promises: they reach what they are given, stop at their limits, and repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import try_each
from tests.instants import DAY
from tests.scripts.script_cases import GENEROUS_SECONDS, NOW, TOOLS, Json, limited_interpreter, script_input

from cloudsched.engine.ports.interpreter import Interpreter, Round, ScriptRequest, ScriptResponse
from cloudsched.errors import InvalidInput, LimitExceeded, ScriptFailed

Run = Callable[..., Any]


@pytest.fixture(params=["quickjs"])
def interpreter(request: pytest.FixtureRequest) -> Interpreter:
    """An interpreter with tight limits, but for the time."""
    assert request.param == "quickjs"
    return limited_interpreter(GENEROUS_SECONDS)


@pytest.fixture
def run(interpreter: Interpreter) -> Run:
    """Run a script that asks for nothing, in a short time if that is asked for; return its result."""

    def ran(source: str, given: Json = None, seed: int = 7, seconds: float | None = None) -> Json:
        within = interpreter if seconds is None else limited_interpreter(seconds)
        with within.run(script_input(source, given, seed)) as script:
            reached = script.resume((), NOW)
        assert reached.has_ended
        if reached.failure is not None:
            raise reached.failure
        assert reached.asks == ()
        return reached.result

    return ran


# ── What it does ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_returns_what_the_script_returns(run: Run) -> None:
    """Any JSON goes in and out; undefined becomes null."""
    given = {"text": 'é \U0001f600   \\ " \n \0', "big": 2**53, "__proto__": {"a": 1}, "then": [None, True, -0.5, {}]}
    assert run("return input;", given) == given
    assert run("return {...task, tools: Object.keys(tools)}") == {"id": "t", "owner": "ada", "tools": [*TOOLS]}
    assert run("return") is None
    assert run("return [NaN, undefined, 2 ** 60, 1e300, 1.0]") == [None, None, 2.0**60, 1e300, 1]


@try_each(
    "source, result",
    [
        ("export default async function (input) {\n  return input + 1;\n}", 2),
        ("const one = 1;\n  export default (input, { task }) => [input + one, task.id];\n", [2, "t"]),
        (
            "export default async (input, { tools, sleep, log }) => [typeof tools.lookup, typeof sleep, typeof log]",
            ["function"] * 3,
        ),
        ("export default { answer: 42 };", {"answer": 42}),
        ("export default function main() { return helper(); }\nfunction helper() { return 3; }", 3),
        ("return `\nexport default words`;", "\nexport default words"),
    ],
)
def test_a_script_may_be_a_module_with_a_default_export(run: Run, source: str, result: Json) -> None:
    """As people and language models write them: a function is called, anything else is the result."""
    assert run(source, 1) == result


def test_a_mistake_in_a_module_is_named_with_its_line(run: Run) -> None:
    """And not the word that is no longer a mistake."""
    with pytest.raises(ScriptFailed, match="line 3") as raised:
        run("export default async function (input) {\n  const a = 1;\n  const a = 2;\n}")
    assert "export" not in str(raised.value)


def test_the_console_writes_to_the_log(interpreter: Interpreter) -> None:
    """Whatever its level, several values on one line; a script may have a variable of that name."""
    source = """
        console.log("found", {a: 1}, [2], undefined, 3);
        console.warn("careful"); console.error(new Error("x").message); console.info(); console.debug(null);
        { const console = {log: (text) => log(`mine ${text}`)}; console.log("too"); }
        return typeof console.table;
    """
    with interpreter.run(script_input(source)) as script:
        reached = script.resume((), NOW)
    assert reached.log == ('found {"a":1} [2] undefined 3', "careful", "x", "", "null", "mine too")
    assert reached.result == "undefined"


def test_a_script_waits_for_requests_and_resumes_with_their_responses(interpreter: Interpreter) -> None:
    """A round contains all pending requests in order; a failed one raises an error that the script can catch."""
    source = """
        const [found, failed] = await Promise.all([tools.lookup({id: input.id}), tools["send-email"]().catch(e => e)]);
        log(`found ${found.name}`);
        await sleep(86400.5);
        return [failed instanceof Error, failed.name, failed.message, failed.status, Date.now()];
    """
    with interpreter.run(script_input(source, {"id": 7})) as script:
        assert script.resume((), NOW) == Round(
            (ScriptRequest(1, "lookup", {"id": 7}), ScriptRequest(2, "send-email", {}))
        )
        failure = {"name": "CallFailed", "message": "no é", "status": "FAILED"}
        reached = script.resume([ScriptResponse(1, {"name": "Ada"}), ScriptResponse(2, failure=failure)], NOW)
        assert reached == Round((ScriptRequest(3, seconds=86400.5),), ("found Ada",))
        later = NOW + DAY
        reached = script.resume([ScriptResponse(3)], later)
        assert reached == Round((), (), True, [True, "CallFailed", "no é", "FAILED", later.timestamp() * 1000])  # noqa: FBT003


@pytest.mark.parametrize("end", ["return 1", "throw new RangeError('no')", "null.x", "await null; throw 1"])
def test_the_last_round_contains_requests_that_were_not_awaited(interpreter: Interpreter, end: str) -> None:
    """It contains the log as well, even if the script ends with an exception."""
    with interpreter.run(script_input(f"log('a'); tools.lookup({{id: 1}}); sleep(5); {end}")) as script:
        reached = script.resume((), NOW)
    assert (reached.asks, reached.log) == ((ScriptRequest(1, "lookup", {"id": 1}), ScriptRequest(2, seconds=5)), ("a",))
    assert reached.has_ended
    assert (reached.failure is None) == (reached.result == 1)


def test_random_numbers_and_the_clock_are_reproducible(run: Run) -> None:
    """The same seed and instant give the same values; no function returns the real time."""
    source = """
        const at = [Date.now(), +new Date(), Date.parse(Date()), +new (class extends Date {})(),
                       +new (new Date(0).constructor)(), +Reflect.construct(Date, [])];
        return [at, Math.random(), Math.random(), typeof performance, typeof WeakRef, new Date().getTimezoneOffset()];
    """
    dates, *rest = run(source)
    assert set(dates) == {NOW.timestamp() * 1000}
    assert run(source) == [dates, *rest]
    assert rest[2:] == ["undefined", "undefined", 0]
    assert run(source, seed=8)[1:3] != rest[:2]
    assert all(0 <= each < 1 for each in rest[:2])
    assert run(
        "return [new Date(2027, 0, 1, 9).toISOString(), Date.UTC(1970, 0, 2), new Date('2027-01-01').getDay()]"
    ) == [
        "2027-01-01T09:00:00.000Z",
        86_400_000,
        5,
    ]


@try_each(
    "source, problem",
    [
        ("const a = 1;\nconst b = ;", "line 2: unexpected token in expression: ';'"),
        ("return `", "line 1: unexpected end of string"),
        ("if (input) {\n\n", "line 1: it ends too early, or closes more than it opens"),
        ("try {\n}\n", "line 2: expecting catch or finally"),
        ("return input })", "line 1: it ends too early, or closes more than it opens"),
        ("import os from 'os'", "line 1: "),
        ("}); globalThis.x = 1; (async function script(input, task, tools, sleep, log) {", "unexpected '}'"),
        ("const input = 1", "line 1: invalid redefinition of parameter name"),
    ],
)
def test_invalid_javascript_is_refused_with_its_line(interpreter: Interpreter, source: str, problem: str) -> None:
    """Only code that breaks out of the enclosing function runs, and that only in its sandbox."""
    with pytest.raises(InvalidInput) as refused:
        interpreter.check(source)
    assert refused.value.field == "source"
    assert refused.value.problem.startswith(problem)


def test_a_check_compiles_a_script_without_running_it(interpreter: Interpreter) -> None:
    """So a check of an endless script returns at once."""
    interpreter.check("while (true);")


# ── How it fails ─────────────────────────────────────────────────────────────────────────────────────────────────────


@try_each(
    "source, name, line",
    [
        ("\n\nthrow new TypeError('no such thing')", "TypeError", 3),
        ("\nreturn tools.nope()", "TypeError", 2),
        ("return nothing.here", "ReferenceError", 1),
        ("throw 'text'", "", None),
        ("throw {get message() { throw 1 }}", "", None),
        ("throw Symbol('x')", "", None),
        ("return 1n", "TypeError", None),
        ("const a = {}; a.a = a; return a", "TypeError", None),
        ("return {toJSON() { throw new RangeError('x') }}", "RangeError", 1),
        ("function f() { return f() + 1 } return f()", "RangeError", 1),
        ("await sleep(-1)", "RangeError", None),
        ("await tools.lookup(() => 1)", "TypeError", None),
        ("await import('/etc/passwd')", "ReferenceError", None),
        ("await new Promise(() => {})", "", None),
        ("x = 1", "ReferenceError", 1),
        ("tools.lookup = 1", "TypeError", 1),
        ("task.owner = 'eve'", "TypeError", 1),
    ],
)
def test_a_thrown_error_is_reported(run: Run, source: str, name: str, line: int | None) -> None:
    """With its name, and its line if it has one."""
    with pytest.raises(ScriptFailed) as failed:
        run(source)
    assert failed.value.name == name
    assert line is None or failed.value.line == line


@pytest.mark.parametrize(
    ("thrown", "says"),
    [
        ("{code: 5}", '{"code":5}'),
        ("{name: 'Odd', code: 5}", 'Odd: {"name":"Odd","code":5}'),
        ("{text: 'x'.repeat(5000)}", '{"text":"' + "x" * 491),
        ("(() => { const a = {}; a.a = a; return a })()", "It cannot say why."),
        ("undefined", "undefined"),
    ],
)
def test_a_thrown_value_that_is_no_error_is_reported_as_json(run: Run, thrown: str, says: str) -> None:
    for source in (f"throw {thrown}", f"await Promise.reject({thrown})"):
        with pytest.raises(ScriptFailed) as failed:
            run(source)
        assert str(failed.value) == f"The script failed: {says}"


@pytest.mark.parametrize("source", ["throw null", "await Promise.reject(null)"])
def test_thrown_null_may_mean_that_memory_ran_out(run: Run, source: str) -> None:
    """The interpreter also throws null if it has no memory left for an error, so the message names both causes."""
    with pytest.raises(LimitExceeded, match="throws null, or needs more than 32 MiB of memory"):
        run(source)


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ("while (true);", "0.2 s"),
        ("try { while (true); } catch { return 1 } finally { while (true); }", "0.2 s"),
        ("await null; while (true);", "0.2 s"),
        ("const on = () => { Promise.resolve().then(on) }; on(); await new Promise(() => {})", "0.2 s"),
        ("/(a+)+$/.test('a'.repeat(40) + 'b')", "0.2 s"),
        ("return {toJSON() { while (true); }}", "0.2 s"),
        ("return new Proxy({}, {ownKeys() { while (true); }})", "0.2 s"),
        ("const all = []; while (true) all.push(new Array(1000).fill(1))", "32 MiB"),
        ("return 'x'.repeat(2 ** 29)", "32 MiB"),
        ("return 'x'.repeat(100_000)", "64 KiB"),
        ("for (let i = 0; i < 2000; i++) log('x'.repeat(100))", "64 KiB"),
        ("tools.lookup({text: 'x'.repeat(100_000)})", "64 KiB"),
    ],
)
def test_it_stops_at_its_limits(run: Run, source: str, limit: str) -> None:
    """Time, memory and output are limited wherever a script uses them; the error names the limit."""
    with pytest.raises(LimitExceeded, match=limit):
        run(source, seconds=0.2 if limit == "0.2 s" else None)


def test_a_built_in_that_ignores_the_time_limit_is_killed(run: Run) -> None:
    """QuickJS alone would run for minutes; its process is killed one second after twice the script's time."""
    with pytest.raises(LimitExceeded, match=r"0.2 s"):
        run("return Array(2 ** 32 - 1).join('')", seconds=0.2)


def test_the_output_limit_covers_all_rounds_together(interpreter: Interpreter) -> None:
    """A script cannot output more by splitting it into rounds."""
    source = "while (true) await tools.lookup({text: 'x'.repeat(10_000)})"
    with interpreter.run(script_input(source)) as script:
        for number in range(6):
            assert not script.resume([ScriptResponse(number)] if number else [], NOW).has_ended
        with pytest.raises(LimitExceeded, match="64 KiB"):
            script.resume([ScriptResponse(6)], NOW)


# ── What it cannot do ────────────────────────────────────────────────────────────────────────────────────────────────

BREAKS = {
    "prototypes": """
        Object.defineProperty(Object.prototype, "0", {set() { throw 1 }, get() { return "x" }});
        Object.prototype.source = "return 1"; Object.prototype.answers = []; Object.prototype.message = 1;
        Object.prototype.then = 1; Object.prototype.get = Object.prototype.value = Object.prototype.toJSON = () => "x";
    """,
    "lists": "Array.prototype.push = Array.prototype.join = Array.prototype[Symbol.iterator] = () => { throw 1 };",
    "json": "JSON.parse = JSON.stringify = () => '{}'; Object.prototype.toJSON = () => 'x';",
    "promises": "Promise.prototype.then = Promise.prototype.catch = () => 1; globalThis.Promise = class {};",
    "globals": "for (const name of Reflect.ownKeys(globalThis)) { try { delete globalThis[name] } catch {} }",
    "functions": "Function.prototype.call = Function.prototype.apply = Reflect.apply = () => { throw 1 };",
    "strings": "String.prototype.slice = String.prototype.toString = String.prototype.valueOf = () => { throw 1 };",
    "errors": "Error.prepareStackTrace = () => { throw 1 }; globalThis.Error = null; TypeError.prototype.name = {};",
    "names": "globalThis.tools = globalThis.log = globalThis.sleep = null;",
}

SPOILED = {"prototypes": "x", "json": "x"}
"""What these make of whatever is put into JSON."""


@pytest.mark.parametrize("what", BREAKS)
def test_a_script_that_replaces_built_ins_affects_only_itself(interpreter: Interpreter, what: str) -> None:
    """The glue code uses copies that it took before; only the script's own result is affected."""
    source = f"{BREAKS[what]}\nconst found = await tools.lookup({{id: 1}}); log('on'); return [found];"
    with interpreter.run(script_input(source)) as script:
        assert script.resume((), NOW) == Round((ScriptRequest(1, "lookup", SPOILED.get(what, {"id": 1})),))
        reached = script.resume([ScriptResponse(1, "Ada")], NOW)
    assert reached == Round((), ("on",), True, SPOILED.get(what, ["Ada"]))  # noqa: FBT003


HOOKS = {
    "set": "Error.prepareStackTrace = look;",
    "defined": "Object.defineProperty(Error, 'prepareStackTrace', {value: look});",
    "asked for": "Error.prepareStackTrace = TypeError.prepareStackTrace = look; Error.captureStackTrace({});",
    "of a subclass": "Fault = class extends Error {}; Fault.prepareStackTrace = look; Fault.captureStackTrace({});",
    "of the setter": "Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')?.set?.call(Error, look);",
    "of the prototypes": "Function.prototype.prepareStackTrace = Error.prototype.prepareStackTrace = look;",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_no_stack_hook_exposes_the_functions_around_a_script(run: Run, hook: str) -> None:
    """An error's stack is text with the right lines; no hook receives its frames, and with them the real clock."""
    source = f"""let seen = 0, Fault = Error;
        const look = (error, frames) => {{ seen += 1; return '' }};
        {HOOKS[hook]}
        new Date({{valueOf() {{ new Fault('x').stack; return 1 }}}});
        return [seen, new Fault('x').stack];"""
    seen, stack = run(source)
    assert seen == 0
    assert "<input>:5:" in stack


def test_code_that_breaks_out_of_its_function_finds_no_stack_hook(interpreter: Interpreter) -> None:
    """It runs during compilation: before its clock is set, but after the hook is removed."""
    source = """}); Error.prepareStackTrace = (error, frames) => { globalThis.seen = true; return '' };
        new Error('x').stack; if (globalThis.seen) throw new Error('seen'); (async function () {"""
    with pytest.raises(InvalidInput, match="unexpected '}'"):
        interpreter.check(source)


@pytest.mark.parametrize("reach", ["globalThis", "Function('return this')()", "(0, eval)('this')"])
def test_the_global_object_offers_no_way_out(run: Run, reach: str) -> None:
    """It has the language's own names, and none that gives access to the machine."""
    names = set(run(f"return Object.getOwnPropertyNames({reach})"))
    assert "Promise" in names
    outside = {
        "std",
        "os",
        "bjson",
        "print",
        "scriptArgs",
        "require",
        "process",
        "module",
        "Worker",
        "fetch",
    }
    outside |= {"setTimeout", "loadScript", "performance", "navigator", "XMLHttpRequest", "gc", "Deno", "Bun", "python"}
    assert not names & outside


def test_two_scripts_share_nothing(interpreter: Interpreter) -> None:
    """Each has globals of its own, though they run at the same time."""
    source = "globalThis.n = (globalThis.n ?? 0) + input; await sleep(1); globalThis.n += input; return n"
    with interpreter.run(script_input(source, 1)) as one, interpreter.run(script_input(source, 10)) as other:
        asked = [(script, script.resume((), NOW).asks) for script in (one, other)]
        ended = [script.resume([ScriptResponse(ask.number) for ask in asks], NOW).result for script, asks in asked]
    assert ended == [2, 20]
