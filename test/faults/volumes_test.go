package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/kit"
)

// owner is a manifest for the disk's volume and claim, and for a Deployment whose only pod uses the
// disk.
const owner = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  claimRef: {namespace: default, name: disk}
  flexVolume: {driver: ` + kit.DiskDriver + `}
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

// disk moves a pod from node to node. The pod uses the only disk.
type disk struct {
	*kit.Disk
	stop    context.CancelFunc
	running sync.WaitGroup
}

// startDisk creates the disk for all hosts, and starts the pod.
func startDisk(t *testing.T, hosts map[string]*kit.Cluster) *disk {
	t.Helper()
	created := kit.NewDisk(t, slices.Collect(maps.Values(hosts))...)
	hosts["first"].Apply(owner)
	hosts["first"].WaitFor("attached disk", func(context.Context) error {
		if created.Holder(t) == "" {
			return errors.New("it is not attached")
		}
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	d := &disk{Disk: created, stop: stop}
	d.running.Go(func() { d.move(ctx, hosts) })
	return d
}

// move moves the pod until ctx is done. It sends its requests to the masters in turn. If a move
// fails, the next move goes to the next master.
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

// check fails the test if the disk was attached to two nodes at the same time. It also fails the
// test if the pod does not run after the faults have ended.
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
	d.Check(t)
}
