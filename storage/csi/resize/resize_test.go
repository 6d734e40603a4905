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

func request(b *csitest.Bench, size string) {
	b.Change(func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	})
}

// claimStatus returns the claim's capacity, resize state, allocated size and condition.
func claimStatus(b *csitest.Bench) string {
	claim := b.Claim()
	condition := ""
	for _, c := range claim.Status.Conditions {
		condition += string(c.Type)
	}
	current, allocated := claim.Status.Capacity[corev1.ResourceStorage], claim.Status.AllocatedResources[corev1.ResourceStorage]
	return fmt.Sprintf("%s/%s/%s/%s", current.String(), stateOf(claim), allocated.String(), condition)
}

func check(t *testing.T, b *csitest.Bench, volume string, storage int64) {
	t.Helper()
	if got := b.Volume().Spec.Capacity[corev1.ResourceStorage]; got.Cmp(resource.MustParse(volume)) != 0 {
		t.Errorf("the PersistentVolume has %s, want %s", got.String(), volume)
	}
	if got := b.Storage.Volumes()["data"].Size; got != storage {
		t.Errorf("the storage has %d bytes, want %d", got, storage)
	}
}

func TestVolumeIsExpanded(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{})
	b.Start(feature())
	request(b, "3Gi")
	eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "3Gi//3Gi/")
	check(t, b, "3Gi", 3<<30)
}

func TestNodeExpansionIsLeftToKubelet(t *testing.T) {
	tests := map[string]fake.Options{
		"the controller expands first": {NodeExpansion: true},
		"only the node expands":        {LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME}},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			b := csitest.NewBench(t, options)
			b.Start(feature())
			request(b, "3Gi")
			eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "1Gi/NodeResizePending/3Gi/FileSystemResizePending")
			if got := b.Volume().Spec.Capacity[corev1.ResourceStorage]; got.String() != "3Gi" {
				t.Errorf("the PersistentVolume has %s: kubelet would not expand the file system", got.String())
			}
			request(b, "4Gi")
			eventually.Equal(t, "more is requested", func() string { return claimStatus(b) }, "1Gi/NodeResizePending/4Gi/FileSystemResizePending")
		})
	}
}

func TestUnsupportedDriverIsReported(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{
		LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME},
		LacksNode:       []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_EXPAND_VOLUME},
	})
	b.Start(feature())
	request(b, "3Gi")
	eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "1Gi/ControllerResizeInfeasible/3Gi/ControllerResizeError")
}

func TestRequestIsReducedAfterRejection(t *testing.T) {
	b := csitest.NewBench(t, fake.Options{Capacity: 4 << 30})
	b.Start(feature())
	request(b, "9Gi")
	eventually.Equal(t, "the rejection", func() string { return claimStatus(b) }, "1Gi/ControllerResizeInfeasible/9Gi/ControllerResizeError")
	request(b, "3Gi")
	eventually.Equal(t, "less is requested", func() string { return claimStatus(b) }, "3Gi//3Gi/")
	check(t, b, "3Gi", 3<<30)
}

func TestUnknownOutcomeKeepsTarget(t *testing.T) {
	timeout := fake.Fault{After: status.Error(codes.DeadlineExceeded, "late")}
	b := csitest.NewBench(t, fake.Options{Plan: fake.Always("ControllerExpandVolume", timeout)})
	b.Start(feature())
	request(b, "5Gi")
	eventually.Equal(t, "the error", func() string { return claimStatus(b) }, "1Gi/ControllerResizeInProgress/5Gi/ControllerResizeError")
	request(b, "3Gi")
	b.Storage.SetPlan(nil)
	eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "5Gi//5Gi/")
	check(t, b, "5Gi", 5<<30)
}

func TestVolumeInUseIsExpandedAfterDetach(t *testing.T) {
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
	// Only the detachment triggers the second attempt.
	b.Start(Feature(Options{Retry: time.Hour, RetryMax: time.Hour}))
	request(b, "3Gi")
	eventually.Equal(t, "the error", func() string { return claimStatus(b) }, "1Gi/ControllerResizeInProgress/3Gi/ControllerResizeError")
	b.Storage.Detach(b.Handle, "node")
	if err := attachments.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "3Gi//3Gi/")
}

func TestKillAtAnyCallConverges(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, ok := 1, false; !ok; at++ {
			t.Run(fmt.Sprintf("after=%t/%d", after, at), func(t *testing.T) { ok = killAt(t, at, after) })
		}
	}
}

func killAt(t *testing.T, at int, after bool) (ended bool) {
	killer := &csitest.Killer{After: after}
	b := csitest.NewBench(t, fake.Options{Plan: killer.Plan()})
	b.Killer = killer
	part := b.Start(feature())
	killer.Arm(at)
	request(b, "3Gi")
	eventually.True(t, "the process is killed or the claim has its size", func() bool { return killer.Dead() || claimStatus(b) == "3Gi//3Gi/" })
	ended = !killer.Dead()
	part.Stop()
	killer.Revive()
	b.Start(feature())
	eventually.Equal(t, "killed at "+killer.Where(), func() string { return claimStatus(b) }, "3Gi//3Gi/")
	check(t, b, "3Gi", 3<<30)
	return ended
}

func TestRandomFaultsConverge(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			b := csitest.NewBench(t, fake.Options{})
			b.Start(feature())
			b.Storage.SetPlan(fake.Random(seed, 0.6, 6))
			request(b, "2Gi")
			request(b, "3Gi")
			eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "3Gi//3Gi/")
			check(t, b, "3Gi", 3<<30)
		})
	}
}
