package resize

import (
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/csitest"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

func feature() session.Feature {
	return Feature(Options{Retry: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond})
}

func ask(b *csitest.Bench, size string) {
	b.Change(func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	})
}

// told is the claim's capacity, the state of its resize, what is allocated and its condition.
func told(b *csitest.Bench) string {
	claim := b.Claim()
	condition := ""
	for _, c := range claim.Status.Conditions {
		condition += string(c.Type)
	}
	have, allocated := claim.Status.Capacity[corev1.ResourceStorage], claim.Status.AllocatedResources[corev1.ResourceStorage]
	return fmt.Sprintf("%s/%s/%s/%s", have.String(), stateOf(claim), allocated.String(), condition)
}

func check(t *testing.T, b *csitest.Bench, volume string, storage int64) {
	t.Helper()
	if got := b.Volume().Spec.Capacity[corev1.ResourceStorage]; got.Cmp(resource.MustParse(volume)) != 0 {
		t.Errorf("the PersistentVolume has %s, want %s", got.String(), volume)
	}
	if got := b.Storage.Volumes()["data"].Size; got != storage {
		t.Errorf("the storage gives %d bytes, want %d", got, storage)
	}
}

func TestVolumeGrows(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{})
	b.Start(feature())
	ask(b, "3Gi")
	eventually.Equal(t, "the claim", func() string { return told(b) }, "3Gi//3Gi/")
	check(t, b, "3Gi", 3<<30)
}

func TestNodeHasTheLastStep(t *testing.T) {
	tests := map[string]fake.Options{
		"the controller begins": {NodeExpansion: true},
		"only the node can":     {LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME}},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			b := csitest.NewBench(t, options)
			b.Start(feature())
			ask(b, "3Gi")
			eventually.Equal(t, "the claim", func() string { return told(b) }, "1Gi/NodeResizePending/3Gi/FileSystemResizePending")
			if got := b.Volume().Spec.Capacity[corev1.ResourceStorage]; got.String() != "3Gi" {
				t.Errorf("the PersistentVolume has %s: kubelet would not make the file system larger", got.String())
			}
			ask(b, "4Gi")
			eventually.Equal(t, "more is asked for", func() string { return told(b) }, "1Gi/NodeResizePending/4Gi/FileSystemResizePending")
		})
	}
}

func TestDriverThatCannotIsTold(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{
		LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME},
		LacksNode:       []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_EXPAND_VOLUME},
	})
	b.Start(feature())
	ask(b, "3Gi")
	eventually.Equal(t, "the claim", func() string { return told(b) }, "1Gi/ControllerResizeInfeasible/3Gi/ControllerResizeError")
}

func TestUserAsksForLessAfterARefusal(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{Capacity: 4 << 30})
	b.Start(feature())
	ask(b, "9Gi")
	eventually.Equal(t, "the refusal", func() string { return told(b) }, "1Gi/ControllerResizeInfeasible/9Gi/ControllerResizeError")
	ask(b, "3Gi")
	eventually.Equal(t, "less is asked for", func() string { return told(b) }, "3Gi//3Gi/")
	check(t, b, "3Gi", 3<<30)
}

func TestUnknownOutcomeStaysTheGoal(t *testing.T) {
	late := fake.Fault{After: status.Error(codes.DeadlineExceeded, "late")}
	b := csitest.NewBench(t, fake.Options{Plan: fake.Always("ControllerExpandVolume", late)})
	b.Start(feature())
	ask(b, "5Gi")
	eventually.Equal(t, "the error", func() string { return told(b) }, "1Gi/ControllerResizeInProgress/5Gi/ControllerResizeError")
	ask(b, "3Gi")
	b.Storage.SetPlan(nil)
	eventually.Equal(t, "the claim", func() string { return told(b) }, "5Gi//5Gi/")
	check(t, b, "5Gi", 5<<30)
}

func TestVolumeInUseGrowsWhenItIsDetached(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{OfflineOnly: true})
	_, err := b.Driver.Controller().ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{
		VolumeId: b.Handle, NodeId: "node", VolumeCapability: &csi.VolumeCapability{},
	})
	if err != nil {
		t.Fatal(err)
	}
	attachments := b.Kube.StorageV1().VolumeAttachments()
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: fake.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")},
	}}
	if _, err := attachments.Create(t.Context(), attachment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Start(Feature(Options{Retry: time.Hour, RetryMax: time.Hour})) // only the detachment can cause the second try
	ask(b, "3Gi")
	eventually.Equal(t, "the error", func() string { return told(b) }, "1Gi/ControllerResizeInProgress/3Gi/ControllerResizeError")
	b.Storage.Detach(b.Handle, "node")
	if err := attachments.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "the claim", func() string { return told(b) }, "3Gi//3Gi/")
}

func TestKilledAnywhereItConverges(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, ended := 1, false; !ended; at++ {
			t.Run(fmt.Sprintf("after=%t/%d", after, at), func(t *testing.T) { ended = killAt(t, at, after) })
		}
	}
}

func killAt(t *testing.T, at int, after bool) (ended bool) {
	killer := &csitest.Killer{After: after}
	b := csitest.NewBench(t, fake.Options{Plan: killer.Plan()})
	b.Killer = killer
	part := b.Start(feature())
	killer.Arm(at)
	ask(b, "3Gi")
	eventually.True(t, "the process is killed or the claim has its size", func() bool { return killer.Dead() || told(b) == "3Gi//3Gi/" })
	ended = !killer.Dead()
	part.Stop()
	killer.Revive()
	b.Start(feature())
	eventually.Equal(t, "killed at "+killer.Where(), func() string { return told(b) }, "3Gi//3Gi/")
	check(t, b, "3Gi", 3<<30)
	return ended
}

func TestRandomFaultsConverge(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			b := csitest.NewBench(t, fake.Options{})
			b.Start(feature())
			b.Storage.SetPlan(fake.Random(seed, 0.6, 6))
			ask(b, "2Gi")
			ask(b, "3Gi")
			eventually.Equal(t, "the claim", func() string { return told(b) }, "3Gi//3Gi/")
			check(t, b, "3Gi", 3<<30)
		})
	}
}
