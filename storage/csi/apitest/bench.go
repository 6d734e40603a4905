package apitest

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
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/parttest"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// Namespace is the namespace of the bench's claim.
const Namespace = "ns"

// Bench is a driver with one volume of 1 GiB, and an API server where the volume is bound to the claim "data" of Namespace.
type Bench struct {
	Server
	Storage *fake.Driver
	Driver  *driver.Driver
	Kube    *kubefake.Clientset
	Handle  string // the volume's

	t testing.TB
}

// NewBench makes a bench that ends with the test.
func NewBench(t testing.TB, options fake.Options) *Bench {
	t.Helper()
	b := &Bench{t: t, Storage: fake.New(options), Kube: kubefake.NewSimpleClientset()} // the other one manages fields, which is slow
	b.Serve(&b.Kube.Fake, b.Kube.Tracker())
	dir, err := os.MkdirTemp("", "csi") // short, for a socket
	b.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := b.Storage.Listen(filepath.Join(dir, "csi.sock"))
	b.must(err)
	t.Cleanup(server.Stop)
	b.Driver, err = driver.Dial(filepath.Join(dir, "csi.sock"), driver.Options{Timeout: time.Second})
	b.must(err)
	t.Cleanup(func() { _ = b.Driver.Close() })
	answer, err := b.Driver.Controller().CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "data", VolumeCapabilities: []*csi.VolumeCapability{{}}})
	b.must(err)
	b.Handle = answer.GetVolume().GetVolumeId()
	b.bound()
	return b
}

func (b *Bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// bound makes the claim and its PersistentVolume.
func (b *Bench) bound() {
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

// Start runs the loops of a feature with new caches, as a process that starts does.
func (b *Bench) Start(feature session.Feature) *parttest.Part {
	b.t.Helper()
	description, err := b.Driver.Describe(b.t.Context())
	b.must(err)
	shared := informers.NewSharedInformerFactory(b.Kube, 0)
	loops, err := feature(&session.Session{
		Client: b.Kube, Informers: shared, Driver: b.Driver, Description: description, Events: &record.FakeRecorder{},
	})
	b.must(err)
	return parttest.Run(b.t, func(ctx context.Context, ready func()) error {
		shared.StartWithContext(ctx)
		defer shared.Shutdown()
		return controller.Set(loops).Run(ctx, ready)
	})
}

// Claim is the claim now.
func (b *Bench) Claim() *corev1.PersistentVolumeClaim {
	object, err := b.Kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Namespace, "data")
	b.must(err)
	return object.(*corev1.PersistentVolumeClaim)
}

// Volume is the PersistentVolume now.
func (b *Bench) Volume() *corev1.PersistentVolume {
	object, err := b.Kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), "", "pv")
	b.must(err)
	return object.(*corev1.PersistentVolume)
}

// Change changes the claim's specification as its user does.
func (b *Bench) Change(change func(*corev1.PersistentVolumeClaimSpec)) {
	b.t.Helper()
	b.AsUser(func() {
		claim := b.Claim()
		claim.ResourceVersion = ""
		change(&claim.Spec)
		_, err := b.Kube.CoreV1().PersistentVolumeClaims(Namespace).Update(b.t.Context(), claim, metav1.UpdateOptions{})
		b.must(err)
	})
}
