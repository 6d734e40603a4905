package kube

// RecyclerTemplate returns the pod that removes the content of a volume, with an image that has a
// shell. Upstream adds the volume to it.
func RecyclerTemplate(image string) []byte {
	return []byte(`apiVersion: v1
kind: Pod
metadata: {generateName: pv-recycler-, namespace: openshift-infra}
spec:
  serviceAccountName: pv-recycler-controller
  activeDeadlineSeconds: 60
  restartPolicy: Never
  volumes: [{name: volume}]
  containers:
  - name: recycler
    image: ` + image + `
    command: [sh, -c, 'test -e /scrub && rm -rf /scrub/..?* /scrub/.[!.]* /scrub/* && test -z "$(ls -A /scrub)"']
    volumeMounts: [{name: volume, mountPath: /scrub}]
`)
}
