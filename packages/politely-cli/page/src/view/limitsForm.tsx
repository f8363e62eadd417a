import type { Limits, PolicyInput } from "politely";
import { useEffect, useState } from "preact/hooks";
import { read, ServiceError, send } from "../state/service.js";
import { fieldsOf, type LimitFields, limitsFrom, limitsInForce } from "./limitFields.js";

const FIELDS: readonly { readonly name: keyof LimitFields; readonly label: string; readonly hint: string }[] = [
  { name: "rate", label: "Rate", hint: "2/s, 60/min" },
  { name: "burst", label: "Burst", hint: "1" },
  { name: "minDelay", label: "Gap", hint: "500ms, 2s" },
  { name: "window", label: "Window", hint: "100/min, 5000/h" },
  { name: "concurrency", label: "At once", hint: "4" },
];

/** Changes the limits of one host while the service runs, or puts those of the policy file back. `origin` says where they come from, as `explain` does. */
export function LimitsForm({ domain, origin }: { readonly domain: string; readonly origin: string }) {
  const [isEdited, setEdited] = useState(false);
  const [known, setKnown] = useState<Limits>({});
  const [fields, setFields] = useState<LimitFields | undefined>(undefined);
  const [said, setSaid] = useState<{ readonly text: string; readonly isProblem: boolean } | undefined>(undefined);
  const path = `v1/limits/${encodeURIComponent(domain)}`;

  const load = async (): Promise<void> => {
    const { policy, edited } = await read<{ policy: PolicyInput; edited: readonly string[] }>("v1/policy");
    const limits = limitsInForce(policy, domain, origin);
    setEdited(edited.includes(domain));
    setKnown(limits);
    setFields(fieldsOf(limits));
  };
  const attempt = async (work: () => Promise<void>, done: string): Promise<void> => {
    try {
      await work();
      setSaid(done === "" ? undefined : { text: done, isProblem: false });
    } catch (error) {
      setSaid({
        text: error instanceof ServiceError || error instanceof RangeError ? error.message : String(error),
        isProblem: true,
      });
    }
  };
  useEffect(() => void attempt(load, ""), [domain]);

  const save = async (): Promise<void> => {
    if (fields !== undefined) await send("PUT", path, limitsFrom(fields, known));
    await load();
  };
  const putBack = async (): Promise<void> => {
    await send("DELETE", path);
    await load();
  };
  return (
    <form
      class="limits"
      aria-label={`Limits of ${domain}`}
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(save, "Saved. It applies from now on.");
      }}
    >
      <h3>Limits</h3>
      <div class="fields">
        {FIELDS.map(({ name, label, hint }) => (
          <label key={name}>
            <span>{label}</span>
            <input
              name={name}
              value={fields?.[name] ?? ""}
              placeholder={hint}
              autocomplete="off"
              spellcheck={false}
              disabled={fields === undefined}
              onInput={(event) => {
                const { value } = event.currentTarget;
                setFields((before) => (before === undefined ? before : { ...before, [name]: value }));
              }}
            />
          </label>
        ))}
      </div>
      <div class="actions">
        <button type="submit" class="strong" disabled={fields === undefined}>
          Save limits
        </button>
        <button
          type="button"
          disabled={!isEdited}
          onClick={() => void attempt(putBack, "The policy file's limits are back.")}
        >
          Put the file's back
        </button>
      </div>
      <p class={said?.isProblem === true ? "problem" : "note"} role="status">
        {said?.text ??
          (origin.startsWith("presets.") && !isEdited
            ? `A preset (${origin}) limits it now; what is saved here takes its place.`
            : "")}
      </p>
    </form>
  );
}
