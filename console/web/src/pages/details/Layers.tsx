import { Button, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { get } from '../../api/http';
import { bytes, configOf, layersOf, type ImageOfStream } from '../../api/image';
import { text } from '../../text/en';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';

/** Layers shows an image's layers, and the settings with which the image's containers start. */
export function Layers({ namespace, stream, image, close }: { namespace: string; stream: string; image: string; close: () => void }) {
  const path = `/apis/image.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/imagestreamimages/${encodeURIComponent(`${stream}@${image}`)}`;
  const { data, error } = useQuery({ queryKey: [path], queryFn: () => get<ImageOfStream>(path), staleTime: Infinity });
  if (error) {
    return <Outcome error={error} />;
  }
  if (!data) {
    return <Loading />;
  }
  const layers = layersOf(data);
  return (
    <section aria-label={text.image.layersOf(image)}>
      <DescriptionList isHorizontal isCompact>
        {configOf(data).map(([term, value]) => (
          <DescriptionListGroup key={term}>
            <DescriptionListTerm>{term}</DescriptionListTerm>
            <DescriptionListDescription className="console-mono">{value}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
      </DescriptionList>
      <Table aria-label={text.image.layers} variant="compact">
        <Thead>
          <Tr>
            <Th>{text.image.layer}</Th>
            <Th>{text.image.size}</Th>
            <Th>{text.details.type}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {layers.map((layer, index) => (
            <Tr key={`${index} ${layer.name}`}>
              <Td dataLabel={text.image.layer} className="console-mono" modifier="breakWord">
                {layer.name}
              </Td>
              <Td dataLabel={text.image.size}>{bytes(layer.size)}</Td>
              <Td dataLabel={text.details.type}>{layer.mediaType ?? '-'}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <p>{text.image.total(layers.length, bytes(layers.reduce((sum, layer) => sum + layer.size, 0)))}</p>
      <Button variant="link" isInline onClick={close}>
        {text.close}
      </Button>
    </section>
  );
}
