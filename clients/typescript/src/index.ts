export * from "./client.js";
export {
  AmbiguousSchedule,
  CloudschedError,
  DraftExpired,
  Forbidden,
  InvalidInput,
  InvalidPayload,
  InvalidSchedule,
  KeyReused,
  LeaseLost,
  LimitExceeded,
  Misconfigured,
  NotAllowed,
  NotAwaited,
  NotFound,
  PreconditionFailed,
  QuotaExceeded,
  TimedOut,
  Unauthenticated,
  Unavailable,
  UnknownHandler,
  VersionConflict,
} from "./errors.js";
export { firebaseToken, liveInbox, liveTask } from "./firebase.js";
export type { FirebaseUser, FirestoreModule, LiveInboxOptions, LiveTask, LiveTaskOptions } from "./firebase.js";
export type { ClientOptions, RequestOptions, Token } from "./transport.js";
export type * from "./api.js";
