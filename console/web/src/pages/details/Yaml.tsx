import { ActionGroup, Alert, Button } from '@patternfly/react-core';
import { useState } from 'react';
import { pathOf } from '../../api/discovery';
import { useRights } from '../../api/hooks';
import { put } from '../../api/http';
import { problemsOf, type Problem } from '../../api/schema/problems';
import { parseObjects, toYAML } from '../../api/yaml';
import { text } from '../../text/en';
import { download } from '../../ui/download';
import Editor from '../../ui/Editor';
import { Problems } from '../../ui/Problems';
import type { TabProps } from './tabs';

/** Yaml is the tab for the whole object. It keeps the typed text when the object changes. */
export default function Yaml({ resource, project, object }: TabProps) {
  const rights = useRights(project);
  const [base, setBase] = useState(object);
  const [source, setSource] = useState(() => toYAML(object));
  const [error, setError] = useState<Error>();
  const [problems, setProblems] = useState<Problem[]>([]);
  const [cursor, setCursor] = useState<{ at: number }>();
  const [saved, setSaved] = useState(false);
  const name = object.metadata.name;
  const mayUpdate = rights.may('update', resource.group, resource.name, name);
  const changed = object.metadata.resourceVersion !== base.metadata.resourceVersion;
  const edited = source !== toYAML(base);
  const load = () => {
    setBase(object);
    setSource(toYAML(object));
    setError(undefined);
    setProblems([]);
  };
  if (changed && !edited) {
    load();
  }
  const save = async (problemsAllowed = false) => {
    setError(undefined);
    setSaved(false);
    const found = problemsAllowed ? [] : await problemsOf(source);
    setProblems(found);
    if (found.length > 0) {
      return;
    }
    try {
      const [parsed, ...others] = parseObjects(source);
      if (!parsed || others.length > 0) {
        throw new Error(text.editor.one);
      }
      const stored = await put<typeof object>(pathOf(resource, project, name), parsed);
      setBase(stored);
      setSource(toYAML(stored));
      setSaved(true);
    } catch (cause) {
      setError(cause as Error);
    }
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
          setSaved(false);
          setProblems([]);
        }}
      />
      <Problems problems={problems} show={({ from }) => setCursor({ at: from })} proceed={() => void save(true)} />
      {changed && edited && <Alert isInline variant="warning" isLiveRegion title={text.editor.changed} />}
      {error && <Alert isInline variant="danger" isLiveRegion title={error.message} />}
      {saved && <Alert isInline variant="success" isLiveRegion title={text.editor.saved} />}
      <ActionGroup>
        {mayUpdate && (
          <Button isDisabled={!edited} onClick={() => void save()}>
            {text.editor.save}
          </Button>
        )}{' '}
        <Button variant="secondary" onClick={load}>
          {text.editor.reload}
        </Button>{' '}
        <Button variant="link" onClick={() => download(`${name}.yaml`, source)}>
          {text.editor.download}
        </Button>
      </ActionGroup>
    </>
  );
}
