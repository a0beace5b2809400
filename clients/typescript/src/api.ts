// The API's schemas and verbs, generated from its OpenAPI document: python -m tests.clients.typescript_types
// Instants are texts of RFC 3339, durations numbers of seconds.
import type { ChangeOptions } from "./client.js";

/** An action in the audit trail: on a task, or on a budget, a queue or a contact. */
export type Action =
  | "CREATED"
  | "EDITED"
  | "PAUSED"
  | "RESUMED"
  | "CANCELLED"
  | "RUN_CANCELLED"
  | "TRIGGERED"
  | "SNOOZED"
  | "RETRIED"
  | "BACKFILLED"
  | "ENDED"
  | "MOVED"
  | "SKIPPED"
  | "APPROVED"
  | "REJECTED"
  | "DELETED"
  | "BUDGET_SET"
  | "BUDGET_DELETED"
  | "QUEUE_PAUSED"
  | "QUEUE_RESUMED"
  | "QUEUE_CHANGED"
  | "QUEUE_PURGED"
  | "CONTACT_VERIFIED";

/** What a wait for an event asks, and whom, in their order. */
export interface AskedWords {
  text?: string;
  by: Array<string>;
}

/** One call of the handler, counted from 1. */
export interface Attempt {
  number: number;
  startedAt: string;
  finishedAt: string;
  /** The result of this attempt: SUCCEEDED, FAILED, TIMED_OUT or CANCELLED. */
  status: ExecutionStatus;
  error?: ExecutionError;
  /** The worker that ran it, or None if an executor did. */
  worker?: string;
  /** The hash of that worker's lease token, to recognise a result that is reported twice. */
  claim?: string;
  /** The API caller that reported its end, or None if an executor or a worker at the store did. */
  endedBy?: string;
  /** The time since which it waited for its lock, or None if it did not have to wait. */
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

/** An action on a task, a budget or a queue. */
export interface AuditEntry {
  /** Its number since the task was created. Numbers that are missing are of entries that have fallen off. */
  number: number;
  at: string;
  action: Action;
  /** The caller who did it, or None for the scheduler itself. Without a subject, it was the app's own code. */
  by?: EventSender;
  /** The fields that an edit changed. */
  fields: Array<FieldChange>;
  /** The execution that it concerns. */
  executionId?: string;
  /** The scheduler's reason for it, or the note of who answered. */
  reason?: string;
  /** The task. None for budgets and queues. */
  taskId?: string;
  /** The title of the task as it is now, or was when it was deleted. */
  title: string;
  /** The owner of the task or of the budget. */
  owner: string;
  /** The queue in Cloud Tasks. */
  queue?: string;
}

/** A page of the actions on tasks, the latest first. */
export interface AuditPage {
  entries: Array<AuditEntry>;
  /** Fetches the next page. */
  nextPageToken?: string;
  /** False if older actions are missing: more than 1,000 tasks were acted on since. */
  isComplete: boolean;
}

/** An event for which an execution of the task waits. */
export interface AwaitedEvent {
  name: string;
  executionId: string;
  /** The time at which it stops waiting, or None if it never does. */
  until?: string;
  /** The senders whose events count: roles, and users as `user:…`. */
  by: Array<string>;
}

/** The range of past occurrences to run again. Both ends are included. */
export interface BackfillRequest {
  start: string;
  end: string;
}

/** The action on each task. */
export type BatchAction = "PAUSE" | "RESUME" | "CANCEL" | "RETRY_FAILED" | "DELETE";

/** The tasks to change. All given filters must match, and there must be one. */
export interface BatchChangeFilter {
  owner?: string | null;
  status?: TaskStatus | null;
  handler?: string | null;
  /** One of their labels, `key=value`. */
  label?: string | null;
  /** The next occurrence is not before this instant. */
  dueFrom?: string | null;
  /** The next occurrence is before this instant. */
  dueUntil?: string | null;
  /** The batch change that has paused it: resuming these restores what ran before. Or the one that has resumed it: pausing these takes that back. Tasks that were paused before, or paused or resumed by somebody else since, do not match. It is the only index that is used. */
  pauseId?: string | null;
  /** Only these tasks. The other conditions must match as well. */
  ids?: Array<string> | null;
}

/** A change of all tasks that match a filter. */
export interface BatchChangeRequest {
  /** `RETRY_FAILED` gives the execution that finished last one more attempt, if it failed or timed out. */
  action: BatchAction;
  filter: BatchChangeFilter;
  /** The end of a pause. If omitted, somebody has to resume the tasks. */
  until?: string | null;
  /** Only count the tasks, and name the first ten. Default: `false`. */
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

/** An owner's budget: the queries, tokens or both that the owner's tasks may use in a month. */
export interface BudgetDetails {
  owner: string;
  /** 10^12: any number. */
  maxQueriesPerMonth: number;
  maxTokensPerMonth: number;
  /** The month of `queries` and `tokens`, in UTC. */
  month: string;
  /** The number of queries that were used in that month. */
  queries: number;
  /** The number of tokens, likewise. */
  tokens: number;
  /** True if the owner's tasks are paused because of it. */
  isUsedUp: boolean;
  /** The time until which the usage is counted. */
  summedUntil?: string;
}

/** A page of a list of budgets. */
export interface BudgetPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
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
  /** The owner of the calendar, or `system` if it is for everybody. */
  owner: string;
  title: string;
  /** Incremented whenever its days change. */
  revision: number;
  weekdays: Array<Weekday>;
  /** The source of its days. It is shown to those who may change it. */
  url?: string;
  /** The country of its holidays, and the version of the package that knew them. */
  holidays?: Record<string, unknown>;
  fetchedAt?: string;
  /** Why its days could not be read when they were last asked for. They are still those of `fetched_at`. */
  problem?: string;
  createdAt: string;
  updatedAt: string;
  /** The days, each with its `date`, its `name`, and `until` if there are several in a row. */
  days: Array<Record<string, string>>;
}

/** Calendars for everybody, and an owner's own. */
export interface CalendarList {
  calendars: Array<CalendarSummary>;
}

export type CalendarRule = Record<string, unknown>;

/** One calendar that a schedule respects. */
export interface CalendarRuleInput {
  /** The calendar's id. `weekends` is always there. */
  id: string;
  /** The policy for an occurrence on one of its days. It is left out, or moved to the last free day before or to the next free day after. A free day is on none of the schedule's calendars. Default: `"SKIP"`. */
  on?: "SKIP" | "BEFORE" | "AFTER";
}

/** A calendar without its days. */
export interface CalendarSummary {
  /** Its full id. */
  id: string;
  /** The owner of the calendar, or `system` if it is for everybody. */
  owner: string;
  title: string;
  /** Incremented whenever its days change. */
  revision: number;
  weekdays: Array<Weekday>;
  /** The source of its days. It is shown to those who may change it. */
  url?: string;
  /** The country of its holidays, and the version of the package that knew them. */
  holidays?: Record<string, unknown>;
  fetchedAt?: string;
  /** Why its days could not be read when they were last asked for. They are still those of `fetched_at`. */
  problem?: string;
  createdAt: string;
  updatedAt: string;
}

/** The execution that made a call. */
export interface CalledBy {
  taskId: string;
  executionId: string;
}

/** The caller, their rights, and the time by the API's clock. */
export interface CallerInfo {
  role: Role;
  /** The caller as an owner of tasks, or None for a server. */
  owner?: string;
  /** True if they see the tasks of all owners. */
  seesAll: boolean;
  /** True if they may change the tasks that they see. */
  mayChange: boolean;
  /** The time of the clock by which the API runs tasks. */
  now: string;
}

/** The execution to cancel. */
export interface CancelRunRequest {
  executionId: string;
}

/** The policy for occurrences that nothing could run in time. On the wire, the mode alone may replace it. */
export interface CatchUp {
  mode: CatchUpMode;
  /** The greatest lateness of a run. None: any for `LATEST` and `ALL`, a minute for `NONE`. In seconds. */
  window?: number;
}

/** The policy for occurrences that nothing could run in time. On the wire, the mode alone may replace it. */
export interface CatchUpInput {
  /** Default: `"LATEST"`. */
  mode?: CatchUpMode;
  /** The greatest lateness of a run. None: any for `LATEST` and `ALL`, a minute for `NONE`. In seconds. */
  window?: number | null;
}

/** The policy that selects which of several missed occurrences are run. */
export type CatchUpMode = "LATEST" | "ALL" | "NONE";

/** The kind of work that a task does for its owner. */
export type Category = "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";

/** A question whether the endpoint wants messages. */
export interface ChallengeData {
  title: string;
  body: string;
  /** What the endpoint answers with, and nothing else. */
  challenge: string;
  [name: string]: unknown;
}

/** Tells whether anything has changed. */
export interface ChangeCursor {
  /** Compare it with the last one: if it is the same, no task has changed since. */
  cursor: string;
}

/** One child of a task. */
export interface Child {
  /** The queue whose workers run it, or the handler's own if None. */
  pull?: Pull;
  lockKey?: string;
  /** The tasks that share the lock key, as in a task. */
  lockScope?: LockScope;
  handler: string;
  payload: Record<string, unknown>;
  title?: string;
  /** The payload field that gets the list of the earlier children's results. Only if they run in order. */
  resultsAs?: string;
  /** Its retry policy, or the handler's own if None. */
  retry?: RetryPolicy;
  /** Its priority, or the task's own if None. */
  priority?: Priority;
  /** In seconds. */
  expectedDuration?: number;
}

/** One child of a task. */
export interface ChildInput {
  /** The queue whose workers run it, or the handler's own if None. */
  pull?: PullInput | null;
  lockKey?: string | null;
  /** The tasks that share the lock key, as in a task. */
  lockScope?: LockScope | null;
  handler: string;
  payload?: Record<string, unknown>;
  title?: string | null;
  /** The payload field that gets the list of the earlier children's results. Only if they run in order. */
  resultsAs?: string | null;
  /** Its retry policy, or the handler's own if None. */
  retry?: RetryPolicyInput | null;
  /** Its priority, or the task's own if None. */
  priority?: Priority | null;
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
  /** The latest attempts in a row that were lost with their worker. If there are any, this run may be what ended it: do not run it beside another one of which that is true. */
  losses: number;
  /** The time at which this attempt started. */
  startedAt: string;
  /** The progress notes of earlier attempts. */
  progress: Array<ProgressNote>;
  /** Proves that the run is yours. It is returned only here. */
  leaseToken: string;
  /** Send a heartbeat before this instant, or the claim may end. */
  leaseUntil: string;
  /** The limits of the log lines that you send with heartbeats and the report. Missing if none are kept. */
  logs?: ClaimLogs;
}

export interface ClaimList {
  claims: Array<Claim>;
}

/** The limits of the log that is kept for a claim. */
export interface ClaimLogs {
  /** The least level that is kept: `DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`. */
  level: LogLevel;
  /** The number of lines of the execution that are kept: the latest. */
  maxLines: number;
  /** The most bytes that they have together: their texts, levels and loggers, and 40 for each line. */
  maxBytes: number;
  /** The number of these bytes that are free. Further lines replace the earliest ones, of earlier attempts first. */
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
  /** The longest to wait for work if there is none. In seconds. Default: `0.0`. */
  wait?: number;
  /** Claim a run of this task only, which waits in the queue. If it is taken, over or not for this worker, that is the answer: 409, or 404 for one that it may not see. */
  taskId?: string | null;
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
  /** True if the result is recorded and not delivered. Notices are. Default: `false`. */
  silent?: boolean;
  /** Messages for the owner's inbox, if the run `SUCCEEDED`. */
  notices?: Array<NoticeItem>;
  /** Each is a `NewTask`: tasks that are created with the success, or not at all. They have the owner of the run's task, and are what whoever asked for that task may ask for. If one of them is refused, nothing has changed, and you may complete the run without it. */
  then?: Array<NewTask>;
  /** The reason why the run is `CANCELLED`. Truncated to 2,000 bytes of UTF-8. */
  message?: string | null;
}

/** A task that would be changed. */
export interface ConcernedTask {
  id: string;
  title: string;
  owner: string;
}

/** The number of what was counted. From the store to the page it is one value, so that no bound is forgotten. */
export interface Count {
  value: number;
  /** True if there may be more, because counting stopped at a bound. */
  atLeast: boolean;
}

/** The kind of request that a text makes. */
export type Decision = "CREATION" | "UPDATE" | "OPERATION" | "LIST" | "REFUSAL";

/** The definition that an execution began with. Its task may have been edited since. */
export interface Definition {
  /** The number by which open runs refer to it in their task. */
  number: number;
  handler: string;
  /** Its task's payload. It is empty in the record of an execution that has a payload of its own. */
  payload: Record<string, unknown>;
  children: Array<Child>;
  parallel: boolean;
  onChildFailure: OnChildFailure;
  script?: Script;
  /** USERS if a user wrote or edited it, or None if only servers did. */
  definedBy?: Requesters;
}

/** A way to deliver a result. */
export type DeliveryChannel = "EMAIL" | "WEB" | "MOBILE" | "WEBHOOK" | "OPERATOR" | "TELEGRAM" | "SLACK";

/** The deliveries of an execution. */
export interface DeliveryList {
  deliveries: Array<DeliveryReport>;
  /** The reason why nobody was told that it has failed, as the task is now. */
  untold?: string;
}

/** A page of a list of deliveries. */
export interface DeliveryPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
  lookedThrough?: number;
  deliveries: Array<DeliveryReport>;
}

/** The progress of one delivery: of what, to whom, by which channel, when, and with what result. */
export interface DeliveryReport {
  /** The id of the task that delivers. Of a message in the inbox, its own. */
  id: string;
  channel: SentChannel;
  status: DeliveryStatus;
  /** The person whom it is for. */
  owner: string;
  title: string;
  /** The task whose result it delivers. */
  taskId: string;
  executionId: string;
  /** True if it tells of a failure. */
  isFailure: boolean;
  /** The number of finished attempts. */
  attempts: number;
  createdAt: string;
  /** The time at which the last finished attempt began. */
  lastAttemptAt?: string;
  /** The time of the next attempt, if there is one. */
  nextAttemptAt?: string;
  /** The time at which the other side took it. */
  sentAt?: string;
  /** The id under which the other side knows it. */
  messageId?: string;
  /** The reason why it was not sent, or not yet. */
  reason?: string;
}

/** The progress of a delivery. */
export type DeliveryStatus = "PENDING" | "SENDING" | "RETRYING" | "SENT" | "FAILED" | "EXPIRED" | "SUPPRESSED";

/** A mobile device or a browser. */
export interface Device {
  /** Its registration token of Firebase Cloud Messaging. */
  token: string;
}

/** A queue of Cloud Tasks that carries dispatches to the executor. */
export interface DispatchQueue {
  queue: string;
  state: QueueState;
  maxDispatchesPerSecond: number;
  maxConcurrentDispatches: number;
  /** The number of dispatches in it, also of those that lie ahead, as Cloud Tasks estimates it. */
  depth: number;
  /** The priorities of the tasks that it is for. Empty if it is for hops, or for the deliveries of a channel. */
  priorities: Array<Priority>;
  /** Who paused it, if that was done here, as the log names them. */
  pausedBy?: string;
  pausedAt?: string;
}

/** The queues of the deployment in Cloud Tasks. */
export interface DispatchQueueList {
  queues: Array<DispatchQueue>;
}

/** A reason why the next run of a task may not begin in time, or what it says may reach nobody. */
export interface Doubt {
  /** The same for programs as in the answer to explain. */
  reason: Reason;
  sentence: string;
}

/** One answer to a question: the fields of the next request for a draft that differ from this one's. */
export interface DraftAnswer {
  /** The difference from the other answers. */
  label: string;
  /** The schedule, the task or the handler in words. */
  description: string;
  /** Send this text instead. The same again if there is none. */
  text?: string;
  /** Add these fields to the context. */
  context?: Record<string, unknown>;
}

/** A question that must be answered before there is anything to confirm. */
export interface DraftQuestion {
  /** The field of the task that is open, or `taskId` if several tasks may be meant. */
  field: string;
  question: string;
  /** The possible meanings. Empty if the answer is free. */
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
  /** The knowledge of your app. `chatId`, `messageId` and `modelSettings` become the task's source. `taskId` and `handler` name the task and the handler that are meant. Those that begin with `answer.` come from the answers to a draft's questions, such as `answer.schedule`. Others fill fields of the handler's payload by their names. */
  context?: Record<string, unknown>;
  /** The instant from which "tomorrow" counts. Now if omitted. */
  now?: string | null;
  /** The task's owner. The caller if omitted. */
  owner?: string | null;
  /** The language of the words, such as `de` or `en-US`. If omitted, it is detected from them. */
  locale?: string | null;
}

/** The task or change that a text asks for. Nothing of it is stored. */
export interface DraftResult {
  decision: Decision;
  /** The task that `POST /v1/tasks` creates from it, as far as it is known, or None for an update. */
  task?: Record<string, unknown>;
  /** The task that an update or an operation changes. */
  taskId?: string;
  /** The body for `PATCH /v1/tasks/{taskId}`. That of an operation is `operation` alone, which is `pause`, `resume`, `cancel`, `delete` or `trigger`. */
  changes?: Record<string, unknown>;
  /** The task that is changed, or those that a list names, the soonest first. */
  tasks: Array<NamedTask>;
  schedule?: Schedule;
  /** The schedule in words. */
  description: string;
  /** The next occurrences, at most five. */
  next: Array<Occurrence>;
  /** The schedule as it was understood, as in the answers to creations and edits. */
  readBack?: ReadBack;
  /** The points that the text leaves open, and how they were decided, one sentence each. */
  assumptions: Array<string>;
  questions: Array<DraftQuestion>;
  missing: Array<MissingField>;
  steps: Array<DraftStep>;
  /** Send it with `task` or `changes`, unchanged, within 15 minutes, so that exactly what was shown is stored. None while something is missing or asked. */
  draftToken?: string;
}

/** A step of understanding the text, for a user interface. */
export interface DraftStep {
  at: string;
  text: string;
}

/** A person's e-mail address. */
export interface EmailContact {
  address: string;
  /** True if the address is known to be the person's. No mail is sent to one that is not. It is set if the person's own ID token has that address as verified when they set it, or by an admin, who alone may set it directly. It is lost when the address changes. */
  verified?: boolean;
}

/** A person's e-mail address. */
export interface EmailContactInput {
  address: string;
  /** True if the address is known to be the person's. No mail is sent to one that is not. It is set if the person's own ID token has that address as verified when they set it, or by an admin, who alone may set it directly. It is lost when the address changes. */
  verified?: boolean | null;
}

/** An end of an execution. */
export interface EndData {
  title: string;
  body: string;
  taskId: string;
  executionId: string;
  /** What the handler returned, or null. */
  content?: unknown;
  /** True if the content is too large to be sent: the execution has it. */
  isContentOmitted?: boolean;
  /** The chat that the task came from (`source.chatId`), if it came from one. */
  chatId?: string;
  /** The id of the result as a message of that chat. */
  messageId?: string;
  /** The seconds by which the message is late, if it is late enough to say so. */
  late?: number;
  status: ExecutionStatus;
  /** The reason, unless it succeeded. */
  error?: WebhookError;
  [name: string]: unknown;
}

/** An event sent to a durable handler, and not yet taken by it. */
export interface Event {
  name: string;
  payload?: unknown;
  at: string;
  /** A value that tells it from another one that is equal. */
  token: string;
  /** The only execution that may take it, with which it is removed, or None if the first that waits for it may. */
  executionId?: string;
  /** The sender. The handler that waits for it decides whether it counts, when it is taken. */
  sender: EventSender;
}

/** The sender of an event. */
export interface EventSender {
  role: SenderRole;
  /** The caller as the log names them: `user:…`, `account:…` or `key:…`. None for the app's own code. */
  subject?: string;
  /** The server that acted for them, named likewise, or None if they called the API themselves. */
  via?: string;
  /** The user whose key sent it, as `user:…`, where the subject is the key. */
  user?: string;
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
  /** Its task's category, as it was then. */
  category?: Category;
  /** Its task's labels, as they were then. */
  labels: Array<string>;
  /** The execution that called its task, or None if none did. */
  calledBy?: CalledBy;
  scheduledFor: string;
  /** The further occurrences that it records: those from its own on that never ran, for one reason. */
  covers?: OccurrenceRange;
  /** The start of the first attempt, or None if nothing was run. */
  startedAt?: string;
  finishedAt?: string;
  /** The first and the last attempts, by their numbers. */
  attempts: Array<Attempt>;
  /** The number of attempts between these, which are omitted. */
  omittedAttempts: number;
  /** The start of the attempt that is running or suspended, or was when it ended. None if there is none. */
  attemptStartedAt?: string;
  status: ExecutionStatus;
  /** The handler's result, as JSON. */
  content?: unknown;
  /** The last attempt's error. */
  error?: ExecutionError;
  /** The reason for its status, such as why it was skipped, expired or cancelled. */
  message?: string;
  /** The due time of the next attempt of a RETRYING execution. Of a SUSPENDED one, the time at which it goes on by itself, or would have if its task were not paused. */
  nextAttemptAt?: string;
  /** The time at which the attempt that is running loses its lease, unless it is renewed. */
  leaseUntil?: string;
  /** The worker that is running it, or None if an executor is. */
  worker?: string;
  progress: Array<ProgressNote>;
  /** Queries that the handler reported, in all attempts. */
  queries: number;
  /** Tokens (of a language model, say) that the handler reported, in all attempts. */
  tokens: number;
  /** The queries that its task estimated for one execution, or None if it did not. */
  estimatedQueries?: number;
  /** The tokens that its task estimated for one execution, or None if it did not. */
  estimatedTokens?: number;
  /** The chat that its task comes from, and to which the result belongs. */
  chatId?: string;
  /** The id of the result's message in that chat, the same however often the execution is tried. It is also the id of the first message in the owner's inbox. */
  messageId?: string;
  /** True if the result was delivered to all of the task's channels. */
  isDelivered: boolean;
  trigger: Trigger;
  /** The payload that it ran with, if it differs from its task's: it was triggered with another one, or its task was edited meanwhile. Not in lists across tasks. */
  payload?: Record<string, unknown>;
  /** USERS if a user wrote any part of the run: its task, the payload that it was triggered with, or a stored script. None if only servers did: then its result is theirs. */
  definedBy?: Requesters;
  /** True if that payload is missing, because it did not fit beside the result. */
  hasUnrecordedPayload?: boolean;
  /** The log lines of its attempts, encrypted. The API shows it separately, to those who may see it. */
  log?: string;
  /** The steps of a durable handler, with the results of its steps and calls. */
  steps: Array<StepRecord>;
  /** The place of the steps if they are too large for this document. Reading this single record loads them. */
  stepsReference?: string;
  /** The steps that made it fail, if any: a manual retry repeats them. */
  failureCause?: FailureCause;
  /** The tasks of all calls up to this number in the steps have been created. */
  callsMade: number;
  /** The definition that it ran, if it ended without success. A retry by hand runs it. */
  beganWith?: Definition;
  /** The events that were accepted for it, and that it ended without taking. A retry by hand gives them to it. */
  events: Array<Event>;
  /** The time from which the store may remove it. */
  expireAt?: string;
  /** The actions that the caller may take on it now, out of `retry` and `sendEvent`. Lists across tasks leave it out for an execution that is over, has not succeeded, and whose task the caller might change: only the task would tell. Lists do not look for steps that are stored apart. If these are gone, `retry` is named but refused. */
  allowedVerbs?: Array<Verb>;
}

/** The numbers of executions that ended, part by part. */
export interface ExecutionCounts {
  /** The earliest first. */
  parts: Array<PartCounts>;
  /** The start of the first part, if those before it are left out: too many had to be looked through. */
  completeFrom?: string;
}

/** The error of an attempt. */
export interface ExecutionError {
  /** The exception's class. */
  type: string;
  message: string;
  /** The end of the traceback, shortened. Its last lines are nearest to the cause. */
  traceback?: string;
}

/** The latest log lines of an execution, in their order. */
export interface ExecutionLogs {
  lines: Array<LogLine>;
  /** The number of earlier lines that are not kept. */
  omittedLines: number;
  /** True if they cannot be read any more, because they were encrypted with a secret that is gone. */
  isUnreadable: boolean;
}

/** One execution. */
export interface ExecutionName {
  taskId: string;
  executionId: string;
}

/** A page of a list of executions. */
export interface ExecutionPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
  lookedThrough?: number;
  executions: Array<Execution>;
}

/** The failed executions to retry. All given filters must match, and there must be one. */
export interface ExecutionRetryFilter {
  owner?: string | null;
  status?: "FAILED" | "TIMED_OUT" | null;
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

/** The end of an execution, to a task's callback. What tells its owner of a failure comes to their webhook, too. */
export interface ExecutionWebhook {
  type: 
    | "execution.succeeded"
    | "execution.failed"
    | "execution.timed_out"
    | "execution.expired"
    | "execution.skipped"
    | "execution.cancelled";
  /** The instant of what it reports, the same for all tries. */
  timestamp: string;
  data: EndData;
  [name: string]: unknown;
}

/** The reasons why a task runs when it does, or does not run. */
export interface Explanation {
  taskId: string;
  status: TaskStatus;
  /** The sentence of the first finding. */
  summary: string;
  /** The reasons, the most important one first. */
  findings: Array<Finding>;
  /** The instant that was asked about, or None for the present. */
  at?: string;
}

/** A page of the data that is stored of a person. */
export interface ExportPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
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
  /** The handler's argument, validated against its model. */
  payload?: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<Child>;
  /** True if its children run in parallel, rather than in order. */
  parallel: boolean;
  /** The consequence of a failed child for the children after it, and for the task. */
  onChildFailure: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: Script;
  deliveryChannels: Array<DeliveryChannel>;
  /** The title of the message that is delivered, or the task's title if None. */
  deliveryTitle?: string;
  /** The failures that its owner is told of, by these channels and in the inbox: the first of a row, each, or none. */
  tellFailures: TellFailures;
  /** The estimated cost of one execution, in queries. */
  queryPerExecution: number;
  /** The estimated cost of one execution, in tokens of a language model. */
  tokensPerExecution: number;
  source?: Source;
  priority: Priority;
  retry: RetryPolicy;
  /** The longest duration of one attempt. It is the length of the lease: after it, another executor may take over. In seconds. */
  expectedDuration: number;
  /** No occurrence after this instant is run. */
  until?: string;
  /** The task is complete after this many scheduled runs. Skipped and expired occurrences do not count. */
  maxRuns?: number;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. */
  jitter: number;
  overlap: Overlap;
  catchUp: CatchUp;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number;
  /** The retention of an execution's record and messages. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number;
  /** The time for which the task is kept after its end, with its executions. None: for ever. In seconds. */
  retention?: number;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: Pull;
  /** The receiver of a message when an execution has ended, with any status. */
  onCompletion?: OnCompletion;
  /** The dead-man's switch that is told when an execution begins and ends. */
  ping?: Ping;
  /** The resource that the task works on: runs with the same key take turns, the earliest due first. */
  lockKey?: string;
  /** The tasks that share the lock key. If None: all, if a server or code names it, or its owner's, if a user does. */
  lockScope?: LockScope;
  /** The most runs with that key that may run at once. */
  lockLimit: number;
  /** The queries that its runs may use in a calendar month, in UTC. It is paused once they are used up. */
  maxQueriesPerMonth?: number;
  /** The tokens of a language model that they may use, likewise. */
  maxTokensPerMonth?: number;
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
  /** The reason why the task is in this status. */
  message: string;
  /** The time at which its pause ends by itself. None if somebody has to resume it. */
  pausedUntil?: string;
  /** The change of many tasks that paused it, or that resumed it, as long as nothing else has paused, resumed or ended it since: that can be taken back for all of them. None if it was paused or resumed alone. */
  pauseId?: string;
  /** The next occurrence that has not been claimed. None if there is none, or while the task is not ACTIVE. */
  nextExecutionTime?: string;
  createdAt: string;
  updatedAt: string;
  statusChangedAt: string;
  /** The final status of the last scheduled occurrence. Manual runs and backfills do not count. */
  outcome?: ExecutionStatus;
  /** The number of scheduled occurrences that have run, or wait for a worker. */
  runCount: number;
  /** The number of occurrences in a row that have failed, up to the one that was due last, without those of which a retry by hand has succeeded. */
  consecutiveFailures: number;
  /** The time at which the first of these failed, or was due once a retry by hand of one before it has succeeded. None if the last one has not failed. */
  failingSince?: string;
  /** The execution that was due last, of those that have ended. A retry of an earlier one does not take its place. */
  lastExecutionId?: string;
  /** The call that created this task, or None if a caller created it directly. */
  parent?: Parent;
  /** The events that its durable handler has not taken yet, the earliest first. */
  events?: Array<Event>;
  /** True if a handler is running for it. */
  isRunning: boolean;
  /** The time since which it has been waiting for a worker, if it is. */
  offeredAt?: string;
  /** The time at which its last run is repeated, if it was snoozed. */
  snoozedUntil?: string;
  /** The statuses of its latest executions, the earliest first and those that are open last, at most 12. One that was retried counts once, if none ran in between. */
  recentStatuses: Array<ExecutionStatus>;
  /** True if a dispatch could not be created yet. The sweep will create it. */
  dispatchDeferred?: boolean;
  /** Its next occurrences, only in the answer to `validateOnly`. */
  upcoming?: Array<Occurrence>;
  /** The requested run, only in the answer to a trigger. */
  triggered?: TriggeredRun;
  /** Its schedule as it was understood, only in answers that create it or change its schedule. A request that has searched all that it may leaves it out. */
  readBack?: ReadBack;
  /** Whether and when it runs next, only in answers to changes of it, and where `receipt=true` asks for it. */
  receipt?: Receipt;
  /** The result of its last execution (`lastExecutionId`), only in the answer to a GET of one task. */
  lastResult?: unknown;
  /** The error of that execution's last attempt, likewise. Both are gone once its record has been removed. */
  lastError?: ExecutionError;
  /** The causes for which it needs attention now, only in lists and in the answer to a GET of one task. Missing if there are none. */
  needs?: Array<NeedCause>;
  /** When the first of its waits for an event times out, only in lists of tasks. Missing if none does. */
  givesUpAt?: string;
  /** What the caller may do with it now. Each execution says whether it may be retried. */
  allowedVerbs?: Array<Verb>;
  /** The record, if the run has failed for good and the API has no `on_failure` for its handler: call yours. */
  failedExecution?: Execution;
}

/** The failed entries whose error made the execution fail. */
export interface FailureCause {
  /** The numbers of the failed entries: one, or all those of one gather. */
  steps: Array<number>;
  /** The length of the journal when the handler received the error. Later entries follow from the failure. */
  position: number;
}

/** A feed: an owner's tasks as a calendar to subscribe to. */
export interface Feed {
  id: string;
  owner: string;
  /** Only tasks of these categories, or of all categories if empty. */
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
  /** Its value before, as JSON. None if it had none, or if it is not shown, being too long or possibly private. */
  before?: string;
  /** Its value after, likewise. */
  after?: string;
}

/** One of the things that are wrong with a request, with one of three places. */
export interface FieldError {
  /** Its place in the body: a JSON Pointer, such as `#/schedule/rrule`, or `#` for the body itself. */
  pointer?: string;
  /** The parameter of the query or of the path. */
  parameter?: string;
  header?: string;
  detail: string;
  /** A way to mend it. */
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
  /** The execution that it is about, or None if it is about the task. */
  executionId?: string;
}

/** The execution with an id. */
export interface FoundRun {
  taskId: string;
  executionId: string;
  /** The title of its task. */
  title: string;
}

/** A task that a text names. */
export interface FoundTask {
  id: string;
  title: string;
  owner: string;
  handler: string;
  status: TaskStatus;
  labels: Array<string>;
}

/** A handler that the caller may name in a task. */
export interface HandlerInfo {
  name: string;
  /** The first paragraph of its docstring. */
  description?: string;
  /** The group of callers that may name it. */
  access: Requesters;
  /** True if scripts may call it. */
  isTool: boolean;
  /** The queue of the workers that run its tasks, unless a task says otherwise. */
  queue?: string;
  /** The queries that one run uses as a rule, if the handler declares it and unless a task says otherwise. */
  queryPerExecution?: number;
  /** The tokens that one run uses as a rule, likewise. */
  tokensPerExecution?: number;
  /** The JSON schema of its payload, or None if it takes any object. */
  payloadSchema?: Record<string, unknown>;
  /** The JSON schemas of the payloads of the events that it has declared, by the events' names. */
  eventSchemas?: Record<string, Record<string, unknown>>;
}

/** The handlers that the caller may name in a task. */
export interface HandlerList {
  handlers: Array<HandlerInfo>;
}

/** The health of a process. */
export interface Health {
  status: HealthStatus;
  /** The state of the circuit breaker to each other service. */
  circuits: Record<string, string>;
  /** The faults that keep threads of the process from their work at present, by the threads' names. That of `cloudsched-watch` is that no process starts what is due. That of `clock`, with which a process is ready all the same, is that a clock was ahead and came back, so that tasks stand still until then. */
  faults: Record<string, string>;
  /** How many handlers hang, and since when: their time is over, and they have not returned. None if none does. Who sees the tasks of all owners finds their names in the overview. */
  hanging?: string;
  /** The release of cloudsched, such as `0.1.0`, or `0.1.0.dev12+g840f0935` with the commit between releases. */
  release?: string;
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

/** One action on a task. */
export interface HistoryEntry {
  /** Its number since the task was created. Numbers that are missing are of entries that have fallen off. */
  number: number;
  at: string;
  action: Action;
  /** The caller who did it, or None for the scheduler itself. Without a subject, it was the app's own code. */
  by?: EventSender;
  /** The fields that an edit changed. */
  fields: Array<FieldChange>;
  /** The execution that it concerns. */
  executionId?: string;
  /** The scheduler's reason for it, or the note of who answered. */
  reason?: string;
}

/** A country's holidays, from the package `holidays`. */
export interface HolidaySource {
  /** The ISO 3166 code of the country, such as FR. */
  country: string;
  /** The code of its part, such as BY for Bavaria. */
  subdivision?: string | null;
  /** The first year, or the year before the current one if None. */
  firstYear?: number | null;
  /** The last year, or ten years from now if None. */
  lastYear?: number | null;
  /** The language of the names, such as fr. By default it is the country's own, if the package knows it. */
  language?: string | null;
  /** The version of the package that the days are from. */
  version?: string | null;
}

/** A lock, its holders, and the runs that wait for it, in order. */
export interface LockDetails {
  key: string;
  scope: LockScope;
  /** The owner whose tasks it is for, unless it is for those of all. */
  owner?: string;
  holders: Array<LockParty>;
  /** The first ten. */
  waiters: Array<LockParty>;
  hasMoreWaiters: boolean;
}

/** A page of the locks that are held or waited for, by their keys. */
export interface LockPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
  lookedThrough?: number;
  locks: Array<LockDetails>;
}

/** A run that holds a lock, or waits for it. */
export interface LockParty {
  taskId: string;
  executionId: string;
  /** None if the task is gone. */
  title?: string;
  /** The time at which a holder's hold ends, unless it is renewed. */
  until?: string;
  /** The time at which one that waits came due. The earliest is first. */
  dueAt?: string;
  /** The time at which one that waits was given its turn. */
  notifiedAt?: string;
}

/** The tasks that share a lock key. */
export type LockScope = "GLOBAL" | "OWNER";

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
  /** The name of its level, such as `INFO`, `WARNING` or `ERROR`. */
  level: string;
  /** The logger's name. */
  logger: string;
  /** The message, with the end of its traceback if it has one. It is cut if it is long. */
  text: string;
  /** The attempt that logged it. */
  attempt: number;
}

/** The lines that a worker's handler has logged. */
export interface LogReport {
  /** All lines that this claim has logged so far, or the last ones. The latest 200 with 16 KiB of text are kept. */
  lines?: Array<LogItem>;
  /** The number of earlier lines of this claim that are not sent. Default: `0`. */
  omittedLines?: number;
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
  /** The event that is asked for, if it is a question: send it to the task, for that execution, to answer. */
  event?: string;
  /** The time until which an answer is accepted, or None if there is no limit. */
  until?: string;
  /** How much later than due its execution began, if that is more than a few minutes. In seconds. */
  late?: number;
  isRead: boolean;
  /** The time at which its owner first read it. */
  readAt?: string;
  /** The time from which the store may remove it. */
  expireAt?: string;
  /** The page on which its owner answers the question by a tap. It is never stored: only its owner, and the app's own code, see it. None if the deployment has no public address. */
  answerUrl?: string;
}

/** A page of the messages in an inbox. */
export interface MessagePage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
  lookedThrough?: number;
  messages: Array<Message>;
}

/** A message of a task to its owner. */
export interface MessageWebhook {
  type: "notification";
  /** The instant of what it reports, the same for all tries. */
  timestamp: string;
  data: ResultData;
  [name: string]: unknown;
}

/** A field that the text does not give, or gives a value that is not allowed. */
export interface MissingField {
  field: string;
  /** The reason for programs, such as `too-soon`, `too-often`, `past` or `not-understood`. */
  code: string;
  /** The reason for people, with a way to mend it. */
  reason: string;
  /** The words at fault, if it is some of the text's. */
  words?: string;
}

/** An occurrence, and its new time. */
export interface MoveRequest {
  /** The occurrence's instant with an offset, or `next`. Default: `"next"`. */
  occurrence?: string;
  /** An instant, or words in the task's time zone: `17:00` on the same day, `Friday` at the same time, `tomorrow at 10`, `an hour later`. */
  to: string;
}

/** How a store finds tasks by their names. */
export type NameMatch = "FRAGMENTS" | "BEGINNINGS" | "NEWEST";

/** A task that a text names or asks for. */
export interface NamedTask {
  id: string;
  title: string;
  status: TaskStatus;
  /** Its schedule in words. */
  description: string;
  /** Its next occurrence, or the first one on the day that was asked for. */
  next?: Occurrence;
}

/** Something that needs attention: one task, the tasks of a handler, or what keeps many from running. */
export interface Need {
  cause: NeedCause;
  /** What it is about, and what is wrong. */
  sentence: string;
  /** The error of the first of them, for example. */
  detail: string;
  /** The number that the sentence has, of what is at `path`. None if it has none. */
  count?: Count;
  /** The time since which the first of them has been so. */
  since?: string;
  /** The time at which the first of those that wait gives up. */
  until?: string;
  /** The handler, queue, owner or service that it is about. Only callers who see all tasks learn which queue. */
  subject?: string;
  /** Where it is, below the address of the dashboard. Below `/v1/` the API has a list of tasks at the same path. */
  path: string;
  /** The filters of that list. */
  query: Record<string, string>;
  act?: NeedAct;
}

/** What resolves a need. The caller may do it. */
export interface NeedAct {
  /** A verb, such as `Retry`. */
  label: string;
  /** Where that is done, below the address of the dashboard. */
  path: string;
  query: Record<string, string>;
}

/** The reason why something needs attention, the most urgent first. */
export type NeedCause =
  | "QUEUE_PAUSED"
  | "UNKNOWN_HANDLER"
  | "BUDGET_USED_UP"
  | "NO_ANSWER"
  | "NOT_REACHABLE"
  | "FAILED"
  | "WAITING"
  | "OVERDUE"
  | "PAUSED"
  | "BUDGET"
  | "LIMIT"
  | "DELIVERY"
  | "NO_WORKER_LISTENS";

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
  /** Only tasks of these categories, or of all categories if empty. */
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
  telegram?: TelegramContactInput | null;
  slack?: SlackContactInput | null;
  /** The IANA zone of the tasks whose schedules follow the person. Default: `"UTC"`. */
  timezone?: string;
  /** The person's language, such as `de-AT`, for templates and handlers. */
  locale?: string | null;
  /** The only channels that may be used, by category. A category that is not listed may come by all channels. The web inbox always has everything. */
  channels?: Record<string, Array<DeliveryChannel>>;
}

/** A task to create, or to replace the one with the same id. */
export interface NewTask {
  /** The title for people, or the handler's name if it is left out. */
  title?: string;
  description?: string;
  purpose?: string;
  /** Default: `"OTHERS"`. */
  category?: Category;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels?: Array<string>;
  /** The registered name of the function to run. */
  handler?: string;
  /** The handler's argument, validated against its model. */
  payload?: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<ChildInput>;
  /** True if its children run in parallel, rather than in order. Default: `false`. */
  parallel?: boolean;
  /** The consequence of a failed child for the children after it, and for the task. Default: `"FAIL"`. */
  onChildFailure?: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: ScriptInput | null;
  deliveryChannels?: Array<DeliveryChannel>;
  /** The title of the message that is delivered, or the task's title if None. */
  deliveryTitle?: string | null;
  /** The failures that its owner is told of, by these channels and in the inbox: the first of a row, each, or none. Default: `"FIRST"`. */
  tellFailures?: TellFailures;
  /** The estimated cost of one execution, in queries. Default: `0`. */
  queryPerExecution?: number;
  /** The estimated cost of one execution, in tokens of a language model. Default: `0`. */
  tokensPerExecution?: number;
  source?: SourceInput | null;
  /** Default: `"NORMAL"`. */
  priority?: Priority;
  /** Default: `{"maxRetries": 3, "firstDelay": 0, "base": 5, "factor": 5.0, "cap": 3600, "jitter": 0.1}`. */
  retry?: RetryPolicyInput;
  /** The longest duration of one attempt. It is the length of the lease: after it, another executor may take over. In seconds. Default: `300.0`. */
  expectedDuration?: number;
  /** No occurrence after this instant is run. */
  until?: string | null;
  /** The task is complete after this many scheduled runs. Skipped and expired occurrences do not count. */
  maxRuns?: number | null;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. Default: `0.0`. */
  jitter?: number;
  /** Default: `"SKIP"`. */
  overlap?: Overlap;
  /** Default: `{"mode": "LATEST", "window": null}`. */
  catchUp?: CatchUpInput;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number | null;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number | null;
  /** The retention of an execution's record and messages. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number | null;
  /** The time for which the task is kept after its end, with its executions. None: for ever. In seconds. */
  retention?: number | null;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: PullInput | null;
  /** The receiver of a message when an execution has ended, with any status. */
  onCompletion?: OnCompletion | null;
  /** The dead-man's switch that is told when an execution begins and ends. */
  ping?: PingInput | null;
  /** The resource that the task works on: runs with the same key take turns, the earliest due first. */
  lockKey?: string | null;
  /** The tasks that share the lock key. If None: all, if a server or code names it, or its owner's, if a user does. */
  lockScope?: LockScope | null;
  /** The most runs with that key that may run at once. Default: `1`. */
  lockLimit?: number;
  /** The queries that its runs may use in a calendar month, in UTC. It is paused once they are used up. */
  maxQueriesPerMonth?: number | null;
  /** The tokens of a language model that they may use, likewise. */
  maxTokensPerMonth?: number | null;
  /** The caller's own stable id, or a random UUID if None. */
  id?: string | null;
  /** The task's owner; the caller if it is omitted, or `system`. */
  owner?: string;
  schedule?: string | ScheduleInput | null;
  /** The token of the draft that has the other fields, unchanged. */
  draftToken?: string | null;
  /** The IANA zone of a schedule that is text. UTC if it is omitted. */
  timezone?: string;
  /** The language of a schedule in words. If it is omitted, the words tell it. */
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

/** The numbers of upcoming occurrences. */
export interface OccurrenceCounts {
  /** The earliest first. */
  parts: Array<OccurrencePart>;
}

/** The next occurrences of a task. */
export interface OccurrenceList {
  occurrences: Array<Occurrence>;
}

/** A page of upcoming runs, the soonest first. */
export interface OccurrencePage {
  occurrences: Array<TaskOccurrence>;
  /** Fetches the next page. */
  nextPageToken?: string;
  /** From this instant on, occurrences of further tasks are missing: too many tasks are due before it. */
  completeUntil?: string;
}

/** The number of upcoming occurrences in one part of a time. */
export interface OccurrencePart {
  /** Its first instant. */
  start: string;
  /** The first instant after it. */
  end: string;
  /** The number of occurrences in it that have not been claimed yet. */
  due: Count;
}

/** Several occurrences in a row that never ran and share one record. */
export interface OccurrenceRange {
  /** The last of them, or the latest that it can be if they were not all counted. The first is the record's own. */
  until: string;
  /** The number of occurrences. */
  count: number;
  /** True if there may be more, because they were not counted to the end. */
  isAtLeast: boolean;
}

/** The consequence of a failed child for the children after it, and for the task. */
export type OnChildFailure = "FAIL" | "SKIP" | "CONTINUE";

/** The receiver of a message when an execution of a task has ended. */
export interface OnCompletion {
  /** The URL that a webhook is posted to, signed with the owner's webhook secret. Users may name only addresses at the host of their own webhook. */
  webhook: string;
}

/** The policy for an occurrence that comes due while a run is open. */
export type Overlap = "SKIP" | "BUFFER" | "ALLOW";

/** Counts of tasks and executions for an overview. On Firestore each count of tasks ends at 10,000. */
export interface OverviewCounts {
  /** The time of the count, up to ten seconds ago. */
  countedAt: string;
  /** The number of tasks of each status. */
  tasks: Record<string, Count>;
  /** The number of tasks with an open execution, by the status of the most active one. */
  open: Record<string, Count>;
  /** The last twelve hours, the earliest first. The last one has just begun. */
  hours: Array<PartCounts>;
  /** The number of tasks that are due within an hour, or overdue. */
  dueSoon: Count;
  /** The earliest next occurrence that is in the past and not claimed, and that no open run of its task holds back. */
  overdueSince?: string;
  /** What needs attention, the most urgent first. What another of them explains is left out. */
  needs: Array<Need>;
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
  /** True if the task's owner wrote the call, as one of a task's children or in a script. Then the owner may claim it as a worker, but not change it. A call that a handler's code made the owner may neither claim nor change. */
  isOwners: boolean;
  /** True if a user wrote or edited the task at the top. Then the owner's quotas hold for the calls below it. */
  isForUser: boolean;
  /** If a script called a script: the task and the execution at the top, for which such calls are counted. */
  scriptTree?: string;
}

/** The ended runs that were scheduled for one part of the time: an hour or a day, for example. */
export interface PartCounts {
  start: string;
  /** The part ends before this instant. */
  end: string;
  /** The number that succeeded. */
  ran: number;
  /** The number that failed or timed out. */
  failed: number;
  /** The occurrences that were skipped, cancelled or expired. One record may cover many. */
  skipped: Count;
  /** The runs that other runs made. None of the other numbers has them, because the caller's record has their end. */
  calls: number;
  /** The number of those that ran or failed, and started late, after three minutes or more. It is counted for all runs and by owner: with another filter it is 0. */
  late: number;
}

/** What is to change of a queue in Cloud Tasks: its state, its rates, or some of them. */
export interface PatchDispatchQueue {
  /** PAUSED keeps its dispatches, RUNNING delivers them again. */
  state?: "RUNNING" | "PAUSED" | null;
  maxDispatchesPerSecond?: number | null;
  maxConcurrentDispatches?: number | null;
}

/** The end of a pause. */
export interface PauseRequest {
  /** The time at which the task goes on: an instant, or words such as `Monday` or `15 December at 9:00` in its time zone. A day begins at midnight. If omitted, somebody has to resume it. */
  until?: string | null;
}

/** A person's contacts and preferences. */
export interface Person {
  name: string;
  email?: EmailContact;
  devices: Array<Device>;
  webhook?: WebhookContact;
  telegram?: TelegramContact;
  slack?: SlackContact;
  /** The IANA zone of the tasks whose schedules follow the person. */
  timezone: string;
  /** The person's language, such as `de-AT`, for templates and handlers. */
  locale?: string;
  /** The only channels that may be used, by category. A category that is not listed may come by all channels. The web inbox always has everything. */
  channels: Record<string, Array<DeliveryChannel>>;
  owner: string;
  createdAt: string;
  updatedAt: string;
}

/** Changes of some contacts and preferences. A missing field stays as it is, and null removes it. */
export interface PersonPatch {
  name?: string | null;
  /** The address, in place of the present one. Another address is not verified. */
  email?: EmailContactInput | null;
  /** All devices, in place of the present ones. */
  devices?: Array<Device> | null;
  /** The endpoint, in place of the present one. Another URL is not verified. */
  webhook?: WebhookContactInput | null;
  telegram?: TelegramContactInput | null;
  /** The account, in place of the present one. Another one is not verified, as with `telegram`. */
  slack?: SlackContactInput | null;
  timezone?: string | null;
  locale?: string | null;
  /** The channels of the categories that are named here. All others keep theirs, and null removes a category's. */
  channels?: Record<string, Array<DeliveryChannel> | null> | null;
}

/** The dead-man's switch, such as a check of healthchecks.io, that is told when executions begin and end. */
export interface Ping {
  /** Posted to when an execution has succeeded. If it has no query, `/start` and `/fail` are added to it when one begins, and when one has failed, timed out or expired, unless `startUrl` and `failureUrl` say otherwise. */
  url: string;
  /** Posted to when an execution begins. */
  startUrl?: string;
  /** Posted to when an execution has failed, timed out or expired. */
  failureUrl?: string;
}

/** The dead-man's switch, such as a check of healthchecks.io, that is told when executions begin and end. */
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
  /** The IANA zone of a schedule that is text. UTC if it is omitted. */
  timezone?: string;
  /** The language of a schedule in words. If it is omitted, the words tell it. */
  locale?: string;
}

/** The urgency of a task: it selects the queue, each with its own rate, and the order of repairs. */
export type Priority = "CRITICAL" | "HIGH" | "NORMAL" | "LOW";

/** The reason why a request failed (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The path of the invalid field, or of the first one if there are several. */
  field?: string;
  /** A way to mend it. */
  hint?: string;
  /** The words that were not understood, of a schedule in words. */
  words?: string;
  /** All errors of the request, as far as they were found. */
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
  /** The skill that the worker must have, such as `cuda`, or None if any worker of the queue may run it. */
  skill?: string;
}

/** The queue whose workers run a task. On the wire, the queue's name alone may replace the object. */
export type PullInput = string | {
  queue: string;
  /** The skill that the worker must have, such as `cuda`, or None if any worker of the queue may run it. */
  skill?: string | null;
};

/** The limit of an owner's usage: of queries, tokens or both. */
export interface PutBudget {
  /** The most queries in a calendar month, in UTC. 10^12, as if it is left out, is any number. Default: `1000000000000`. */
  maxQueriesPerMonth?: number;
  /** The most tokens of a language model, likewise. Default: `1000000000000`. */
  maxTokensPerMonth?: number;
}

/** A calendar to create or replace. At most one of `days`, `ics`, `url` and `holidays` is given. */
export interface PutCalendar {
  /** The calendar's owner. Without one, an admin's calendar is for everybody, and a user's belongs to the user. */
  owner?: string | null;
  title?: string;
  /** Days of the week that are always on it. */
  weekdays?: Array<"MO" | "TU" | "WE" | "TH" | "FR" | "SA" | "SU"> | null;
  /** Its days, listed one by one. */
  days?: Array<CalendarDay> | null;
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

/** What a person is asked by name, and what an answer needs. */
export interface QuestionData {
  title: string;
  body: string;
  taskId: string;
  executionId: string;
  event: string;
  /** The time until which an answer is accepted, or None if there is no limit. */
  until?: string;
  /** The page with the buttons Approve and Reject. Whoever opens it answers as that person. */
  answerUrl?: string;
  /** The seconds by which the message is late, if it is late enough to say so. */
  late?: number;
  [name: string]: unknown;
}

/** A question to a person, whom a handler asks by name (`ctx.wait_for` with channels). */
export interface QuestionWebhook {
  type: "question";
  timestamp: string;
  data: QuestionData;
  [name: string]: unknown;
}

/** The runs that wait in a queue: all of them, or those that require one skill. */
export interface Queue {
  queue: string;
  /** The skill that the waiting runs require. */
  skill?: string;
  /** The number of runs that wait. Behind a task after the twentieth there may be more than the one that is counted, and at most 1,000 tasks are counted. */
  waiting: Count;
  /** The time since which the first in the queue has been waiting. */
  firstSince?: string;
  /** The number of workers that have asked for it in the last three minutes. */
  workers: number;
}

/** The queues in which something waits or workers listen. */
export interface QueueList {
  queues: Array<Queue>;
}

/** What a queue of Cloud Tasks does. */
export type QueueState = "RUNNING" | "PAUSED" | "DISABLED";

/** A task that waits in a queue. */
export interface QueuedTask {
  taskId: string;
  owner: string;
  handler: string;
  title: string;
  /** The skill that it requires. */
  skill?: string;
  priority: Priority;
  /** The time since which it has been waiting. */
  offeredAt: string;
  /** The number of its runs that wait. */
  runs: number;
}

/** A page of the tasks that wait in a queue, in its order. */
export interface QueuedTaskPage {
  /** Fetches the next page. */
  nextPageToken?: string;
  /** The number of items that were read for it, if some were passed over because they do not match. */
  lookedThrough?: number;
  tasks: Array<QueuedTask>;
}

/** The schedule as it was understood. Show it to whoever gave the schedule. */
export interface ReadBack {
  /** The schedule in words. */
  description: string;
  /** True if the words leave something out, which they name at their end. */
  isSummary: boolean;
  /** The next instants at which it runs, at most five, in the schedule's time zone. */
  next: Array<string>;
  timezone: string;
  /** The points that the request left open, and how they were decided, one sentence each. */
  assumed: Array<string>;
}

/** The reason why a task runs, waits or does not run. */
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
  | "WAITING_FOR_CALLS"
  | "WAITING_FOR_QUOTA"
  | "SLEEPING"
  | "SUSPENDED"
  | "DUE"
  | "SCHEDULED"
  | "CALENDAR"
  | "FOLLOWS_OWNER"
  | "UNKNOWN_ZONE"
  | "TOO_MANY_RUNS"
  | "OVERLAP"
  | "BACKLOG"
  | "DEFERRED"
  | "SWEEP_IS_LATE"
  | "OVERDUE"
  | "QUEUE_PAUSED"
  | "UNKNOWN_HANDLER"
  | "BUDGET_USED_UP"
  | "CHANNEL_NOT_SET_UP"
  | "NOT_REACHABLE"
  | "NO_ANSWER"
  | "NOT_CHECKED"
  | "NOT_DELIVERED"
  | "LAST_OUTCOME"
  | "OUTCOME"
  | "NOT_CREATED"
  | "NOT_DUE"
  | "CLOCK_CHANGE"
  | "EDITED"
  | "MOVED"
  | "SKIPPED"
  | "NOT_KEPT";

/** What was promised by a write: when the task runs, and what stands in the way of that now. */
export interface Receipt {
  /** True if the next run is planned, and nothing was found that keeps it from beginning in time. False if there are `doubts`. */
  scheduled: boolean;
  /** The next instants at which it runs, at most three, in the time zone of its owner, or in its own if none is stored of them. All are in the future: a run that is due already is not among them. */
  next: Array<string>;
  /** The instant by which its next run should have begun. None if none is to begin. */
  dueBy?: string;
  doubts: Array<Doubt>;
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
  /** The time at which the renewed lease ends. */
  leaseUntil: string;
  /** The time at which it was renewed: now, by the API's clock. */
  renewedAt: string;
  /** True if the task was cancelled: stop. */
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
  /** The handler's argument, validated against its model. */
  payload?: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<Child>;
  /** True if its children run in parallel, rather than in order. */
  parallel: boolean;
  /** The consequence of a failed child for the children after it, and for the task. */
  onChildFailure: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: Script;
  deliveryChannels: Array<DeliveryChannel>;
  /** The title of the message that is delivered, or the task's title if None. */
  deliveryTitle?: string;
  /** The failures that its owner is told of, by these channels and in the inbox: the first of a row, each, or none. */
  tellFailures: TellFailures;
  /** The estimated cost of one execution, in queries. */
  queryPerExecution: number;
  /** The estimated cost of one execution, in tokens of a language model. */
  tokensPerExecution: number;
  source?: Source;
  priority: Priority;
  retry: RetryPolicy;
  /** The longest duration of one attempt. It is the length of the lease: after it, another executor may take over. In seconds. */
  expectedDuration: number;
  /** No occurrence after this instant is run. */
  until?: string;
  /** The task is complete after this many scheduled runs. Skipped and expired occurrences do not count. */
  maxRuns?: number;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. */
  jitter: number;
  overlap: Overlap;
  catchUp: CatchUp;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number;
  /** The retention of an execution's record and messages. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number;
  /** The time for which the task is kept after its end, with its executions. None: for ever. In seconds. */
  retention?: number;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: Pull;
  /** The receiver of a message when an execution has ended, with any status. */
  onCompletion?: OnCompletion;
  /** The dead-man's switch that is told when an execution begins and ends. */
  ping?: Ping;
  /** The resource that the task works on: runs with the same key take turns, the earliest due first. */
  lockKey?: string;
  /** The tasks that share the lock key. If None: all, if a server or code names it, or its owner's, if a user does. */
  lockScope?: LockScope;
  /** The most runs with that key that may run at once. */
  lockLimit: number;
  /** The queries that its runs may use in a calendar month, in UTC. It is paused once they are used up. */
  maxQueriesPerMonth?: number;
  /** The tokens of a language model that they may use, likewise. */
  maxTokensPerMonth?: number;
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
  /** The reason why the task is in this status. */
  message: string;
  /** The time at which its pause ends by itself. None if somebody has to resume it. */
  pausedUntil?: string;
  /** The change of many tasks that paused it, or that resumed it, as long as nothing else has paused, resumed or ended it since: that can be taken back for all of them. None if it was paused or resumed alone. */
  pauseId?: string;
  /** The next occurrence that has not been claimed. None if there is none, or while the task is not ACTIVE. */
  nextExecutionTime?: string;
  createdAt: string;
  updatedAt: string;
  statusChangedAt: string;
  /** The final status of the last scheduled occurrence. Manual runs and backfills do not count. */
  outcome?: ExecutionStatus;
  /** The number of scheduled occurrences that have run, or wait for a worker. */
  runCount: number;
  /** The number of occurrences in a row that have failed, up to the one that was due last, without those of which a retry by hand has succeeded. */
  consecutiveFailures: number;
  /** The time at which the first of these failed, or was due once a retry by hand of one before it has succeeded. None if the last one has not failed. */
  failingSince?: string;
  /** The execution that was due last, of those that have ended. A retry of an earlier one does not take its place. */
  lastExecutionId?: string;
  /** The call that created this task, or None if a caller created it directly. */
  parent?: Parent;
  /** The events that its durable handler has not taken yet, the earliest first. */
  events?: Array<Event>;
  /** True if a handler is running for it. */
  isRunning: boolean;
  /** The time since which it has been waiting for a worker, if it is. */
  offeredAt?: string;
  /** The time at which its last run is repeated, if it was snoozed. */
  snoozedUntil?: string;
  /** The statuses of its latest executions, the earliest first and those that are open last, at most 12. One that was retried counts once, if none ran in between. */
  recentStatuses: Array<ExecutionStatus>;
  /** True if a dispatch could not be created yet. The sweep will create it. */
  dispatchDeferred?: boolean;
  /** Its next occurrences, only in the answer to `validateOnly`. */
  upcoming?: Array<Occurrence>;
  /** The requested run, only in the answer to a trigger. */
  triggered?: TriggeredRun;
  /** Its schedule as it was understood, only in answers that create it or change its schedule. A request that has searched all that it may leaves it out. */
  readBack?: ReadBack;
  /** Whether and when it runs next, only in answers to changes of it, and where `receipt=true` asks for it. */
  receipt?: Receipt;
  /** The result of its last execution (`lastExecutionId`), only in the answer to a GET of one task. */
  lastResult?: unknown;
  /** The error of that execution's last attempt, likewise. Both are gone once its record has been removed. */
  lastError?: ExecutionError;
  /** The causes for which it needs attention now, only in lists and in the answer to a GET of one task. Missing if there are none. */
  needs?: Array<NeedCause>;
  /** When the first of its waits for an event times out, only in lists of tasks. Missing if none does. */
  givesUpAt?: string;
  /** What the caller may do with it now. Each execution says whether it may be retried. */
  allowedVerbs?: Array<Verb>;
}

/** The group that a request comes from, or of a handler, the group that may name it. */
export type Requesters = "users" | "servers";

/** Another address for a delivery that is sent again. */
export interface ResendRequest {
  /** The person's e-mail address from now on, in place of the present one. Others than admins may give the one that their ID token has as verified. */
  address?: string | null;
}

/** A result, and what it belongs to. */
export interface ResultData {
  title: string;
  body: string;
  taskId: string;
  executionId: string;
  /** What the handler returned, or null. */
  content?: unknown;
  /** True if the content is too large to be sent: the execution has it. */
  isContentOmitted?: boolean;
  /** The chat that the task came from (`source.chatId`), if it came from one. */
  chatId?: string;
  /** The id of the result as a message of that chat. */
  messageId?: string;
  /** The seconds by which the message is late, if it is late enough to say so. */
  late?: number;
  [name: string]: unknown;
}

/** The failed executions that a retry would concern now, without those of paused and cancelled tasks. */
export interface RetryCount {
  /** At most 500 failures are read for it. */
  count: Count;
  /** The first ten, the latest first. */
  first: Array<FailedExecution>;
}

/** The number of times that a failing handler is called again, and the delays before these calls. */
export interface RetryPolicy {
  /** Calls after the first one. 0 means that a failure is final. */
  maxRetries: number;
  /** The wait before the first retry. If only `base` is given, it is this one. In seconds. */
  firstDelay: number;
  /** The wait before the second retry. In seconds. */
  base: number;
  /** The factor by which each further wait is longer. */
  factor: number;
  /** No wait is longer than this. In seconds. */
  cap: number;
  /** Each wait is lengthened by a random part of itself, at most this one. */
  jitter: number;
}

/** The number of times that a failing handler is called again, and the delays before these calls. */
export interface RetryPolicyInput {
  /** Calls after the first one. 0 means that a failure is final. Default: `3`. */
  maxRetries?: number;
  /** The wait before the first retry. If only `base` is given, it is this one. In seconds. Default: `0.0`. */
  firstDelay?: number;
  /** The wait before the second retry. In seconds. Default: `5.0`. */
  base?: number;
  /** The factor by which each further wait is longer. Default: `5.0`. */
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
  telegram?: TelegramContact;
  slack?: SlackContact;
  /** The IANA zone of the tasks whose schedules follow the person. */
  timezone: string;
  /** The person's language, such as `de-AT`, for templates and handlers. */
  locale?: string;
  /** The only channels that may be used, by category. A category that is not listed may come by all channels. The web inbox always has everything. */
  channels: Record<string, Array<DeliveryChannel>>;
  owner: string;
  createdAt: string;
  updatedAt: string;
  /** The secret that signs messages to the new webhook. Keep it: it is shown only here. */
  webhookSecret?: string;
}

/** One instant, a delay, or a recurrence set. It is immutable, and camelCase in JSON and Firestore. */
export interface Schedule {
  /** The calendars that the schedule respects, each with the policy for occurrences on its days. */
  calendars: Array<CalendarRule>;
  /** Moves every occurrence to that free day of its month: 3 is the third, -1 the last. A free day is on none of the calendars. */
  businessDay?: number;
  at?: string;
  /** In seconds. */
  delay?: number;
  rrule?: string | Array<string>;
  dtstart?: string;
  timezone: string;
  rdates: Array<string>;
  exdates: Array<string>;
  gap: "SHIFT" | "SKIP";
  fold: "FIRST" | "LAST" | "BOTH";
  subDaily: "ELAPSED" | "WALL";
  local?: string;
  followsOwner: boolean;
  startZone?: string;
}

/** One instant, a delay, or a recurrence set. It is immutable, and camelCase in JSON and Firestore. */
export interface ScheduleInput {
  /** The calendars that the schedule respects, each with the policy for occurrences on its days. */
  calendars?: Array<CalendarRuleInput>;
  /** Moves every occurrence to that free day of its month: 3 is the third, -1 the last. A free day is on none of the calendars. */
  businessDay?: number | null;
  at?: string | null;
  delay?: number | null;
  rrule?: string | Array<string> | null;
  dtstart?: string | null;
  /** Default: `"UTC"`. */
  timezone?: string;
  rdates?: Array<string>;
  exdates?: Array<string>;
  /** Default: `"SHIFT"`. */
  gap?: "SHIFT" | "SKIP";
  /** Default: `"FIRST"`. */
  fold?: "FIRST" | "LAST" | "BOTH";
  /** Default: `"ELAPSED"`. */
  subDaily?: "ELAPSED" | "WALL";
  local?: string | null;
  /** Default: `false`. */
  followsOwner?: boolean;
  startZone?: string | null;
}

/** The meaning of a schedule. */
export interface SchedulePreview {
  description: string;
  schedule: Schedule;
  occurrences: Array<Occurrence>;
  /** The assumptions about the words, and calendars that have no dates as late as the last occurrence. */
  assumptions?: Array<string>;
  /** The purpose of the schedule, if the words name it. */
  title?: string;
}

/** One of the meanings of a schedule in words. */
export interface ScheduleReading {
  /** Send it in place of the words. */
  schedule: Record<string, unknown>;
  /** The schedule in words that mean nothing else. */
  description: string;
  /** The difference from the other readings. */
  label: string;
}

/** The script that a task runs, its own or one that its owner has stored, and its tools. */
export interface Script {
  /** The body of an async function, in JavaScript. */
  source?: string;
  /** The name of a stored script of the task's owner, in place of a source. Each execution runs the version that is stored when it begins, to its end. */
  name?: string;
  /** The handlers that it may call, or None for all that are marked with `tool=True`. It can call no others. They narrow those of a stored script. */
  tools?: Array<string>;
}

/** A stored script with its source. */
export interface ScriptDetails {
  name: string;
  /** The owner whose tasks and scripts can run it. */
  owner: string;
  description: string;
  /** The handlers that it may call. If missing, it may call all that are tools. */
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
  /** The handlers that it may call, or None for all that are marked with `tool=True`. It can call no others. They narrow those of a stored script. */
  tools?: Array<string> | null;
}

/** An owner's stored scripts. */
export interface ScriptList {
  scripts: Array<ScriptSummary>;
}

/** A stored script without its source. */
export interface ScriptSummary {
  name: string;
  /** The owner whose tasks and scripts can run it. */
  owner: string;
  description: string;
  /** The handlers that it may call. If missing, it may call all that are tools. */
  tools?: Array<string>;
  /** Incremented whenever its source or its tools change. */
  version: number;
  createdAt: string;
  updatedAt: string;
}

/** What a text names. */
export interface SearchResults {
  /** The newest first, without calls. */
  tasks: Array<FoundTask>;
  owners: Array<string>;
  handlers: Array<string>;
  /** Those of the tasks that were found. */
  labels: Array<string>;
  /** The task whose id is exactly the text. */
  task?: FoundTask;
  /** The execution whose task and id are exactly the text, as `TASK/EXECUTION`. */
  execution?: FoundRun;
  /** False if only the newest tasks, or not everybody's profiles, were looked at. */
  isComplete: boolean;
  /** How tasks are found by their names. */
  matchedBy: NameMatch;
}

/** A version that began to serve. */
export interface SeenDeployment {
  /** The revision of the service, or the version of cloudsched where there is none. */
  version: string;
  /** The time at which it swept first. */
  at: string;
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

/** The role of an event's sender towards the task. */
export type SenderRole = "owner" | "admin" | "worker" | "person";

/** A channel that is sent to, or the callback when an execution has ended. */
export type SentChannel = "EMAIL" | "MOBILE" | "WEBHOOK" | "OPERATOR" | "TELEGRAM" | "SLACK" | "COMPLETION" | "PING";

/** The occurrence to leave out. */
export interface SkipRequest {
  /** The occurrence's instant with an offset, or `next`. Default: `"next"`. */
  occurrence?: string;
}

/** A person's account in the Slack workspace that has the deployment's app. */
export interface SlackContact {
  /** The member's id. */
  id: string;
  /** The same as of Telegram. */
  verified?: boolean;
}

/** A person's account in the Slack workspace that has the deployment's app. */
export interface SlackContactInput {
  /** The member's id. */
  id: string;
  /** The same as of Telegram. */
  verified?: boolean | null;
}

/** The duration of a snooze. */
export interface SnoozeRequest {
  /** An ISO 8601 duration, or words such as `10 minutes` or `tomorrow at 9:00` in the task's time zone. At most 30 days. Default: `"PT10M"`. */
  duration?: string;
}

/** The origin of the request for a task. */
export interface Source {
  chatId?: string;
  messageId?: string;
  /** A snapshot of the request's context, stored unchanged. */
  context?: Record<string, unknown>;
  /** The conversation that led to the task, the earliest message first. It is data, and may have texts by others. */
  messages?: Array<SourceMessage>;
  /** The settings of the language model in that conversation. */
  model?: SourceModel;
}

/** The origin of the request for a task. */
export interface SourceInput {
  chatId?: string | null;
  messageId?: string | null;
  /** A snapshot of the request's context, stored unchanged. */
  context?: Record<string, unknown> | null;
  /** The conversation that led to the task, the earliest message first. It is data, and may have texts by others. */
  messages?: Array<SourceMessage> | null;
  /** The settings of the language model in that conversation. */
  model?: SourceModelInput | null;
}

/** A message of the conversation that a task comes from. */
export interface SourceMessage {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
}

/** The language model's settings in that conversation, for the built-in handler `assistant`. */
export interface SourceModel {
  /** The model's name, or the one of the app's settings if None. */
  name?: string;
  /** The most times that it is asked in one execution. The app's limit holds if this is None or higher. */
  maxTurns?: number;
  /** The most tokens that one execution may use. The app's limit holds if this is None or higher. */
  maxTokens?: number;
}

/** The language model's settings in that conversation, for the built-in handler `assistant`. */
export interface SourceModelInput {
  /** The model's name, or the one of the app's settings if None. */
  name?: string | null;
  /** The most times that it is asked in one execution. The app's limit holds if this is None or higher. */
  maxTurns?: number | null;
  /** The most tokens that one execution may use. The app's limit holds if this is None or higher. */
  maxTokens?: number | null;
}

/** The error of a step, or of the handler that it called. */
export interface StepError {
  type: string;
  message: string;
  /** The final status of a call's execution, or DELETED. */
  status?: string;
}

/** The kind of request that a durable handler made. */
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
  /** The time at which its handler, going on, found that a call had ended. Until then it waits or is paused. */
  noticedAt?: string;
  /** The number of times that a step was tried. */
  attempts: number;
  /** The latest eight tries, if one has failed. Only the last may have succeeded. A first success is not stored. */
  tries: Array<StepTry>;
  /** The time at which a sleep is over, a wait is given up, or a failed step is tried again. */
  dueAt?: string;
  /** The id of the task that a call created. */
  child?: string;
  /** True if that task is known to exist, if the run's `calls_made` does not cover it. False: a retry creates it. */
  isMade?: boolean;
  result?: unknown;
  /** The place where the result is stored, if it is too large for the entry. */
  reference?: string;
  /** True if the task's owner wrote its request (children or a script). No handler's code may rely on it. */
  isOwners?: boolean;
  error?: StepError;
  /** The question of a wait for an event: an answer counts only for what was asked. */
  asked?: AskedWords;
  /** The sender of the event that was taken. */
  sender?: EventSender;
  queries?: number;
  /** The usage that its function reported, over all its attempts: a replay does not call it again. Of a call, what its task has used. */
  tokens?: number;
}

/** The state of a journal entry. */
export type StepStatus = "WAITING" | "SUCCEEDED" | "FAILED" | "TIMED_OUT" | "CANCELLED";

/** One call of a step's function. */
export interface StepTry {
  startedAt: string;
  finishedAt: string;
}

/** The last sweep, which repairs lost work. */
export interface SweepState {
  finishedAt: string;
  /** The seconds since that sweep. One should come every minute. */
  lag: number;
  /** True if it seems not to run, or not to keep up. */
  isLate: boolean;
  /** The number of tasks that were overdue then. */
  examined: number;
  /** The number of dispatches that it sent again. */
  dispatched: number;
  /** The number of tasks whose dispatches the queue did not accept. */
  unsent: number;
  /** The number of tasks that could not be repaired. */
  failed: number;
  /** How many handlers hang now, which, and since when. None if none does. */
  hanging?: string;
  /** The latest versions that have swept, the latest last. */
  deployments: Array<SeenDeployment>;
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
  /** The handler's argument, validated against its model. */
  payload: Record<string, unknown>;
  /** The child tasks that it runs in place of a handler of its own. */
  children: Array<Child>;
  /** True if its children run in parallel, rather than in order. */
  parallel: boolean;
  /** The consequence of a failed child for the children after it, and for the task. */
  onChildFailure: OnChildFailure;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: Script;
  deliveryChannels: Array<DeliveryChannel>;
  /** The title of the message that is delivered, or the task's title if None. */
  deliveryTitle?: string;
  /** The failures that its owner is told of, by these channels and in the inbox: the first of a row, each, or none. */
  tellFailures: TellFailures;
  /** The estimated cost of one execution, in queries. */
  queryPerExecution: number;
  /** The estimated cost of one execution, in tokens of a language model. */
  tokensPerExecution: number;
  source?: Source;
  priority: Priority;
  retry: RetryPolicy;
  /** The longest duration of one attempt. It is the length of the lease: after it, another executor may take over. In seconds. */
  expectedDuration: number;
  /** No occurrence after this instant is run. */
  until?: string;
  /** The task is complete after this many scheduled runs. Skipped and expired occurrences do not count. */
  maxRuns?: number;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. */
  jitter: number;
  overlap: Overlap;
  catchUp: CatchUp;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number;
  /** The retention of an execution's record and messages. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number;
  /** The time for which the task is kept after its end, with its executions. None: for ever. In seconds. */
  retention?: number;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: Pull;
  /** The receiver of a message when an execution has ended, with any status. */
  onCompletion?: OnCompletion;
  /** The dead-man's switch that is told when an execution begins and ends. */
  ping?: Ping;
  /** The resource that the task works on: runs with the same key take turns, the earliest due first. */
  lockKey?: string;
  /** The tasks that share the lock key. If None: all, if a server or code names it, or its owner's, if a user does. */
  lockScope?: LockScope;
  /** The most runs with that key that may run at once. */
  lockLimit: number;
  /** The queries that its runs may use in a calendar month, in UTC. It is paused once they are used up. */
  maxQueriesPerMonth?: number;
  /** The tokens of a language model that they may use, likewise. */
  maxTokensPerMonth?: number;
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
  /** The reason why the task is in this status. */
  message: string;
  /** The time at which its pause ends by itself. None if somebody has to resume it. */
  pausedUntil?: string;
  /** The change of many tasks that paused it, or that resumed it, as long as nothing else has paused, resumed or ended it since: that can be taken back for all of them. None if it was paused or resumed alone. */
  pauseId?: string;
  /** The next occurrence that has not been claimed. None if there is none, or while the task is not ACTIVE. */
  nextExecutionTime?: string;
  createdAt: string;
  updatedAt: string;
  statusChangedAt: string;
  /** The final status of the last scheduled occurrence. Manual runs and backfills do not count. */
  outcome?: ExecutionStatus;
  /** The number of scheduled occurrences that have run, or wait for a worker. */
  runCount: number;
  /** The number of occurrences in a row that have failed, up to the one that was due last, without those of which a retry by hand has succeeded. */
  consecutiveFailures: number;
  /** The time at which the first of these failed, or was due once a retry by hand of one before it has succeeded. None if the last one has not failed. */
  failingSince?: string;
  /** The execution that was due last, of those that have ended. A retry of an earlier one does not take its place. */
  lastExecutionId?: string;
  /** The call that created this task, or None if a caller created it directly. */
  parent?: Parent;
  /** The events that its durable handler has not taken yet, the earliest first. */
  events: Array<Event>;
  /** True if a handler is running for it. */
  isRunning: boolean;
  /** The time since which it has been waiting for a worker, if it is. */
  offeredAt?: string;
  /** The time at which its last run is repeated, if it was snoozed. */
  snoozedUntil?: string;
  /** The statuses of its latest executions, the earliest first and those that are open last, at most 12. One that was retried counts once, if none ran in between. */
  recentStatuses: Array<ExecutionStatus>;
  /** True if a dispatch could not be created yet. The sweep will create it. */
  dispatchDeferred?: boolean;
  /** Its next occurrences, only in the answer to `validateOnly`. */
  upcoming?: Array<Occurrence>;
  /** The requested run, only in the answer to a trigger. */
  triggered?: TriggeredRun;
  /** Its schedule as it was understood, only in answers that create it or change its schedule. A request that has searched all that it may leaves it out. */
  readBack?: ReadBack;
  /** Whether and when it runs next, only in answers to changes of it, and where `receipt=true` asks for it. */
  receipt?: Receipt;
  /** The result of its last execution (`lastExecutionId`), only in the answer to a GET of one task. */
  lastResult?: unknown;
  /** The error of that execution's last attempt, likewise. Both are gone once its record has been removed. */
  lastError?: ExecutionError;
  /** The causes for which it needs attention now, only in lists and in the answer to a GET of one task. Missing if there are none. */
  needs?: Array<NeedCause>;
  /** When the first of its waits for an event times out, only in lists of tasks. Missing if none does. */
  givesUpAt?: string;
  /** What the caller may do with it now. Each execution says whether it may be retried. */
  allowedVerbs?: Array<Verb>;
}

/** The tasks that a change would concern now. */
export interface TaskCount {
  /** At most some 500 tasks are read for it. */
  count: Count;
  /** Up to ten of them. */
  first: Array<ConcernedTask>;
}

/** The actions on a task by hand, the latest first. */
export interface TaskHistory {
  entries: Array<HistoryEntry>;
  /** The number of entries that are not kept. */
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
  /** The number of items that were read for it, if some were passed over because they do not match. */
  lookedThrough?: number;
  tasks: Array<Task>;
}

/** The fields to change; `null` restores a field's default. */
export interface TaskPatch {
  /** The title for people, or the handler's name if it is left out. */
  title?: string;
  description?: string | null;
  purpose?: string | null;
  /** Default: `"OTHERS"`. */
  category?: Category | null;
  /** Texts `key=value` to find it by, such as `team=payments`. */
  labels?: Array<string> | null;
  /** The registered name of the function to run. */
  handler?: string;
  /** The handler's argument, validated against its model. */
  payload?: Record<string, unknown> | null;
  /** The child tasks that it runs in place of a handler of its own. */
  children?: Array<ChildInput> | null;
  /** True if its children run in parallel, rather than in order. Default: `false`. */
  parallel?: boolean | null;
  /** The consequence of a failed child for the children after it, and for the task. Default: `"FAIL"`. */
  onChildFailure?: OnChildFailure | null;
  /** The JavaScript that it runs in place of a handler of its own. */
  script?: ScriptInput | null;
  deliveryChannels?: Array<DeliveryChannel> | null;
  /** The title of the message that is delivered, or the task's title if None. */
  deliveryTitle?: string | null;
  /** The failures that its owner is told of, by these channels and in the inbox: the first of a row, each, or none. Default: `"FIRST"`. */
  tellFailures?: TellFailures | null;
  /** The estimated cost of one execution, in queries. Default: `0`. */
  queryPerExecution?: number | null;
  /** The estimated cost of one execution, in tokens of a language model. Default: `0`. */
  tokensPerExecution?: number | null;
  source?: SourceInput | null;
  /** Default: `"NORMAL"`. */
  priority?: Priority | null;
  /** Default: `{"maxRetries": 3, "firstDelay": 0, "base": 5, "factor": 5.0, "cap": 3600, "jitter": 0.1}`. */
  retry?: RetryPolicyInput | null;
  /** The longest duration of one attempt. It is the length of the lease: after it, another executor may take over. In seconds. Default: `300.0`. */
  expectedDuration?: number | null;
  /** No occurrence after this instant is run. */
  until?: string | null;
  /** The task is complete after this many scheduled runs. Skipped and expired occurrences do not count. */
  maxRuns?: number | null;
  /** Each run starts up to this much later, by an amount that is fixed for the occurrence. In seconds. Default: `0.0`. */
  jitter?: number | null;
  /** Default: `"SKIP"`. */
  overlap?: Overlap | null;
  /** Default: `{"mode": "LATEST", "window": null}`. */
  catchUp?: CatchUpInput | null;
  /** An occurrence that did not start within this time is recorded as EXPIRED and not run. In seconds. */
  expiration?: number | null;
  /** The task pauses itself after this many failed occurrences in a row. */
  pauseAfterFailures?: number | null;
  /** The retention of an execution's record and messages. None: the record as long as the task, messages for ever. In seconds. */
  executionRetention?: number | null;
  /** The time for which the task is kept after its end, with its executions. None: for ever. In seconds. */
  retention?: number | null;
  /** The queue that workers claim it from. None: the executor runs it. */
  pull?: PullInput | null;
  /** The receiver of a message when an execution has ended, with any status. */
  onCompletion?: OnCompletion | null;
  /** The dead-man's switch that is told when an execution begins and ends. */
  ping?: PingInput | null;
  /** The resource that the task works on: runs with the same key take turns, the earliest due first. */
  lockKey?: string | null;
  /** The tasks that share the lock key. If None: all, if a server or code names it, or its owner's, if a user does. */
  lockScope?: LockScope | null;
  /** The most runs with that key that may run at once. Default: `1`. */
  lockLimit?: number | null;
  /** The queries that its runs may use in a calendar month, in UTC. It is paused once they are used up. */
  maxQueriesPerMonth?: number | null;
  /** The tokens of a language model that they may use, likewise. */
  maxTokensPerMonth?: number | null;
  schedule?: string | ScheduleInput | null | null;
  /** The token of the draft that has the other fields, unchanged. */
  draftToken?: string | null;
  /** The IANA zone of a schedule that is text. UTC if it is omitted. */
  timezone?: string | null;
  /** The language of a schedule in words. If it is omitted, the words tell it. */
  locale?: string | null;
  /** The fields of the payload to change; all others stay. `null` resets one. */
  payloadMerge?: Record<string, unknown>;
  /** Only of a draft's changes, with their `draftToken`: what to do with the task, instead of an edit. */
  operation?: "pause" | "resume" | "cancel" | "delete" | "trigger";
}

/** The status of a task as a whole. */
export type TaskStatus = "ACTIVE" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED" | "EXPIRED";

/** A person's chat with the deployment's bot in Telegram. */
export interface TelegramContact {
  /** The number of the chat, which the bot tells whoever writes to it. */
  id: string;
  /** True if somebody who reads that chat has confirmed that they want the messages. No other message is sent to one that is not. Only an admin may set it. It is lost when the account changes. */
  verified?: boolean;
}

/** A person's chat with the deployment's bot in Telegram. */
export interface TelegramContactInput {
  /** The number of the chat, which the bot tells whoever writes to it. */
  id: string;
  /** True if somebody who reads that chat has confirmed that they want the messages. No other message is sent to one that is not. Only an admin may set it. It is lost when the account changes. */
  verified?: boolean | null;
}

/** The failed runs of a task about which its owner gets a message. */
export type TellFailures = "FIRST" | "EACH" | "NEVER";

export interface Tree {
  task: Task;
  children: Array<Tree>;
  /** The number of its calls that are missing here. Newer calls, and those nearer to the root, are shown first. */
  omittedChildren: number;
}

/** The reason why an occurrence runs. */
export type Trigger = "SCHEDULE" | "MANUAL" | "BACKFILL" | "SNOOZE";

/** The payload of a run. */
export interface TriggerRequest {
  /** The payload for this run and its retries, in place of the task's. The task's own does not change. */
  payload?: Record<string, unknown> | null;
}

/** The run that a trigger has started, or would start. */
export interface TriggeredRun {
  /** Its execution, or None if nothing was to be stored. */
  executionId?: string;
  /** The payload that its handler gets. */
  payload: Record<string, unknown>;
}

/** One message of a conversation. */
export interface Turn {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
}

/** Amounts of usage. */
export interface UsageAmounts {
  /** Executions that started and ended. One that is retried by hand counts once more. */
  executions: number;
  /** The queries that the handlers have reported. */
  queries: number;
  /** The queries that the tasks had estimated for these executions. */
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
  /** The cost of all this, by the deployment's prices. */
  dollars: number;
}

/** The usage in a month. */
export interface UsagePage {
  /** In UTC, such as `2026-11`. */
  month: string;
  /** By owner and handler. */
  usage: Array<UsageRow>;
  /** One for each owner or handler, in place of the rows, if they were asked for with `by`. */
  sums?: Array<UsageSum>;
  /** The sum of these rows. */
  total: UsageAmounts;
  /** Everything that was counted before this instant is included. */
  summedUntil: string;
  /** True if all changes were read. If not, there were too many: ask again. */
  isComplete: boolean;
  /** US dollars for a million of each. */
  prices: Record<string, number>;
  /** Fetches the usage of further owners. */
  nextPageToken?: string;
}

/** The usage of a handler for an owner in a month. */
export interface UsageRow {
  /** Executions that started and ended. One that is retried by hand counts once more. */
  executions: number;
  /** The queries that the handlers have reported. */
  queries: number;
  /** The queries that the tasks had estimated for these executions. */
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
  /** The cost of all this, by the deployment's prices. */
  dollars: number;
  owner: string;
  handler: string;
  month: string;
}

/** The usage of an owner, of a handler, or of a value of a label, in a month. */
export interface UsageSum {
  /** Executions that started and ended. One that is retried by hand counts once more. */
  executions: number;
  /** The queries that the handlers have reported. */
  queries: number;
  /** The queries that the tasks had estimated for these executions. */
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
  /** The cost of all this, by the deployment's prices. */
  dollars: number;
  /** Empty for what was used without the label. */
  name: string;
}

/** What a caller can do with a task or an execution. */
export type Verb =
  | "edit"
  | "pause"
  | "resume"
  | "cancel"
  | "delete"
  | "trigger"
  | "snooze"
  | "skip"
  | "move"
  | "backfill"
  | "sendEvent"
  | "retry"
  | "cancelRun";

/** The question whether an endpoint wants a person's messages. It is asked before it gets any. */
export interface VerificationWebhook {
  type: "webhook.verification";
  timestamp: string;
  data: ChallengeData;
  [name: string]: unknown;
}

/** A service that gets the person's messages. */
export interface WebhookContact {
  url: string;
  /** True if the endpoint has proven that it wants the messages. No message is sent to one that has not. Only an admin may set it. If another caller sets the URL, the endpoint is asked. It is lost when the URL changes. */
  verified?: boolean;
}

/** A service that gets the person's messages. */
export interface WebhookContactInput {
  url: string;
  /** True if the endpoint has proven that it wants the messages. No message is sent to one that has not. Only an admin may set it. If another caller sets the URL, the endpoint is asked. It is lost when the URL changes. */
  verified?: boolean | null;
}

/** The reason why an execution has no result. */
export interface WebhookError {
  /** The class of the exception, or a word for what happened: `Expired`. */
  type: string;
  message: string;
  [name: string]: unknown;
}

/** A new secret of a person's webhooks, which is shown only here. */
export interface WebhookSecret {
  webhookSecret: string;
}

/** A day of the week, as RFC 5545 names it. */
export type Weekday = "MO" | "TU" | "WE" | "TH" | "FR" | "SA" | "SU";

/** The workers that have asked for work in the last day. */
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
  /** The API caller that claims for it, or None for a worker at the store. */
  claimedBy?: string;
  /** The time at which it last asked for work. It is noted at most once a minute. */
  seenAt: string;
  /** True if that was in the last three minutes. */
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
  /** Only items of this owner. */
  owner?: string;
  /** The status of a task as a whole. */
  status?: "ACTIVE" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED" | "EXPIRED";
  handler?: string;
  /** One of their labels, `key=value`. */
  label?: string;
  /** The next occurrence is not before this instant. */
  dueFrom?: string;
  /** The next occurrence is before this instant. */
  dueUntil?: string;
  /** Only tasks with this problem, the latest first. It goes with neither `dueFrom` nor `dueUntil`. With `OVERDUE` the soonest come first, and `troubleUntil` is needed. */
  trouble?: "BUDGET" | "LIMIT" | "PAUSED" | "FAILED" | "WAITING" | "DELIVERY" | "UNREACHED" | "OVERDUE";
  /** Of the tasks that are late, only those that were due before this instant. */
  troubleUntil?: string;
  /** Only tasks with each of these words in their title, id, handler, labels or payload. `payload.about=sales` is the text of a field of the payload, `category:report` the category. */
  search?: string;
  /** True to look for these words in payloads, too. Without, and with an index of names, all tasks are searched at once. */
  payloads?: boolean;
  /** True to list calls, too: the tasks that other tasks have made to do a part of their work. */
  calls?: boolean;
  /** The newest first, or the soonest first, omitting tasks without a next occurrence. The default is the soonest first with `dueFrom` or `dueUntil`, else the newest first. */
  orderBy?: "createdAt desc" | "nextExecutionTime";
}

/** Get a task. */
export interface GetTaskQuery {
  /** `true` adds `receipt`: when it runs next, and what stands in the way of that. Changes are always answered with it. */
  receipt?: "true" | "false";
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
  /** Only executions that are scheduled for this instant or later. */
  from?: string;
  /** Only executions that are scheduled for an earlier instant than this. */
  until?: string;
}

/** List the upcoming occurrences of all tasks that are `ACTIVE`, the soonest first. */
export interface ListOccurrencesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
  /** Only occurrences before this instant. */
  until: string;
  /** Only occurrences at this instant or later. All upcoming ones if omitted. */
  from?: string;
  /** Only occurrences of this handler's tasks. */
  handler?: string;
  /** Only occurrences of tasks with this label. */
  label?: string;
  /** Only occurrences of tasks with this category. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
}

/** Count the upcoming occurrences in each day, hour or quarter of an hour. */
export interface CountOccurrencesQuery {
  /** Only items of this owner. */
  owner?: string;
  /** Only occurrences at this instant or later. */
  from: string;
  /** Only occurrences before this instant. There are at most 200 parts. */
  until: string;
  /** The zone whose clock divides the time. */
  timezone?: string;
  /** The length of a part: a day, an hour or a quarter of an hour. */
  per?: "P1D" | "PT1H" | "PT15M";
  /** Only occurrences of this handler's tasks. */
  handler?: string;
  /** Only occurrences of tasks with this label. */
  label?: string;
  /** Only occurrences of tasks with this category. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
}

/** List executions of all tasks: first those that failed, then those that run, then all others. */
export interface FindExecutionsQuery {
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
  /** Only executions that are scheduled for this instant or later. */
  from?: string;
  /** Only executions that are scheduled for an earlier instant than this. */
  until?: string;
  /** Only items of this owner. */
  owner?: string;
  /** Only ended executions that count as this: skipped are also those that were cancelled or expired, and failed those that timed out. */
  outcome?: "RAN" | "FAILED" | "SKIPPED";
  /** Only executions of this handler. */
  handler?: string;
  /** Only executions whose task had this label. */
  label?: string;
  /** Only executions whose task had this category. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
  /** Only executions whose error has this text in its type or message, in any case. */
  error?: string;
  /** Only executions whose error is exactly of this type. */
  errorType?: string;
  /** True to list executions of calls, too. A failed call is also in the record of the execution that made it. */
  calls?: boolean;
  /** Only executions that took at least this long: their attempts, without the time between these. In seconds. */
  minDuration?: number;
  /** Only executions that their schedule started at least this long after their instant. In seconds. */
  minLateness?: number;
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
}

/** Count the executions that ended in each day, hour or quarter: ran, failed, skipped, and calls. */
export interface CountExecutionsQuery {
  /** Only items of this owner. */
  owner?: string;
  /** Only executions that are scheduled for this instant or later. */
  from: string;
  /** Only executions that are scheduled for an earlier instant than this, at most 200 parts later. */
  until: string;
  /** The length of a part: a day, an hour or a quarter of an hour. */
  per?: "P1D" | "PT1H" | "PT15M";
  /** The zone whose wall clock divides the parts. */
  timezone?: string;
  /** Only executions of this handler. */
  handler?: string;
  /** Only executions whose task had this label. */
  label?: string;
  /** Only executions whose task had this category. */
  category?: "REMINDER" | "REPORT" | "ANALYSIS" | "OTHERS";
}

/** List the messages in an owner's inbox, the newest first. */
export interface ListMessagesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only the questions of that page that still wait for an answer. */
  awaited?: boolean;
}

/** Count tasks by status, open work, the executions that ended in each recent hour, and list what needs attention. */
export interface GetOverviewQuery {
  /** Only items of this owner. */
  owner?: string;
}

/** Get a text that is different after any task has changed: a cheap check that a list is still up to date. */
export interface GetChangeCursorQuery {
  /** Only items of this owner. */
  owner?: string;
}

/** Find what has all words of a text in its name: tasks, owners, handlers and labels. */
export interface SearchNamesQuery {
  /** Only items of this owner. */
  owner?: string;
  /** Words. Each is a part of the title, the id, the handler, the owner or a label, in any case. */
  q: string;
  /** The most of each kind to return. */
  pageSize?: number;
}

/** List who did what, the latest first: `GET /v1/tasks/{taskId}/history` of all tasks, and more. */
export interface ListAuditEntriesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
  /** A part of the name of who did it, in any case, or `scheduler`. */
  by?: string;
  /** An action in the audit trail: on a task, or on a budget, a queue or a contact. */
  action?: 
    | "CREATED"
    | "EDITED"
    | "PAUSED"
    | "RESUMED"
    | "CANCELLED"
    | "RUN_CANCELLED"
    | "TRIGGERED"
    | "SNOOZED"
    | "RETRIED"
    | "BACKFILLED"
    | "ENDED"
    | "MOVED"
    | "SKIPPED"
    | "APPROVED"
    | "REJECTED"
    | "DELETED"
    | "BUDGET_SET"
    | "BUDGET_DELETED"
    | "QUEUE_PAUSED"
    | "QUEUE_RESUMED"
    | "QUEUE_CHANGED"
    | "QUEUE_PURGED"
    | "CONTACT_VERIFIED";
  /** Only actions at this instant or later. */
  from?: string;
  /** Only actions before this instant. */
  until?: string;
}

/** Show the usage of a month, by owner and handler. */
export interface GetUsageQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
  /** Only this handler's usage. */
  handler?: string;
  /** The month in UTC, such as `2026-11`. The current one if omitted. */
  month?: string;
  /** Answer one sum for each owner, handler or value of a label (`sums`), over all pages, in place of the rows. It takes a read for each sheet of the month: one for each 100 tasks or so. By label it also takes one for each task, of at most 10,000. */
  by?: "OWNER" | "HANDLER" | "LABEL";
  /** With `by=LABEL`, the key of the label, such as `team` of `team=shop`. The labels are those that the tasks have now. What was used without one, also by deleted tasks, has an empty name. */
  labelKey?: string;
}

/** List all budgets, and how much of each is used, by owner. */
export interface ListBudgetsQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
}

/** List the deliveries to an owner, with their channels and results, the newest first. */
export interface ListOwnerDeliveriesQuery {
  /** The largest number of items to return. More than 500 count as 500. */
  pageSize?: number;
  /** The `nextPageToken` of the previous page. Keep the same filters. */
  pageToken?: string;
  /** Only items of this owner. */
  owner?: string;
  /** Only deliveries by this channel. */
  channel?: string;
  /** Only deliveries that were made at this instant or later. Of those that reached nobody, since then. */
  from?: string;
  /** Only those before this instant. */
  until?: string;
  /** Only those that were not sent because no address of their person could be used. */
  unreached?: boolean;
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
  /** Only tasks that require this skill, or none. All if omitted. */
  skill?: string;
}

/** List the workers that have asked for work in the last day. */
export interface ListWorkersQuery {
  /** Only items of this owner. */
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

/** Get a script. */
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

/** Store a person, or replace all of their contacts and preferences. */
export interface PutPersonQuery {
  /** `true` also removes what the body leaves out. Without it, or an `If-Match`, such a request is refused. */
  replace?: "true" | "false";
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

/** The verbs on one task, with the arguments of the Python client. */
export abstract class TaskVerbs {
  /** @internal */
  protected abstract _change(path: string, body?: object, options?: ChangeOptions, query?: object): Promise<Task>;

  /** Pause a task. */
  pause(taskId: string, { until, ...options }: ChangeOptions & { until?: PauseRequest["until"] } = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/pause`, { until }, options);
  }

  /** Resume a paused task. */
  resume(taskId: string, options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/resume`, undefined, options);
  }

  /** Cancel a task. */
  cancel(taskId: string, options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/cancel`, undefined, options);
  }

  /** Run a task now. */
  trigger(taskId: string, payload?: TriggerRequest["payload"], { validateOnly, ...options }: ChangeOptions & { validateOnly?: boolean } = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/trigger`, { payload }, options, { validateOnly: validateOnly ? "true" : undefined });
  }

  /** Run a task's last run again, later. */
  snooze(taskId: string, duration?: SnoozeRequest["duration"], options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/snooze`, { duration }, options);
  }

  /** Leave out one occurrence of a task. */
  skip(taskId: string, occurrence?: SkipRequest["occurrence"], options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/skip`, { occurrence }, options);
  }

  /** Run one occurrence of a task at another time. */
  move(taskId: string, occurrence: MoveRequest["occurrence"], to: MoveRequest["to"], options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/move`, { occurrence, to }, options);
  }

  /** Run the occurrences of a past range again. */
  backfill(taskId: string, start: Date | string, end: Date | string, options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/backfill`, { start, end }, options);
  }

  /** Send an event to the execution of a task that waits for it. */
  sendEvent(taskId: string, event: string, payload?: SendEventRequest["payload"], { executionId, early, ...options }: ChangeOptions & { executionId?: SendEventRequest["executionId"] } & { early?: SendEventRequest["early"] } = {}): Promise<Task | undefined> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/events/${encodeURIComponent(event)}`, { payload, executionId, early }, options);
  }

  /** Give an execution one more attempt. */
  retry(taskId: string, executionId?: RetryRequest["executionId"], { fromStep, ...options }: ChangeOptions & { fromStep?: RetryRequest["fromStep"] } = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/retry`, { executionId, fromStep }, options);
  }

  /** Cancel one run of a task. */
  cancelRun(taskId: string, executionId: CancelRunRequest["executionId"], options: ChangeOptions = {}): Promise<Task> {
    return this._change(`/v1/tasks/${encodeURIComponent(taskId)}/cancelRun`, { executionId }, options);
  }
}
