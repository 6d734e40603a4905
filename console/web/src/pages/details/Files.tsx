import { Button, FileUpload, Form, FormGroup, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { OutputTooLarge, runCommand } from '../../api/command';
import { tools } from '../../text/tools';
import { DataTable } from '../../ui/DataTable';
import { saveFile } from '../../ui/download';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
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
  const [written, setWritten] = useState('');
  const { isDone, error, send, reset } = useRequest();
  const run = async (command: string[], stdin?: Uint8Array) => {
    try {
      return await runCommand({ namespace, pod, container, command, stdin, limit: maxFile });
    } catch (cause) {
      throw cause instanceof OutputTooLarge ? new Error(t.tooLarge) : cause;
    }
  };
  const list = useQuery({
    queryKey: ['files', namespace, pod, container, directory],
    queryFn: async () => new TextDecoder().decode((await run(['ls', '-1Ap', '--', directory])).stdout).split('\n').filter(Boolean),
    gcTime: 0,
    retry: false,
  });
  const entries = list.data ?? [];
  const open = (target: string) => {
    reset();
    setDirectory(target);
    setEntered(target);
  };
  const save = (name: string) => {
    setWritten('');
    send(async () => saveFile(name, new Blob([(await run(['cat', '--', join(directory, name)])).stdout])));
  };
  const upload = (file: File) => {
    const target = join(directory, file.name);
    setWritten(target);
    send(async () => {
      if (file.size > maxFile) {
        throw new Error(t.tooLarge);
      }
      await run(['sh', '-c', 'cat > "$1"', 'sh', target], new Uint8Array(await file.arrayBuffer()));
      await list.refetch();
    });
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
          <FileUpload id="files-upload" hideDefaultPreview browseButtonText={t.upload} filenamePlaceholder="" filenameAriaLabel={t.upload} isClearButtonDisabled onFileInputChange={(_, file) => upload(file)} />
        </FormGroup>
      </Form>
      <Outcome error={error ?? list.error} isDone={isDone && written !== ''} done={t.uploaded(written)} />
      {list.isPending ? (
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
