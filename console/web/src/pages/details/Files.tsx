import { Alert, Button, FileUpload, Form, FormGroup, TextInput } from '@patternfly/react-core';
import { useEffect, useState, type FormEvent } from 'react';
import { OutputTooLarge, runCommand } from '../../api/command';
import { tools } from '../../text/tools';
import { DataTable } from '../../ui/DataTable';
import { saveFile } from '../../ui/download';
import { Loading } from '../../ui/Loading';
import type { TabProps } from './tabs';
import { WithContainer } from './WithContainer';

const t = tools.files;

/** maxFile limits a file, which is in the memory of the page, and maxEntries a directory. */
const maxFile = 32 << 20;
const maxEntries = 1000;

/** Files is the tab with the files of a container. */
export default function Files({ project = '', object }: TabProps) {
  return <WithContainer object={object}>{(container) => <Directory key={container} namespace={project} pod={object.metadata.name} container={container} />}</WithContainer>;
}

/** join appends a name to a directory. */
export function join(directory: string, name: string): string {
  return `${directory.replace(/\/+$/, '')}/${name}`;
}

function Directory({ namespace, pod, container }: { namespace: string; pod: string; container: string }) {
  const [directory, setDirectory] = useState('/tmp');
  const [entered, setEntered] = useState(directory);
  const [entries, setEntries] = useState<string[]>();
  const [result, setResult] = useState<{ error?: Error; written?: string }>();
  const [version, setVersion] = useState(0);
  const run = (command: string[], stdin?: Uint8Array) => runCommand({ namespace, pod, container, command, stdin, limit: maxFile });
  useEffect(() => {
    let isCurrent = true;
    setEntries(undefined);
    run(['ls', '-1Ap', '--', directory]).then(
      ({ stdout }) => isCurrent && setEntries(new TextDecoder().decode(stdout).split('\n').filter(Boolean)),
      (error: Error) => {
        if (isCurrent) {
          setEntries([]);
          setResult({ error });
        }
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [directory, version]);
  const open = (target: string) => {
    setResult(undefined);
    setDirectory(target);
    setEntered(target);
  };
  const fail = (error: Error) => setResult({ error: error instanceof OutputTooLarge ? new Error(t.tooLarge) : error });
  const save = (name: string) => {
    setResult(undefined);
    run(['cat', '--', join(directory, name)]).then(({ stdout }) => saveFile(name, new Blob([stdout])), fail);
  };
  const upload = async (file: File) => {
    setResult(undefined);
    if (file.size > maxFile) {
      fail(new OutputTooLarge());
      return;
    }
    const target = join(directory, file.name);
    try {
      await run(['sh', '-c', 'cat > "$1"', 'sh', target], new Uint8Array(await file.arrayBuffer()));
      setResult({ written: target });
      setVersion(version + 1);
    } catch (error) {
      fail(error as Error);
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    open(entered.trim() || '/');
  };
  return (
    <>
      <Form onSubmit={submit}>
        <FormGroup label={t.directory} fieldId="files-directory">
          <TextInput id="files-directory" value={entered} onChange={(_, value) => setEntered(value)} autoComplete="off" />
        </FormGroup>
        <FormGroup label={t.upload} fieldId="files-upload">
          <FileUpload id="files-upload" hideDefaultPreview browseButtonText={t.upload} filenamePlaceholder="" filenameAriaLabel={t.upload} isClearButtonDisabled onFileInputChange={(_, file) => void upload(file)} />
        </FormGroup>
      </Form>
      {result?.error && <Alert isInline component="h2" isLiveRegion variant="danger" title={result.error.message} />}
      {result?.written && <Alert isInline component="h2" isLiveRegion variant="success" title={t.uploaded(result.written)} />}
      {entries === undefined ? (
        <Loading />
      ) : (
        <>
          {entries.length > maxEntries && <p>{t.truncated}</p>}
          <DataTable
            label={directory}
            items={[...(directory === '/' ? [] : ['../']), ...entries.slice(0, maxEntries)]}
            keyOf={(name) => name}
            empty={t.empty}
            columns={[
              { title: t.name, cell: (name) => name, mono: true },
              {
                title: t.action,
                cell: (name) =>
                  name.endsWith('/') ? (
                    <Button variant="link" isInline aria-label={`${t.open} ${name}`} onClick={() => open(name === '../' ? directory.replace(/\/[^/]*\/*$/, '') || '/' : join(directory, name.slice(0, -1)))}>
                      {t.open}
                    </Button>
                  ) : (
                    <Button variant="link" isInline onClick={() => save(name)}>
                      {t.download(name)}
                    </Button>
                  ),
              },
            ]}
          />
        </>
      )}
      <p>{`${t.command}: oc cp ${namespace}/${pod}:${join(directory, 'FILE')} FILE -c ${container}`}</p>
    </>
  );
}
