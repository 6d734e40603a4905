import { Alert, FormGroup, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { sharedNamespace, streamsPath, type ImageStream } from '../../api/catalog';
import { tagsOf, type StreamTag } from '../../api/deploy';
import { useObjects } from '../../api/hooks';
import { useProjects } from '../../api/projects';
import { quote } from '../../api/source';
import { images } from '../../text/images';
import { Outcome } from '../../ui/Outcome';

const t = images.deploy;

interface StreamTagFieldProps {
  /** project is the project of the application. */
  project: string;
  tag: StreamTag;
  change: (tag: StreamTag) => void;
}

/** StreamTagField selects an image stream tag in the shared project or one of the user's projects. */
export function StreamTagField({ project, tag: { namespace, name }, change }: StreamTagFieldProps) {
  const { items } = useProjects();
  const streams = useObjects<ImageStream>(streamsPath(namespace));
  const tags = tagsOf(streams.items);
  const namespaces = [...new Set([sharedNamespace, ...items.map((item) => item.metadata.name)])];
  const isForeign = project !== '' && namespace !== project && namespace !== sharedNamespace;
  const command = ['oc', 'policy', 'add-role-to-group', 'system:image-puller', `system:serviceaccounts:${project}`, '-n', namespace].map(quote).join(' ');
  return (
    <>
      <FormGroup label={t.streamProject} fieldId="image-namespace">
        <FormSelect id="image-namespace" value={namespace} onChange={(_, chosen) => change({ namespace: chosen, name: '' })}>
          {namespaces.map((value) => (
            <FormSelectOption key={value} value={value} label={value} />
          ))}
        </FormSelect>
      </FormGroup>
      <FormGroup label={t.tag} fieldId="image-tag" isRequired>
        <FormSelect id="image-tag" value={tags.includes(name) ? name : ''} onChange={(_, chosen) => change({ namespace, name: chosen })}>
          <FormSelectOption value="" label={t.selectTag} isDisabled isPlaceholder />
          {tags.map((value) => (
            <FormSelectOption key={value} value={value} label={value} />
          ))}
        </FormSelect>
      </FormGroup>
      <Outcome error={streams.loaded ? undefined : streams.error} />
      {streams.loaded && tags.length === 0 && <p>{t.noTags}</p>}
      {isForeign && <Alert isInline component="h2" variant="info" title={t.pull(project, command)} />}
    </>
  );
}
