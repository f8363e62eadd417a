import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

/** The part of an OpenAPI document that is judged by. */
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

interface Operation {
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >;
}

/** An answer, as it came. */
export interface SeenAnswer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
}

/** Judges answers by the document that the service itself serves. */
export class Contract {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #checks = new Map<object, ValidateFunction>();
  #document: Document | undefined = undefined;

  /** Takes the document. Until then nothing is judged. */
  read(document: unknown): void {
    this.#document = document as Document;
    if (!this.#document.openapi.startsWith("3.1.")) throw new Error(`not OpenAPI 3.1: ${this.#document.openapi}`);
  }

  /** Throws when an answer is not what the document says of its path, method and status. */
  check({ method, path, status, type, text }: SeenAnswer): void {
    const document = this.#document;
    if (document === undefined || method === "HEAD") return;
    const place = `${method} ${path.slice(0, 80)} ${status}`;
    const operation = this.#operation(document, method, path);
    if (operation === undefined) {
      if (status < 400) throw new Error(`${place} is not in the document`);
      this.#match(document.components.schemas.Problem, text, place);
      return;
    }
    const { responses } = operation;
    const described = status >= 400 ? responses.default : responses[String(status)];
    if (described === undefined) throw new Error(`${place}: the document has no such answer`);
    const mediaType = (type ?? "").split(";", 1)[0];
    if (described.content === undefined) {
      if (text !== "") throw new Error(`${place} should have no body; got ${text}`);
      return;
    }
    const schema = described.content[mediaType]?.schema;
    if (schema === undefined) throw new Error(`${place}: the document knows no ${mediaType} here`);
    if (status < 400 && mediaType !== "application/json") return;
    this.#match("$ref" in schema ? document.components.schemas.Problem : schema, text, place);
    if (status >= 400 && (JSON.parse(text) as { status: unknown }).status !== status) {
      throw new Error(`${place}: the problem names another status: ${text}`);
    }
  }

  #operation(document: Document, method: string, path: string): Operation | undefined {
    const plain = path.split("?", 1)[0];
    const template = Object.keys(document.paths).find((one) =>
      new RegExp(`^${one.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`).test(plain),
    );
    return template === undefined ? undefined : document.paths[template][method.toLowerCase()];
  }

  #match(schema: object, text: string, place: string): void {
    let check = this.#checks.get(schema);
    if (check === undefined) {
      check = this.#ajv.compile(schema);
      this.#checks.set(schema, check);
    }
    if (!check(JSON.parse(text))) {
      throw new Error(`${place} is not what the document says: ${this.#ajv.errorsText(check.errors)}\n${text}`);
    }
  }
}
