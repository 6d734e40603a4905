package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestAdministratorFindsReasonOfFailedMount(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "photos"))
	s.administrator()
	dir := filepath.Join(s.VolumePluginDir, "example.com~broken")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	temporary := filepath.Join(dir, ".broken")
	if err := os.WriteFile(temporary, []byte(brokenDriver), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(dir, "broken")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.Apply(unmountable)
	s.play("storage.mjs", s.Namespace)
}

// brokenDriver is a driver that cannot mount, because its file server does not exist.
const brokenDriver = `#!/bin/sh
case $1 in
init) echo '{"status": "Success", "capabilities": {"attach": false}}' ;;
mount) echo '{"status": "Failure", "message": "the file server does not respond"}'; exit 1 ;;
unmount) echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}' ;;
esac
`

// unmountable contains a pod whose volume cannot be mounted, and a claim whose class is missing.
const unmountable = `
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: reader
    image: ` + kit.ToolsImage + `
    command: [sleep, "1000"]
    volumeMounts: [{name: files, mountPath: /files}]
  volumes:
  - name: files
    flexVolume: {driver: example.com/broken}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lost}
spec:
  storageClassName: none-of-these
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
`
