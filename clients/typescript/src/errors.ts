import type { AwaitedEvent, FieldError, Problem, ScheduleReading } from "./api.js";

/** What any request can fail with. Its message says what is wrong, `hint` what to do. */
export class CloudschedError extends Error {
  /** The status of the response; 0 if there was none. */
  readonly status: number;
  /** The last segment of the problem's type, such as `invalid-schedule`; empty if the answer was no problem. */
  readonly code: string;
  readonly hint: string;
  /** The answer as it came, if it was a problem (RFC 9457). */
  readonly problem: Problem | undefined;
  /** After how many seconds to try again, if the API said so. */
  readonly retryAfter: number | undefined;

  constructor(message: string, status = 0, problem?: Problem, retryAfter?: number, options?: { cause?: unknown }) {
    super(message, options as ErrorOptions);
    this.name = new.target.name;
    this.status = status;
    this.problem = problem;
    this.code = problem?.type?.split("/").pop() ?? "";
    this.hint = problem?.hint ?? "";
    this.retryAfter = retryAfter;
  }
}

/** The request is invalid; `field` says where. */
export class InvalidInput extends CloudschedError {
  /** The path of the first invalid field. */
  get field(): string {
    return this.problem?.field ?? "";
  }
  /** What one check of the body has found, each with its place. */
  get errors(): FieldError[] {
    return this.problem?.errors ?? [];
  }
}
/** A rule, zone, date or policy of a schedule is invalid. */
export class InvalidSchedule extends InvalidInput {}
/** Words have several meanings: send the `schedule` of one of them instead. */
export class AmbiguousSchedule extends InvalidSchedule {
  get readings(): ScheduleReading[] {
    return this.problem?.readings ?? [];
  }
}
/** The payload is not valid for its handler. */
export class InvalidPayload extends InvalidInput {}
/** No handler has this name. */
export class UnknownHandler extends InvalidInput {}
/** The idempotency key was used for a different request. */
export class KeyReused extends InvalidInput {}
/** A draft was confirmed too late. */
export class DraftExpired extends InvalidInput {}
/** It does not exist, or you may not see it. */
export class NotFound extends CloudschedError {}
/** The task's status does not allow the change. */
export class NotAllowed extends CloudschedError {}
/** No execution of the task waits for the event, or several do. Nothing was kept of it. */
export class NotAwaited extends NotAllowed {
  get awaited(): AwaitedEvent[] {
    return this.problem?.awaited ?? [];
  }
}
/** A worker's claim has ended, or was never valid. */
export class LeaseLost extends CloudschedError {}
/** Nesting, calls or a script's resources exceed a limit. */
export class LimitExceeded extends CloudschedError {}
/** It was changed too often meanwhile. */
export class VersionConflict extends CloudschedError {}
/** The task is not in the state that `etag` names. Nothing was changed. */
export class PreconditionFailed extends VersionConflict {}
/** A credential is missing, wrong or expired. */
export class Unauthenticated extends CloudschedError {}
/** You are authenticated, but may not do this. */
export class Forbidden extends CloudschedError {}
/** A limit of the owner's is reached. */
export class QuotaExceeded extends CloudschedError {}
/** The API lacks a package that it needs for this: asking again does not help. */
export class Misconfigured extends CloudschedError {}
/** There was no response, or none of the API's. */
export class Unavailable extends CloudschedError {
  /** The key of the change that may have been made: with it, as `idempotencyKey`, you repeat the change safely. */
  idempotencyKey: string | undefined;

  /** Whether trying again may help. If not, somebody has to mend something first: an address, a certificate, the service. */
  get isRetryable(): boolean {
    if (this.status !== 0) return PASSING.includes(this.status) && !LASTING.test(this.code);
    return !LASTING.test(reasonOf(this.cause));
  }
}
/** There was no response in time. */
export class TimedOut extends Unavailable {}

/** The statuses of a service that is overloaded or not reached. */
const PASSING = [502, 503, 504];
/** What does not pass: problems of the API, and what Node says of names and certificates; a browser does not say why. */
const LASTING = /^(misconfigured|clock-skewed|ENOTFOUND|CERT_.*|ERR_TLS_.*|ERR_SSL_.*|EPROTO|.*_CERT(IFICATE)?(_.*)?)$/;

/** Return the code of what is below an error of `fetch`, such as ECONNREFUSED. */
export function reasonOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === "string" ? code : cause ? reasonOf(cause) : "";
}

type Kind = new (message: string, status: number, problem?: Problem, retryAfter?: number) => CloudschedError;

/** The errors that the status alone does not tell. */
export const KINDS: Record<string, Kind> = {
  "ambiguous-schedule": AmbiguousSchedule,
  "invalid-schedule": InvalidSchedule,
  "search-limit-reached": InvalidSchedule,
  "invalid-payload": InvalidPayload,
  "unknown-handler": UnknownHandler,
  "key-reused": KeyReused,
  "draft-expired": DraftExpired,
  "not-allowed": NotAllowed,
  "not-awaited": NotAwaited,
  "lease-lost": LeaseLost,
  "limit-exceeded": LimitExceeded,
};
export const STATUSES: Record<number, Kind> = {
  400: InvalidInput,
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  409: VersionConflict,
  412: PreconditionFailed,
  413: InvalidInput,
  415: InvalidInput,
  422: InvalidInput,
  429: QuotaExceeded,
  501: Misconfigured,
};

/** Return the error for a problem that the API answered with, or a gateway in front of it. */
export function toError(status: number, problem: Problem | undefined, retryAfter?: number): CloudschedError {
  const kind = KINDS[problem?.type?.split("/").pop() ?? ""] ?? (problem || status === 401 || status === 403 ? STATUSES[status] : undefined);
  const message = problem?.detail || problem?.title || `The API answered with ${status}.`;
  return new (kind ?? Unavailable)(message, status, problem, retryAfter);
}
