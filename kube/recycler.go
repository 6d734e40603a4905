package kube

// RecyclerTemplate returns a pod manifest for removing a volume's content. The image must contain a
// shell. Upstream adds the volume to the pod.
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
