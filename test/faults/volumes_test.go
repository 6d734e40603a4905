package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/kit"
)

// driver is a FlexVolume driver with one disk, which can be attached to one node at a time. Its
// state is in a directory that all hosts share, as in a storage system.
const driver = `#!/bin/sh
state=%s
success() { echo "{\"status\":\"Success\"$1}"; exit 0; }
exec 9>"$state/lock"
flock -w 5 9 || { echo '{"status":"Failure","message":"the storage is busy"}'; exit 1; }
holder=$(cat "$state/holder" 2>/dev/null)
case $1 in
init) success ',"capabilities":{"attach":true}' ;;
getvolumename) success ',"volumeName":"disk"' ;;
attach)
	[ -z "$holder" ] || [ "$holder" = "$3" ] || echo "attached to $3 while attached to $holder" >>"$state/violations"
	echo "$3" >"$state/holder"
	echo "$3" >>"$state/attached"
	success ',"device":"disk"' ;;
waitforattach) success ',"device":"disk"' ;;
isattached) [ "$holder" = "$3" ] && success ',"attached":true' || success ',"attached":false' ;;
detach)
	[ "$holder" != "$3" ] || : >"$state/holder"
	success ;;
mountdevice)
	mkdir -p "$2"
	mountpoint -q "$2" || mount -t tmpfs disk "$2" || exit 1
	success ;;
unmountdevice)
	! mountpoint -q "$2" || umount "$2" || exit 1
	success ;;
esac
echo '{"status":"Not supported"}'
exit 1
`

// owner is a Deployment whose only pod uses the disk.
const owner = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  claimRef: {namespace: default, name: disk}
  flexVolume: {driver: test/disk}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: disk, resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: owner}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: owner}}
  template:
    metadata: {labels: {app: owner}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      containers:
      - {name: owner, image: ` + kit.ToolsImage + `, command: [sleep, infinity], volumeMounts: [{name: disk, mountPath: /disk}]}
      volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}]
`

// moveInterval is the interval at which the disk's pod moves to another node.
const moveInterval = 5 * time.Second

// disk moves a pod with the only disk from node to node.
type disk struct {
	state   string
	stop    context.CancelFunc
	running sync.WaitGroup
}

// startDisk installs the driver on all hosts, and starts the pod.
func startDisk(t *testing.T, hosts map[string]*kit.Cluster) *disk {
	t.Helper()
	state, err := os.MkdirTemp("", "slipway-storage-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(state)) })
	for _, host := range hosts {
		dir := filepath.Join(host.VolumePluginDir, "test~disk")
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "disk"), fmt.Appendf(nil, driver, state), 0o755))
	}
	hosts["first"].Apply(owner)
	hosts["first"].WaitFor("attached disk", func(context.Context) error {
		_, err := os.Stat(filepath.Join(state, "attached"))
		return err
	})
	ctx, stop := context.WithCancel(context.Background())
	d := &disk{state: state, stop: stop}
	d.running.Go(func() { d.move(ctx, hosts) })
	return d
}

// move moves the pod until ctx is done. It uses the masters in turn. A failed move is repeated at
// the next master.
func (d *disk) move(ctx context.Context, hosts map[string]*kit.Cluster) {
	names := slices.Sorted(maps.Keys(hosts))
	ticker := time.NewTicker(moveInterval)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		attempt, cancel := context.WithTimeout(ctx, moveInterval)
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":%q}}}}}`, names[i%len(names)])
		_, _ = hosts[names[(i+1)%len(names)]].Client.AppsV1().Deployments("default").Patch(attempt, "owner", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		cancel()
	}
}

// check fails the test if the disk was attached to two nodes at the same time. The pod must run
// when the faults have ended.
func (d *disk) check(t *testing.T, hosts map[string]*kit.Cluster) {
	t.Helper()
	d.stop()
	d.running.Wait()
	first := hosts["first"]
	first.WaitFor("pod with the disk", func(context.Context) error {
		ready, err := first.TryOC("get", "deployment", "owner", "-o", "jsonpath={.status.readyReplicas}/{.status.updatedReplicas}")
		if err == nil && ready != "1/1" {
			err = fmt.Errorf("ready and updated are %q", ready)
		}
		return err
	})
	violations, err := os.ReadFile(filepath.Join(d.state, "violations"))
	if !os.IsNotExist(err) {
		t.Errorf("the disk was attached twice: %v\n%s", err, violations)
	}
	attached, err := os.ReadFile(filepath.Join(d.state, "attached"))
	must(t, err)
	t.Logf("the disk was attached %d times", strings.Count(string(attached), "\n"))
}
