import { ActionGroup, Alert, Button } from '@patternfly/react-core';
import { useState } from 'react';
import { pathOf } from '../../api/discovery';
import { useRights } from '../../api/hooks';
import { latest } from '../../api/http';
import { problemsOf, type Problem } from '../../api/schema/problems';
import { comparable, parseObjects, store, toYAML } from '../../api/yaml';
import { text } from '../../text/en';
import { download } from '../../ui/download';
import Differences from '../../ui/Differences';
import Editor from '../../ui/Editor';
import { Outcome } from '../../ui/Outcome';
import { Problems } from '../../ui/Problems';
import { useRequest } from '../../ui/useRequest';
import type { TabProps } from './tabs';

/**
 * Yaml is the tab with the complete object. It keeps the typed text when the object changes, and
 * shows what has changed. A change to only the object's status is not a conflict.
 */
export default function Yaml({ resource, project, object }: TabProps) {
  const rights = useRights(project);
  const [base, setBase] = useState(object);
  const [source, setSource] = useState(() => toYAML(object));
  const { isBusy, isDone, error, send, reset } = useRequest();
  const [problems, setProblems] = useState<Problem[]>([]);
  const [cursor, setCursor] = useState<{ at: number }>();
  const name = object.metadata.name;
  const mayUpdate = rights.may('update', resource.group, resource.name, name);
  const current = latest(object, base);
  const changed = current.metadata.resourceVersion !== base.metadata.resourceVersion;
  const edited = source !== toYAML(base);
  const conflicts = changed && edited && comparable(base) !== comparable(current);
  const load = () => {
    setBase(current);
    setSource(toYAML(current));
    setProblems([]);
  };
  if (changed && !edited) {
    load();
  }
  const save = async (problemsAllowed = false) => {
    reset();
    const found = problemsAllowed ? [] : await problemsOf(source);
    setProblems(found);
    if (found.length > 0) {
      return;
    }
    send(async () => {
      const [parsed, ...others] = parseObjects(source);
      if (!parsed || others.length > 0) {
        throw new Error(text.editor.one);
      }
      const stored = await store(pathOf(resource, project, name), parsed as typeof object, base, current);
      setBase(stored);
      setSource(toYAML(stored));
    });
  };
  return (
    <>
      <Editor
        label={text.editor.label}
        value={source}
        readOnly={!mayUpdate}
        cursor={cursor}
        onChange={(value) => {
          setSource(value);
          reset();
          setProblems([]);
        }}
      />
      <Problems problems={problems} show={({ from }) => setCursor({ at: from })} proceed={() => void save(true)} />
      {conflicts && (
        <>
          <Alert isInline component="h2" variant="warning" isLiveRegion title={text.editor.changed} />
          <Differences applied={[{ resource, object: current, before: base, outcome: 'changed' }]} heading={() => text.editor.changes} />
        </>
      )}
      <Outcome error={error} isDone={isDone} done={text.editor.saved} />
      <ActionGroup>
        {mayUpdate && (
          <Button isDisabled={!edited || isBusy} isLoading={isBusy} onClick={() => void save()}>
            {text.editor.save}
          </Button>
        )}{' '}
        <Button
          variant="secondary"
          onClick={() => {
            load();
            reset();
          }}
        >
          {text.editor.reload}
        </Button>{' '}
        <Button variant="link" onClick={() => download(`${name}.yaml`, source)}>
          {text.editor.download}
        </Button>
      </ActionGroup>
    </>
  );
}
