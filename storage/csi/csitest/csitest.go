// Package csitest supports tests of CSI driver controllers. It provides a fake driver with a
// volume, an in-memory API server, and a way to kill a process between any two of its calls.
package csitest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Namespace is the namespace of the bench's claim.
const Namespace = "ns"

// Bench is a fake driver with one volume of 1 GiB, and an API server in which the volume is bound
// to the claim "data" in Namespace.
type Bench struct {
	Storage *fake.Driver
	Driver  *driver.Driver
	Kube    kubernetes.Interface // a user's client, which a Killer does not affect
	Handle  string               // the driver's volume handle
	Killer  *Killer              // kills the processes that Start starts; optional

	t   testing.TB
	api *apitest.Server
}

// NewBench creates a bench that is closed at the end of the test.
func NewBench(t testing.TB, options fake.Options) *Bench {
	t.Helper()
	b := &Bench{t: t, Storage: fake.New(options), api: apitest.Start(t)}
	var err error
	b.Kube, err = kubernetes.NewForConfig(b.api.Config())
	b.must(err)
	dir, err := os.MkdirTemp("", "csi") // short path for a socket
	b.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := b.Storage.Listen(filepath.Join(dir, "csi.sock"))
	b.must(err)
	t.Cleanup(server.Stop)
	b.Driver, err = driver.Dial(filepath.Join(dir, "csi.sock"), driver.Options{Timeout: time.Second})
	b.must(err)
	t.Cleanup(func() { _ = b.Driver.Close() })
	response, err := b.Storage.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "data", VolumeCapabilities: []*csi.VolumeCapability{{}}})
	b.must(err)
	b.Handle = response.GetVolume().GetVolumeId()
	b.createBound()
	return b
}

func (b *Bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// createBound creates the claim and its PersistentVolume.
func (b *Bench) createBound() {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim, err := b.Kube.CoreV1().PersistentVolumeClaims(Namespace).Create(b.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv", Resources: corev1.VolumeResourceRequirements{Requests: size}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size},
	}, metav1.CreateOptions{})
	b.must(err)
	_, err = b.Kube.CoreV1().PersistentVolumes().Create(b.t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: Namespace, Name: "data", UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: fake.Name, VolumeHandle: b.Handle}},
		},
	}, metav1.CreateOptions{})
	b.must(err)
}

// Start runs a feature's controllers with new caches, like a new process.
func (b *Bench) Start(feature session.Feature) *componenttest.Component {
	b.t.Helper()
	description, err := b.Driver.Describe(b.t.Context())
	b.must(err)
	client, err := kubernetes.NewForConfig(b.Killer.Config(b.api.Config()))
	b.must(err)
	shared := informers.NewSharedInformerFactory(client, 0)
	loops, err := feature(&session.Session{
		Client: client, Informers: shared, Driver: b.Driver, Description: description, Events: &record.FakeRecorder{},
	})
	b.must(err)
	return componenttest.Run(b.t, func(ctx context.Context, ready func()) error {
		shared.StartWithContext(ctx)
		defer shared.Shutdown()
		return controller.Manager(loops).Run(ctx, ready)
	})
}

// Claim returns the current claim.
func (b *Bench) Claim() *corev1.PersistentVolumeClaim {
	claim, err := b.Kube.CoreV1().PersistentVolumeClaims(Namespace).Get(context.Background(), "data", metav1.GetOptions{})
	b.must(err)
	return claim
}

// Volume returns the current PersistentVolume.
func (b *Bench) Volume() *corev1.PersistentVolume {
	volume, err := b.Kube.CoreV1().PersistentVolumes().Get(context.Background(), "pv", metav1.GetOptions{})
	b.must(err)
	return volume
}

// Change changes the claim's spec, as a user would.
func (b *Bench) Change(change func(*corev1.PersistentVolumeClaimSpec)) {
	b.t.Helper()
	b.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		claim := b.Claim()
		change(&claim.Spec)
		_, err := b.Kube.CoreV1().PersistentVolumeClaims(Namespace).Update(context.Background(), claim, metav1.UpdateOptions{})
		return err
	}))
}
