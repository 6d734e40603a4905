package platform

import (
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/node/image"
)

// recycler is the pod that empties a volume, of the image that every cluster has. Upstream puts the volume in it.
const recycler = `apiVersion: v1
kind: Pod
metadata: {generateName: pv-recycler-, namespace: openshift-infra}
spec:
  serviceAccountName: pv-recycler-controller
  activeDeadlineSeconds: 60
  restartPolicy: Never
  volumes: [{name: volume}]
  containers:
  - name: recycler
    image: ` + image.ToolsName + `
    command: [sh, -c, 'test -e /scrub && rm -rf /scrub/..?* /scrub/.[!.]* /scrub/* && test -z "$(ls -A /scrub)"']
    volumeMounts: [{name: volume, mountPath: /scrub}]
`

// recyclerTemplate writes the file from which upstream makes the pod.
func (h *host) recyclerTemplate() (string, error) {
	path := h.path("recycler.yaml")
	return path, atomicfile.Write(path, []byte(recycler), 0o600)
}
