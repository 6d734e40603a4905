package snapshot

import (
	"fmt"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/csitest"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

func TestDriverErrorIsReportedAndCleared(t *testing.T) {
	full := status.Error(codes.ResourceExhausted, "the pool is full")
	b := newBench(t, fake.Options{Plan: fake.Always("CreateSnapshot", fake.Fault{Before: full})}).start()
	b.take("monday", "")
	b.waitProblem("monday", `call CreateSnapshot of CSI driver "fake.csi.slipway.io": ResourceExhausted: the pool is full`)
	b.storage.SetPlan(nil)
	s := b.waitReady("monday")
	if s.Status.Error != nil {
		t.Errorf("the status still contains %q", *s.Status.Error.Message)
	}
}

func TestSecretsAndParametersReachDriver(t *testing.T) {
	b := newBench(t, fake.Options{})
	_, err := b.kube.CoreV1().Secrets("storage").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "of-monday"}, Data: map[string][]byte{"password": []byte("hunter2")},
	}, metav1.CreateOptions{})
	b.must(err)
	_, err = b.objects.SnapshotV1().VolumeSnapshotClasses().Create(t.Context(), &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "secret"}, Driver: fake.Name, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		Parameters: map[string]string{
			"tier": "cold", "csi.storage.k8s.io/snapshotter-secret-name": "of-${volumesnapshot.name}", "csi.storage.k8s.io/snapshotter-secret-namespace": "storage",
		},
	}, metav1.CreateOptions{})
	b.must(err)
	b.start()
	b.take("monday", "secret")
	b.waitReady("monday")
	b.must(b.objects.SnapshotV1().VolumeSnapshotClasses().Delete(t.Context(), "secret", metav1.DeleteOptions{}))
	b.delete("monday")
	b.waitGone("monday")
	for _, call := range b.storage.Calls("CreateSnapshot", "DeleteSnapshot") {
		got := call.Request.(interface{ GetSecrets() map[string]string }).GetSecrets()
		if got["password"] != "hunter2" || len(got) != 1 {
			t.Errorf("%s got secrets %v", call.Method, got)
		}
	}
	create := b.storage.Calls("CreateSnapshot")[0].Request.(interface{ GetParameters() map[string]string })
	if got := create.GetParameters(); len(got) != 1 || got["tier"] != "cold" {
		t.Errorf("CreateSnapshot got parameters %v", got)
	}
}

func TestDeletionWithUnknownOutcomeLeaksNothing(t *testing.T) {
	timeout := fake.Fault{After: status.Error(codes.DeadlineExceeded, "late")}
	b := newBench(t, fake.Options{Plan: fake.Always("CreateSnapshot", timeout)}).start()
	b.take("monday", "")
	b.waitProblem("monday", `call CreateSnapshot of CSI driver "fake.csi.slipway.io": DeadlineExceeded: late`)
	b.delete("monday")
	eventually.True(t, "the outcome is queried", func() bool { return len(b.storage.Calls("CreateSnapshot")) > 3 })
	if s := b.get("monday"); s == nil {
		t.Fatal("the snapshot is deleted before its outcome is known")
	}
	b.storage.SetPlan(nil)
	b.waitGone("monday")
	b.clean("afterwards")
}

func TestSlowSnapshotsLeaveWorkersToOtherNamespaces(t *testing.T) {
	b := newBenchWith(t, fake.Options{Plan: fake.Always("CreateSnapshot", fake.Fault{Hang: true})}, time.Hour).start()
	for i := range 20 {
		b.take(fmt.Sprint("slow", i), "fast")
	}
	eventually.True(t, "snapshots are being created", func() bool { return len(b.storage.Snapshots()) >= namespaceWorkers })
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "monday"}}
	s.Spec.Source.PersistentVolumeClaimName, s.Spec.VolumeSnapshotClassName = ptr.To("missing"), ptr.To("fast")
	objects := b.objects.SnapshotV1().VolumeSnapshots(s.Namespace)
	_, err := objects.Create(t.Context(), s, metav1.CreateOptions{})
	b.must(err)
	eventually.True(t, "the error in the other namespace is reported", func() bool {
		current, err := objects.Get(t.Context(), s.Name, metav1.GetOptions{})
		return err == nil && current.Status != nil && current.Status.Error != nil
	})
	if n := len(b.storage.Snapshots()); n != namespaceWorkers {
		t.Errorf("%d snapshots of a namespace are created at the same time, want %d", n, namespaceWorkers)
	}
}

func TestOnlyNodeOfVolumeCreatesSnapshot(t *testing.T) {
	b := newBench(t, fake.Options{})
	for _, name := range []string{"one", "two"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		_, err := b.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		b.must(err)
	}
	volume, err := b.kube.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	b.must(err)
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"two"}}},
	}}}}
	_, err = b.kube.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	b.must(err)
	b.node = "one"
	b.start()
	b.node = "two"
	b.start()
	b.take("monday", "")
	b.waitReady("monday")
	if label := b.contents()[0].Labels[managedBy]; label != "two" {
		t.Errorf("managed by %q, want the node of the volume", label)
	}
	if n := len(b.storage.Calls("CreateSnapshot")); n != 1 {
		t.Errorf("%d calls of CreateSnapshot", n)
	}
	b.delete("monday")
	b.waitGone("monday")
	b.clean("afterwards")
}

// TestKillAtAnyCallConverges kills the process before and after every request and call in a
// snapshot's lifecycle.
func TestKillAtAnyCallConverges(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, ok := 1, false; !ok; at++ {
			t.Run(fmt.Sprintf("after=%t/%d", after, at), func(t *testing.T) { ok = killAt(t, at, after) })
		}
	}
}

// killAt runs a snapshot's lifecycle and kills the process at the given call. It reports whether
// the lifecycle was completed before this call.
func killAt(t *testing.T, at int, after bool) (ended bool) {
	killer := &csitest.Killer{After: after}
	b := newBench(t, fake.Options{SnapshotSteps: 1, Plan: killer.Plan()})
	b.killer = killer
	b.start()
	b.take("monday", "")
	killer.Arm(at)
	deleted := false
	eventually.True(t, "the process is killed or the snapshot is deleted", func() bool {
		s := b.get("monday")
		if s == nil || killer.Dead() {
			return true
		}
		if isReady(s) && !deleted {
			deleted = true
			b.delete("monday")
		}
		return false
	})
	if !killer.Dead() {
		b.clean("without a kill")
		return true
	}
	b.component.Stop()
	killer.Revive()
	b.start()
	if !deleted {
		b.waitReady("monday")
		b.delete("monday")
	}
	b.waitGone("monday")
	b.clean("killed at " + killer.Where())
	return false
}

// TestRandomFaultsLeakNothing creates and deletes snapshots while the driver fails at random.
func TestRandomFaultsLeakNothing(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b := newBenchWith(t, fake.Options{SnapshotSteps: 1}, 200*time.Millisecond).start()
			b.storage.SetPlan(fake.Random(seed, 0.5, 40))
			for i := range 4 {
				b.take(fmt.Sprint("s", i), "")
			}
			b.delete("s0") // the snapshot might not have been created yet
			for i := 1; i < 4; i++ {
				b.waitReady(fmt.Sprint("s", i))
			}
			b.waitGone("s0")
			if n, m := len(b.storage.Snapshots()), len(b.contents()); n != 3 || m != 3 {
				t.Errorf("%d snapshots in the storage, %d contents; want 3", n, m)
			}
			for i := 1; i < 4; i++ {
				b.delete(fmt.Sprint("s", i))
			}
			for i := 1; i < 4; i++ {
				b.waitGone(fmt.Sprint("s", i))
			}
			b.clean("afterwards")
		})
	}
}
