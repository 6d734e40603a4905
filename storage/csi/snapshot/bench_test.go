package snapshot

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/csitest"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/session"
)

// bench is a fake driver with one volume, which is bound to the claim ns/data, and an API server
// with a VolumeSnapshotClass.
type bench struct {
	t         *testing.T
	storage   *fake.Driver
	driver    *driver.Driver
	server    *apitest.Server
	kube      kubernetes.Interface     // a user's client, which a killer does not affect
	objects   snapshotclient.Interface // also a user's client
	killer    *csitest.Killer
	node      string
	component *componenttest.Component
	timeout   time.Duration
}

const namespace = "ns"

func newBench(t *testing.T, options fake.Options) *bench {
	t.Helper()
	return newBenchWith(t, options, time.Second)
}

// newBenchWith creates a bench with the given timeout for driver calls.
func newBenchWith(t *testing.T, options fake.Options, timeout time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, storage: fake.New(options), timeout: timeout, server: apitest.Start(t)}
	b.kube, b.objects = b.clients(b.server.Config())
	b.connect()
	b.bind("data", "pv")
	b.class("fast", snapshotv1.VolumeSnapshotContentDelete, true)
	return b
}

func (b *bench) clients(config *rest.Config) (kubernetes.Interface, snapshotclient.Interface) {
	kube, err := kubernetes.NewForConfig(config)
	b.must(err)
	objects, err := snapshotclient.NewForConfig(config)
	b.must(err)
	return kube, objects
}

func claim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// connect starts the driver on a socket and connects to it.
func (b *bench) connect() {
	dir, err := os.MkdirTemp("", "csi")
	b.must(err)
	b.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "csi.sock")
	server, err := b.storage.Listen(socket)
	b.must(err)
	b.t.Cleanup(server.Stop)
	b.driver, err = driver.Dial(socket, driver.Options{Timeout: b.timeout})
	b.must(err)
	b.t.Cleanup(func() { _ = b.driver.Close() })
}

func (b *bench) makeVolume(name string) string {
	response, err := b.storage.CreateVolume(b.t.Context(), &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{{}}, CapacityRange: &csi.CapacityRange{RequiredBytes: 5 << 20},
	})
	b.must(err)
	return response.GetVolume().GetVolumeId()
}

// bind creates a claim and its PersistentVolume.
func (b *bench) bind(name, volume string) {
	bound, err := b.kube.CoreV1().PersistentVolumeClaims(namespace).Create(b.t.Context(), claim(name, volume), metav1.CreateOptions{})
	b.must(err)
	_, err = b.kube.CoreV1().PersistentVolumes().Create(b.t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name, UID: bound.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: fake.Name, VolumeHandle: b.makeVolume(name)},
			},
		},
	}, metav1.CreateOptions{})
	b.must(err)
}

// class creates a VolumeSnapshotClass for the driver.
func (b *bench) class(name string, policy snapshotv1.DeletionPolicy, isDefault bool) {
	c := &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: fake.Name, DeletionPolicy: policy}
	if isDefault {
		c.Annotations = map[string]string{defaultClass: "true"}
	}
	_, err := b.objects.SnapshotV1().VolumeSnapshotClasses().Create(b.t.Context(), c, metav1.CreateOptions{})
	b.must(err)
}

// start runs the controller with new caches, like a new process.
func (b *bench) start() *bench {
	b.t.Helper()
	description, err := b.driver.Describe(b.t.Context())
	b.must(err)
	kube, snapshots := b.clients(b.killer.Config(b.server.Config()))
	shared := informers.NewSharedInformerFactory(kube, 0)
	objects := snapshotinformers.NewSharedInformerFactory(snapshots, 0)
	loops, err := Feature(Options{Retry: 5 * time.Millisecond, Poll: 5 * time.Millisecond})(&session.Session{
		Client: kube, Informers: shared, Snapshots: snapshots, SnapshotInformers: objects, Driver: b.driver, Description: description, Events: &record.FakeRecorder{}, Node: b.node,
	})
	b.must(err)
	for i := range loops {
		loops[i].MaxBackoff = 50 * time.Millisecond
	}
	b.component = componenttest.Run(b.t, func(ctx context.Context, ready func()) error {
		shared.StartWithContext(ctx)
		objects.Start(ctx.Done())
		err := controller.Manager(loops).Run(ctx, ready)
		shared.Shutdown()
		objects.Shutdown()
		return err
	})
	return b
}

// take creates a VolumeSnapshot of the claim "data".
func (b *bench) take(name, class string) {
	b.t.Helper()
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.Source.PersistentVolumeClaimName = ptr.To("data")
	if class != "" {
		s.Spec.VolumeSnapshotClassName = &class
	}
	b.make(s)
}

func (b *bench) make(s *snapshotv1.VolumeSnapshot) {
	b.t.Helper()
	_, err := b.objects.SnapshotV1().VolumeSnapshots(namespace).Create(b.t.Context(), s, metav1.CreateOptions{})
	b.must(err)
}

func (b *bench) delete(name string) {
	b.t.Helper()
	b.must(b.objects.SnapshotV1().VolumeSnapshots(namespace).Delete(b.t.Context(), name, metav1.DeleteOptions{}))
}

// get returns a snapshot, or nil.
func (b *bench) get(name string) *snapshotv1.VolumeSnapshot {
	snapshot, err := b.objects.SnapshotV1().VolumeSnapshots(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	b.must(err)
	return snapshot
}

func (b *bench) contents() []snapshotv1.VolumeSnapshotContent {
	list, err := b.objects.SnapshotV1().VolumeSnapshotContents().List(context.Background(), metav1.ListOptions{})
	b.must(err)
	return list.Items
}

func (b *bench) claim(name string) *corev1.PersistentVolumeClaim {
	claim, err := b.kube.CoreV1().PersistentVolumeClaims(namespace).Get(context.Background(), name, metav1.GetOptions{})
	b.must(err)
	return claim
}

func (b *bench) waitReady(name string) *snapshotv1.VolumeSnapshot {
	b.t.Helper()
	eventually.True(b.t, "snapshot "+name+" is ready", func() bool { s := b.get(name); return s != nil && isReady(s) })
	return b.get(name)
}

func (b *bench) waitGone(name string) {
	b.t.Helper()
	eventually.True(b.t, "snapshot "+name+" is gone", func() bool { return b.get(name) == nil })
}

// waitProblem waits until a snapshot's status contains an error.
func (b *bench) waitProblem(name, text string) {
	b.t.Helper()
	eventually.Equal(b.t, "the error is reported", func() string {
		s := b.get(name)
		if s == nil || s.Status == nil || s.Status.Error == nil {
			return ""
		}
		return *s.Status.Error.Message
	}, text)
}

// clean checks that nothing remains in the storage, and that no VolumeSnapshotContent, finalizer or
// annotation remains in the API server.
func (b *bench) clean(title string) {
	b.t.Helper()
	if remaining := b.storage.Snapshots(); len(remaining) > 0 {
		b.t.Errorf("%s: %d snapshots remain in the storage: %v", title, len(remaining), remaining)
	}
	if contents := b.contents(); len(contents) > 0 {
		b.t.Errorf("%s: %d contents remain: %v", title, len(contents), contents)
	}
	eventually.Equal(b.t, title+": finalizers of the claim", func() int { return len(b.claim("data").Finalizers) }, 0)
}
