package modify

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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

func newBench(t *testing.T, options fake.Options) *csitest.Bench {
	t.Helper()
	b := csitest.NewBench(t, options)
	class(t, b, "gold", fake.Name, map[string]string{"iops": "9000"})
	class(t, b, "odd", fake.Name, map[string]string{"colour": "red"})
	class(t, b, "other", "other.example.com", nil)
	return b
}

func class(t *testing.T, b *csitest.Bench, name, driver string, parameters map[string]string) {
	t.Helper()
	_, err := b.Kube.StorageV1().VolumeAttributesClasses().Create(t.Context(), &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, DriverName: driver, Parameters: parameters,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func choose(b *csitest.Bench, class string) {
	b.Change(func(spec *corev1.PersistentVolumeClaimSpec) { spec.VolumeAttributesClassName = ptr.To(class) })
}

// claimStatus returns the claim's class, the modification state, and the claim's condition.
func claimStatus(b *csitest.Bench) string {
	claim := b.Claim()
	text := currentClass(claim)
	if s := claim.Status.ModifyVolumeStatus; s != nil {
		text += " " + s.TargetVolumeAttributesClassName + ":" + string(s.Status)
	}
	for _, c := range claim.Status.Conditions {
		text += " " + string(c.Type)
	}
	return text
}

func TestVolumeIsModified(t *testing.T) {
	b := newBench(t, fake.Options{})
	b.Start(feature())
	choose(b, "gold")
	eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "gold")
	if got := b.Storage.Volumes()["data"].Mutable["iops"]; got != "9000" {
		t.Errorf("the storage has %q", got)
	}
	if got := ptr.Deref(b.Volume().Spec.VolumeAttributesClassName, ""); got != "gold" {
		t.Errorf("the PersistentVolume has class %q", got)
	}
}

func TestInfeasibleClassIsReportedAndReplaced(t *testing.T) {
	for name, want := range map[string]string{
		"odd": " odd:Infeasible ModifyVolumeError", "other": " other:Infeasible ModifyVolumeError", "later": " later:Pending ModifyVolumeError",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake.Options{})
			b.Start(feature())
			choose(b, name)
			eventually.Equal(t, "the rejection", func() string { return claimStatus(b) }, want)
			if name == "later" {
				class(t, b, "later", fake.Name, map[string]string{"tier": "hot"})
				eventually.Equal(t, "the class is created", func() string { return claimStatus(b) }, "later")
			}
			choose(b, "gold")
			eventually.Equal(t, "another class", func() string { return claimStatus(b) }, "gold")
		})
	}
}

func TestTemporaryErrorIsRetried(t *testing.T) {
	timeout := fake.Fault{After: status.Error(codes.DeadlineExceeded, "late")}
	b := newBench(t, fake.Options{Plan: fake.Always("ControllerModifyVolume", timeout)})
	b.Start(feature())
	choose(b, "gold")
	eventually.Equal(t, "the error", func() string { return claimStatus(b) }, " gold:InProgress ModifyVolumeError")
	b.Storage.SetPlan(nil)
	eventually.Equal(t, "the claim", func() string { return claimStatus(b) }, "gold")
}

func TestKillAtAnyCallConverges(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, ok := 1, false; !ok; at++ {
			t.Run(fmt.Sprintf("after=%t/%d", after, at), func(t *testing.T) {
				killer := &csitest.Killer{After: after}
				b := newBench(t, fake.Options{Plan: killer.Plan()})
				b.Killer = killer
				part := b.Start(feature())
				killer.Arm(at)
				choose(b, "gold")
				eventually.True(t, "the process is killed or the volume is modified", func() bool { return killer.Dead() || claimStatus(b) == "gold" })
				ok = !killer.Dead()
				part.Stop()
				killer.Revive()
				b.Start(feature())
				eventually.Equal(t, "killed at "+killer.Where(), func() string { return claimStatus(b) }, "gold")
			})
		}
	}
}
