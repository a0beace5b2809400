import { CloudschedError, InvalidInput, Misconfigured, NotFound, reasonOf, TimedOut, toError, Unavailable } from "./errors.js";
import type { Problem } from "./api.js";

/** A credential, or a function that returns one; it is asked again, with `true`, after the API has refused the last one. */
export type Token = string | ((refresh: boolean) => string | undefined | Promise<string | undefined>);

export interface RequestOptions {
  /** Ends the request. */
  signal?: AbortSignal;
  /** How many milliseconds it may take in all, with its retries. */
  timeout?: number;
}

export interface ClientOptions {
  /** A Firebase or Google ID token. See `firebaseToken`. */
  token?: Token;
  /** An API key, of a server. */
  key?: string;
  /** A token for Cloud Run's own check, if the service is not public. */
  platformToken?: Token;
  /** The user to act for, with an admin's or a delegate's credential. */
  actingFor?: string;
  /** How many milliseconds a request may take in all, with its retries; 30,000 if omitted. */
  timeout?: number;
  /** How often a request is sent again that got no answer, or 502, 503 or 504; 3 if omitted. */
  retries?: number;
  /** What sends requests, in place of the global `fetch`. */
  fetch?: typeof fetch;
}

export type Query = object;

export interface Sent {
  method: string;
  path: string;
  query?: Query | undefined;
  body?: unknown;
  headers?: Record<string, string> | undefined;
  /** Whether it may be sent again if no answer came. */
  repeatable?: boolean;
  /** The key with which its caller repeats the call, if it is another one than this request's. */
  repeatKey?: string | undefined;
  options?: RequestOptions | undefined;
}

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 10_000;

/** Sends requests to one API. */
export class Transport {
  readonly #url: string;
  readonly #options: ClientOptions;

  constructor(url: string, options: ClientOptions) {
    if (!/^https?:\/\/[^/]/.test(url)) throw new TypeError(`${url} is no address; write https://api.example.`);
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
  }

  with(options: ClientOptions): Transport {
    return new Transport(this.#url, { ...this.#options, ...options });
  }

  /** The milliseconds that a request may take, if it does not say so itself. */
  get timeout(): number {
    return this.#options.timeout ?? 30_000;
  }

  /** Send a request, again if that is safe and there was no answer, and return what the API answered. */
  async send(sent: Sent): Promise<unknown> {
    // On the way, such parts are taken out of a path, encoded or not: it would be another operation's.
    const lost = sent.path.slice(1).split("/").find((part) => ["", ".", ".."].includes(part));
    if (lost !== undefined) throw new InvalidInput(`id is ${JSON.stringify(lost)} in ${sent.path}: no task, run, person or event is called that.`);
    const limit = sent.options?.timeout ?? this.timeout;
    const deadline = new AbortController();
    let late = false;
    const end = setTimeout(() => {
      late = true;
      deadline.abort();
    }, limit);
    const outer = sent.options?.signal;
    const abort = () => deadline.abort();
    outer?.addEventListener("abort", abort, { once: true });
    try {
      if (outer?.aborted) deadline.abort();
      return await this.#repeat(sent, deadline.signal, Date.now() + limit);
    } catch (error) {
      if (outer?.aborted) throw outer.reason ?? error;
      const known = late ? new TimedOut(`The API at ${this.#url} did not answer within ${limit} ms.`, 0, undefined, undefined, { cause: error }) : error;
      if (known instanceof Unavailable && sent.method !== "DELETE") known.idempotencyKey = sent.repeatKey ?? sent.headers?.["Idempotency-Key"];
      throw known;
    } finally {
      clearTimeout(end);
      outer?.removeEventListener("abort", abort);
    }
  }

  async #repeat(sent: Sent, signal: AbortSignal, until: number): Promise<unknown> {
    const retries = (sent.repeatable ?? ["GET", "DELETE", "PUT"].includes(sent.method)) ? (this.#options.retries ?? 3) : 0;
    let refresh = false;
    let maybeDone = false;
    for (let attempt = 0; ; ) {
      try {
        return await this.#exchange(sent, signal, refresh);
      } catch (error) {
        if (signal.aborted || !(error instanceof CloudschedError)) throw error;
        if (error instanceof NotFound && sent.method === "DELETE" && maybeDone) return undefined;
        if (error.status === 401 && !refresh && typeof this.#options.token === "function") {
          refresh = true;
          continue;
        }
        if (!(error instanceof Unavailable) || !error.isRetryable || attempt >= retries) throw error;
        maybeDone = true;
        const usual = Math.random() * Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt + 1));
        const wait = (error.retryAfter ?? 0) * 1000 + usual;
        if (Date.now() + wait >= until) throw error; // not "timed out": this is why there is no answer
        await pause(wait, signal);
        attempt++;
      }
    }
  }

  async #exchange(sent: Sent, signal: AbortSignal, refresh: boolean): Promise<unknown> {
    const headers = await this.#headers(sent, refresh);
    signal.throwIfAborted();
    const body = sent.body === undefined ? null : JSON.stringify(sent.body);
    const call = this.#options.fetch ?? globalThis.fetch;
    let response: Response;
    let text: string;
    try {
      response = await call(this.#url + sent.path + toQuery(sent.query), { method: sent.method, headers, body, signal, redirect: "manual" });
      text = await response.text();
    } catch (error) {
      throw new Unavailable(`The API at ${this.#url} did not answer: ${reasonOf(error) || error}`, 0, undefined, undefined, { cause: error });
    }
    const content = parse(text);
    if (response.ok && (content !== undefined || text === "")) return content;
    const isProblem = (response.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
    const retryAfter = toSeconds(response.headers.get("Retry-After") ?? "");
    if (response.ok) throw new Unavailable(`What answers at ${this.#url} is not the API.`, response.status);
    throw toError(response.status, isProblem ? (content as Problem) : undefined, retryAfter);
  }

  async #headers(sent: Sent, refresh: boolean): Promise<Record<string, string>> {
    const { key, token, platformToken, actingFor } = this.#options;
    const headers: Record<string, string> = { Accept: "application/json", ...sent.headers };
    if (sent.body !== undefined) headers["Content-Type"] = "application/json";
    if (headers["Idempotency-Key"] !== undefined) headers["Idempotency-Key"] = encodeKey(headers["Idempotency-Key"]);
    if (!SENDABLE.test(headers["If-Match"] ?? "")) throw new InvalidInput("etag has characters that a header cannot have.");
    if (key) headers["X-Api-Key"] = key;
    if (actingFor !== undefined) headers["X-On-Behalf-Of"] = encode(actingFor);
    const tokens: Array<[string, Token | undefined]> = [["Authorization", token], ["X-Serverless-Authorization", platformToken]];
    for (const [name, each] of tokens) {
      const value = typeof each === "function" ? await each(refresh) : each;
      if (value) headers[name] = `Bearer ${value}`;
    }
    const bad = Object.keys(headers).find((name) => !SENDABLE.test(headers[name]!));
    if (bad) throw new Misconfigured(`The credential in ${bad} has characters that a header cannot have. Does it end with a line break?`);
    return headers;
  }
}

const SENDABLE = /^[\x20-\x7e]*$/;

/** Return a part of a URL, encoded. */
export function encode(part: string): string {
  try {
    return encodeURIComponent(part);
  } catch {
    throw new InvalidInput(`${JSON.stringify(part)} has half a character (a lone surrogate).`);
  }
}

/** Return an idempotency key as it is sent: it may be any text, and the API decodes it. */
function encodeKey(key: string): string {
  if (/[\x00-\x1f\x7f-\x9f]/.test(key)) throw new InvalidInput("idempotencyKey has a control character.");
  return key.replace(/[^\x21-\x24\x26-\x7e]+/g, encode);
}

/** Return the seconds that a `Retry-After` asks to wait, which may name a time. */
function toSeconds(retryAfter: string): number | undefined {
  const seconds = Number(retryAfter || NaN);
  return (Number.isNaN(seconds) ? Math.max(0, (Date.parse(retryAfter) - Date.now()) / 1000) : seconds) || undefined;
}

/** Wait, unless the signal ends it. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

function toQuery(query: Query | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
