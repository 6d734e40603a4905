import { FormSelect, FormSelectOption, Slider, TextArea, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError, get } from '../../api/http';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Field } from '../../ui/Field';
import { Items } from './Items';
import { listOf, pairsOf, toList, type Input, type Values } from './model';
import { Pairs } from './Pairs';

interface InputFieldProps {
  input: Input;
  project: string;
  values: Values;
  change: (value: string) => void;
}

/** InputField is a form field with its label and help. */
export function InputField({ input, project, values, change }: InputFieldProps) {
  const id = `input-${input.key}`;
  const value = values[input.key] ?? '';
  const [touched, setTouched] = useState(false);
  const missing = touched && input.required ? text.catalog.required : undefined;
  const problem = value.trim() === '' ? missing : input.problem?.(value, values);
  const set = (next: string) => {
    setTouched(true);
    change(next);
  };
  return (
    <Field id={id} label={input.label} required={input.required} invalid={problem} help={input.help} isGroup={input.type === 'pairs' || input.type === 'list'}>
      <Control id={id} input={input} project={project} values={values} value={value} isInvalid={problem !== undefined} change={set} />
    </Field>
  );
}

interface ControlProps extends InputFieldProps {
  id: string;
  value: string;
  isInvalid: boolean;
}

function Control({ id, input, project, values, value, isInvalid, change }: ControlProps) {
  const described = { id, value, 'aria-describedby': `${id}-help`, validated: isInvalid ? ('error' as const) : ('default' as const) };
  switch (input.type) {
    case 'select':
      return <Select id={id} input={input} project={project} values={values} value={value} change={change} />;
    case 'area':
      return <TextArea {...described} className="console-mono" resizeOrientation="vertical" rows={5} onChange={(_, text) => change(text)} />;
    case 'slider':
      return <Slider value={Number(value)} min={0} max={100} isInputVisible inputLabel="%" inputAriaLabel={input.label} thumbAriaLabel={input.label} aria-valuetext={`${value}%`} onChange={(_, position, typed) => change(String(Math.round(Math.min(100, Math.max(0, typed ?? position)))))} />;
    case 'pairs':
      return <Pairs label={input.label} pairs={pairsOf(value)} change={(pairs) => change(JSON.stringify(pairs))} />;
    case 'list':
      return <Items label={input.label} items={listOf(value)} change={(items) => change(toList(items))} />;
    default:
      return <TextInput {...described} type={input.type ?? 'text'} autoComplete={input.type === 'password' ? 'new-password' : 'off'} onChange={(_, text) => change(text)} />;
  }
}

function Select({ id, input, project, values, value, change }: Omit<ControlProps, 'isInvalid'>) {
  const path = input.source?.path(project);
  const { data, error } = useQuery({ queryKey: ['choices', path], queryFn: () => get<{ items: KubeObject[] }>(path ?? ''), enabled: path !== undefined });
  const isDefault = error instanceof ApiError && error.status === 403 && !input.required; // the user cannot choose
  const choices = [...(input.choices ?? []), ...(input.source?.choices(data?.items ?? [], values) ?? [])];
  return (
    <>
      <FormSelect id={id} value={value} aria-describedby={`${id}-help`} onChange={(_, chosen) => change(chosen)}>
        {choices.map((choice) => (
          <FormSelectOption key={choice.value} value={choice.value} label={choice.label} />
        ))}
      </FormSelect>
      {error && !isDefault && <p>{text.forms.noChoices(error.message)}</p>}
    </>
  );
}
