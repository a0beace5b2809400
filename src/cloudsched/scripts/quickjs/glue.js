// What surrounds a script inside its interpreter: tools, sleep, log, and a clock and random numbers that replay exactly.
//
// Nothing of Python can be called from here. `exchange(text)` takes a message and `exchange()` returns what has happened
// since, both as JSON; in between, the interpreter runs the pending jobs. The script shares this realm and is not
// trusted: whoever reads what is returned validates it. Therefore everything that is used after the script starts is
// saved before, no property is read that an object might inherit, and no list with a prototype grows: a script that
// changes built-ins breaks only itself, and gets an error for it.
"use strict";
(() => {
  const { parse, stringify } = JSON;
  const { apply, construct } = Reflect;
  const { imul } = Math;
  const { freeze, defineProperty } = Object;
  const NativePromise = Promise;
  const NativeError = Error;
  const NativeTypeError = TypeError;
  const NativeRangeError = RangeError;
  const NativeDate = Date;
  const slice = String.prototype.slice;
  const replace = String.prototype.replace;
  const join = Array.prototype.join;
  const sourceOf = Function.prototype.toString;
  const evaluate = eval;
  // It would give a script the functions on the stack: ours, and the real clock. Without it, a stack is text.
  delete NativeError.prepareStackTrace;

  const LINE = 200; // characters of a log's line, and of a stack
  const MESSAGE = 2000;
  const OBJECT = 500; // of a thrown object that has no message, as JSON
  const MAX_SLEEP = 100 * 366 * 86400; // seconds

  const waiting = { __proto__: null };
  let requests = "";
  let count = 0;
  let logged = "";
  let outputSize = 0;
  let outputLimit = 0;
  let outcome = "";
  let hasStarted = false;
  let now = 0;
  let randomState = 0;

  const cut = (text, length) => apply(slice, text, [0, length]);

  // `target` is JSON: a tool's name, a list with a script's name, or null for a sleep.
  function sendRequest(target, argument) {
    return new NativePromise((resolve, reject) => {
      count += 1;
      requests += `${requests && ","}[${count},${target},${argument}]`;
      waiting[count] = { __proto__: null, resolve, reject };
    });
  }

  function encodeArgument(name, payload) {
    const argument = stringify(payload === undefined ? {} : payload);
    if (argument === undefined) throw new NativeTypeError(`The argument of "${name}" must be JSON.`);
    return argument;
  }

  // Whether there is such a script is not known here: the call of one that does not exist is refused.
  function createScripts() {
    const get = (_, key) => {
      if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
      // Without await, the script's own `then` would be called.
      return freeze(async (payload) => await sendRequest(`[${stringify(key)}]`, encodeArgument(key, payload)));
    };
    return new Proxy(freeze({ __proto__: null }), { __proto__: null, get });
  }

  function createTools(names) {
    const tools = { __proto__: null };
    let toolNames = "";
    for (let i = 0; i < names.length; i += 1) {
      const name = names[i];
      toolNames += (toolNames && ", ") + name;
      tools[name] = freeze(async (payload) => {
        return await sendRequest(stringify(name), encodeArgument(name, payload)); // see createScripts for the await
      });
    }
    const get = (target, key) => {
      if (key in target) return target[key];
      if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
      throw new NativeTypeError(`There is no tool "${key}" for this script. It may call: ${toolNames || "none"}.`);
    };
    return new Proxy(freeze(tools), { __proto__: null, get });
  }

  async function sleep(seconds) {
    if (typeof seconds !== "number" || !(seconds >= 0 && seconds <= MAX_SLEEP)) {
      throw new NativeRangeError("sleep takes a number of seconds, from 0 to a hundred years.");
    }
    await sendRequest("null", stringify(seconds));
  }

  function log(value) {
    const text = typeof value === "string" ? value : stringify(value);
    const line = stringify(cut(text === undefined ? typeof value : text, LINE));
    outputSize += line.length + 1;
    if (outputSize <= outputLimit) logged += (logged && ",") + line;
  }

  function createConsole() {
    const write = (...values) => {
      let line = "";
      for (let i = 0; i < values.length; i += 1) {
        const text = typeof values[i] === "string" ? values[i] : stringify(values[i]);
        line += (i ? " " : "") + cut(text === undefined ? typeof values[i] : text, LINE);
      }
      log(line);
    };
    return freeze({ __proto__: null, log: write, info: write, warn: write, error: write, debug: write });
  }

  function random() {
    // Mulberry32 twice, for the 53 bits of a number. It is repeatable, and no source of secrets.
    const next = () => {
      randomState = (randomState + 0x6d2b79f5) | 0;
      let mixed = imul(randomState ^ (randomState >>> 15), 1 | randomState);
      mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return (mixed ^ (mixed >>> 14)) >>> 0;
    };
    return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
  }

  function replaceBuiltIns() {
    const FrozenDate = function Date(...args) {
      if (new.target === undefined) return `${new NativeDate(now)}`;
      return construct(NativeDate, args.length === 0 ? [now] : args, new.target);
    };
    const own = (name, value) => defineProperty(FrozenDate, name, { __proto__: null, value });
    own("prototype", NativeDate.prototype);
    own("length", 7);
    own("now", () => now);
    own("parse", NativeDate.parse);
    own("UTC", NativeDate.UTC);
    defineProperty(NativeDate.prototype, "constructor", { __proto__: null, value: FrozenDate });
    globalThis.Date = FrozenDate;
    Math.random = random;
    // Other ways to learn the time, or when memory is collected.
    delete globalThis.performance;
    delete globalThis.WeakRef;
    delete globalThis.FinalizationRegistry;
  }

  function describeError(error) {
    let name = "";
    let message = "";
    let stack = "";
    try {
      if (typeof error === "object" && error !== null) {
        const ownMessage = error.message;
        const ownName = error.name;
        const ownStack = error.stack;
        const hasMessage = typeof ownMessage === "string";
        name = typeof ownName === "string" ? cut(ownName, LINE) : "";
        message = cut(hasMessage ? ownMessage : stringify(error), hasMessage ? MESSAGE : OBJECT);
        stack = typeof ownStack === "string" ? cut(ownStack, MESSAGE) : "";
      } else {
        message = cut(typeof error === "symbol" ? "a symbol" : `${error}`, MESSAGE);
      }
    } catch {
      message = "It cannot say why.";
    }
    return `[${stringify(name)},${stringify(message)},${stringify(stack)}]`;
  }

  // A script may be written as a module whose default export is its function, or its result: then that is called.
  function compile(source) {
    const written = apply(replace, source, [/^([ \t]*)export[ \t]+default[ \t]+/m, "$1const $default = "]);
    try {
      return compileBody(source);
    } catch (error) {
      if (written === source) throw error;
      return compileBody(
        `${written}\n;return typeof $default === "function" ? $default(input, { task, tools, sleep, log }) : $default;`,
      );
    }
  }

  function compileBody(source) {
    const text = `(async function script(input, task, tools, sleep, log) {"use strict";${source}\n})`;
    const main = evaluate(text);
    if (typeof main !== "function" || `(${apply(sourceOf, main, [])})` !== text) {
      throw new SyntaxError("unexpected '}'"); // the source closed the function around it
    }
    return main;
  }

  async function run(main, request) {
    let result;
    try {
      result = await main(request.input, freeze(request.task), createTools(request.tools), sleep, log);
      const text = stringify(result);
      if (text === undefined && result !== undefined) {
        throw new NativeTypeError(`It returned a ${typeof result}, which is not JSON.`);
      }
      outcome = `"result":${text === undefined ? "null" : text}`;
    } catch (error) {
      outcome = `"thrown":${describeError(error)}`;
    }
  }

  function start(request) {
    let main;
    try {
      main = compile(request.source);
    } catch (error) {
      outcome = `"invalid":${describeError(error)}`;
      return;
    }
    if (request.tools === null) {
      outcome = `"result":null`; // it was only to be compile
      return;
    }
    outputLimit = request.output;
    randomState = request.seed | 0;
    now = request.now;
    replaceBuiltIns();
    // Globals, so that a script may declare variables of these names.
    const share = { __proto__: null, writable: true, configurable: true };
    defineProperty(globalThis, "scripts", { __proto__: null, ...share, value: createScripts() });
    defineProperty(globalThis, "console", { __proto__: null, ...share, value: createConsole() });
    run(main, request);
  }

  function resolveRequests(request) {
    now = request.now;
    for (let i = 0; i < request.answers.length; i += 1) {
      const answer = request.answers[i];
      const { resolve, reject } = waiting[answer[0]];
      delete waiting[answer[0]];
      if (answer[1] === null) {
        resolve(answer[2]);
      } else {
        const error = new NativeError(answer[1].message);
        defineProperty(error, "name", { __proto__: null, value: answer[1].name });
        defineProperty(error, "status", { __proto__: null, value: answer[1].status, enumerable: true });
        reject(error);
      }
    }
  }

  return (text) => {
    if (text !== undefined) {
      const request = parse(text);
      if (hasStarted) {
        resolveRequests(request);
      } else {
        hasStarted = true;
        start(request);
      }
      return undefined;
    }
    const report = `{${outcome || `"result":null`},"ended":${outcome !== ""},"asks":[${requests}],"log":[${logged}]${
      outputSize > outputLimit && outputLimit > 0 ? `,"limit":"output"` : ""
    }}`;
    requests = "";
    logged = "";
    return apply(join, [report], [""]); // flattens the string: concatenations are kept in parts that the binding does not read
  };
})();
