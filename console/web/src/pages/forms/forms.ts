import { autoscalerForm } from './autoscaler';
import { claimForm } from './claim';
import { configMapForm } from './configMap';
import type { FormID } from './ids';
import type { Form } from './model';
import { routeForm } from './route';
import { secretForm } from './secret';
import { snapshotForm } from './snapshot';

/** forms are the forms for new objects, by the ids of resources. */
export const forms: Readonly<Record<FormID, Form>> = {
  secrets: secretForm,
  configmaps: configMapForm,
  persistentvolumeclaims: claimForm,
  'routes.route.openshift.io': routeForm,
  'horizontalpodautoscalers.autoscaling': autoscalerForm,
  'volumesnapshots.snapshot.storage.k8s.io': snapshotForm,
};
