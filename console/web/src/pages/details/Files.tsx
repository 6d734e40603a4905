import { Button, FileUpload, Form, FormGroup, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { runCommand } from '../../api/command';
import { downloadCommandOf } from '../../api/equivalent';
import { bytes } from '../../api/image';
import { text } from '../../text/en';
import { tools } from '../../text/tools';
import { Copyable } from '../../ui/Copyable';
import { DataTable } from '../../ui/DataTable';
import { saveFile } from '../../ui/download';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import type { TabProps } from './tabs';
import { WithContainer } from './WithContainer';

const t = tools.files;

/** maxEntries is the maximum number of a directory's entries that are shown. */
const maxEntries = 1000;

/**
 * writeCommand writes its standard input to a file. The shell must keep running: containerd closes
 * a command's standard input when all of the command's processes have closed their standard output.
 */
const writeCommand = 'cat > "$1" && true';

/** Files is the tab with a container's files. */
export default function Files({ project = '', object }: TabProps) {
  return <WithContainer object={object}>{(container) => <Directory key={container} namespace={project} pod={object.metadata.name} container={container} />}</WithContainer>;
}

/** join appends a name to a directory's path. */
export function join(directory: string, name: string): string {
  return `${directory.replace(/\/+$/, '')}/${name}`;
}

function Directory({ namespace, pod, container }: { namespace: string; pod: string; container: string }) {
  const [directory, setDirectory] = useState('/tmp');
  const [entered, setEntered] = useState(directory);
  const [written, setWritten] = useState('');
  const [transfer, setTransfer] = useState<{ name: string; size: number }>();
  const { isBusy, isDone, error, send, reset } = useRequest();
  const ended = useRef<AbortController>(undefined);
  useEffect(() => () => ended.current?.abort(new Error(t.canceled)), []);
  const run = (command: string[]) => runCommand({ namespace, pod, container, command });
  /**
   * copy runs a command that copies a file, and shows the progress. The user can cancel the copy.
   */
  const copy = async (name: string, command: string[], stdin?: Blob) => {
    const { signal } = (ended.current = new AbortController());
    setTransfer({ name, size: 0 });
    try {
      return await runCommand({ namespace, pod, container, command, stdin, signal, progress: (size) => setTransfer({ name, size }) });
    } finally {
      setTransfer(undefined);
    }
  };
  const list = useQuery({
    queryKey: ['files', namespace, pod, container, directory],
    queryFn: async () => (await (await run(['ls', '-1Ap', '--', directory])).stdout.text()).split('\n').filter(Boolean),
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
    send(async () => saveFile(name, (await copy(name, ['cat', '--', join(directory, name)])).stdout));
  };
  const upload = (file: File) => {
    const target = join(directory, file.name);
    setWritten(target);
    send(async () => {
      await copy(file.name, ['sh', '-c', writeCommand, 'sh', target], file);
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
          <FileUpload id="files-upload" hideDefaultPreview browseButtonText={t.upload} filenamePlaceholder="" filenameAriaLabel={t.upload} isClearButtonDisabled isDisabled={isBusy} onFileInputChange={(_, file) => upload(file)} />
        </FormGroup>
      </Form>
      {transfer && (
        <p>
          {t.transferred(transfer.name, bytes(transfer.size))}{' '}
          <Button variant="link" isInline onClick={() => ended.current?.abort(new Error(t.canceled))}>
            {text.cancel}
          </Button>
        </p>
      )}
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
                    <Button variant="link" isInline isDisabled={isBusy} onClick={() => save(name)}>
                      {t.download(name)}
                    </Button>
                  ),
              },
            ]}
          />
        </>
      )}
      <p>{t.command}</p>
      <Copyable label={t.command}>{downloadCommandOf(namespace, pod, container, directory)}</Copyable>
    </>
  );
}
