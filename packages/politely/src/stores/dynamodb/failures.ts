import { StoreError } from "../../errors.js";
import type { DynamodbItem } from "../dynamodb.js";
import { type Failures, failureOf } from "../failures.js";

/** Says why something did not happen when trying again may help. */
export class Refusal {
  constructor(
    readonly why: "changed" | "conflict" | "throttled",
    /** The items as they are, by their position among the keys, where they are not as they were thought to be; undefined: there is none. */
    readonly found: ReadonlyMap<number, DynamodbItem | undefined> = new Map(),
  ) {}
}

/** The part of the client's errors that is read. */
interface ClientError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly Item?: DynamodbItem;
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Item?: DynamodbItem }[];
}

const CREDENTIALS =
  /^(CredentialsProvider|ExpiredToken|IncompleteSignature|InvalidClientTokenId|InvalidSignature|MissingAuthentication|RequestExpired|SignatureDoesNotMatch|UnrecognizedClient)/;
/** What somebody has to mend, beside credentials. */
const LASTING = /^(ResourceNotFound|AccessDenied|Validation)Exception:/;
const THROTTLED = /^(ProvisionedThroughputExceeded|RequestLimitExceeded|Throttling|TooManyRequests)/;
const CONFLICT = /^Transaction(Conflict|InProgress)/;
/** By name and message. What is lasting somebody has to mend. */
const FAILURES: Failures = {
  "^ResourceNotFoundException:":
    'There is no table "{table}" where the client looks. Create it with createTable() of the store, or check the client\'s region, account and endpoint.',
  [CREDENTIALS.source]: "DynamoDB does not accept the client's credentials ({said}). Check them.",
  "^AccessDeniedException:":
    'The client\'s credentials do not allow this on table "{table}" ({words}). The store needs dynamodb:GetItem, PutItem and ConditionCheckItem; createTable() needs CreateTable, DescribeTable and UpdateTimeToLive too.',
  "item size":
    "The state of a key is larger than 400 KB, the most that an item of DynamoDB holds ({words}). Give it limits with smaller windows, or let fewer processes wait at it.",
  "^ValidationException:.*\\bkeys?\\b":
    'Table "{table}" is not made for Politely: its key has to be a string named "key", without a sort key ({words}). Give the store a table of its own; createTable() makes one.',
  "": 'DynamoDB did not do what was asked for ({said}). Check the client\'s region and endpoint, the network, and table "{table}". It may or may not have happened.',
};
/** Reads what the client rejected with. Undefined when trying again does not help: `dynamodbError` says what it is then. */
export function refusalOf(error: unknown): Refusal | undefined {
  const { name, Item, CancellationReasons = [] } = (error ?? {}) as ClientError;
  if (typeof name !== "string") return undefined;
  const single = { Code: name.replace(/Exception$/, ""), Item };
  const reasons = name === "TransactionCanceledException" ? CancellationReasons : [single];
  const found = new Map(
    reasons.flatMap((reason, index) => (reason.Code === "ConditionalCheckFailed" ? [[index, reason.Item]] : [])),
  );
  const isOne = (pattern: RegExp): boolean => reasons.some(({ Code = "" }) => pattern.test(Code));
  if (isOne(THROTTLED)) return new Refusal("throttled", found);
  if (isOne(CONFLICT)) return new Refusal("conflict", found);
  return found.size > 0 ? new Refusal("changed", found) : undefined;
}

/** What the client rejected with as a `StoreError` that says what to do. */
export function dynamodbError(error: unknown, table: string): StoreError {
  const { name, message } = (error ?? {}) as ClientError;
  const words = typeof message === "string" && message !== "" ? message : String(error);
  const said = typeof name === "string" ? `${name}: ${words}` : words;
  return failureOf(error, FAILURES, { said, words, table, isLasting: LASTING.test(said) || CREDENTIALS.test(said) });
}

/** The error for an operation that was not over in time. */
export function timeoutOf(timeoutMs: number, tries: number, last: string | undefined, table: string): StoreError {
  if (last === "throttled")
    return new StoreError(
      `Table "${table}" has no capacity left: ${tries} tries within ${timeoutMs} ms were throttled. Raise its capacity, or have it billed by request.`,
    );
  return new StoreError(
    last === undefined
      ? `DynamoDB did not answer within ${timeoutMs} ms. Check that it can be reached, or raise timeoutMs. What was asked may or may not have happened.`
      : `Table "${table}" was changed by others at every one of ${tries} tries within ${timeoutMs} ms. Have fewer processes share one key, or raise timeoutMs.`,
  );
}
