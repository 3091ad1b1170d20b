// A form from a JSON Schema. What it can't show as fields is written as JSON; the gateway validates, not the form.
import { useState } from "preact/hooks";
import { isExact, type Json, parsed } from "./session";
import type { Schema } from "./store";

type Values = { [name: string]: Json };

interface FieldProps {
  id: string;
  schema: Schema;
  value: Json | undefined;
  isRequired: boolean;
  root: Schema;
  onChange(value: Json | undefined): void;
}

const MAX_DEPTH = 4;
const MAX_FIELDS = 200;
const MAX_CHOICES = 200;

export function Form(props: { id: string; schema: Schema; value: Values; root?: Schema; depth?: number; onChange(value: Values): void }) {
  const { id, schema, value, onChange } = props;
  const root = props.root ?? schema;
  const depth = props.depth ?? (countOf(schema, root, 0, MAX_FIELDS) > MAX_FIELDS ? MAX_DEPTH : 0); // a large one has no groups
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = Object.entries(schemaIn(schema.properties));
  const change = (name: string, held: Json | undefined) => {
    const { [name]: _, ...others } = value;
    onChange(held === undefined ? others : { ...others, [name]: held });
  };
  if (!properties.length) return <p class="dim">No arguments.</p>;
  return (
    <>
      {properties.slice(0, MAX_FIELDS).map(([name, given]) => {
        const property = resolve(schemaIn(given), root);
        const field = `${id}-${name}`;
        const hint = describe(property);
        return isGroup(property, depth) ? (
          <fieldset key={name}>
            <legend>{name}</legend>
            <Form
              id={field} schema={property} root={root} depth={depth + 1}
              value={(value[name] ?? {}) as Values}
              onChange={(held) => change(name, Object.keys(held).length ? held : undefined)}
            />
          </fieldset>
        ) : (
          <div class="field" key={name}>
            <label for={field} id={`${field}-label`}>
              {name}
              {required.includes(name) ? <span class="required" title="required"> *</span> : null}
              <span class="dim"> {kindOf(property)}</span>
            </label>
            <Field
              id={field} schema={property} root={root} value={value[name]}
              isRequired={required.includes(name)} onChange={(held) => change(name, held)}
            />
            {hint ? <small id={`${field}-hint`}>{hint}</small> : null}
          </div>
        );
      })}
      {properties.length > MAX_FIELDS ? <p class="dim">{properties.length - MAX_FIELDS} more fields are not shown.</p> : null}
    </>
  );
}

/** A part of a schema, which a server may have written in any shape. */
function schemaIn(given: Json | undefined): Schema {
  return typeof given === "object" && given !== null && !Array.isArray(given) ? given : {};
}

function isGroup(property: Schema, depth: number): boolean {
  return property.type === "object" && Boolean(property.properties) && depth < MAX_DEPTH;
}

/** How many fields a form would have: one that refers to itself has ever more. It stops counting above `most`. */
function countOf(schema: Schema, root: Schema, depth: number, most: number): number {
  let count = 0;
  for (const given of Object.values(schemaIn(schema.properties))) {
    const property = resolve(schemaIn(given), root);
    count += 1 + (isGroup(property, depth) ? countOf(property, root, depth + 1, most - count) : 0);
    if (count > most) break;
  }
  return count;
}

function Field({ id, schema, value, isRequired, onChange }: FieldProps) {
  const common = { id, required: isRequired, ...(describe(schema) ? { "aria-describedby": `${id}-hint` } : {}) };
  const choices = choicesOf(schema);
  if (choices) {
    const at = choices.findIndex(([held]) => held === value);
    return (
      <select {...common} value={at < 0 ? "" : String(at)} onChange={(event) => onChange(choices[Number(event.currentTarget.value || -1)]?.[0])}>
        <option value="">{isRequired ? "choose" : "not given"}</option>
        {choices.map(([, title], index) => <option key={title} value={String(index)}>{title}</option>)}
      </select>
    );
  }
  if (schema.type === "boolean") {
    return (
      <select {...common} value={value === undefined ? "" : String(value)} onChange={(event) => onChange({ true: true, false: false }[event.currentTarget.value])}>
        <option value="">{isRequired ? "choose" : "not given"}</option>
        <option>true</option>
        <option>false</option>
      </select>
    );
  }
  if (schema.type === "integer" || schema.type === "number") {
    return (
      <input
        {...common} type="number" step={schema.type === "integer" ? 1 : "any"} placeholder={example(schema)}
        value={typeof value === "number" ? value : value !== undefined && isExact(value) ? value.rawJSON : ""}
        onInput={(event) => onChange(numberIn(event.currentTarget))}
      />
    );
  }
  if (schema.type === "string") {
    const given = (text: string) => onChange(text === "" ? undefined : text);
    const text = typeof value === "string" ? value : "";
    if (Number(schema.maxLength ?? 0) > 300) return <textarea {...common} rows={3} value={text} onInput={(event) => given(event.currentTarget.value)} />;
    if (schema.format === "date") return <input {...common} type="date" value={text} onInput={(event) => given(event.currentTarget.value)} />;
    return <input {...common} type="text" placeholder={example(schema)} value={text} onInput={(event) => given(event.currentTarget.value)} />;
  }
  const several = schema.type === "array" ? choicesOf(schemaIn(schema.items)) : null;
  if (several) return <Several id={id} choices={several} value={Array.isArray(value) ? value : []} onChange={onChange} />;
  return <JsonField id={id} value={value} onChange={onChange} />;
}

function numberIn(input: HTMLInputElement): Json | undefined {
  if (Number.isNaN(input.valueAsNumber)) return undefined;
  return /^-?[1-9]\d*$/.test(input.value) ? parsed(input.value) : input.valueAsNumber;
}

function Several({ id, choices, value, onChange }: { id: string; choices: [Json, string][]; value: Json[]; onChange(value: Json | undefined): void }) {
  const toggle = (one: Json) => {
    const chosen = choices.map(([held]) => held).filter((held) => (held === one) !== value.includes(held));
    onChange(chosen.length ? chosen : undefined);
  };
  return (
    <div id={id} role="group" aria-labelledby={`${id}-label`} class="several">
      {choices.map(([held, title]) => (
        <label key={title}><input type="checkbox" checked={value.includes(held)} onChange={() => toggle(held)} /> {title}</label>
      ))}
    </div>
  );
}

/** What the fields of a form hold before somebody fills them in. */
export function defaultsOf(schema: Schema): Values {
  const defaults = Object.entries(schemaIn(schema.properties)).map(([name, one]) => [name, schemaIn(one).default] as const);
  return Object.fromEntries(defaults.filter((one): one is [string, Json] => one[1] !== undefined));
}

/** Whether a field of the form holds what is no JSON: then the value from before it would be sent. The field is focused. */
export function hasBrokenJson(form: HTMLElement): boolean {
  const broken = form.querySelector<HTMLElement>("[aria-invalid=true]");
  broken?.focus();
  return broken !== null;
}

export function JsonField(props: { id: string; value: Json | undefined; rows?: number; label?: string; onChange(value: Json | undefined): void }) {
  const [text, setText] = useState(props.value === undefined ? "" : JSON.stringify(props.value, null, 2));
  const [problem, setProblem] = useState("");
  const take = (written: string) => {
    setText(written);
    try {
      props.onChange(written.trim() === "" ? undefined : parsed(written));
      setProblem("");
    } catch (fault) {
      setProblem((fault as Error).message);
    }
  };
  return (
    <>
      <textarea id={props.id} aria-label={props.label} class="mono" rows={props.rows ?? 3} spellcheck={false} placeholder="JSON" aria-invalid={problem ? "true" : undefined} value={text} onInput={(event) => take(event.currentTarget.value)} />
      {problem ? <small class="bad" role="alert">{problem}</small> : null}
    </>
  );
}

function resolve(schema: Schema, root: Schema): Schema {
  let found: Json | undefined = schema;
  for (let hops = 0; hops < 8; hops++) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
    const link: Json | undefined = found["$ref"];
    if (typeof link === "string" && link.startsWith("#/")) {
      found = link.slice(2).split("/").reduce<Json | undefined>((at, step) => (at as Schema | undefined)?.[step], root);
    } else {
      const options: Json | undefined = found.anyOf;
      const real = Array.isArray(options) ? options.map(schemaIn).filter((one) => one.type !== "null") : [];
      if (real.length !== 1) return withoutNull(found);
      found = { ...found, anyOf: null, ...real[0] };
    }
  }
  return {};
}

function withoutNull(schema: Schema): Schema {
  if (!Array.isArray(schema.type)) return schema;
  const types = schema.type.filter((one) => one !== "null");
  return { ...schema, type: types.length === 1 ? (types[0] as Json) : null };
}

function choicesOf(schema: Schema): [Json, string][] | null {
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
  if (Array.isArray(schema.enum) && schema.enum.length <= MAX_CHOICES) return schema.enum.map((one, at) => [one, String(names[at] ?? one)]);
  const options = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(options) || !options.length || options.length > MAX_CHOICES) return null;
  const titled = options.map(schemaIn);
  return titled.every((one) => "const" in one) ? titled.map((one) => [one.const as Json, String(one.title ?? one.const)]) : null;
}

function kindOf(schema: Schema): string {
  const kind = typeof schema.type === "string" ? schema.type : "any";
  return typeof schema.format === "string" ? `${kind}, ${schema.format}` : kind;
}

function describe(schema: Schema): string {
  const said = typeof schema.description === "string" ? schema.description : "";
  const kept = schema.default === undefined || /default/i.test(said) ? "" : `Default: ${JSON.stringify(schema.default)}.`;
  return `${said} ${kept}`.trim().slice(0, 500);
}

function example(schema: Schema): string {
  const shown = schema.default ?? (Array.isArray(schema.examples) ? schema.examples[0] : undefined);
  return shown === undefined || shown === null || typeof shown === "object" ? "" : String(shown).slice(0, 100);
}
