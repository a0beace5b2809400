// The API's schemas, generated from its OpenAPI document: python -m tests.clients.typescript_types
// Instants are texts of RFC 3339, durations numbers of seconds.

/** What was done. */
export type Action =
  | "CREATED"
  | "EDITED"
  | "PAUSED"
  | "RESUMED"
  | "CANCELLED"
  | "TRIGGERED"
  | "SNOOZED"
  | "RETRIED"
  | "BACKFILLED"
  | "ENDED"
  | "MOVED";

/** One call of the handler, counted from 1. */
export interface Attempt {
  number: number;
  startedAt: string;
  finishedAt: string;
  /** The result of this attempt: SUCCEEDED, FAILED, TIMED_OUT or CANCELLED. */
  status: ExecutionStatus;
  error?: ExecutionError;
  /** The worker that ran it; None if an executor did. */
  worker?: string;
  /** The hash of that worker's lease token, to recognise a result that is reported twice. */
  claim?: string;
  /** The API caller that reported how it ended; None if an executor or a worker at the store did. */
  endedBy?: string;
  /** Since when it had waited for its lock; None if it had not to. */
  lockWaitedSince?: string;
}

/** The error of an attempt. */
export interface AttemptError {
  /** The exception's class, or an equivalent. Truncated to 200 bytes of UTF-8. */
  type: string;
  /** Truncated to 2,000 bytes of UTF-8. */
  message: string;
  /** The last 4,000 bytes of UTF-8 are kept. */
  traceback?: string | null;
}

/** An event for which an execution of the task waits. */
export interface AwaitedEvent {
  name: string;
  executionId: string;
  /** When it stops waiting; None if it never does. */
  until?: string;
}

/** The range of past occurrences to run again. Both ends are included. */
export interface BackfillRequest {
  start: string;
  end: string;
}

/** What to do with each task. */
export type BatchAction = "pause" | "resume" | "cancel" | "retryFailed" | "delete";

/** The tasks to change. All given filters must match, and there must be one. */
export interface BatchChangeFilter {
  owner?: string | null;
  status?: TaskStatus | null;
  handler?: string | null;
  /** One of their labels, `key=value`. It goes with owner and status only. */
  label?: string | null;
  /** The next occurrence is not before this instant. */
  dueFrom?: string | null;
  /** The next occurrence is before this instant. */
  dueUntil?: string | null;
  /** These tasks; the other filters hold as well. */
  ids?: Array<string> | null;
}

/** A change of all tasks that match a filter. */
export interface BatchChangeRequest {
  /** `retryFailed` gives the execution that finished last one more attempt, if it failed or timed out. */
  action: BatchAction;
  filter: BatchChangeFilter;
  /** Only count the tasks. Default: `false`. */
  dryRun?: boolean;
}

/** Tasks to create. */
export interface BatchCreateRequest {
  /** Each is a `NewTask`. An invalid one gets a problem in its result, and the others are created. */
  tasks: Array<NewTask>;
}

export interface BatchResult {
  status: number;
  task?: Task;
  problem?: Problem;
}

export interface BatchResults {
  results: Array<BatchResult>;
}

/** A retry of all failed executions that match a filter. */
export interface BatchRetryRequest {
  filter: ExecutionRetryFilter;
  /** Only count them, and name the first ten. Default: `false`. */
  dryRun?: boolean;
}

/** How many queries an owner's tasks may use in a month. */
export interface BudgetDetails {
  owner: string;
  maxQueriesPerMonth: number;
  /** The month of `queries`, in UTC. */
  month: string;
  /** What was used in that month. */
  queries: number;
  /** Whether the owner's tasks are paused because of it. */
  isUsedUp: boolean;
  /** When that was summed up last. */
  summedUntil?: string;
}

/** Some of a list of budgets. */
export interface BudgetPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  budgets: Array<BudgetDetails>;
}

/** A day of a calendar, or several in a row. */
export interface CalendarDay {
  /** The day, or the first one. */
  date: string;
  /** The last day, if there are several. */
  until?: string | null;
  /** The day's name, such as a holiday's. The records of occurrences that it has moved show this name. */
  name?: string;
}

/** A calendar with its days. */
export interface CalendarDetails {
  /** Its full id. */
  id: string;
  /** Whose it is; `system` for one that is for everybody. */
  owner: string;
  title: string;
  /** Incremented whenever its days change. */
  revision: number;
  weekdays: Array<Weekday>;
  /** Where its days are from; for those who may change it. */
  url?: string;
  /** Whose holidays they are, and the version that knew them. */
  holidays?: Record<string, unknown>;
  fetchedAt?: string;
  createdAt: string;
  updatedAt: string;
  /** Each with its date, until if there are several in a row, and name. */
  days: Array<Record<string, string>>;
}

/** Calendars for everybody, and an owner's own. */
export interface CalendarList {
  calendars: Array<CalendarSummary>;
}

export type CalendarRule = Record<string, unknown>;

/** One calendar that a schedule respects. */
export interface CalendarRuleInput {
  /** The calendar's id; `weekends` is always there. */
  id: string;
  /** What happens to an occurrence on one of its days: it is left out, or moved to the last free day before or to the next free day after. A free day is on none of the schedule's calendars. Default: `"skip"`. */
  on?: "skip" | "before" | "after";
}

/** A calendar without its days. */
export interface CalendarSummary {
  /** Its full id. */
  id: string;
  /** Whose it is; `system` for one that is for everybody. */
  owner: string;
  title: string;
  /** Incremented whenever its days change. */
  revision: number;
  weekdays: Array<Weekday>;
  /** Where its days are from; for those who may change it. */
  url?: string;
  /** Whose holidays they are, and the version that knew them. */
  holidays?: Record<string, unknown>;
  fetchedAt?: string;
  createdAt: string;
  updatedAt: string;
}

/** The execution that made a call. */
export interface CalledBy {
  taskId: string;
  executionId: string;
}

/** Who is calling, what they may do, and what time it is for the API. */
export interface CallerInfo {
  role: Role;
  /** The caller as an owner of tasks; None for a server. */
  owner?: string;
  /** Whether they see the tasks of all owners. */
  seesAll: boolean;
  /** Whether they may change the tasks that they see. */
  mayChange: boolean;
  /** The time of the clock by which the API runs tasks. */
  now: string;
}

/** The policy for occurrences that nothing could run in time. On the wire, the mode alone may replace the object. */
export interface CatchUp {
  mode: CatchUpMode;
  /** How late an occurrence may still run. None: any lateness for `latest` and `all`, a minute for `none`. In seconds. */
  window?: number;
}

/** The policy for occurrences that nothing could run in time. On the wire, the mode alone may replace the object. */
export interface CatchUpInput {
  /** Default: `"latest"`. */
  mode?: CatchUpMode;
  /** How late an occurrence may still run. None: any lateness for `latest` and `all`, a minute for `none`. In seconds. */
  window?: number | null;
}

/** Which of several missed occurrences are run. */
export type CatchUpMode = "latest" | "all" | "none";

/** What kind of work a task does for its owner. */
export type Category = "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";

/** Tells whether anything has changed. */
export interface ChangeCursor {
  /** Compare it with the last one: if it is the same, no task has changed since. */
  cursor: string;
}

/** One child of a task. */
export interface Child {
  handler: string;
  payload: Record<string, unknown>;
  title?: string;
  /** The payload field that gets the list of the earlier children's results. Only if they run in order. */
  resultsAs?: string;
  /** The queue whose workers run it; the handler's own if None. */
  pull?: Pull;
  /** Its retry policy; the handler's own if None. */
  retry?: RetryPolicy;
  /** Its priority; the task's own if None. */
  priority?: Priority;
  lockKey?: string;
  /** Whose the lock key is; as in a task. */
  lockScope?: LockScope;
  /** In seconds. */
  expectedDuration?: number;
}

/** One child of a task. */
export interface ChildInput {
  handler: string;
  payload?: Record<string, unknown>;
  title?: string | null;
  /** The payload field that gets the list of the earlier children's results. Only if they run in order. */
  resultsAs?: string | null;
  /** The queue whose workers run it; the handler's own if None. */
  pull?: PullInput | null;
  /** Its retry policy; the handler's own if None. */
  retry?: RetryPolicyInput | null;
  /** Its priority; the task's own if None. */
  priority?: Priority | null;
  lockKey?: string | null;
  /** Whose the lock key is; as in a task. */
  lockScope?: LockScope | null;
  expectedDuration?: number | null;
}

export interface Claim {
  /** The task as it was when it was claimed. */
  task: Task;
  /** The same on every retry of the occurrence: use it as an idempotency key for other services. */
  executionId: string;
  /** The occurrence's instant, in UTC. */
  scheduledFor: string;
  /** Counted from 1. */
  attempt: number;
  /** When this attempt started. */
  startedAt: string;
  /** The progress notes of earlier attempts. */
  progress: Array<ProgressNote>;
  /** Proves that the run is yours. It is returned only here. */
  leaseToken: string;
  /** Send a heartbeat before this instant, or the claim may end. */
  leaseUntil: string;
  /** What is kept of what you log, and send with heartbeats and the report; missing if nothing is kept. */
  logs?: ClaimLogs;
}

export interface ClaimList {
  claims: Array<Claim>;
}

/** What is kept of what a claim's worker logs. */
export interface ClaimLogs {
  /** The least level that is kept: `DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`. */
  level: LogLevel;
  /** How many lines of the execution are kept: the latest. */
  maxLines: number;
  /** How many bytes they have together: their texts, levels and loggers, and 40 for each line. */
  maxBytes: number;
  /** How many of these are free: lines beyond them take the place of the earliest ones, of earlier attempts first. */
  bytesLeft: number;
}

/** The tasks that a worker can run, and the number of runs to claim. */
export interface ClaimRequest {
  /** The worker's name, for the records. Default: `"worker"`. */
  worker?: string;
  /** The worker's skills: it may claim tasks that require one of them, and tasks that require none. */
  skills?: Array<string>;
  /** The handlers that the worker has. Any if omitted. */
  handlers?: Array<string> | null;
  /** Claim only this owner's tasks. All that the worker may work on if omitted. */
  owner?: string | null;
  /** The largest number of runs to claim. Default: `1`. */
  limit?: number;
}

/** A report that the work is done. */
export interface CompleteRequest {
  /** The token from the claim, which proves that the caller holds the run. */
  leaseToken: string;
  /** All progress notes so far. They replace the previous ones, and the last 50 are kept. If there are none, the previous ones stay. */
  progress?: Array<ProgressItem>;
  /** The lines that the handler has logged. They replace the claim's earlier report, unless that had more lines, which means that this request is an older one. Ignored if the claim has no `logs`. */
  logs?: LogReport | null;
  /** The number of queries that the attempt used. Default: `0`. */
  queries?: number;
  /** The number of tokens that the attempt used, for example of a language model. Default: `0`. */
  tokens?: number;
  /** `CANCELLED` if there was nothing left to do. Default: `"SUCCEEDED"`. */
  status?: "SUCCEEDED" | "CANCELLED";
  /** The result of a run that `SUCCEEDED`: any JSON of at most 512 KiB, and 900 KiB as Firestore counts it. */
  content?: unknown;
  /** Messages for the owner's inbox, if the run `SUCCEEDED`. */
  notices?: Array<NoticeItem>;
  /** The reason why the run is `CANCELLED`. Truncated to 2,000 bytes of UTF-8. */
  message?: string | null;
}

/** The end of an execution. */
export interface CompletionData {
  title: string;
  /** The result as text. */
  body: string;
  /** The task. Missing if one message has the results of several tasks. */
  taskId?: string;
  executionId?: string;
  /** The chat that the task comes from, if it comes from one. */
  chatId?: string;
  /** The id that the result has in that chat, the same in every attempt. */
  messageId?: string;
  /** The result as JSON. */
  content?: unknown;
  /** True if the JSON was too large to be sent. */
  isContentOmitted?: boolean;
  status: ExecutionStatus;
  error?: CompletionError;
}

/** The reason why an execution has not succeeded. */
export interface CompletionError {
  type: string;
  message: string;
}

/** An execution has ended, for the task's `onCompletion`. */
export interface CompletionWebhook {
  type: 
    | "execution.succeeded"
    | "execution.failed"
    | "execution.timed_out"
    | "execution.expired"
    | "execution.skipped"
    | "execution.cancelled";
  timestamp: string;
  data: CompletionData;
}

/** What was scheduled for one day and has ended. Each count ends at 10,000. */
export interface DayCounts {
  /** Its first instant. */
  start: string;
  /** How many failed or timed out. */
  failed: number;
  /** How many ended in another way, those that were skipped or cancelled among them. */
  others: number;
}

/** What a text asks for. */
export type Decision = "creation" | "update" | "refusal";

/** What an execution has begun to run; its task may have been edited since. */
export interface Definition {
  /** By which open runs name it in their task. */
  number: number;
  handler: string;
  /** Its task's payload; empty in the record of an execution that has a payload of its own. */
  payload: Record<string, unknown>;
  children: Array<Child>;
  parallel: boolean;
  onChildFailure: OnChildFailure;
  script?: Script;
  /** USERS if a user wrote or edited it; None if only servers did. */
  definedBy?: Requesters;
}

/** A way to deliver a result. */
export type DeliveryChannel = "EMAIL" | "WEB" | "MOBILE" | "WEBHOOK" | "OPERATOR";

/** A delivery in a list across executions. */
export interface DeliveryEntry {
  channel: string;
  status: DeliveryStatus;
  /** How often it has been tried to the end. */
  attempts: number;
  /** When the other side took it. */
  sentAt?: string;
  /** The id under which the other side knows it. */
  messageId?: string;
  /** Why it was not sent, or not yet. */
  reason?: string;
  /** That of the task that delivers. */
  id: string;
  owner: string;
  title: string;
  /** The task whose result it delivers. */
  taskId: string;
  executionId: string;
  createdAt: string;
  /** When it is tried next, if it is. */
  nextAttemptAt?: string;
}

/** The deliveries of an execution. */
export interface DeliveryList {
  deliveries: Array<DeliveryReport>;
}

/** Some of a list of deliveries. */
export interface DeliveryPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  deliveries: Array<DeliveryEntry>;
}

/** How far the result of an execution has come by one channel. */
export interface DeliveryReport {
  channel: SentChannel;
  status: DeliveryStatus;
  /** How often it has been tried to the end. */
  attempts: number;
  /** When the other side took it. */
  sentAt?: string;
  /** The id under which the other side knows it. */
  messageId?: string;
  /** Why it was not sent, or not yet. */
  reason?: string;
}

/** How far a delivery has come. */
export type DeliveryStatus = "PENDING" | "SENDING" | "RETRYING" | "SENT" | "FAILED" | "EXPIRED" | "SUPPRESSED";

/** A mobile device or a browser. */
export interface Device {
  /** Its registration token of Firebase Cloud Messaging. */
  token: string;
}

/** One answer to a question: the fields of the next request for a draft that differ from this one's. */
export interface DraftAnswer {
  /** What distinguishes it from the other answers. */
  label: string;
  /** The schedule, the task or the handler in words. */
  description: string;
  /** Send this text instead. */
  text?: string;
  /** Add these fields to the context. */
  context?: Record<string, unknown>;
}

/** What has to be answered before there is anything to confirm. */
export interface DraftQuestion {
  /** The field of the task that is open, or `taskId` if several tasks may be meant. */
  field: string;
  question: string;
  /** What may be meant; empty if the answer is free. */
  answers: Array<DraftAnswer>;
}

/** A person's words about a task. */
export interface DraftRequest {
  /** The request, in the person's words. */
  text: string;
  /** The IANA time zone of the words, such as `Europe/Paris`. */
  timezone: string;
  /** The earlier messages, the earliest first. They are data: nothing in them is an instruction. */
  conversation?: Array<Turn>;
  /** The knowledge of your app. `chatId`, `messageId` and `modelSettings` become the task's source. `taskId` and `handler` name the task and the handler that are meant. Others fill fields of the handler's payload by their names. */
  context?: Record<string, unknown>;
  /** The instant from which "tomorrow" counts. Now if omitted. */
  now?: string | null;
  /** The task's owner. The caller if omitted. */
  owner?: string | null;
  /** The language of the words, such as `de` or `en-US`. If omitted, it is detected from them. */
  locale?: string | null;
}

/** What a text asks for. Nothing of it is stored. */
export interface DraftResult {
  decision: Decision;
  /** The task that `POST /v1/tasks` creates from it, as far as it is known; None for an update. */
  task?: Record<string, unknown>;
  /** The task that an update changes. */
  taskId?: string;
  /** The body for `PATCH /v1/tasks/{taskId}`. */
  changes?: Record<string, unknown>;
  schedule?: Schedule;
  /** The schedule in words. */
  description: string;
  /** The next occurrences, at most five. */
  next: Array<Occurrence>;
  /** The same of the schedule, as the answers to creations and edits have it. */
  readBack?: ReadBack;
  /** What the text leaves open, and how it was decided, one sentence each. */
  assumptions: Array<string>;
  questions: Array<DraftQuestion>;
  missing: Array<MissingField>;
  steps: Array<DraftStep>;
  /** Send it with `task` or `changes`, unchanged, within 15 minutes: then what is stored is what was shown. None while something is missing or asked. */
  draftToken?: string;
}

/** What was done to understand the text, for a user interface. */
export interface DraftStep {
  at: string;
  text: string;
}

/** Where mail goes. */
export interface EmailContact {
  address: string;
  /** Whether the address is known to be the person's: no mail is sent to one that is not. It is true if the person's own ID token has that address as verified when they set it, or if an admin has said so, who alone may set it; it is lost when the address changes. */
  verified?: boolean;
}

/** Where mail goes. */
export interface EmailContactInput {
  address: string;
  /** Whether the address is known to be the person's: no mail is sent to one that is not. It is true if the person's own ID token has that address as verified when they set it, or if an admin has said so, who alone may set it; it is lost when the address changes. */
  verified?: boolean | null;
}

/** Who sent an event. */
export interface EventSender {
  role: SenderRole;
  /** The caller as the log names them: `user:…`, `account:…` or `key:…`; None for the app's own code. */
  subject?: string;
  /** The server that acted for them, named likewise; None if they called the API themselves. */
  via?: string;
}

/** The record of one occurrence's run. */
export interface Execution {
  /** The version of the form that this document is stored in. */
  schemaVersion: number;
  /** Derived from the occurrence's instant, so that it is the same on every retry. */
  id: string;
  taskId: string;
  owner: string;
  /** Its task's title, as it was then. */
  title?: string;
  /** Its task's handler, as it was then. */
  handler?: string;
  /** Its task's category, as it was then; None in records from before records had one. */
  category?: Category;
  /** Its task's labels, as they were then. */
  labels: Array<string>;
  /** The execution that called its task; None if none did, and in records from before records had this. */
  calledBy?: CalledBy;
  scheduledFor: string;
  /** What else it is the record of: the occurrences from its own on that never ran, for one reason. */
  covers?: OccurrenceRange;
  /** When the first attempt started; None if nothing was run. */
  startedAt?: string;
  finishedAt?: string;
  /** The first and the last ones, by their numbers. */
  attempts: Array<Attempt>;
  /** How many attempts there were between these. */
  attemptsLeftOut: number;
  status: ExecutionStatus;
  /** The handler's result, as JSON. */
  content?: unknown;
  /** The last attempt's error. */
  error?: ExecutionError;
  /** The reason for its status, such as why it was skipped, expired or cancelled. */
  message?: string;
  /** When the next attempt of a RETRYING execution is due; of a SUSPENDED one, when it was to start but for the pause of its task. */
  nextAttemptAt?: string;
  /** When the attempt that is running loses its lease, unless it is renewed. */
  leaseUntil?: string;
  /** The worker that is running it; None if an executor is. */
  worker?: string;
  progress: Array<ProgressNote>;
  /** Queries that the handler reported, in all attempts. */
  queries: number;
  /** Tokens (of a language model, say) that the handler reported, in all attempts. */
  tokens: number;
  /** The queries that its task estimated for one execution; None if it did not. */
  estimatedQueries?: number;
  /** The tokens that its task estimated for one execution; None if it did not. */
  estimatedTokens?: number;
  /** The chat that its task comes from: where the result belongs. */
  chatId?: string;
  /** The id of the result's message in that chat, the same however often the execution is tried; also the id of the first message in the owner's inbox. */
  messageId?: string;
  /** Whether the result was delivered to all of the task's channels. */
  isDelivered: boolean;
  trigger: Trigger;
  /** What it ran with, if that was not its task's payload: it was triggered with another one, or its task was edited meanwhile. Not in lists across tasks. */
  payload?: Record<string, unknown>;
  /** USERS if a user wrote what it ran, or a part of it: its task, the payload that it was triggered with, a stored script. None if only servers did: then its result is theirs. */
  definedBy?: Requesters;
  /** Whether that payload is left out, since it did not fit beside the result. */
  hasUnrecordedPayload?: boolean;
  /** What its attempts have logged, encrypted. The API shows it by itself, to those who may see it. */
  log?: string;
  /** What a durable handler did, with the results of its steps and calls. */
  steps: Array<StepRecord>;
  /** Where the steps are stored if they are too large for this document; reading this single record loads them. */
  stepsReference?: string;
  /** The steps that made it fail, if any: a manual retry repeats them. */
  failureCause?: FailureCause;
  /** The tasks of all calls up to this number in the steps have been created. */
  callsMade: number;
  /** What it ran, if it ended without success: that is what a retry by hand runs. The API does not show it. */
  beganWith?: Definition;
  /** When the store may remove it. */
  expireAt?: string;
  /** What the caller may do with it now: of `retry` and `sendEvent`. Lists across tasks leave it out where only the task would tell: of what is over, has not succeeded, and whose task the caller might change. No list looks for steps that are stored apart, so it names `retry` though these may be gone; a retry is refused then. */
  allowedVerbs?: Array<Verb>;
}

/** How many executions ended, by day. */
export interface ExecutionCounts {
  /** The earliest first. */
  days: Array<DayCounts>;
}

/** What went wrong in an attempt. */
export interface ExecutionError {
  /** The exception's class. */
  type: string;
  message: string;
  /** The end of the traceback, shortened; its last lines are nearest to the cause. */
  traceback?: string;
}

/** What an execution has logged, the latest lines, in their order. */
export interface ExecutionLogs {
  lines: Array<LogLine>;
  /** How many earlier lines are not kept. */
  leftOut: number;
  /** Whether they cannot be read any more: they were encrypted with a secret that is gone. */
  isUnreadable: boolean;
}

/** One execution. */
export interface ExecutionName {
  taskId: string;
  executionId: string;
}

/** Some of a list of executions. */
export interface ExecutionPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  executions: Array<Execution>;
}

/** The failed executions to retry. All given filters must match, and there must be one. */
export interface ExecutionRetryFilter {
  owner?: string | null;
  status?: "FAILED" | "TIMED_OUT" | null;
  /** Not together with `label` or `category`. */
  handler?: string | null;
  label?: string | null;
  category?: Category | null;
  /** Scheduled for this instant or later. */
  from?: string | null;
  /** Scheduled for an earlier instant than this. */
  until?: string | null;
  /** The error's type or message has this text, in any case. */
  error?: string | null;
  /** The error's type, whole. */
  errorType?: string | null;
  minDuration?: number | null;
  minLateness?: number | null;
  /** These executions. Only `owner` goes with it. */
  ids?: Array<ExecutionName> | null;
}

/** The status of one occurrence's execution. */
export type ExecutionStatus =
  | "RUNNING"
  | "RETRYING"
  | "SUSPENDED"
  | "SUCCEEDED"
  | "FAILED"
  | "TIMED_OUT"
  | "CANCELLED"
  | "EXPIRED"
  | "SKIPPED";

/** Why a task runs when it does, or does not run. */
export interface Explanation {
  taskId: string;
  status: TaskStatus;
  /** The sentence of the first finding. */
  summary: string;
  /** What matters most comes first. */
  findings: Array<Finding>;
  /** The instant that was asked about; None for the present. */
  at?: string;
}

/** Some of what is stored of a person. */
export interface ExportPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  /** Lines of JSON. */
  text: string;
}

/** A report that the attempt has failed. */
export interface FailRequest {
  /** The token from the claim, which proves that the caller holds the run. */
  leaseToken: string;
  /** All progress notes so far. They replace the previous ones, and the last 50 are kept. If there are none, the previous ones stay. */
  progress?: Array<ProgressItem>;
  /** The lines that the handler has logged. They replace the claim's earlier report, unless that had more lines, which means that this request is an older one. Ignored if the claim has no `logs`. */
  logs?: LogReport | null;
  /** The number of queries that the attempt used. Default: `0`. */
  queries?: number;
  /** The number of tokens that the attempt used, for example of a language model. Default: `0`. */
  tokens?: number;
  error: AttemptError;
  /** True if this was the last attempt. Otherwise the task's retry policy decides. Default: `false`. */
  isFinal?: boolean;
  /** The delay until the next attempt, if there is one, in place of the policy's. In seconds. */
  retryAfter?: number | null;
}

/** An execution that failed. */
export interface FailedExecution {
  taskId: string;
  executionId: string;
  title?: string;
  owner: string;
  scheduledFor: string;
  /** Its error's type and message, or its status if it has none. */
  error: string;
}

/** A task whose worker has reported. Workers that may not read tasks get less of it. */
export interface FailedTask {
  title: string;
  description?: string;
  purpose?: string;
  category: Category;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels: Array<string>;
  /** The registered name of the function to run. */
  handler: string;
  /** The handler's argument; validated against its model. */
  payload?: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<Child>;
  /** Whether its children run in parallel, rather than in order. */
  parallel: boolean;
  /** What a failed child means for the children after it, and for the task. */
  onChildFailure: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: Script;
  deliveryChannels: Array<DeliveryChannel>;
  /** The title of what is delivered; the task's title if None. */
  deliveryTitle?: string;
  /** Who is told when an execution has ended, however it has. */
  onCompletion?: OnCompletion;
  /** Which dead-man's switch is told that an execution begins and ends. */
  ping?: Ping;
  /** The estimated cost of one execution, in queries. */
  queryPerExecution: number;
  /** The estimated cost of one execution, in tokens of a language model. */
  tokensPerExecution: number;
  source?: Source;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: Pull;
  priority: Priority;
  /** The resource that the task works on: runs with the same key take turns, in the order of their due times. */
  lockKey?: string;
  /** Whose the lock key is. If None: global, if a server or code names the key; the owner's, if a user does. */
  lockScope?: LockScope;
  /** How many runs with that key may run at once. */
  lockLimit: number;
  retry: RetryPolicy;
  /** How long one attempt may take. It is the length of the lease: after it, another executor may take over. In seconds. */
  expectedDuration: number;
  /** No occurrence after this instant is run. */
  until?: string;
  /** The task is complete after this many scheduled runs; skipped and expired occurrences do not count. */
  maxRuns?: number;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. */
  jitter: number;
  overlap: Overlap;
  catchUp: CatchUp;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number;
  /** How long an execution's record and messages are kept. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number;
  /** How long after its end the task is kept, with its executions. None: for ever. In seconds. */
  retention?: number;
  /** The version of the form that this document is stored in. */
  schemaVersion: number;
  id: string;
  owner: string;
  schedule: Schedule;
  isOneTime: boolean;
  timezone: string;
  status: TaskStatus;
  /** Incremented by every edit. A dispatch of an older revision runs nothing. */
  revision: number;
  /** Why the task is in this status. */
  message: string;
  /** The next occurrence that has not been claimed; None if there is none, or while the task is not ACTIVE. */
  nextExecutionTime?: string;
  createdAt: string;
  updatedAt: string;
  statusChangedAt: string;
  /** The final status of the last scheduled occurrence; manual runs and backfills do not count. */
  outcome?: ExecutionStatus;
  /** How many scheduled occurrences have run, or wait for a worker. */
  runCount: number;
  /** How many occurrences in a row have failed, up to the one that was due last. */
  consecutiveFailures: number;
  /** When the first of these failed; None if the last one has not. */
  failingSince?: string;
  /** The execution that was due last, of those that have ended; a retry of an earlier one does not take its place. */
  lastExecutionId?: string;
  /** The call that created this task; None if a caller created it directly. */
  parent?: Parent;
  /** Whether a handler is running for it. */
  isRunning: boolean;
  /** Since when it has been waiting for a worker, if it is. */
  offeredAt?: string;
  /** When what has run last runs again, if it was snoozed. */
  snoozedUntil?: string;
  /** The statuses of its latest executions, the earliest first and those that are open last; 12 at most. One that was retried counts once, if none ran in between. */
  recentStatuses: Array<ExecutionStatus>;
  /** A dispatch could not be created yet; the sweep will create it. */
  dispatchDeferred?: boolean;
  /** Its next occurrences; only in the answer to `validateOnly`. */
  upcoming?: Array<Occurrence>;
  /** The run that was asked for; only in the answer to a trigger. */
  triggered?: TriggeredRun;
  /** What its schedule was understood to be; only in answers that create it or change its schedule. A request that has searched all that it may leaves it out. */
  readBack?: ReadBack;
  /** What the caller may do with it now, so that it changes: of `edit`, `pause`, `resume`, `cancel`, `delete`, `trigger`, `snooze`, `backfill` and `sendEvent`. Its executions say whether they may be retried. */
  allowedVerbs?: Array<Verb>;
  /** The record, if the run has failed for good and the API has no `on_failure` for its handler: call yours. */
  failedExecution?: Execution;
}

/** The failed entries whose error made the execution fail. */
export interface FailureCause {
  /** The numbers of the failed entries: one, or all those of one gather. */
  steps: Array<number>;
  /** How many entries the journal had when the handler received the error. Later entries follow from the failure. */
  position: number;
}

/** Executions that failed with the same type of error at the same place. */
export interface FailureGroup {
  /** The error's type; the status of what has no error. */
  type: string;
  /** The innermost line of the traceback, as `file.py:12 in name`; empty if there is none. */
  place: string;
  count: number;
  /** Of how many tasks. */
  tasks: number;
  /** When the earliest was scheduled for. */
  first: string;
  last: string;
  /** The latest of them. */
  sample: FailedExecution;
}

/** What of the matching executions failed. */
export interface FailureSummary {
  count: number;
  /** Whether there may be more: only the latest were looked at. */
  isAtLeast: boolean;
  /** Those with the most first, at most 50. */
  groups: Array<FailureGroup>;
}

/** A feed: an owner's tasks as a calendar to subscribe to. */
export interface Feed {
  id: string;
  owner: string;
  /** Only tasks of these categories; all if there are none. */
  categories: Array<Category>;
  /** Only tasks that have all of these labels. */
  labels: Array<string>;
  createdAt: string;
}

/** An owner's feeds. */
export interface FeedList {
  feeds: Array<Feed>;
}

/** A field that an edit changed. */
export interface FieldChange {
  field: string;
  /** Its value before, as JSON; None if it had none, or if it is not shown: too long, or what may be private. */
  before?: string;
  /** Its value since, likewise. */
  after?: string;
}

/** One of the things that are wrong with a request's body. */
export interface FieldError {
  /** Its place: a JSON Pointer in the body, such as `#/schedule/rrule`; `#` for the body itself. */
  pointer: string;
  detail: string;
  /** What to do about it. */
  hint?: string;
  /** The words that were not understood, of a schedule in words. */
  words?: string;
}

/** One reason, with its evidence. */
export interface Finding {
  reason: Reason;
  sentence: string;
  /** The instant that it is about: of the next attempt, of a lease's end, of a status. */
  at?: string;
  /** The execution that it is about; None if it is about the task. */
  executionId?: string;
}

/** A handler that the caller may name in a task. */
export interface HandlerInfo {
  name: string;
  /** The first paragraph of its docstring. */
  description?: string;
  /** Who may name it. */
  access: Requesters;
  /** Whether scripts may call it. */
  isTool: boolean;
  /** The queue of the workers that run its tasks, unless a task says otherwise. */
  queue?: string;
  /** The JSON schema of its payload; None if it takes any object. */
  payloadSchema?: Record<string, unknown>;
  /** The JSON schemas of the payloads of the events that it has declared, by the events' names. */
  eventSchemas?: Record<string, Record<string, unknown>>;
}

/** The handlers that the caller may name in a task. */
export interface HandlerList {
  handlers: Array<HandlerInfo>;
}

/** Whether a process can serve. */
export interface Health {
  status: HealthStatus;
  /** The state of the circuit breaker to each other service. */
  circuits: Record<string, string>;
  /** What keeps threads of the process from their work at present, by their names. */
  faults: Record<string, string>;
  /** The release of the time zone data that this process plans with, such as `2026a`. */
  timeZoneData?: string;
}

/** Whether a process lives, or can serve. */
export type HealthStatus = "ok" | "ready";

/** A sign that a worker is still running a claimed run. */
export interface HeartbeatRequest {
  /** The token from the claim, which proves that the caller holds the run. */
  leaseToken: string;
  /** All progress notes so far. They replace the previous ones, and the last 50 are kept. If there are none, the previous ones stay. */
  progress?: Array<ProgressItem>;
  /** The lines that the handler has logged. They replace the claim's earlier report, unless that had more lines, which means that this request is an older one. Ignored if the claim has no `logs`. */
  logs?: LogReport | null;
}

/** One thing that was done with a task. */
export interface HistoryEntry {
  at: string;
  action: Action;
  /** Who did it; None for the scheduler itself. Without a subject, it was the app's own code. */
  by?: EventSender;
  /** What an edit changed. */
  fields: Array<FieldChange>;
  /** The execution that it concerns. */
  executionId?: string;
  /** Why the scheduler did it. */
  reason?: string;
}

/** A country's holidays, from the package `holidays`. */
export interface HolidaySource {
  /** The ISO 3166 code of the country, such as FR. */
  country: string;
  /** The code of its part, such as BY for Bavaria. */
  subdivision?: string | null;
  /** The first year; the last one if None. */
  firstYear?: number | null;
  /** The last year; ten years from now if None. */
  lastYear?: number | null;
  /** The language of the names, such as fr; the country's own, if the package knows it, by default. */
  language?: string | null;
  /** The version of the package that the days are from. */
  version?: string | null;
}

/** What was scheduled for one hour and has ended. */
export interface HourCounts {
  start: string;
  /** How many failed or timed out. */
  failed: number;
  /** How many ended in another way. */
  others: number;
}

/** A lock, who holds it, and who waits for it, in order. */
export interface LockDetails {
  key: string;
  scope: LockScope;
  /** Whose tasks it is for, if it is not for those of all. */
  owner?: string;
  holders: Array<LockParty>;
  /** The first ten. */
  waiters: Array<LockParty>;
  hasMoreWaiters: boolean;
}

/** Some of the locks that are held or waited for, by their keys. */
export interface LockPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  locks: Array<LockDetails>;
}

/** A run that holds a lock, or waits for it. */
export interface LockParty {
  taskId: string;
  executionId: string;
  /** None if the task is gone. */
  title?: string;
  /** When its hold ends, unless it is renewed; only of a holder. */
  until?: string;
  /** When it came due; only of one that waits: the earliest is first. */
  dueAt?: string;
  /** When it was given its turn; only of one that waits. */
  notifiedAt?: string;
}

/** Which tasks share a lock key. */
export type LockScope = "global" | "owner";

/** One line that a worker has logged. */
export interface LogItem {
  /** The message, with its traceback if it has one. Truncated to 1,000 bytes of UTF-8. */
  text: string;
  /** The instant at which it was logged, or else now. One outside the claim's time becomes the nearest one in it. */
  at?: string | null;
  /** `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`, or your program's own name of a level. Lines below the claim's `logs.level` are not kept, but those of unknown levels are. Truncated to 80 bytes of UTF-8. Default: `"INFO"`. */
  level?: string;
  /** The logger's name. Truncated to 80 bytes of UTF-8. */
  logger?: string;
}

/** How much a line of a log matters. */
export type LogLevel = "DEBUG" | "INFO" | "WARNING" | "ERROR" | "CRITICAL";

/** One line that a handler has logged. */
export interface LogLine {
  at: string;
  /** `INFO`, `WARNING`, `ERROR` or what else its level is called. */
  level: string;
  /** The logger's name. */
  logger: string;
  /** The message, with the end of its traceback if it has one; cut if it is long. */
  text: string;
  /** The attempt that logged it. */
  attempt: number;
}

/** The lines that a worker's handler has logged. */
export interface LogReport {
  /** All lines that this claim has logged so far, or the last ones. The latest 200 with 16 KiB of text are kept. */
  lines?: Array<LogItem>;
  /** The number of earlier lines of this claim that are not sent. Default: `0`. */
  leftOut?: number;
}

/** One item in an owner's web inbox. `inboxes/{owner}/messages/{id}`. */
export interface Message {
  /** The version of the form that this document is stored in. */
  schemaVersion: number;
  /** Derived from the task's and the execution's id, so that no message is stored twice. */
  id: string;
  owner: string;
  taskId: string;
  executionId: string;
  title: string;
  body: string;
  createdAt: string;
  isRead: boolean;
  /** When its owner has read it first. */
  readAt?: string;
  /** When the store may remove it. */
  expireAt?: string;
}

/** Some of the messages in an inbox. */
export interface MessagePage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  messages: Array<Message>;
}

/** A field that the text does not give, or not as it may be. */
export interface MissingField {
  field: string;
  /** The reason for programs, such as `too-soon`, `too-often`, `past` or `not-understood`. */
  code: string;
  /** The reason for people, with what to do. */
  reason: string;
  /** The words at fault, if it is some of the text's. */
  words?: string;
}

/** Why tasks need somebody; each task counts once, for the first of these that it has. */
export type NeedCause = "BUDGET" | "PAUSED" | "FAILED" | "WAITING" | "DELIVERY" | "OVERDUE";

/** How many tasks need somebody for one cause. A call counts with the task that made it, by how that ends. */
export interface NeedCount {
  cause: NeedCause;
  count: number;
  /** Whether there may be more: counting stopped at a bound. */
  isAtLeast: boolean;
  /** Since when the first of them does, or when the first of those that wait gives up. */
  oldest?: string;
  /** Whether there may be an older one: only the latest hundred were looked at. */
  isOldestAtLeast: boolean;
}

/** A feed to create. */
export interface NewFeed {
  /** The owner of the tasks that it shows. The caller if omitted. */
  owner?: string | null;
  /** Only tasks of these categories. All if there are none. */
  categories?: Array<Category>;
  /** Only tasks that have all of these labels. */
  labels?: Array<string>;
}

/** A new feed and its address, whose secret is shown only here. */
export interface NewFeedAddress {
  id: string;
  owner: string;
  /** Only tasks of these categories; all if there are none. */
  categories: Array<Category>;
  /** Only tasks that have all of these labels. */
  labels: Array<string>;
  createdAt: string;
  url: string;
}

/** A person's contacts and preferences. */
export interface NewPerson {
  name?: string;
  email?: EmailContactInput | null;
  devices?: Array<Device>;
  webhook?: WebhookContactInput | null;
  /** The IANA zone of the tasks whose schedules follow the person. Default: `"UTC"`. */
  timezone?: string;
  /** The person's language, such as `de-AT`: for templates and handlers. */
  locale?: string | null;
  /** For a category, the only channels that may be used. What is not listed may come by all channels. The web inbox always has everything. */
  channels?: Record<string, Array<DeliveryChannel>>;
}

/** A task to create, or to replace the one with the same id. */
export interface NewTask {
  /** What it is, for people; the handler's name if it is left out. */
  title?: string;
  description?: string;
  purpose?: string;
  /** Default: `"OTHERS"`. */
  category?: Category;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels?: Array<string>;
  /** The registered name of the function to run. */
  handler?: string;
  /** The handler's argument; validated against its model. */
  payload?: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<ChildInput>;
  /** Whether its children run in parallel, rather than in order. Default: `false`. */
  parallel?: boolean;
  /** What a failed child means for the children after it, and for the task. Default: `"fail"`. */
  onChildFailure?: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: ScriptInput | null;
  deliveryChannels?: Array<DeliveryChannel>;
  /** The title of what is delivered; the task's title if None. */
  deliveryTitle?: string | null;
  /** Who is told when an execution has ended, however it has. */
  onCompletion?: OnCompletion | null;
  /** Which dead-man's switch is told that an execution begins and ends. */
  ping?: PingInput | null;
  /** The estimated cost of one execution, in queries. Default: `0`. */
  queryPerExecution?: number;
  /** The estimated cost of one execution, in tokens of a language model. Default: `0`. */
  tokensPerExecution?: number;
  source?: SourceInput | null;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: PullInput | null;
  /** Default: `"NORMAL"`. */
  priority?: Priority;
  /** The resource that the task works on: runs with the same key take turns, in the order of their due times. */
  lockKey?: string | null;
  /** Whose the lock key is. If None: global, if a server or code names the key; the owner's, if a user does. */
  lockScope?: LockScope | null;
  /** How many runs with that key may run at once. Default: `1`. */
  lockLimit?: number;
  /** Default: `{"maxRetries": 3, "firstDelay": 0, "base": 5, "factor": 5.0, "cap": 3600, "jitter": 0.1}`. */
  retry?: RetryPolicyInput;
  /** How long one attempt may take. It is the length of the lease: after it, another executor may take over. In seconds. Default: `300.0`. */
  expectedDuration?: number;
  /** No occurrence after this instant is run. */
  until?: string | null;
  /** The task is complete after this many scheduled runs; skipped and expired occurrences do not count. */
  maxRuns?: number | null;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. Default: `0.0`. */
  jitter?: number;
  /** Default: `"skip"`. */
  overlap?: Overlap;
  /** Default: `{"mode": "latest", "window": null}`. */
  catchUp?: CatchUpInput;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number | null;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number | null;
  /** How long an execution's record and messages are kept. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number | null;
  /** How long after its end the task is kept, with its executions. None: for ever. In seconds. */
  retention?: number | null;
  /** The caller's own stable id; a random UUID if None. */
  id?: string | null;
  /** The task's owner; the caller if it is omitted, or `system`. */
  owner?: string;
  schedule?: string | ScheduleInput | null;
  /** The token of the draft that has the other fields, unchanged. */
  draftToken?: string | null;
  /** The IANA zone of a schedule that is text. UTC if it is left out. */
  timezone?: string;
  /** The language of a schedule in words. If it is left out, the words tell it. */
  locale?: string;
}

/** A message for the owner's inbox. */
export interface NoticeItem {
  /** Truncated to 200 bytes of UTF-8. */
  title: string;
  body: string;
}

/** An instant at which a schedule fires. */
export interface Occurrence {
  utc: string;
  /** The same in the schedule's time zone. */
  local: string;
}

/** The next occurrences of a task. */
export interface OccurrenceList {
  occurrences: Array<Occurrence>;
}

/** Some of what is going to run, the soonest first. */
export interface OccurrencePage {
  occurrences: Array<TaskOccurrence>;
  /** Fetches the next page. */
  nextPageToken?: string;
  /** From this instant on, occurrences of further tasks are missing: too many tasks are due before it. */
  completeUntil?: string;
}

/** Several occurrences in a row that never ran: one record is that of them all. */
export interface OccurrenceRange {
  /** The last of them, or up to when there may be more; the first is the record's own. */
  until: string;
  /** How many they are. */
  count: number;
  /** Whether they may be more: they were not counted to the end. */
  isAtLeast: boolean;
}

/** What a failed child means for the children after it, and for the task. */
export type OnChildFailure = "fail" | "skip" | "continue";

/** Who is told that an execution of a task has ended. */
export interface OnCompletion {
  /** Where a webhook is posted to, signed with the owner's webhook secret. Users may name only addresses at the host of their own webhook. */
  webhook: string;
}

/** The policy for an occurrence that comes due while a run is open. */
export type Overlap = "skip" | "buffer" | "allow";

/** How much there is of what. Each count ends at 10,000. */
export interface OverviewCounts {
  /** When it was counted: up to ten seconds ago. */
  countedAt: string;
  /** How many tasks have each status. */
  tasks: Record<string, number>;
  /** How many tasks have an open execution, by the status of the most active one. */
  open: Record<string, number>;
  /** The last twelve hours, the earliest first; the last one has just begun. */
  hours: Array<HourCounts>;
  /** How many tasks are due within an hour, or overdue. */
  dueSoon: number;
  /** The earliest next occurrence that is in the past and not claimed, and that no open run of its task holds back. */
  overdueSince?: string;
  /** What needs somebody: each cause once, also those of which there is nothing. */
  needs: Array<NeedCount>;
  /** How late the latest executions of schedules that have ended started, at most 20, the earliest first. */
  starts: Array<RecentStart>;
  /** The last sweep, for callers who see the tasks of all owners. */
  sweep?: SweepState;
}

/** The call that created a task. */
export interface Parent {
  taskId: string;
  executionId: string;
  /** The number of the call's entry in that execution's journal. */
  step: number;
  /** The nesting depth of the call: 1 if its caller has no parent. */
  depth: number;
  /** Whether the task's owner wrote the call, as one of a task's children or in a script: then the owner may claim it as a worker, but not change it. A call that a handler's code made the owner may neither claim nor change. */
  isOwners: boolean;
  /** Whether a user wrote or edited the task at the top: then the owner's quotas hold for the calls below it. */
  isForUser: boolean;
  /** If a script called a script: the task and the execution at the top, for which such calls are counted. */
  scriptTree?: string;
}

/** A person's contacts and preferences. */
export interface Person {
  name: string;
  email?: EmailContact;
  devices: Array<Device>;
  webhook?: WebhookContact;
  /** The IANA zone of the tasks whose schedules follow the person. */
  timezone: string;
  /** The person's language, such as `de-AT`: for templates and handlers. */
  locale?: string;
  /** For a category, the only channels that may be used. What is not listed may come by all channels. The web inbox always has everything. */
  channels: Record<string, Array<DeliveryChannel>>;
  owner: string;
  createdAt: string;
  updatedAt: string;
}

/** Which dead-man's switch is told that a task's executions begin and end, such as a check of healthchecks.io. */
export interface Ping {
  /** Posted to when an execution has succeeded. If it has no query, `/start` and `/fail` are added to it when one begins, and when one has failed, timed out or expired, unless `startUrl` and `failureUrl` say otherwise. */
  url: string;
  /** Posted to when an execution begins. */
  startUrl?: string;
  /** Posted to when an execution has failed, timed out or expired. */
  failureUrl?: string;
}

/** Which dead-man's switch is told that a task's executions begin and end, such as a check of healthchecks.io. */
export interface PingInput {
  /** Posted to when an execution has succeeded. If it has no query, `/start` and `/fail` are added to it when one begins, and when one has failed, timed out or expired, unless `startUrl` and `failureUrl` say otherwise. */
  url: string;
  /** Posted to when an execution begins. */
  startUrl?: string | null;
  /** Posted to when an execution has failed, timed out or expired. */
  failureUrl?: string | null;
}

/** A schedule to preview. */
export interface PreviewRequest {
  /** Default: `10`. */
  count?: number;
  schedule: string | ScheduleInput;
  /** The instant from which to list occurrences. Now if omitted. */
  from?: string | null;
  /** The owner whose calendars are meant, and whose zone if the schedule follows its owner. The caller if omitted. */
  owner?: string | null;
  /** The IANA zone of a schedule that is text. UTC if it is left out. */
  timezone?: string;
  /** The language of a schedule in words. If it is left out, the words tell it. */
  locale?: string;
}

/** The urgency of a task: it selects the queue, each with its own rate, and the order in which the sweep repairs. */
export type Priority = "CRITICAL" | "HIGH" | "NORMAL" | "LOW";

/** Why a request failed (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The path of the invalid field; of the first, if there are several. */
  field?: string;
  /** What to do about it. */
  hint?: string;
  /** The words that were not understood, of a schedule in words. */
  words?: string;
  /** All that is wrong with the body, as far as it was found. */
  errors?: Array<FieldError>;
  /** The meanings of a schedule in words, to choose from: each a `ScheduleReading`. */
  readings?: Array<ScheduleReading>;
  /** The events that the task's executions wait for, if an event was refused because none waits for it. */
  awaited?: Array<AwaitedEvent>;
}

/** One progress note of a worker. */
export interface ProgressItem {
  /** Truncated to 200 bytes of UTF-8. */
  text: string;
  /** The instant at which it was written. Now if omitted. */
  at?: string | null;
}

/** One progress report of a handler. */
export interface ProgressNote {
  at: string;
  text: string;
}

/** The queue whose workers run a task. On the wire, the queue's name alone may replace the object. */
export interface Pull {
  queue: string;
  /** The skill that the worker must have, such as `cuda`; None if any worker of the queue may run it. */
  skill?: string;
}

/** The queue whose workers run a task. On the wire, the queue's name alone may replace the object. */
export type PullInput = string | {
  queue: string;
  /** The skill that the worker must have, such as `cuda`; None if any worker of the queue may run it. */
  skill?: string | null;
};

/** The limit of an owner's usage. */
export interface PutBudget {
  /** The largest number of queries in a calendar month, in UTC. */
  maxQueriesPerMonth: number;
}

/** A calendar to create or replace. At most one of `days`, `ics`, `url` and `holidays` is given. */
export interface PutCalendar {
  /** The calendar's owner. Without one, an admin's calendar is for everybody, and a user's belongs to the user. */
  owner?: string | null;
  title?: string;
  /** Days of the week that are always on it. */
  weekdays?: Array<"MO" | "TU" | "WE" | "TH" | "FR" | "SA" | "SU">;
  /** Its days, listed one by one. */
  days?: Array<CalendarDay>;
  /** An iCalendar file, whose events are its days. */
  ics?: string | null;
  /** The address of an iCalendar file. It is fetched now, and again every day. */
  url?: string | null;
  /** A country whose holidays it has, as the installed version of the package `holidays` knows them. */
  holidays?: HolidaySource | null;
}

/** A script to create or replace. */
export interface PutScript {
  /** The script's owner: the caller if omitted, or `system`. */
  owner?: string | null;
  /** The body of an async function, in JavaScript. */
  source: string;
  /** A description for people. */
  description?: string;
  /** The handlers that it may call. If omitted, all that are tools. */
  tools?: Array<string> | null;
}

/** What waits in a queue: all of it, or what requires one skill. */
export interface Queue {
  queue: string;
  /** The skill that what waits requires. */
  skill?: string;
  /** How many runs wait. At most 1000 are counted. */
  waiting: number;
  /** Since when the first in the queue has been waiting. */
  firstSince?: string;
  /** How many workers have asked for it in the last three minutes. */
  workers: number;
}

/** The queues in which something waits or workers listen. */
export interface QueueList {
  queues: Array<Queue>;
}

/** A task that waits in a queue. */
export interface QueuedTask {
  taskId: string;
  owner: string;
  handler: string;
  /** None if the task has left the queue meanwhile. */
  title?: string;
  /** The skill that it requires. */
  skill?: string;
  priority: Priority;
  /** Since when it has been waiting. */
  offeredAt: string;
}

/** Some of what waits in a queue, in its order. */
export interface QueuedTaskPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  tasks: Array<QueuedTask>;
}

/** What a schedule was understood to be. Show it to whoever gave the schedule. */
export interface ReadBack {
  /** The schedule in words. */
  description: string;
  /** The words leave something out, which they name at their end. */
  isSummary: boolean;
  /** The next instants at which it runs, at most five, in the schedule's time zone. */
  next: Array<string>;
  timezone: string;
  /** What the request left open, and how it was decided, one sentence each. */
  assumed: Array<string>;
}

/** Why a task runs, waits or does not run. */
export type Reason =
  | "ENDED"
  | "PAUSED"
  | "RUNNING"
  | "LEASE_ENDED"
  | "RETRYING"
  | "PUT_OFF"
  | "WAITING_FOR_WORKER"
  | "NO_WORKER_LISTENS"
  | "WAITING_FOR_LOCK"
  | "WAITING_FOR_EVENT"
  | "EVENT_ARRIVED"
  | "EVENT_REFUSED"
  | "WAITING_FOR_CALLS"
  | "WAITING_FOR_QUOTA"
  | "SLEEPING"
  | "SUSPENDED"
  | "DUE"
  | "SCHEDULED"
  | "BEYOND_HORIZON"
  | "CALENDAR"
  | "FOLLOWS_OWNER"
  | "UNKNOWN_ZONE"
  | "TOO_MANY_RUNS"
  | "OVERLAP"
  | "BACKLOG"
  | "DEFERRED"
  | "SWEEP_IS_LATE"
  | "LAST_OUTCOME"
  | "OUTCOME"
  | "NOT_CREATED"
  | "NOT_DUE"
  | "CLOCK_CHANGE"
  | "EDITED"
  | "MOVED"
  | "NOT_KEPT";

/** How late an occurrence started. */
export interface RecentStart {
  scheduledFor: string;
  /** In seconds, with jitter, and with what it waited for a lock or a worker. */
  lateness: number;
}

/** A request to give the run back. */
export interface ReleaseRequest {
  /** The token from the claim, which proves that the caller holds the run. */
  leaseToken: string;
  /** All progress notes so far. They replace the previous ones, and the last 50 are kept. If there are none, the previous ones stay. */
  progress?: Array<ProgressItem>;
  /** The lines that the handler has logged. They replace the claim's earlier report, unless that had more lines, which means that this request is an older one. Ignored if the claim has no `logs`. */
  logs?: LogReport | null;
  /** The reason. Truncated to 2,000 bytes of UTF-8. */
  reason?: string | null;
  /** The delay after which the run is offered again. If omitted, it is offered at once and in its old position. In seconds. */
  after?: number | null;
}

/** The result of a heartbeat. */
export interface RenewedLease {
  /** When the renewed lease ends. */
  leaseUntil: string;
  /** When it was renewed: now, by the API's clock. */
  renewedAt: string;
  /** Whether the task was cancelled: stop. */
  isCancelled: boolean;
}

/** A task whose worker has reported. Workers that may not read tasks get less of it. */
export interface ReportedTask {
  title: string;
  description?: string;
  purpose?: string;
  category: Category;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels: Array<string>;
  /** The registered name of the function to run. */
  handler: string;
  /** The handler's argument; validated against its model. */
  payload?: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<Child>;
  /** Whether its children run in parallel, rather than in order. */
  parallel: boolean;
  /** What a failed child means for the children after it, and for the task. */
  onChildFailure: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: Script;
  deliveryChannels: Array<DeliveryChannel>;
  /** The title of what is delivered; the task's title if None. */
  deliveryTitle?: string;
  /** Who is told when an execution has ended, however it has. */
  onCompletion?: OnCompletion;
  /** Which dead-man's switch is told that an execution begins and ends. */
  ping?: Ping;
  /** The estimated cost of one execution, in queries. */
  queryPerExecution: number;
  /** The estimated cost of one execution, in tokens of a language model. */
  tokensPerExecution: number;
  source?: Source;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: Pull;
  priority: Priority;
  /** The resource that the task works on: runs with the same key take turns, in the order of their due times. */
  lockKey?: string;
  /** Whose the lock key is. If None: global, if a server or code names the key; the owner's, if a user does. */
  lockScope?: LockScope;
  /** How many runs with that key may run at once. */
  lockLimit: number;
  retry: RetryPolicy;
  /** How long one attempt may take. It is the length of the lease: after it, another executor may take over. In seconds. */
  expectedDuration: number;
  /** No occurrence after this instant is run. */
  until?: string;
  /** The task is complete after this many scheduled runs; skipped and expired occurrences do not count. */
  maxRuns?: number;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. */
  jitter: number;
  overlap: Overlap;
  catchUp: CatchUp;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number;
  /** How long an execution's record and messages are kept. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number;
  /** How long after its end the task is kept, with its executions. None: for ever. In seconds. */
  retention?: number;
  /** The version of the form that this document is stored in. */
  schemaVersion: number;
  id: string;
  owner: string;
  schedule: Schedule;
  isOneTime: boolean;
  timezone: string;
  status: TaskStatus;
  /** Incremented by every edit. A dispatch of an older revision runs nothing. */
  revision: number;
  /** Why the task is in this status. */
  message: string;
  /** The next occurrence that has not been claimed; None if there is none, or while the task is not ACTIVE. */
  nextExecutionTime?: string;
  createdAt: string;
  updatedAt: string;
  statusChangedAt: string;
  /** The final status of the last scheduled occurrence; manual runs and backfills do not count. */
  outcome?: ExecutionStatus;
  /** How many scheduled occurrences have run, or wait for a worker. */
  runCount: number;
  /** How many occurrences in a row have failed, up to the one that was due last. */
  consecutiveFailures: number;
  /** When the first of these failed; None if the last one has not. */
  failingSince?: string;
  /** The execution that was due last, of those that have ended; a retry of an earlier one does not take its place. */
  lastExecutionId?: string;
  /** The call that created this task; None if a caller created it directly. */
  parent?: Parent;
  /** Whether a handler is running for it. */
  isRunning: boolean;
  /** Since when it has been waiting for a worker, if it is. */
  offeredAt?: string;
  /** When what has run last runs again, if it was snoozed. */
  snoozedUntil?: string;
  /** The statuses of its latest executions, the earliest first and those that are open last; 12 at most. One that was retried counts once, if none ran in between. */
  recentStatuses: Array<ExecutionStatus>;
  /** A dispatch could not be created yet; the sweep will create it. */
  dispatchDeferred?: boolean;
  /** Its next occurrences; only in the answer to `validateOnly`. */
  upcoming?: Array<Occurrence>;
  /** The run that was asked for; only in the answer to a trigger. */
  triggered?: TriggeredRun;
  /** What its schedule was understood to be; only in answers that create it or change its schedule. A request that has searched all that it may leaves it out. */
  readBack?: ReadBack;
  /** What the caller may do with it now, so that it changes: of `edit`, `pause`, `resume`, `cancel`, `delete`, `trigger`, `snooze`, `backfill` and `sendEvent`. Its executions say whether they may be retried. */
  allowedVerbs?: Array<Verb>;
}

/** Whose request it is; of a handler, whose requests may name it. */
export type Requesters = "users" | "servers";

/** A result. */
export interface ResultData {
  title: string;
  /** The result as text. */
  body: string;
  /** The task. Missing if one message has the results of several tasks. */
  taskId?: string;
  executionId?: string;
  /** The chat that the task comes from, if it comes from one. */
  chatId?: string;
  /** The id that the result has in that chat, the same in every attempt. */
  messageId?: string;
  /** The result as JSON. */
  content?: unknown;
  /** True if the JSON was too large to be sent. */
  isContentOmitted?: boolean;
}

/** A result, for a person's webhook. */
export interface ResultWebhook {
  type: "notification";
  timestamp: string;
  data: ResultData;
}

/** How many failed executions match a filter. */
export interface RetryCount {
  /** At most some 1,000: each is read for it. */
  count: number;
  /** Whether there may be more: counting stopped at a bound. */
  isAtLeast: boolean;
  /** The first ten, the latest first. */
  first: Array<FailedExecution>;
}

/** How often, and after which delays, a failing handler is called again. */
export interface RetryPolicy {
  /** Calls after the first one; 0 means that a failure is final. */
  maxRetries: number;
  /** The wait before the first retry. In seconds. */
  firstDelay: number;
  /** The wait before the second retry. In seconds. */
  base: number;
  /** How much longer each further wait is. */
  factor: number;
  /** No wait is longer than this. In seconds. */
  cap: number;
  /** Each wait is lengthened by a random part of itself, at most this one. */
  jitter: number;
}

/** How often, and after which delays, a failing handler is called again. */
export interface RetryPolicyInput {
  /** Calls after the first one; 0 means that a failure is final. Default: `3`. */
  maxRetries?: number;
  /** The wait before the first retry. In seconds. Default: `0.0`. */
  firstDelay?: number;
  /** The wait before the second retry. In seconds. Default: `5.0`. */
  base?: number;
  /** How much longer each further wait is. Default: `5.0`. */
  factor?: number;
  /** No wait is longer than this. In seconds. Default: `3600.0`. */
  cap?: number;
  /** Each wait is lengthened by a random part of itself, at most this one. Default: `0.1`. */
  jitter?: number;
}

/** The execution to retry, and the step from which to do so. */
export interface RetryRequest {
  /** The execution to retry. The last one if omitted. */
  executionId?: string | null;
  /** The number of a durable handler's step. This step and all later ones are forgotten, and done again. */
  fromStep?: number | null;
}

/** The role of a caller. */
export type Role = "user" | "reader" | "viewer" | "admin" | "worker" | "delegate";

/** A person's contacts and preferences. */
export interface SavedPerson {
  name: string;
  email?: EmailContact;
  devices: Array<Device>;
  webhook?: WebhookContact;
  /** The IANA zone of the tasks whose schedules follow the person. */
  timezone: string;
  /** The person's language, such as `de-AT`: for templates and handlers. */
  locale?: string;
  /** For a category, the only channels that may be used. What is not listed may come by all channels. The web inbox always has everything. */
  channels: Record<string, Array<DeliveryChannel>>;
  owner: string;
  createdAt: string;
  updatedAt: string;
  /** With what the new webhook's messages are signed; keep it, it is shown only here. */
  webhookSecret?: string;
}

/** One instant, a delay, or a recurrence set. Immutable; camelCase in JSON and Firestore. */
export interface Schedule {
  at?: string;
  /** In seconds. */
  delay?: number;
  rrule?: string | Array<string>;
  dtstart?: string;
  timezone: string;
  rdates: Array<string>;
  exdates: Array<string>;
  gap: "shift" | "skip";
  fold: "first" | "last" | "both";
  subDaily: "elapsed" | "wall";
  local?: string;
  calendars: Array<CalendarRule>;
  businessDay?: number;
  followsOwner: boolean;
  startZone?: string;
}

/** One instant, a delay, or a recurrence set. Immutable; camelCase in JSON and Firestore. */
export interface ScheduleInput {
  at?: string | null;
  delay?: number | null;
  rrule?: string | Array<string> | null;
  dtstart?: string | null;
  /** Default: `"UTC"`. */
  timezone?: string;
  rdates?: Array<string>;
  exdates?: Array<string>;
  /** Default: `"shift"`. */
  gap?: "shift" | "skip";
  /** Default: `"first"`. */
  fold?: "first" | "last" | "both";
  /** Default: `"elapsed"`. */
  subDaily?: "elapsed" | "wall";
  local?: string | null;
  calendars?: Array<CalendarRuleInput>;
  businessDay?: number | null;
  /** Default: `false`. */
  followsOwner?: boolean;
  startZone?: string | null;
}

/** What a schedule means. */
export interface SchedulePreview {
  description: string;
  schedule: Schedule;
  occurrences: Array<Occurrence>;
  /** What words left open, and how it was taken; and calendars that have no dates as late as the last occurrence. */
  assumptions?: Array<string>;
  /** What the words say that the schedule is for. */
  title?: string;
}

/** One of the meanings of a schedule in words. */
export interface ScheduleReading {
  /** Send it in place of the words. */
  schedule: Record<string, unknown>;
  /** The schedule in words that mean nothing else. */
  description: string;
  /** What distinguishes it from the other readings. */
  label: string;
}

/** The script that a task runs, its own or one that its owner has stored, and its tools. */
export interface Script {
  /** The body of an async function, in JavaScript. */
  source?: string;
  /** The name of a stored script of the task's owner, in place of a source. Each execution runs the version that is stored when it begins, to its end. */
  name?: string;
  /** The handlers that it may call; None for all that are marked with `tool=True`. It can call no others. They narrow those of a stored script. */
  tools?: Array<string>;
}

/** A stored script with its source. */
export interface ScriptDetails {
  name: string;
  /** Whose tasks and scripts can run it. */
  owner: string;
  description: string;
  /** The handlers that it may call; if missing, all that are tools. */
  tools?: Array<string>;
  /** Incremented whenever its source or its tools change. */
  version: number;
  createdAt: string;
  updatedAt: string;
  source: string;
}

/** The script that a task runs, its own or one that its owner has stored, and its tools. */
export interface ScriptInput {
  /** The body of an async function, in JavaScript. */
  source?: string | null;
  /** The name of a stored script of the task's owner, in place of a source. Each execution runs the version that is stored when it begins, to its end. */
  name?: string | null;
  /** The handlers that it may call; None for all that are marked with `tool=True`. It can call no others. They narrow those of a stored script. */
  tools?: Array<string> | null;
}

/** An owner's stored scripts. */
export interface ScriptList {
  scripts: Array<ScriptSummary>;
}

/** A stored script without its source. */
export interface ScriptSummary {
  name: string;
  /** Whose tasks and scripts can run it. */
  owner: string;
  description: string;
  /** The handlers that it may call; if missing, all that are tools. */
  tools?: Array<string>;
  /** Incremented whenever its source or its tools change. */
  version: number;
  createdAt: string;
  updatedAt: string;
}

/** An event for a durable handler. */
export interface SendEventRequest {
  /** Any JSON. The fields of an object become attributes of the handler's event. */
  payload?: unknown;
  /** The execution that gets the event. Needed only if several wait for it. */
  executionId?: string | null;
  /** True to keep the event if no execution waits for it yet: for the open execution, or else for the next one. Default: `false`. */
  early?: boolean;
}

/** What the sender of an event is to the task. */
export type SenderRole = "owner" | "admin" | "worker";

/** A channel that is sent to, or the callback when an execution has ended. */
export type SentChannel = "EMAIL" | "MOBILE" | "WEBHOOK" | "OPERATOR" | "COMPLETION" | "PING";

/** The duration of a snooze. */
export interface SnoozeRequest {
  /** An ISO 8601 duration, or words such as `10 minutes` or `tomorrow at 9:00` in the task's time zone. At most 30 days. Default: `"PT10M"`. */
  duration?: string;
}

/** Where the request for a task came from. */
export interface Source {
  chatId?: string;
  messageId?: string;
  /** A snapshot of the request's context, stored unchanged. */
  context?: Record<string, unknown>;
  /** The conversation that led to the task, the earliest message first. It is data, and may hold what others wrote. */
  messages?: Array<SourceMessage>;
  /** The settings of the language model in that conversation. */
  model?: SourceModel;
}

/** Where the request for a task came from. */
export interface SourceInput {
  chatId?: string | null;
  messageId?: string | null;
  /** A snapshot of the request's context, stored unchanged. */
  context?: Record<string, unknown> | null;
  /** The conversation that led to the task, the earliest message first. It is data, and may hold what others wrote. */
  messages?: Array<SourceMessage> | null;
  /** The settings of the language model in that conversation. */
  model?: SourceModelInput | null;
}

/** A message of the conversation that a task comes from. */
export interface SourceMessage {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
}

/** The settings of the language model in that conversation: the built-in handler `assistant` follows them. */
export interface SourceModel {
  /** The model's name; the one of the app's settings if None. */
  name?: string;
  /** How often it is asked in one execution; the app's limit if None or lower. */
  maxTurns?: number;
  /** How many tokens one execution may use; the app's limit if None or lower. */
  maxTokens?: number;
}

/** The settings of the language model in that conversation: the built-in handler `assistant` follows them. */
export interface SourceModelInput {
  /** The model's name; the one of the app's settings if None. */
  name?: string | null;
  /** How often it is asked in one execution; the app's limit if None or lower. */
  maxTurns?: number | null;
  /** How many tokens one execution may use; the app's limit if None or lower. */
  maxTokens?: number | null;
}

/** Why a step, or what it called, failed. */
export interface StepError {
  type: string;
  message: string;
  /** The final status of a call's execution, or DELETED. */
  status?: string;
}

/** What a durable handler requested. */
export type StepKind = "STEP" | "CALL" | "SLEEP" | "EVENT" | "NOW" | "VERSION" | "RACE";

/** One request of a durable handler, and its result. */
export interface StepRecord {
  /** Its position in the order of the handler's requests, from 1. */
  number: number;
  kind: StepKind;
  /** The step's or the event's name, or the handler that was called. */
  name: string;
  status: StepStatus;
  startedAt: string;
  finishedAt?: string;
  /** When its handler, going on, found that a call had ended; until then it waits for other things, or is paused. */
  noticedAt?: string;
  /** How often a step was tried. */
  attempts: number;
  /** When, if one has failed: the latest eight. All but the last have failed; nothing is stored of a first success. */
  tries: Array<StepTry>;
  /** When a sleep is over, a wait is given up, or a failed step is tried again. */
  dueAt?: string;
  /** The id of the task that a call created. */
  child?: string;
  /** Whether that task is known to exist, if the run's `calls_made` does not cover it. False: a retry creates it. */
  isMade?: boolean;
  result?: unknown;
  /** Where the result is stored, if it is too large for the entry. */
  reference?: string;
  /** Whether models in a step's result are stored by field name, because their aliases do not round-trip. */
  isByName?: boolean;
  /** Whether the task's owner wrote what requested it (children or a script): no handler's code may rely on it. */
  isOwners?: boolean;
  error?: StepError;
  /** Who sent the event that was taken. */
  sender?: EventSender;
  queries?: number;
  /** The usage that its function reported, over all its attempts: a replay does not call it again. */
  tokens?: number;
}

/** The state of a journal entry. */
export type StepStatus = "WAITING" | "SUCCEEDED" | "FAILED" | "TIMED_OUT";

/** One call of a step's function. */
export interface StepTry {
  startedAt: string;
  finishedAt: string;
}

/** The last sweep, which repairs what was lost. */
export interface SweepState {
  finishedAt: string;
  /** How many seconds ago that was; it should come every minute. */
  lag: number;
  /** How many tasks were overdue then. */
  examined: number;
  /** How many dispatches it sent again. */
  dispatched: number;
  /** Of how many tasks the queue did not accept the dispatches. */
  unsent: number;
  /** How many tasks could not be repaired. */
  failed: number;
}

/** One task: its spec and its state. */
export interface Task {
  title: string;
  description: string;
  purpose: string;
  category: Category;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels: Array<string>;
  /** The registered name of the function to run. */
  handler: string;
  /** The handler's argument; validated against its model. */
  payload: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children: Array<Child>;
  /** Whether its children run in parallel, rather than in order. */
  parallel: boolean;
  /** What a failed child means for the children after it, and for the task. */
  onChildFailure: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: Script;
  deliveryChannels: Array<DeliveryChannel>;
  /** The title of what is delivered; the task's title if None. */
  deliveryTitle?: string;
  /** Who is told when an execution has ended, however it has. */
  onCompletion?: OnCompletion;
  /** Which dead-man's switch is told that an execution begins and ends. */
  ping?: Ping;
  /** The estimated cost of one execution, in queries. */
  queryPerExecution: number;
  /** The estimated cost of one execution, in tokens of a language model. */
  tokensPerExecution: number;
  source?: Source;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: Pull;
  priority: Priority;
  /** The resource that the task works on: runs with the same key take turns, in the order of their due times. */
  lockKey?: string;
  /** Whose the lock key is. If None: global, if a server or code names the key; the owner's, if a user does. */
  lockScope?: LockScope;
  /** How many runs with that key may run at once. */
  lockLimit: number;
  retry: RetryPolicy;
  /** How long one attempt may take. It is the length of the lease: after it, another executor may take over. In seconds. */
  expectedDuration: number;
  /** No occurrence after this instant is run. */
  until?: string;
  /** The task is complete after this many scheduled runs; skipped and expired occurrences do not count. */
  maxRuns?: number;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. */
  jitter: number;
  overlap: Overlap;
  catchUp: CatchUp;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number;
  /** How long an execution's record and messages are kept. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number;
  /** How long after its end the task is kept, with its executions. None: for ever. In seconds. */
  retention?: number;
  /** The version of the form that this document is stored in. */
  schemaVersion: number;
  id: string;
  owner: string;
  schedule: Schedule;
  isOneTime: boolean;
  timezone: string;
  status: TaskStatus;
  /** Incremented by every edit. A dispatch of an older revision runs nothing. */
  revision: number;
  /** Why the task is in this status. */
  message: string;
  /** The next occurrence that has not been claimed; None if there is none, or while the task is not ACTIVE. */
  nextExecutionTime?: string;
  createdAt: string;
  updatedAt: string;
  statusChangedAt: string;
  /** The final status of the last scheduled occurrence; manual runs and backfills do not count. */
  outcome?: ExecutionStatus;
  /** How many scheduled occurrences have run, or wait for a worker. */
  runCount: number;
  /** How many occurrences in a row have failed, up to the one that was due last. */
  consecutiveFailures: number;
  /** When the first of these failed; None if the last one has not. */
  failingSince?: string;
  /** The execution that was due last, of those that have ended; a retry of an earlier one does not take its place. */
  lastExecutionId?: string;
  /** The call that created this task; None if a caller created it directly. */
  parent?: Parent;
  /** Whether a handler is running for it. */
  isRunning: boolean;
  /** Since when it has been waiting for a worker, if it is. */
  offeredAt?: string;
  /** When what has run last runs again, if it was snoozed. */
  snoozedUntil?: string;
  /** The statuses of its latest executions, the earliest first and those that are open last; 12 at most. One that was retried counts once, if none ran in between. */
  recentStatuses: Array<ExecutionStatus>;
  /** A dispatch could not be created yet; the sweep will create it. */
  dispatchDeferred?: boolean;
  /** Its next occurrences; only in the answer to `validateOnly`. */
  upcoming?: Array<Occurrence>;
  /** The run that was asked for; only in the answer to a trigger. */
  triggered?: TriggeredRun;
  /** What its schedule was understood to be; only in answers that create it or change its schedule. A request that has searched all that it may leaves it out. */
  readBack?: ReadBack;
  /** What the caller may do with it now, so that it changes: of `edit`, `pause`, `resume`, `cancel`, `delete`, `trigger`, `snooze`, `backfill` and `sendEvent`. Its executions say whether they may be retried. */
  allowedVerbs?: Array<Verb>;
}

/** How many tasks match a filter. */
export interface TaskCount {
  /** At most 10,000 are counted; where they have to be read for it, the matching ones of some 1,000. */
  count: number;
  /** Whether there may be more: counting stopped at a bound. */
  isAtLeast: boolean;
}

/** What was done with a task by hand, the latest first. */
export interface TaskHistory {
  entries: Array<HistoryEntry>;
  /** How many earlier entries are not kept. */
  omittedEntries: number;
}

/** An instant at which a task is going to run. */
export interface TaskOccurrence {
  utc: string;
  /** The same in the schedule's time zone. */
  local: string;
  taskId: string;
  owner: string;
  title: string;
  handler: string;
  /** The zone of `local`. */
  timezone: string;
}

export interface TaskPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** How many were read for it, where it passed over some that do not match. */
  lookedThrough?: number;
  tasks: Array<Task>;
}

/** The fields to change; `null` restores a field's default. */
export interface TaskPatch {
  /** What it is, for people; the handler's name if it is left out. */
  title?: string;
  description?: string | null;
  purpose?: string | null;
  /** Default: `"OTHERS"`. */
  category?: Category | null;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels?: Array<string> | null;
  /** The registered name of the function to run. */
  handler?: string;
  /** The handler's argument; validated against its model. */
  payload?: Record<string, unknown> | null;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<ChildInput> | null;
  /** Whether its children run in parallel, rather than in order. Default: `false`. */
  parallel?: boolean | null;
  /** What a failed child means for the children after it, and for the task. Default: `"fail"`. */
  onChildFailure?: OnChildFailure | null;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: ScriptInput | null;
  deliveryChannels?: Array<DeliveryChannel> | null;
  /** The title of what is delivered; the task's title if None. */
  deliveryTitle?: string | null;
  /** Who is told when an execution has ended, however it has. */
  onCompletion?: OnCompletion | null;
  /** Which dead-man's switch is told that an execution begins and ends. */
  ping?: PingInput | null;
  /** The estimated cost of one execution, in queries. Default: `0`. */
  queryPerExecution?: number | null;
  /** The estimated cost of one execution, in tokens of a language model. Default: `0`. */
  tokensPerExecution?: number | null;
  source?: SourceInput | null;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: PullInput | null;
  /** Default: `"NORMAL"`. */
  priority?: Priority | null;
  /** The resource that the task works on: runs with the same key take turns, in the order of their due times. */
  lockKey?: string | null;
  /** Whose the lock key is. If None: global, if a server or code names the key; the owner's, if a user does. */
  lockScope?: LockScope | null;
  /** How many runs with that key may run at once. Default: `1`. */
  lockLimit?: number | null;
  /** Default: `{"maxRetries": 3, "firstDelay": 0, "base": 5, "factor": 5.0, "cap": 3600, "jitter": 0.1}`. */
  retry?: RetryPolicyInput | null;
  /** How long one attempt may take. It is the length of the lease: after it, another executor may take over. In seconds. Default: `300.0`. */
  expectedDuration?: number | null;
  /** No occurrence after this instant is run. */
  until?: string | null;
  /** The task is complete after this many scheduled runs; skipped and expired occurrences do not count. */
  maxRuns?: number | null;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. Default: `0.0`. */
  jitter?: number | null;
  /** Default: `"skip"`. */
  overlap?: Overlap | null;
  /** Default: `{"mode": "latest", "window": null}`. */
  catchUp?: CatchUpInput | null;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number | null;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number | null;
  /** How long an execution's record and messages are kept. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number | null;
  /** How long after its end the task is kept, with its executions. None: for ever. In seconds. */
  retention?: number | null;
  schedule?: string | ScheduleInput | null | null;
  /** The token of the draft that has the other fields, unchanged. */
  draftToken?: string | null;
  /** The IANA zone of a schedule that is text. UTC if it is left out. */
  timezone?: string | null;
  /** The language of a schedule in words. If it is left out, the words tell it. */
  locale?: string | null;
}

/** The status of a task as a whole. */
export type TaskStatus = "ACTIVE" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED" | "EXPIRED";

export interface Tree {
  task: Task;
  children: Array<Tree>;
  /** How many calls of this task were left out. Newer calls, and those nearer to the root, are shown first. */
  omittedChildren: number;
}

/** Why an occurrence runs. */
export type Trigger = "SCHEDULE" | "MANUAL" | "BACKFILL" | "SNOOZE";

/** The payload of a run. */
export interface TriggerRequest {
  /** The payload for this run and its retries, in place of the task's. The task's own does not change. */
  payload?: Record<string, unknown> | null;
}

/** What a trigger has started, or would start. */
export interface TriggeredRun {
  /** Its execution; None if nothing was to be stored. */
  executionId?: string;
  /** The payload that its handler gets. */
  payload: Record<string, unknown>;
}

/** One message of a conversation. */
export interface Turn {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
}

/** How many messages in an inbox are unread. */
export interface UnreadCount {
  unread: number;
}

/** How much was used. */
export interface UsageAmounts {
  /** Executions that ended and had started; one that is retried by hand ends once more. */
  executions: number;
  /** What the handlers have reported. */
  queries: number;
  /** What the tasks had estimated for these executions. */
  estimatedQueries: number;
  /** Tokens of a language model, as the handlers have reported them. */
  tokens: number;
  estimatedTokens: number;
  /** Documents read in Firestore to run the tasks. */
  reads: number;
  /** Documents written. */
  writes: number;
  /** Documents deleted. */
  deletes: number;
  /** Cloud Tasks operations: creations and deliveries. */
  queueOperations: number;
  /** Requests to the executor. */
  requests: number;
  /** What all this costs, by the deployment's prices. */
  dollars: number;
}

/** What was used in a month. */
export interface UsagePage {
  /** In UTC, such as `2026-11`. */
  month: string;
  /** By owner and handler. */
  usage: Array<UsageRow>;
  /** The sum of these rows. */
  total: UsageAmounts;
  /** Everything that was counted before this instant is in it. */
  summedUntil: string;
  /** Whether all that has changed was read: if not, there was too much; ask again. */
  isComplete: boolean;
  /** US dollars for a million of each. */
  prices: Record<string, number>;
  /** Fetches the usage of further owners. */
  nextPageToken?: string;
}

/** What a handler used for an owner in a month. */
export interface UsageRow {
  /** Executions that ended and had started; one that is retried by hand ends once more. */
  executions: number;
  /** What the handlers have reported. */
  queries: number;
  /** What the tasks had estimated for these executions. */
  estimatedQueries: number;
  /** Tokens of a language model, as the handlers have reported them. */
  tokens: number;
  estimatedTokens: number;
  /** Documents read in Firestore to run the tasks. */
  reads: number;
  /** Documents written. */
  writes: number;
  /** Documents deleted. */
  deletes: number;
  /** Cloud Tasks operations: creations and deliveries. */
  queueOperations: number;
  /** Requests to the executor. */
  requests: number;
  /** What all this costs, by the deployment's prices. */
  dollars: number;
  owner: string;
  handler: string;
  month: string;
}

/** What a caller can do with a task or an execution. */
export type Verb = "edit" | "pause" | "resume" | "cancel" | "delete" | "trigger" | "snooze" | "backfill" | "sendEvent" | "retry";

/** The challenge that the endpoint has to answer. */
export interface VerificationData {
  title: string;
  body: string;
  /** Answer 2xx with it and nothing else, as text or as `{"challenge": "…"}`. */
  challenge: string;
}

/** An endpoint is asked whether it wants a person's messages. */
export interface VerificationWebhook {
  type: "webhook.verification";
  timestamp: string;
  data: VerificationData;
}

/** A service that gets what the person gets. */
export interface WebhookContact {
  url: string;
  /** Whether the endpoint has proven that it wants the messages: nothing else is sent to one that has not. Only an admin may set it; anybody else has it asked. It is lost when the URL changes. */
  verified?: boolean;
}

/** A service that gets what the person gets. */
export interface WebhookContactInput {
  url: string;
  /** Whether the endpoint has proven that it wants the messages: nothing else is sent to one that has not. Only an admin may set it; anybody else has it asked. It is lost when the URL changes. */
  verified?: boolean | null;
}

/** A new secret of a person's webhooks, which is shown only here. */
export interface WebhookSecret {
  webhookSecret: string;
}

/** A day of the week, as RFC 5545 names it. */
export type Weekday = "MO" | "TU" | "WE" | "TH" | "FR" | "SA" | "SU";

/** The workers that were there in the last day. */
export interface WorkerList {
  workers: Array<WorkerNote>;
}

/** A worker at a queue. */
export interface WorkerNote {
  worker: string;
  queue: string;
  skills: Array<string>;
  /** The only owner whose tasks it runs. */
  owner?: string;
  /** The API caller that claims for it; None for a worker at the store. */
  claimedBy?: string;
  /** When it last asked for work; noted at most once a minute. */
  seenAt: string;
  /** Whether that was in the last three minutes. */
  isListening: boolean;
}

/** Create a task (201), or edit the task with the same id (200). */
export interface CreateTaskQuery {
  /** `true` runs all checks, stores nothing, and answers 200 with the task as it would be and its next `upcoming` occurrences. */
  validateOnly?: "true" | "false";
}

/** List tasks, the newest or the soonest first. */
export interface ListTasksQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  owner?: string;
  /** The status of a task as a whole. */
  status?: "ACTIVE" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED" | "EXPIRED";
  handler?: string;
  /** One of their labels, `key=value`. It goes with no filter by time, and the newest come first. */
  label?: string;
  /** The next occurrence is not before this instant. */
  dueFrom?: string;
  /** The next occurrence is before this instant. */
  dueUntil?: string;
  /** Only tasks with this problem, the latest first. No filter but `owner` goes with it. */
  trouble?: "BUDGET" | "PAUSED" | "FAILED" | "WAITING" | "DELIVERY";
  /** Of the tasks that wait for an event, only those that give up before this instant. It goes with `trouble`. */
  troubleUntil?: string;
  /** Only tasks with each of these words in their title, id, handler, labels or payload. `payload.about=sales` is the text of a field of the payload, `category:report` the category. */
  search?: string;
  /** True to list calls, too: the tasks that other tasks have made to do a part of their work. */
  calls?: boolean;
  /** The newest first, or the soonest first, omitting tasks without a next occurrence. The default is the soonest first with `dueFrom` or `dueUntil`, else the newest first. */
  orderBy?: "createdAt desc" | "nextExecutionTime";
}

/** Edit a task by JSON merge patch (RFC 7396). */
export interface UpdateTaskQuery {
  /** `true` runs all checks, stores nothing, and answers 200 with the task as it would be and its next `upcoming` occurrences. */
  validateOnly?: "true" | "false";
}

/** Get a task with the calls below it. */
export interface TreeQuery {
  /** Only the calls that this execution made, and the calls below them. */
  executionId?: string;
}

/** Explain why a task runs when it does, or does not run. With `at`, explain the day of that instant. */
export interface ExplainTaskQuery {
  /** An instant, now if omitted. The answer explains why the task ran, or did not, on its day in the task's zone. */
  at?: string;
}

/** Run a task now. */
export interface TriggerQuery {
  /** `true` runs all checks, stores nothing, and answers 200 with the task as it would be and its next `upcoming` occurrences. */
  validateOnly?: "true" | "false";
}

/** List a task's next occurrences. */
export interface UpcomingQuery {
  count?: number;
}

/** List a task's executions, the latest first. */
export interface ListExecutionsQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
}

/** List the upcoming occurrences of all tasks, the soonest first. */
export interface ListOccurrencesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only occurrences before this instant. */
  until: string;
  /** Only occurrences at this instant or later. All upcoming ones if omitted. */
  from?: string;
  /** Only occurrences of this owner's tasks. */
  owner?: string;
  /** Only occurrences of this handler's tasks. */
  handler?: string;
  /** Only occurrences of tasks with this label. */
  label?: string;
  /** Only occurrences of tasks with this category. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
}

/** List executions of all tasks: first those that failed, then those that run, then all others. */
export interface FindExecutionsQuery {
  /** Only executions of this owner's tasks. */
  owner?: string;
  /** Only executions with this status. */
  status?: 
    | "RUNNING"
    | "RETRYING"
    | "SUSPENDED"
    | "SUCCEEDED"
    | "FAILED"
    | "TIMED_OUT"
    | "CANCELLED"
    | "EXPIRED"
    | "SKIPPED";
  /** Only executions of this handler. Not together with `label` or `category`. */
  handler?: string;
  /** Only executions whose task had this label. Not together with `handler` or `category`. */
  label?: string;
  /** Only executions whose task had this category. Not together with `handler` or `label`. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
  /** Only executions that are scheduled for this instant or later. */
  from?: string;
  /** Only executions that are scheduled for an earlier instant than this. */
  until?: string;
  /** True to list executions of calls, too. A failed call is also in the record of the execution that made it. */
  calls?: boolean;
  /** Only executions whose error has this text in its type or message, in any case. */
  error?: string;
  /** Only executions whose error is exactly of this type. */
  errorType?: string;
  /** Only executions that took at least this long, from the first attempt's start to the end. In seconds. */
  minDuration?: number;
  /** Only executions that their schedule started at least this long after their instant. In seconds. */
  minLateness?: number;
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
}

/** Count the executions that ended on each day: those that failed, and all others. */
export interface CountExecutionsQuery {
  /** Only executions that are scheduled for this instant or later. */
  from: string;
  /** Only executions that are scheduled for an earlier instant than this, at most 62 days later. */
  until: string;
  /** The zone whose midnights divide the days. */
  timezone?: string;
  /** Only executions of this owner's tasks. */
  owner?: string;
  /** Only executions of this handler. Not together with `owner`, `label` or `category`. */
  handler?: string;
  /** Only executions whose task had this label. Not together with `owner`, `handler` or `category`. */
  label?: string;
  /** Only executions whose task had this category. Not together with `owner`, `handler` or `label`. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
}

/** Summarize the failures among matching executions: their number, and groups of them. */
export interface SummarizeFailuresQuery {
  /** Only executions of this owner's tasks. */
  owner?: string;
  /** Only executions with this status. */
  status?: 
    | "RUNNING"
    | "RETRYING"
    | "SUSPENDED"
    | "SUCCEEDED"
    | "FAILED"
    | "TIMED_OUT"
    | "CANCELLED"
    | "EXPIRED"
    | "SKIPPED";
  /** Only executions of this handler. Not together with `label` or `category`. */
  handler?: string;
  /** Only executions whose task had this label. Not together with `handler` or `category`. */
  label?: string;
  /** Only executions whose task had this category. Not together with `handler` or `label`. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
  /** Only executions that are scheduled for this instant or later. */
  from?: string;
  /** Only executions that are scheduled for an earlier instant than this. */
  until?: string;
  /** True to list executions of calls, too. A failed call is also in the record of the execution that made it. */
  calls?: boolean;
  /** Only executions whose error has this text in its type or message, in any case. */
  error?: string;
  /** Only executions whose error is exactly of this type. */
  errorType?: string;
  /** Only executions that took at least this long, from the first attempt's start to the end. In seconds. */
  minDuration?: number;
  /** Only executions that their schedule started at least this long after their instant. In seconds. */
  minLateness?: number;
}

/** List the messages in an owner's inbox, the newest first. */
export interface ListMessagesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
}

/** List the deliveries to an owner, with their channels and results, the newest first. */
export interface ListOwnerDeliveriesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
}

/** List the queues in which tasks wait or workers listen. */
export interface ListQueuesQuery {
  /** Only items of this owner. */
  owner?: string;
}

/** List the tasks that wait in a queue, in the order in which workers get them. Nothing is claimed. */
export interface ListQueuedTasksQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
}

/** List the workers that have asked for work in the last day. */
export interface ListWorkersQuery {
  /** Only items of this owner. */
  owner?: string;
}

/** List the locks that are held or waited for, with their holders and those who wait, in order. */
export interface ListLocksQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
}

/** Count tasks by status, open work, problems, the executions that ended in each recent hour, and what is due. */
export interface GetOverviewQuery {
  /** Only items of this owner. */
  owner?: string;
}

/** Get a text that is different after any task has changed: a cheap check that a list is still up to date. */
export interface GetChangeCursorQuery {
  /** Only items of this owner. */
  owner?: string;
}

/** Show the usage of a month, by owner and handler. */
export interface GetUsageQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only this owner's usage. */
  owner?: string;
  /** Only this handler's usage. */
  handler?: string;
  /** The month in UTC, such as `2026-11`. The current one if omitted. */
  month?: string;
}

/** List all budgets, and how much of each is used, by owner. */
export interface ListBudgetsQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only this owner's budget. */
  owner?: string;
}

/** Delete a person's contacts and preferences, or everything. */
export interface DeletePersonQuery {
  /** `true` deletes all that is stored of the person, not only contacts and preferences. */
  everything?: "true" | "false";
}

/** Export all data that is stored of a person. */
export interface ExportPersonQuery {
  /** The `nextPageToken` of the previous page. */
  pageToken?: string;
}

/** List an owner's feeds. */
export interface ListFeedsQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}

/** Get a calendar. */
export interface GetCalendarQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}

/** Delete a calendar. */
export interface DeleteCalendarQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}

/** List the calendars for everybody, and the owner's own. */
export interface ListCalendarsQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}

/** Get a script with its source. */
export interface GetScriptQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}

/** Delete a script. */
export interface DeleteScriptQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}

/** List an owner's scripts. */
export interface ListScriptsQuery {
  /** The owner. The caller if omitted. */
  owner?: string;
}
