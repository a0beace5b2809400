// What surrounds a script inside its interpreter: tools, sleep, log, and a clock and chance that replay the same.
//
// Nothing of Python can be called from here. `exchange(text)` takes a message, `exchange()` returns what has happened
// since, both as JSON; in between the interpreter runs the jobs that are due. The script shares this realm, and is not
// trusted: whoever reads what is returned checks it. What is used after the script has begun is therefore taken before,
// no property is read that an object might inherit, and no list is grown that has a prototype: so that a script which
// changes built-ins breaks itself, and is told so.
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
  const join = Array.prototype.join;
  const sourceOf = Function.prototype.toString;
  const evaluate = eval;
  // It would hand a script the functions on the stack: these here, and the real clock. Without it a stack is a text.
  delete NativeError.prepareStackTrace;

  const LINE = 200; // characters of a log's line, and of a stack
  const MESSAGE = 2000;
  const OBJECT = 500; // of what is thrown and has no message, as JSON
  const LONGEST = 100 * 366 * 86400; // seconds

  const waiting = { __proto__: null };
  let asked = "";
  let count = 0;
  let logged = "";
  let said = 0;
  let most = 0;
  let ended = "";
  let begun = false;
  let now = 0;
  let chance = 0;

  const cut = (text, length) => apply(slice, text, [0, length]);

  function ask(tool, given) {
    return new NativePromise((resolve, reject) => {
      count += 1;
      asked += `${asked && ","}[${count},${stringify(tool)},${given}]`;
      waiting[count] = { __proto__: null, resolve, reject };
    });
  }

  function toolsOf(names) {
    const made = { __proto__: null };
    let known = "";
    for (let i = 0; i < names.length; i += 1) {
      const name = names[i];
      known += (known && ", ") + name;
      made[name] = freeze(async (payload) => {
        const given = stringify(payload === undefined ? {} : payload);
        if (given === undefined) throw new NativeTypeError(`What "${name}" is given has to be JSON.`);
        return await ask(name, given); // without await, the script's own `then` would be called
      });
    }
    const get = (target, key) => {
      if (key in target) return target[key];
      if (typeof key === "symbol" || key === "then" || key === "toJSON") return undefined;
      throw new NativeTypeError(`There is no tool "${key}" for this script. It may call: ${known || "none"}.`);
    };
    return new Proxy(freeze(made), { __proto__: null, get });
  }

  async function sleep(seconds) {
    if (typeof seconds !== "number" || !(seconds >= 0 && seconds <= LONGEST)) {
      throw new NativeRangeError("sleep takes a number of seconds, from 0 to a hundred years.");
    }
    await ask(null, stringify(seconds));
  }

  function log(value) {
    const text = typeof value === "string" ? value : stringify(value);
    const line = stringify(cut(text === undefined ? typeof value : text, LINE));
    said += line.length + 1;
    if (said <= most) logged += (logged && ",") + line;
  }

  function random() {
    // Mulberry32 twice, for the 53 bits of a number. It is repeatable, and no source of secrets.
    const next = () => {
      chance = (chance + 0x6d2b79f5) | 0;
      let mixed = imul(chance ^ (chance >>> 15), 1 | chance);
      mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return (mixed ^ (mixed >>> 14)) >>> 0;
    };
    return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
  }

  function tame() {
    const FrozenDate = function Date(...given) {
      if (new.target === undefined) return `${new NativeDate(now)}`;
      return construct(NativeDate, given.length === 0 ? [now] : given, new.target);
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
    // What else tells the time, or when memory is cleared.
    delete globalThis.performance;
    delete globalThis.WeakRef;
    delete globalThis.FinalizationRegistry;
  }

  function described(error) {
    let name = "";
    let message = "";
    let stack = "";
    try {
      if (typeof error === "object" && error !== null) {
        const own = error.message;
        const given = error.name;
        const trace = error.stack;
        name = typeof given === "string" ? cut(given, LINE) : "";
        message = cut(typeof own === "string" ? own : stringify(error), typeof own === "string" ? MESSAGE : OBJECT);
        stack = typeof trace === "string" ? cut(trace, MESSAGE) : "";
      } else {
        message = cut(typeof error === "symbol" ? "a symbol" : `${error}`, MESSAGE);
      }
    } catch {
      message = "It cannot say why.";
    }
    return `[${stringify(name)},${stringify(message)},${stringify(stack)}]`;
  }

  function compiled(source) {
    const text = `(async function script(input, task, tools, sleep, log) {"use strict";${source}\n})`;
    const made = evaluate(text);
    if (typeof made !== "function" || `(${apply(sourceOf, made, [])})` !== text) {
      throw new SyntaxError("unexpected '}'"); // it ended the function that is around it
    }
    return made;
  }

  async function run(main, given) {
    let result;
    try {
      result = await main(given.input, freeze(given.task), toolsOf(given.tools), sleep, log);
      const text = stringify(result);
      if (text === undefined && result !== undefined) {
        throw new NativeTypeError(`It returned a ${typeof result}, which JSON cannot say.`);
      }
      ended = `"result":${text === undefined ? "null" : text}`;
    } catch (error) {
      ended = `"thrown":${described(error)}`;
    }
  }

  function begin(given) {
    let main;
    try {
      main = compiled(given.source);
    } catch (error) {
      ended = `"invalid":${described(error)}`;
      return;
    }
    if (given.tools === null) {
      ended = `"result":null`; // it was only to be compiled
      return;
    }
    most = given.output;
    chance = given.seed | 0;
    now = given.now;
    tame();
    run(main, given);
  }

  function settle(given) {
    now = given.now;
    for (let i = 0; i < given.answers.length; i += 1) {
      const answer = given.answers[i];
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
      const given = parse(text);
      if (begun) {
        settle(given);
      } else {
        begun = true;
        begin(given);
      }
      return undefined;
    }
    const report = `{${ended || `"result":null`},"ended":${ended !== ""},"asks":[${asked}],"log":[${logged}]${
      said > most && most > 0 ? `,"limit":"output"` : ""
    }}`;
    asked = "";
    logged = "";
    return apply(join, [report], [""]); // one piece: what was put together is kept in parts, which nobody outside reads
  };
})();
