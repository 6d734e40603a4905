import { bytes } from '../../../api/image';
import { useUsage } from '../../../api/usage';
import { nodes } from '../../../text/nodes';

/** PodUsage shows the CPU time and memory that a pod uses. */
export default function PodUsage({ namespace, name }: { namespace: string; name: string }) {
  const usage = useUsage('pods', namespace, name);
  return <p>{usage ? `${nodes.cpu(usage.cpu)} CPU, ${bytes(usage.memory)}` : nodes.noUsage}</p>;
}
