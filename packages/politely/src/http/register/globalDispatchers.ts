import type { Dispatch } from "../undici/dispatchTypes.js";
import { GLOBAL_DISPATCHERS as KEYS } from "../undici/globalKeys.js";

/** The part of an undici dispatcher that is called here. */
export interface Dispatcher {
  dispatch: Dispatch;
}

/** Methods that must run on the dispatcher itself. All others have to find the paced `dispatch` on `this`. */
const OWN_METHODS: readonly unknown[] = ["close", "destroy"];

type Globals = Record<symbol, Dispatcher | undefined> & { fetch?: (...args: unknown[]) => unknown; Headers?: unknown };

/** Puts pacing around whatever dispatcher is global, and around those that calls of the global `fetch` bring along. */
export class GlobalDispatchers {
  readonly #paced = new WeakMap<Dispatcher, Dispatcher>();
  readonly #globals = globalThis as unknown as Globals;
  #hasNodes = false;

  constructor(readonly pace: (dispatch: Dispatch) => Dispatch) {}

  /** From now on, what becomes global is paced at once. */
  install(): void {
    const isWatching = this.#watchDefinitions();
    for (const key of KEYS) this.#adopt(key);
    if (!isWatching) this.#adoptNodes();
    this.#watchFetch();
  }

  /** Whether the program has put another dispatcher there in a way that could not be noticed. */
  get isReplaced(): boolean {
    return KEYS.some((key) => {
      const current = this.#globals[key];
      return current !== undefined && this.#paced.get(current) !== current;
    });
  }

  /** The same dispatcher with a `dispatch` that is paced. A paced one is itself. */
  paced(base: Dispatcher): Dispatcher {
    const known = this.#paced.get(base);
    if (known !== undefined) return known;
    const dispatch = this.pace((options, handler) => base.dispatch(options, handler));
    const paced = new Proxy(base, {
      get(target, key) {
        if (key === "dispatch") return dispatch;
        const value: unknown = Reflect.get(target, key, target);
        if (!OWN_METHODS.includes(key) || typeof value !== "function") return value;
        return (...args: unknown[]): unknown => Reflect.apply(value, target, args);
      },
    });
    this.#paced.set(base, paced);
    this.#paced.set(paced, paced);
    return paced;
  }

  #adopt(key: symbol): void {
    const current = this.#globals[key];
    if (typeof current?.dispatch === "function") this.#globals[key] = this.paced(current);
  }

  /**
   * Makes Node make its dispatcher, and paces it. Not before the program needs it: a copy of undici that finds none makes its
   * own, and what that copy composes works with no other.
   */
  #adoptNodes(): void {
    this.#hasNodes = true;
    // It is made when one of these is first asked for.
    void this.#globals.Headers;
    for (const key of KEYS) this.#adopt(key);
  }

  /** `setGlobalDispatcher` of every undici ends in `Object.defineProperty`, and says nothing otherwise. False when that cannot be watched. */
  #watchDefinitions(): boolean {
    const define = Object.defineProperty;
    const adopt = (key: symbol): void => this.#adopt(key);
    try {
      Object.defineProperty = function defineProperty<T>(target: T, key: PropertyKey, descriptor: PropertyDescriptor) {
        const defined = define(target, key, descriptor);
        if (target === globalThis && typeof key === "symbol" && KEYS.includes(key)) adopt(key);
        return defined;
      };
      return true;
    } catch {
      // The program runs with frozen intrinsics. What it replaces is told at the end.
      return false;
    }
  }

  #watchFetch(): void {
    const { fetch } = this.#globals;
    if (fetch === undefined) return;
    this.#globals.fetch = new Proxy(fetch, {
      apply: (target, self, args: unknown[]): unknown => {
        if (!this.#hasNodes) this.#adoptNodes();
        const init = args[1] as { readonly dispatcher?: Dispatcher } | null | undefined;
        if (typeof init?.dispatcher?.dispatch !== "function") return Reflect.apply(target, self, args);
        const dispatcher = { value: this.paced(init.dispatcher), enumerable: true };
        return Reflect.apply(target, self, [args[0], Object.create(init, { dispatcher })]);
      },
    });
  }
}
