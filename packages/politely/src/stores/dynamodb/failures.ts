import { StoreError } from "../../errors.js";
import type { DynamodbItem } from "../dynamodb.js";

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

const THROTTLED = /^(ProvisionedThroughputExceeded|RequestLimitExceeded|Throttling|TooManyRequests)/;
const CONFLICT = /^Transaction(Conflict|InProgress)/;
const CREDENTIALS =
  /^(CredentialsProvider|ExpiredToken|IncompleteSignature|InvalidClientTokenId|InvalidSignature|MissingAuthentication|RequestExpired|SignatureDoesNotMatch|UnrecognizedClient)/;
/** What somebody has to mend, beside credentials. */
const LASTING = /^(ResourceNotFound|AccessDenied|Validation)Exception$/;

/** Reads what the client rejected with. Undefined when trying again does not help: `failureOf` says what it is then. */
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

/** What the client rejected with as a `StoreError` that says what to do. One that is a `StoreError` already stays as it is. */
export function failureOf(error: unknown, table: string): StoreError {
  if (error instanceof StoreError) return error;
  const { name, message } = (error ?? {}) as ClientError;
  const said = typeof message === "string" && message !== "" ? message : String(error);
  const isLasting = typeof name === "string" && (LASTING.test(name) || CREDENTIALS.test(name));
  return new StoreError(explain(typeof name === "string" ? name : "", said, table), { cause: error, isLasting });
}

/** The error for an operation that was not over in time. */
export function timeoutOf(timeoutMs: number, tries: number, last: string | undefined, table: string): StoreError {
  const within = `within ${timeoutMs} ms`;
  if (last === undefined)
    return new StoreError(
      `DynamoDB did not answer ${within}. Check that it can be reached, or raise timeoutMs. What was asked may or may not have happened.`,
    );
  return new StoreError(
    last === "throttled"
      ? `Table "${table}" has no capacity left: ${tries} tries ${within} were throttled. Raise its capacity, or have it billed by request.`
      : `Table "${table}" was changed by others at every one of ${tries} tries ${within}. Have fewer processes share one key, or raise timeoutMs.`,
  );
}

function explain(name: string, said: string, table: string): string {
  if (name === "ResourceNotFoundException")
    return `There is no table "${table}" where the client looks. Create it with createTable() of the store, or check the client's region, account and endpoint.`;
  if (CREDENTIALS.test(name))
    return `DynamoDB does not accept the client's credentials (${name}: ${said}). Check them.`;
  if (name === "AccessDeniedException")
    return `The client's credentials do not allow this on table "${table}" (${said}). The store needs dynamodb:GetItem, PutItem and ConditionCheckItem; createTable() needs CreateTable, DescribeTable and UpdateTimeToLive too.`;
  if (/item size/i.test(said))
    return `The state of a key is larger than 400 KB, the most that an item of DynamoDB holds (${said}). Give it limits with smaller windows, or let fewer processes wait at it.`;
  if (name === "ValidationException" && /\bkeys?\b/i.test(said))
    return `Table "${table}" is not made for Politely: its key has to be a string named "key", without a sort key (${said}). Give the store a table of its own; createTable() makes one.`;
  return `DynamoDB did not do what was asked for (${name === "" ? said : `${name}: ${said}`}). Check the client's region and endpoint, the network, and table "${table}". It may or may not have happened.`;
}
