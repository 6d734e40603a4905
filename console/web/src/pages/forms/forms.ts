import { autoscalerForm } from './autoscaler';
import { claimForm } from './claim';
import { configMapForm } from './configMap';
import type { FormID } from './ids';
import type { Form } from './model';
import { routeForm } from './route';
import { secretForm } from './secret';
import { snapshotForm } from './snapshot';

/** forms contains the forms for new objects, by resource ID. */
export const forms: Readonly<Record<FormID, Form>> = {
  secrets: secretForm,
  configmaps: configMapForm,
  persistentvolumeclaims: claimForm,
  'routes.route.openshift.io': routeForm,
  'horizontalpodautoscalers.autoscaling': autoscalerForm,
  'volumesnapshots.snapshot.storage.k8s.io': snapshotForm,
};
