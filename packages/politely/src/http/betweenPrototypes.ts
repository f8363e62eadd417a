/** Puts a prototype between responses and their class, one for each class. */
export class BetweenPrototypes {
  readonly #made = new WeakMap<object, object>();

  /** `properties` gives what the prototype for `base` has instead of what that has. */
  constructor(readonly properties: (base: Response, self: () => object) => PropertyDescriptorMap) {}

  adopt(response: Response): void {
    const base = Object.getPrototypeOf(response) as Response;
    let prototype = this.#made.get(base);
    if (prototype === undefined) {
      prototype = this.#make(base);
      this.#made.set(base, prototype);
    }
    Object.setPrototypeOf(response, prototype);
  }

  #make(base: Response): object {
    const prototype = Object.create(base) as object;
    const properties = this.properties(base, () => prototype);
    for (const property of Object.values(properties)) {
      property.configurable = true;
      property.enumerable = true;
      if ("value" in property) property.writable = true;
    }
    return Object.defineProperties(prototype, properties);
  }
}

/** What the class of a response says. */
export function own<Name extends keyof Response>(base: Response, response: Response, name: Name): Response[Name] {
  return Reflect.get(base, name, response);
}
